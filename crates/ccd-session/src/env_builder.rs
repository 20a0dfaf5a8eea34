//! The child's environment: built from an allowlist, never inherited.
//!
//! Here lives the choice of variables. Reading this process's environment and starting anything never do.

use std::{collections::BTreeMap, path::Path};

use ccd_model::spec::Account;
use ccd_ports::{
    error::{PortError, PortErrorKind},
    session::EDITOR_NAME,
};

/// The variable that marks every process of a session; its value is our session id.
pub(crate) const MARKER: &str = "CCD_SESSION";

/// Variables that pass from this process to the child.
const PASSED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "SSH_AUTH_SOCK",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "CLAUDE_CONFIG_DIR",
];

/// Beginnings of further variables that pass.
const PASSED_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Variables that a caller may never set, and why.
const REFUSED: &[(&str, &str)] = &[
    ("NODE_OPTIONS", "it injects code into Claude"),
    ("BUN_OPTIONS", "it injects code into Claude"),
    ("LD_PRELOAD", "it injects code into Claude"),
    ("LD_AUDIT", "it injects code into Claude"),
    ("LD_LIBRARY_PATH", "it injects code into Claude"),
    ("VISUAL", "prompts are delivered through it"),
    ("EDITOR", "prompts are delivered through it"),
    (MARKER, "it marks the processes of a session"),
];

/// Beginnings of variables that a caller may never set, and why.
const REFUSED_PREFIXES: &[(&str, &str)] = &[
    ("TMUX", "the agent must not reach its own terminal"),
    (
        "CLAUDECODE",
        "Claude would take itself for a nested process",
    ),
    ("DYLD_", "it injects code into Claude"),
];

/// Variables that choose another account than the subscription login, in the child's environment or in a settings layer.
pub(crate) const OTHER_ACCOUNT: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
];

/// The subscription token as a variable: a login of its own.
pub(crate) const OAUTH_TOKEN: &str = "CLAUDE_CODE_OAUTH_TOKEN";

/// Hosts that no proxy may see: the hooks.
const LOOPBACK: &[&str] = &["127.0.0.1", "localhost"];

/// Checks the caller's additions.
///
/// # Errors
/// `Config` for a malformed or refused variable, `AccountRefused` for one that chooses another account.
pub(crate) fn check_additions(
    additions: &BTreeMap<String, String>,
    account: Account,
) -> Result<(), PortError> {
    for (name, value) in additions {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(PortError::new(
                PortErrorKind::Config,
                format!("`{}` is not an environment variable", name.escape_default()),
            ));
        }
        let why = REFUSED
            .iter()
            .find(|(refused, _)| refused == name)
            .or_else(|| {
                REFUSED_PREFIXES
                    .iter()
                    .find(|(prefix, _)| name.starts_with(prefix))
            });
        if let Some((_, why)) = why {
            return Err(PortError::new(
                PortErrorKind::Config,
                format!("the variable {name} may not be set: {why}"),
            ));
        }
        if account == Account::Subscription && OTHER_ACCOUNT.contains(&name.as_str()) {
            return Err(PortError::new(
                PortErrorKind::AccountRefused,
                format!("the variable {name} chooses another account than the subscription login"),
            )
            .with_fix("Drop it, or allow any account."));
        }
    }
    Ok(())
}

/// The part of the environment that says where Claude keeps its things: the allowlist and the caller's additions.
#[must_use]
pub(crate) fn base(
    host: &BTreeMap<String, String>,
    additions: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    host.iter()
        .filter(|(name, _)| {
            PASSED.contains(&name.as_str())
                || PASSED_PREFIXES
                    .iter()
                    .any(|prefix| name.starts_with(prefix))
        })
        .chain(additions)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The whole environment of the child: `base`, the profile's own variables, the editor, the marker and the proxy exception.
#[must_use]
pub(crate) fn complete<'a>(
    mut base: BTreeMap<String, String>,
    profile: impl IntoIterator<Item = (&'a str, &'a str)>,
    additions: &BTreeMap<String, String>,
    runtime_dir: &Path,
    session: &str,
) -> BTreeMap<String, String> {
    for (name, value) in profile {
        // What the caller sets on purpose wins over the profile's tuning.
        if !additions.contains_key(name) {
            base.insert(name.to_owned(), value.to_owned());
        }
    }
    let editor = runtime_dir.join(EDITOR_NAME).to_string_lossy().into_owned();
    let no_proxy = no_proxy(&base);
    for (name, value) in [
        ("VISUAL", editor.as_str()),
        ("EDITOR", editor.as_str()),
        (MARKER, session),
        ("NO_PROXY", no_proxy.as_str()),
        ("no_proxy", no_proxy.as_str()),
    ] {
        base.insert(name.to_owned(), value.to_owned());
    }
    base
}

/// The user's proxy exceptions of both spellings, and loopback.
#[must_use]
pub(crate) fn no_proxy(env: &BTreeMap<String, String>) -> String {
    let mut hosts: Vec<&str> = Vec::new();
    let given = ["NO_PROXY", "no_proxy"]
        .into_iter()
        .filter_map(|name| env.get(name))
        .flat_map(|list| list.split(','));
    for host in given.chain(LOOPBACK.iter().copied()) {
        let host = host.trim();
        if !host.is_empty() && !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    hosts.join(",")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    }

    #[test]
    fn only_allowlisted_variables_pass() {
        let host = map(&[
            ("PATH", "/bin"),
            ("HOME", "/h"),
            ("LC_ALL", "C"),
            ("XDG_CONFIG_HOME", "/x"),
            ("https_proxy", "http://p"),
            ("CLAUDE_CONFIG_DIR", "/c"),
            ("ANTHROPIC_API_KEY", "k"),
            ("ANTHROPIC_BASE_URL", "u"),
            ("NODE_OPTIONS", "--x"),
            ("LD_PRELOAD", "x.so"),
            ("TMUX", "s"),
            ("TMUX_PANE", "%1"),
            ("CLAUDECODE", "1"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("CLAUDE_CODE_USE_BEDROCK", "1"),
            ("EDITOR", "vi"),
        ]);
        let base = base(&host, &BTreeMap::new());
        let names: Vec<&str> = base.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "CLAUDE_CONFIG_DIR",
                "HOME",
                "LC_ALL",
                "PATH",
                "XDG_CONFIG_HOME",
                "https_proxy"
            ]
        );
    }

    #[test]
    fn additions_win_over_the_host_and_the_profile() {
        let additions = map(&[
            ("HOME", "/other"),
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1"),
            ("DISABLE_X", "0"),
        ]);
        let env = complete(
            base(&map(&[("HOME", "/h")]), &additions),
            [("DISABLE_X", "1"), ("DISABLE_Y", "1")],
            &additions,
            Path::new("/rt/s"),
            "s1",
        );
        let expected = map(&[
            ("HOME", "/other"),
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1"),
            ("DISABLE_X", "0"),
            ("DISABLE_Y", "1"),
            ("VISUAL", "/rt/s/ccd-editor"),
            ("EDITOR", "/rt/s/ccd-editor"),
            ("CCD_SESSION", "s1"),
            ("NO_PROXY", "127.0.0.1,localhost"),
            ("no_proxy", "127.0.0.1,localhost"),
        ]);
        assert_eq!(env, expected);
    }

    #[test]
    fn proxy_exceptions_are_merged_from_both_spellings() {
        let table = [
            (map(&[]), "127.0.0.1,localhost"),
            (
                map(&[("NO_PROXY", "a.example, localhost")]),
                "a.example,localhost,127.0.0.1",
            ),
            (
                map(&[("NO_PROXY", "a"), ("no_proxy", "b,a,")]),
                "a,b,127.0.0.1,localhost",
            ),
            (map(&[("no_proxy", "*")]), "*,127.0.0.1,localhost"),
        ];
        for (env, expected) in table {
            assert_eq!(no_proxy(&env), expected);
        }
    }

    #[test]
    fn refused_additions_name_their_kind() {
        use PortErrorKind as Kind;
        let table = [
            ("", Kind::Config),
            ("A=B", Kind::Config),
            ("TMUX", Kind::Config),
            ("TMUX_PANE", Kind::Config),
            ("CLAUDECODE", Kind::Config),
            ("NODE_OPTIONS", Kind::Config),
            ("LD_PRELOAD", Kind::Config),
            ("DYLD_INSERT_LIBRARIES", Kind::Config),
            ("VISUAL", Kind::Config),
            ("CCD_SESSION", Kind::Config),
            ("ANTHROPIC_API_KEY", Kind::AccountRefused),
            ("CLAUDE_CODE_USE_VERTEX", Kind::AccountRefused),
        ];
        for (name, kind) in table {
            let error = check_additions(&map(&[(name, "v")]), Account::Subscription).unwrap_err();
            assert_eq!(error.kind, kind, "{name}");
        }
        assert!(check_additions(&map(&[("A", "x\0y")]), Account::Any).is_err());
        assert_eq!(
            check_additions(&map(&[("ANTHROPIC_API_KEY", "v")]), Account::Any),
            Ok(())
        );
        assert_eq!(
            check_additions(&map(&[("ANTHROPIC_BASE_URL", "v")]), Account::Subscription),
            Ok(())
        );
    }
}
