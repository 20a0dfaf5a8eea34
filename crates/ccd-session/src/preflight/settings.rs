//! Checks of the user's settings files and key bindings: what makes driving impossible, and what a session must know of them.
//!
//! Here live the key names and the rules over them. Reading the files never does.

use std::path::Path;

use ccd_model::spec::{Account, SessionSpec};
use ccd_ports::{
    error::{PortError, PortErrorKind as Kind},
    host::{LayerKind, SettingsLayer, WorkspaceFacts},
};
use serde_json::Value;

use crate::env_builder::OTHER_ACCOUNT;

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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use ccd_model::json::RawJson;

    use super::*;
    use crate::testing::spec;

    fn kind<T: std::fmt::Debug>(result: Result<T, PortError>) -> Option<Kind> {
        result.err().map(|e| e.kind)
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
}
