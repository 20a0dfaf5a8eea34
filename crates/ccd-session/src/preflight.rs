//! Checks before anything is started: pure functions over what the host port found.
//!
//! Here live the rules and their messages. Reading a file, running a program and starting anything never do.

use std::{collections::BTreeMap, path::Path};

use ccd_model::{
    permission::check_policy,
    spec::{Account, Conversation, ExpectVersion, SessionSpec, Trust},
    time::Wall,
};
use ccd_ports::{
    error::{PortError, PortErrorKind as Kind},
    host::{AccountFacts, ClaudeBinary, LayerKind, LiveClaude, SettingsLayer, WorkspaceFacts},
};
use serde_json::Value;

use crate::{
    argv_builder::check_extra,
    env_builder::{OAUTH_TOKEN, OTHER_ACCOUNT, check_additions},
};

/// File in Claude's configuration directory that rebinds keys.
pub(crate) const KEYBINDINGS_NAME: &str = "keybindings.json";

/// Keys that the driver presses or relies on.
const DRIVER_KEYS: &[&str] = &["enter", "escape", "ctrl+g", "ctrl+c", "shift+tab"];

/// Contexts in which those keys matter.
const DRIVER_CONTEXTS: &[&str] = &["Chat", "Confirmation", "Global"];

/// Variables in a settings layer's `env` that move Claude's calls away from the subscription service.
const GATEWAY: &str = "ANTHROPIC_BASE_URL";

/// What the settings layers mean for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SettingsFindings {
    /// A Stop hook that is not ours may run: one is configured, or a plugin could bring one.
    pub(crate) other_stop_hooks: bool,
    /// The user has an allowlist for HTTP hooks, so ours must be added to it.
    pub(crate) http_allowlist: bool,
}

/// Checks the options against each other.
///
/// # Errors
/// `Config` for contradictions and malformed values, `AccountRefused` for variables of another account.
pub(crate) fn config(spec: &SessionSpec) -> Result<(), PortError> {
    let config = |message: String| Err(PortError::new(Kind::Config, message));
    if let Err(contradiction) = check_policy(spec.policy, spec.mode) {
        return config(contradiction.0.to_owned());
    }
    if !Path::new(&spec.cwd).is_absolute() {
        return config(format!(
            "the working directory `{}` is not absolute",
            spec.cwd
        ));
    }
    if let Conversation::Resume { id, .. } = &spec.conversation
        && !is_uuid(id)
    {
        return config(format!("`{}` is not a session id", id.escape_default()));
    }
    for (name, value) in [
        ("start", spec.limits.start_ms),
        ("permission", spec.limits.permission_ms),
        ("close", spec.limits.close_ms),
    ] {
        if value == 0 {
            return config(format!("the {name} limit is zero"));
        }
    }
    check_extra(&spec.extra_args)?;
    check_additions(&spec.env, spec.account)
}

/// Checks Claude's version.
///
/// # Errors
/// `ClaudeVersion` when the pinned one is wanted and another was found.
pub(crate) fn version(
    spec: &SessionSpec,
    found: &ClaudeBinary,
    pinned: &str,
) -> Result<(), PortError> {
    if spec.expect_version == ExpectVersion::Any || found.version == pinned {
        return Ok(());
    }
    Err(PortError::new(
        Kind::ClaudeVersion,
        format!(
            "{} is version {}, this driver is built for {pinned}",
            found.path.display(),
            found.version
        ),
    )
    .with_fix(format!(
        "Install {pinned}, or accept any version without guarantees."
    )))
}

/// Checks login and onboarding. `env` is the child's environment, `now` the wall clock.
///
/// # Errors
/// `NotOnboarded`, `LoggedOut` or `AccountRefused`.
pub(crate) fn account(
    spec: &SessionSpec,
    env: &BTreeMap<String, String>,
    facts: &AccountFacts,
    now: Wall,
) -> Result<(), PortError> {
    if !facts.onboarded {
        return Err(PortError::new(
            Kind::NotOnboarded,
            "Claude's first-run setup was never completed",
        )
        .with_fix("Run `claude` once by hand."));
    }
    if spec.account == Account::Any || env.contains_key(OAUTH_TOKEN) {
        return Ok(());
    }
    if !facts.oauth && facts.stored_api_key {
        return Err(PortError::new(
            Kind::AccountRefused,
            "Claude uses a stored API key, not a subscription login",
        )
        .with_fix("Log in with /login, or allow any account."));
    }
    let expired = facts.expires_at.is_some_and(|at| at <= now.0) && !facts.refreshable;
    if !facts.oauth || expired {
        return Err(
            PortError::new(Kind::LoggedOut, "nobody is logged in to Claude")
                .with_fix("Run `claude` and log in with /login."),
        );
    }
    Ok(())
}

/// Checks the settings layers.
///
/// # Errors
/// `SettingsConflict` for what makes driving impossible, `AccountRefused` for what chooses another account.
pub(crate) fn settings(
    spec: &SessionSpec,
    layers: &[SettingsLayer],
) -> Result<SettingsFindings, PortError> {
    let mut findings = SettingsFindings::default();
    for layer in layers {
        let conflict = |what: &str| {
            PortError::new(
                Kind::SettingsConflict,
                format!("{}: {what}", layer.path.display()),
            )
        };
        let text = match &layer.content {
            Ok(text) => text,
            Err(why) => return Err(conflict(&format!("cannot be read: {why}"))),
        };
        let Some(Value::Object(root)) = text.value() else {
            return Err(conflict("is not a JSON object")
                .with_fix("Repair the file; Claude would stop at a dialog about it."));
        };
        let on = |key: &str| root.get(key).and_then(Value::as_bool) == Some(true);
        if on("disableAllHooks") {
            return Err(conflict("`disableAllHooks` is on, and hooks are needed")
                .with_fix("Remove `disableAllHooks`."));
        }
        if layer.kind == LayerKind::Managed && on("allowManagedHooksOnly") {
            return Err(conflict("only managed hooks may run, and hooks are needed"));
        }
        if spec.account == Account::Subscription {
            subscription_only(&root).map_err(|what| {
                PortError::new(
                    Kind::AccountRefused,
                    format!(
                        "{}: {what} chooses another account than the subscription login",
                        layer.path.display()
                    ),
                )
                .with_fix("Remove it, or allow any account.")
            })?;
        }
        findings.http_allowlist |= root.contains_key("allowedHttpHookUrls");
        findings.other_stop_hooks |= has_stop_hook(&root) || has_plugin(&root);
    }
    Ok(findings)
}

fn subscription_only(root: &serde_json::Map<String, Value>) -> Result<(), String> {
    if root.get("apiKeyHelper").is_some_and(|v| !v.is_null()) {
        return Err("`apiKeyHelper`".to_owned());
    }
    let env = root.get("env").and_then(Value::as_object);
    let other = env.and_then(|env| {
        env.keys()
            .find(|name| OTHER_ACCOUNT.contains(&name.as_str()) || *name == GATEWAY)
    });
    other.map_or(Ok(()), |name| Err(format!("the variable {name}")))
}

fn has_stop_hook(root: &serde_json::Map<String, Value>) -> bool {
    root.get("hooks")
        .and_then(|hooks| hooks.get("Stop"))
        .and_then(Value::as_array)
        .is_some_and(|groups| {
            groups.iter().any(|group| {
                group
                    .get("hooks")
                    .and_then(Value::as_array)
                    .is_none_or(|hooks| !hooks.is_empty())
            })
        })
}

/// A plugin may bring hooks that no settings layer shows.
fn has_plugin(root: &serde_json::Map<String, Value>) -> bool {
    root.get("enabledPlugins")
        .and_then(Value::as_object)
        .is_some_and(|plugins| plugins.values().any(|on| on.as_bool() != Some(false)))
}

/// Checks the text of the key-binding file. What Claude cannot parse it ignores, and so does this.
///
/// # Errors
/// `SettingsConflict` when a key that the driver needs is bound.
pub(crate) fn keybindings(path: &Path, text: &str) -> Result<(), PortError> {
    let Ok(root) = serde_json::from_str::<Value>(text) else {
        return Ok(());
    };
    let groups = root.get("bindings").and_then(Value::as_array);
    for group in groups.into_iter().flatten() {
        let context = group
            .get("context")
            .and_then(Value::as_str)
            .unwrap_or("Global");
        if !DRIVER_CONTEXTS.contains(&context) {
            continue;
        }
        let bindings = group.get("bindings").and_then(Value::as_object);
        for key in bindings.into_iter().flat_map(serde_json::Map::keys) {
            if DRIVER_KEYS.contains(&first_key(key).as_str()) {
                return Err(PortError::new(
                    Kind::SettingsConflict,
                    format!(
                        "{}: `{key}` is bound in {context}, and the driver needs this key",
                        path.display()
                    ),
                )
                .with_fix("Remove the binding."));
            }
        }
    }
    Ok(())
}

/// The first key of a chord in one spelling: lower case, modifiers sorted, `esc` and `return` by their full names.
fn first_key(chord: &str) -> String {
    let first = chord
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_lowercase();
    let mut parts: Vec<&str> = first
        .split('+')
        .map(|part| match part {
            "esc" => "escape",
            "return" => "enter",
            "control" => "ctrl",
            other => other,
        })
        .collect();
    let key = parts.pop().unwrap_or_default();
    parts.sort_unstable();
    parts.push(key);
    parts.join("+")
}

/// What to do about trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustAction {
    /// The workspace is trusted.
    Nothing,
    /// Write trust before the start.
    Seed,
}

/// Checks workspace trust.
///
/// # Errors
/// `TrustRequired`, or `SessionBusy` when trust should be written while another Claude runs there.
pub(crate) fn trust(
    spec: &SessionSpec,
    workspace: &WorkspaceFacts,
    live: &[LiveClaude],
) -> Result<TrustAction, PortError> {
    if workspace.trusted {
        return Ok(TrustAction::Nothing);
    }
    match spec.trust {
        Trust::Require => Err(PortError::new(
            Kind::TrustRequired,
            format!(
                "{} is not a trusted workspace",
                workspace.real_path.display()
            ),
        )
        .with_fix("Start Claude there once by hand and accept, or ask for trust to be written.")),
        Trust::Seed => match live.iter().find(|claude| claude.cwd == workspace.real_path) {
            None => Ok(TrustAction::Seed),
            Some(other) => Err(PortError::new(
                Kind::SessionBusy,
                format!(
                    "trust is not written while another Claude (pid {}) runs in {}",
                    other.pid,
                    workspace.real_path.display()
                ),
            )),
        },
    }
}

/// Checks that no other Claude holds the conversation.
///
/// # Errors
/// `SessionBusy`.
pub(crate) fn conversation(
    spec: &SessionSpec,
    workspace: &WorkspaceFacts,
    live: &[LiveClaude],
) -> Result<(), PortError> {
    let holder = match &spec.conversation {
        Conversation::New
        | Conversation::Continue { fork: true }
        | Conversation::Resume { fork: true, .. } => None,
        Conversation::Resume { id, fork: false } => live.iter().find(|c| c.session_id == *id),
        // Which one is the newest is Claude's choice: none of the directory may be held.
        Conversation::Continue { fork: false } => {
            live.iter().find(|c| c.cwd == workspace.real_path)
        }
    };
    holder.map_or(Ok(()), |claude| {
        Err(PortError::new(
            Kind::SessionBusy,
            format!(
                "another Claude (pid {}) holds the conversation {}",
                claude.pid, claude.session_id
            ),
        )
        .with_fix("End it first, or fork the conversation."))
    })
}

/// Servers of the project's own MCP file that nobody approved: they stay off, so that no dialog asks for them.
#[must_use]
pub(crate) fn unapproved_mcp(workspace: &WorkspaceFacts, layers: &[SettingsLayer]) -> Vec<String> {
    let roots: Vec<Value> = layers
        .iter()
        .filter_map(|layer| layer.content.as_ref().ok()?.value())
        .collect();
    let approved = |name: &String| {
        roots.iter().any(|root| {
            root.get("enableAllProjectMcpServers")
                .and_then(Value::as_bool)
                == Some(true)
                || root
                    .get("enabledMcpjsonServers")
                    .and_then(Value::as_array)
                    .is_some_and(|names| names.iter().any(|n| n.as_str() == Some(name)))
        })
    };
    workspace
        .mcp_servers
        .iter()
        .filter(|name| !approved(name))
        .cloned()
        .collect()
}

fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [8, 4, 4, 4, 12]
        && parts
            .iter()
            .all(|part| part.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use ccd_model::{
        json::RawJson,
        permission::{PermissionMode, Policy},
    };

    use super::*;
    use crate::testing::spec;

    const ID: &str = "0b8f5f2e-1a2b-4c3d-8e9f-001122334455";

    fn kind<T: std::fmt::Debug>(result: Result<T, PortError>) -> Option<Kind> {
        result.err().map(|e| e.kind)
    }

    fn resume(id: &str, fork: bool) -> SessionSpec {
        SessionSpec {
            conversation: Conversation::Resume {
                id: id.into(),
                fork,
            },
            ..spec()
        }
    }

    #[test]
    fn contradictions_between_options_are_config_errors() {
        let table = [
            (spec(), None),
            (
                SessionSpec {
                    policy: Policy::Ask,
                    mode: PermissionMode::Auto,
                    ..spec()
                },
                Some(Kind::Config),
            ),
            (
                SessionSpec {
                    cwd: "relative".into(),
                    ..spec()
                },
                Some(Kind::Config),
            ),
            (resume("not-a-uuid", false), Some(Kind::Config)),
            (resume(ID, false), None),
            (
                SessionSpec {
                    extra_args: vec!["--print".into()],
                    ..spec()
                },
                Some(Kind::Config),
            ),
            (
                SessionSpec {
                    env: [("TMUX".into(), "x".into())].into(),
                    ..spec()
                },
                Some(Kind::Config),
            ),
            (
                SessionSpec {
                    env: [("ANTHROPIC_API_KEY".into(), "x".into())].into(),
                    account: Account::Subscription,
                    ..spec()
                },
                Some(Kind::AccountRefused),
            ),
        ];
        for (spec, expected) in table {
            assert_eq!(kind(config(&spec)), expected, "{spec:?}");
        }
        let mut no_limit = spec();
        no_limit.limits.permission_ms = 0;
        assert_eq!(kind(config(&no_limit)), Some(Kind::Config));
    }

    #[test]
    fn another_version_is_refused_unless_any_is_accepted() {
        let binary = |version: &str| ClaudeBinary {
            path: "/c".into(),
            version: version.into(),
            fingerprint: String::new(),
        };
        assert_eq!(version(&spec(), &binary("2.1.316"), "2.1.316"), Ok(()));
        assert_eq!(
            kind(version(&spec(), &binary("2.1.317"), "2.1.316")),
            Some(Kind::ClaudeVersion)
        );
        let any = SessionSpec {
            expect_version: ExpectVersion::Any,
            ..spec()
        };
        assert_eq!(version(&any, &binary("3.0.0"), "2.1.316"), Ok(()));
    }

    #[test]
    fn the_account_table() {
        let good = AccountFacts {
            onboarded: true,
            oauth: true,
            subscription: Some("max".into()),
            expires_at: Some(2_000),
            refreshable: false,
            stored_api_key: false,
        };
        let none = AccountFacts {
            oauth: false,
            ..good.clone()
        };
        let subscription = SessionSpec {
            account: Account::Subscription,
            ..spec()
        };
        let any = SessionSpec {
            account: Account::Any,
            ..spec()
        };
        let table = [
            (&subscription, good.clone(), None),
            (
                &subscription,
                AccountFacts {
                    onboarded: false,
                    ..good.clone()
                },
                Some(Kind::NotOnboarded),
            ),
            (
                &any,
                AccountFacts {
                    onboarded: false,
                    ..good.clone()
                },
                Some(Kind::NotOnboarded),
            ),
            (&subscription, none.clone(), Some(Kind::LoggedOut)),
            (
                &subscription,
                AccountFacts {
                    stored_api_key: true,
                    ..none.clone()
                },
                Some(Kind::AccountRefused),
            ),
            (
                &subscription,
                AccountFacts {
                    stored_api_key: true,
                    ..good.clone()
                },
                None,
            ),
            (
                &subscription,
                AccountFacts {
                    expires_at: Some(1_000),
                    ..good.clone()
                },
                Some(Kind::LoggedOut),
            ),
            (
                &subscription,
                AccountFacts {
                    expires_at: Some(1),
                    refreshable: true,
                    ..good
                },
                None,
            ),
            (&any, none.clone(), None),
        ];
        for (spec, facts, expected) in table {
            let got = account(spec, &BTreeMap::new(), &facts, Wall(1_000));
            assert_eq!(kind(got), expected, "{facts:?}");
        }
        let env = [(OAUTH_TOKEN.to_owned(), "t".to_owned())].into();
        assert_eq!(account(&subscription, &env, &none, Wall(1_000)), Ok(()));
    }

    #[test]
    fn the_settings_table() {
        use LayerKind::{Managed, User};
        let found = |other_stop_hooks, http_allowlist| {
            Ok(SettingsFindings {
                other_stop_hooks,
                http_allowlist,
            })
        };
        let table = [
            (User, "{}", found(false, false)),
            (User, "[]", Err(Kind::SettingsConflict)),
            (User, "{", Err(Kind::SettingsConflict)),
            (
                User,
                r#"{"disableAllHooks":true}"#,
                Err(Kind::SettingsConflict),
            ),
            (User, r#"{"disableAllHooks":false}"#, found(false, false)),
            (
                User,
                r#"{"allowManagedHooksOnly":true}"#,
                found(false, false),
            ),
            (
                Managed,
                r#"{"allowManagedHooksOnly":true}"#,
                Err(Kind::SettingsConflict),
            ),
            (User, r#"{"apiKeyHelper":"/x"}"#, Err(Kind::AccountRefused)),
            (
                User,
                r#"{"env":{"ANTHROPIC_API_KEY":"k"}}"#,
                Err(Kind::AccountRefused),
            ),
            (
                User,
                r#"{"env":{"ANTHROPIC_BASE_URL":"u"}}"#,
                Err(Kind::AccountRefused),
            ),
            (User, r#"{"env":{"FOO":"u"}}"#, found(false, false)),
            (User, r#"{"allowedHttpHookUrls":[]}"#, found(false, true)),
            (
                User,
                r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"x"}]}]}}"#,
                found(true, false),
            ),
            (
                User,
                r#"{"hooks":{"Stop":[{"hooks":[]}]}}"#,
                found(false, false),
            ),
            (
                User,
                r#"{"hooks":{"PreToolUse":[{"hooks":[{}]}]}}"#,
                found(false, false),
            ),
            (
                User,
                r#"{"enabledPlugins":{"a@b":true}}"#,
                found(true, false),
            ),
            (
                User,
                r#"{"enabledPlugins":{"a@b":false}}"#,
                found(false, false),
            ),
        ];
        let subscription = SessionSpec {
            account: Account::Subscription,
            ..spec()
        };
        for (layer_kind, text, expected) in table {
            let layer = SettingsLayer {
                kind: layer_kind,
                path: "/s.json".into(),
                content: Ok(RawJson::new(text)),
            };
            let got = settings(&subscription, std::slice::from_ref(&layer)).map_err(|e| e.kind);
            assert_eq!(got, expected, "{text}");
            if expected == Err(Kind::AccountRefused) {
                let any = SessionSpec {
                    account: Account::Any,
                    ..spec()
                };
                assert!(settings(&any, &[layer]).is_ok(), "{text}");
            }
        }
        let unreadable = SettingsLayer {
            kind: User,
            path: "/s".into(),
            content: Err("denied".into()),
        };
        assert_eq!(
            kind(settings(&spec(), &[unreadable])),
            Some(Kind::SettingsConflict)
        );
    }

    #[test]
    fn rebound_driver_keys_are_refused() {
        let refused = [
            r#"{"bindings":[{"context":"Chat","bindings":{"enter":"chat:newline"}}]}"#,
            r#"{"bindings":[{"context":"Chat","bindings":{"ctrl+g":null}}]}"#,
            r#"{"bindings":[{"context":"Chat","bindings":{"Esc":"x"}}]}"#,
            r#"{"bindings":[{"context":"Confirmation","bindings":{"escape":"x"}}]}"#,
            r#"{"bindings":[{"context":"Global","bindings":{"ctrl+c":"x"}}]}"#,
            r#"{"bindings":[{"context":"Chat","bindings":{"shift+tab":"x"}}]}"#,
            r#"{"bindings":[{"context":"Chat","bindings":{"ctrl+g ctrl+x":"x"}}]}"#,
        ];
        for text in refused {
            assert_eq!(
                kind(keybindings(Path::new("/k"), text)),
                Some(Kind::SettingsConflict),
                "{text}"
            );
        }
        let fine = [
            "not json",
            "{}",
            r#"{"bindings":[{"context":"Chat","bindings":{"ctrl+x ctrl+g":"x","ctrl+enter":"y"}}]}"#,
            r#"{"bindings":[{"context":"Transcript","bindings":{"escape":"x"}}]}"#,
        ];
        for text in fine {
            assert_eq!(keybindings(Path::new("/k"), text), Ok(()), "{text}");
        }
    }

    #[test]
    fn only_unapproved_project_servers_are_switched_off() {
        let workspace = WorkspaceFacts {
            real_path: "/w".into(),
            trusted: true,
            mcp_servers: vec!["a".into(), "b".into()],
        };
        let layer = |text: &str| SettingsLayer {
            kind: LayerKind::Local,
            path: "/s".into(),
            content: Ok(RawJson::new(text)),
        };
        let table: &[(&str, &[&str])] = &[
            ("{}", &["a", "b"]),
            (r#"{"enabledMcpjsonServers":["a"]}"#, &["b"]),
            (r#"{"enableAllProjectMcpServers":true}"#, &[]),
        ];
        for (text, expected) in table {
            assert_eq!(
                unapproved_mcp(&workspace, &[layer(text)]),
                *expected,
                "{text}"
            );
        }
    }

    #[test]
    fn trust_and_conversation_look_at_other_claudes() {
        let workspace = |trusted| WorkspaceFacts {
            real_path: "/w".into(),
            trusted,
            mcp_servers: Vec::new(),
        };
        let live = [LiveClaude {
            pid: 9,
            session_id: ID.into(),
            cwd: "/w".into(),
        }];
        let seed = SessionSpec {
            trust: Trust::Seed,
            ..spec()
        };
        let require = SessionSpec {
            trust: Trust::Require,
            ..spec()
        };
        assert_eq!(
            trust(&require, &workspace(true), &live),
            Ok(TrustAction::Nothing)
        );
        assert_eq!(
            kind(trust(&require, &workspace(false), &[])),
            Some(Kind::TrustRequired)
        );
        assert_eq!(trust(&seed, &workspace(false), &[]), Ok(TrustAction::Seed));
        assert_eq!(
            kind(trust(&seed, &workspace(false), &live)),
            Some(Kind::SessionBusy)
        );

        let cont = |fork| SessionSpec {
            conversation: Conversation::Continue { fork },
            ..spec()
        };
        let other = "11111111-1a2b-4c3d-8e9f-001122334455";
        let table = [
            (spec(), None),
            (resume(ID, false), Some(Kind::SessionBusy)),
            (resume(ID, true), None),
            (resume(other, false), None),
            (cont(false), Some(Kind::SessionBusy)),
            (cont(true), None),
        ];
        for (spec, expected) in table {
            assert_eq!(
                kind(conversation(&spec, &workspace(true), &live)),
                expected,
                "{:?}",
                spec.conversation
            );
        }
    }
}
