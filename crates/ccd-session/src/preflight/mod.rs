//! Checks before anything is started: pure functions over what the host port found.
//!
//! Here live the rules about options, versions, accounts, trust and conversations; those about settings files live in `settings`.
//! Reading a file, running a program and starting anything never do.

mod settings;

use std::{collections::BTreeMap, path::Path};

use ccd_model::{
    permission::check_policy,
    spec::{Account, Conversation, ExpectVersion, SessionSpec, Trust},
    time::Wall,
};
use ccd_ports::{
    error::{PortError, PortErrorKind as Kind},
    host::{AccountFacts, ClaudeBinary, LiveClaude, WorkspaceFacts},
};

use crate::{
    argv_builder::check_extra,
    env_builder::{OAUTH_TOKEN, check_additions},
};

pub(crate) use settings::{
    KEYBINDINGS_NAME, SettingsFindings, keybindings, settings, unapproved_mcp,
};

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

    use ccd_model::permission::{PermissionMode, Policy};

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
