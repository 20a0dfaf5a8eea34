//! Where Claude keeps its things, and whether somebody is logged in.
//!
//! What lives here: the directories under a child's environment, and facts about the stored login. What never does: a
//! secret's value in any result or message, or the network.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use ccd_ports::{
    error::{PortError, PortErrorKind},
    host::{AccountFacts, ClaudeDirs},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::files;
use crate::env::set;

/// The scope that makes a stored login count.
const INFERENCE_SCOPE: &str = "user:inference";

/// File with the stored login, in the configuration directory.
const CREDENTIALS: &str = ".credentials.json";

/// The global state file.
const GLOBAL: &str = ".claude.json";

pub(super) fn dirs(env: &BTreeMap<String, String>) -> Result<ClaudeDirs, PortError> {
    let unusable = |message: String| {
        PortError::new(PortErrorKind::DirUnusable, message)
            .with_fix("Set HOME to a directory that exists and that this user may read.")
    };
    let home = set(env, "HOME").ok_or_else(|| unusable("HOME is not set".to_owned()))?;
    let home = PathBuf::from(home);
    if !home.is_absolute() {
        return Err(unusable(format!(
            "HOME is {}, not an absolute path",
            home.display()
        )));
    }
    if let Err(error) = std::fs::read_dir(&home) {
        return Err(unusable(format!(
            "the home directory {} cannot be read: {error}",
            home.display()
        )));
    }
    let (config, global) = match set(env, "CLAUDE_CONFIG_DIR").map(PathBuf::from) {
        Some(config) if config.is_absolute() => (config.clone(), config.join(GLOBAL)),
        Some(config) => {
            let message = format!(
                "CLAUDE_CONFIG_DIR is {}, not an absolute path",
                config.display()
            );
            return Err(PortError::new(PortErrorKind::DirUnusable, message)
                .with_fix("Set CLAUDE_CONFIG_DIR to an absolute path."));
        }
        None => (home.join(".claude"), home.join(GLOBAL)),
    };
    Ok(ClaudeDirs {
        home,
        config,
        global,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Credentials {
    claude_ai_oauth: Option<Oauth>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Oauth {
    access_token: Option<Box<RawValue>>,
    refresh_token: Option<Box<RawValue>>,
    expires_at: Option<f64>,
    scopes: Option<Vec<String>>,
    subscription_type: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Global {
    has_completed_onboarding: Option<Box<RawValue>>,
    primary_api_key: Option<Box<RawValue>>,
}

pub(super) fn account(dirs: &ClaudeDirs) -> Result<AccountFacts, PortError> {
    let global: Global = parse_if_there(&dirs.global)?.unwrap_or_default();
    let credentials: Option<Credentials> = parse_if_there(&dirs.config.join(CREDENTIALS))?;
    let oauth = credentials.and_then(|credentials| credentials.claude_ai_oauth);
    let oauth = oauth.unwrap_or_default();
    let scopes = oauth.scopes.unwrap_or_default();
    Ok(AccountFacts {
        onboarded: is(global.has_completed_onboarding.as_deref(), "true"),
        oauth: holds_text(oauth.access_token.as_deref())
            && scopes.iter().any(|scope| scope == INFERENCE_SCOPE),
        subscription: oauth.subscription_type.filter(|kind| !kind.is_empty()),
        expires_at: oauth.expires_at.map(whole),
        refreshable: holds_text(oauth.refresh_token.as_deref()),
        stored_api_key: holds_text(global.primary_api_key.as_deref()),
    })
}

fn parse_if_there<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, PortError> {
    files::read_if_there(path)?
        .map(|text| files::parse(path, &text))
        .transpose()
}

fn is(value: Option<&RawValue>, text: &str) -> bool {
    value.is_some_and(|value| value.get() == text)
}

/// Whether a value is a string that is not empty; its text is not kept.
fn holds_text(value: Option<&RawValue>) -> bool {
    value.is_some_and(|value| value.get().starts_with('"') && value.get() != "\"\"")
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "saturates; a time is far inside the range"
)]
fn whole(ms: f64) -> i64 {
    ms as i64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::fs;

    struct Home(tempfile::TempDir);

    impl Home {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn dirs(&self) -> ClaudeDirs {
            dirs(&BTreeMap::from([(
                "HOME".to_owned(),
                self.0.path().to_str().unwrap().to_owned(),
            )]))
            .unwrap()
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    const NOBODY: AccountFacts = AccountFacts {
        onboarded: false,
        oauth: false,
        subscription: None,
        expires_at: None,
        refreshable: false,
        stored_api_key: false,
    };

    #[test]
    fn directories_follow_home_and_the_config_variable() {
        let home = tempfile::tempdir().unwrap();
        let text = home.path().to_str().unwrap().to_owned();
        let mut env = BTreeMap::from([("HOME".to_owned(), text)]);
        let found = dirs(&env).unwrap();
        assert_eq!(found.config, home.path().join(".claude"));
        assert_eq!(found.global, home.path().join(".claude.json"));
        env.insert("CLAUDE_CONFIG_DIR".to_owned(), "/cfg".to_owned());
        let found = dirs(&env).unwrap();
        assert_eq!(
            (found.config, found.global),
            ("/cfg".into(), "/cfg/.claude.json".into())
        );
        for (name, value) in [
            ("CLAUDE_CONFIG_DIR", "cfg"),
            ("HOME", "/no/such/home"),
            ("HOME", "home"),
            ("HOME", ""),
        ] {
            env.insert(name.to_owned(), value.to_owned());
            assert_eq!(
                dirs(&env).unwrap_err().kind,
                PortErrorKind::DirUnusable,
                "{name}={value}"
            );
            env.remove("CLAUDE_CONFIG_DIR");
        }
    }

    #[test]
    fn an_empty_home_is_nobody() {
        assert_eq!(account(&Home::new().dirs()).unwrap(), NOBODY);
    }

    #[test]
    fn a_stored_login_is_described_without_its_tokens() {
        let home = Home::new();
        home.write(
            ".claude.json",
            r#"{"hasCompletedOnboarding":true,"odd":"\ud800","primaryApiKey":""}"#,
        );
        home.write(
            ".claude/.credentials.json",
            r#"{"claudeAiOauth":{"accessToken":"sk-a-secret","refreshToken":"r-secret","expiresAt":1796085385280,
               "scopes":["user:profile","user:inference"],"subscriptionType":"max","other":1}}"#,
        );
        let facts = account(&home.dirs()).unwrap();
        let expected = AccountFacts {
            onboarded: true,
            oauth: true,
            subscription: Some("max".to_owned()),
            expires_at: Some(1_796_085_385_280),
            refreshable: true,
            stored_api_key: false,
        };
        assert_eq!(facts, expected);
        assert!(!format!("{facts:?}").contains("secret"));
    }

    #[test]
    fn what_is_not_quite_a_login_is_none() {
        for oauth in [
            r#"{"accessToken":"x","scopes":["user:profile"]}"#,
            r#"{"accessToken":"","scopes":["user:inference"]}"#,
            r#"{"accessToken":null,"scopes":["user:inference"]}"#,
            r#"{"scopes":["user:inference"]}"#,
            r#"{"accessToken":"x"}"#,
        ] {
            let home = Home::new();
            home.write(
                ".claude/.credentials.json",
                &format!("{{\"claudeAiOauth\":{oauth}}}"),
            );
            assert!(!account(&home.dirs()).unwrap().oauth, "{oauth}");
        }
        let home = Home::new();
        home.write(".claude.json", r#"{"oauthAccount":{"emailAddress":"a@b"},"hasCompletedOnboarding":"true","primaryApiKey":"k"}"#);
        let facts = account(&home.dirs()).unwrap();
        assert_eq!(
            facts,
            AccountFacts {
                stored_api_key: true,
                ..NOBODY
            }
        );
    }

    #[test]
    fn a_malformed_file_is_an_error_that_does_not_quote_it() {
        for (name, text) in [
            (".claude.json", "{"),
            (
                ".claude/.credentials.json",
                "{\"claudeAiOauth\":\"sk-secret\"}",
            ),
            (".claude/.credentials.json", "sk-secret"),
        ] {
            let home = Home::new();
            home.write(name, text);
            let error = account(&home.dirs()).unwrap_err();
            assert_eq!(error.kind, PortErrorKind::FileMalformed, "{name}");
            assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        }
    }
}
