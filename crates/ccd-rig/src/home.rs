//! An isolated home for the real Claude Code: a fake login, an onboarded state, a workspace.
//!
//! What lives here: files under one private directory, and the environment that points at them. What never does: this
//! machine's own home or environment.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The version the home claims to have been onboarded with.
const ONBOARDED_VERSION: &str = "2.1.316";

/// 2100-01-01, in milliseconds: a login that never needs a refresh.
const FAR_FUTURE_MS: u64 = 4_102_444_800_000;

/// The programs a child finds. Fixed, so that no test depends on the caller's `PATH`.
const CHILD_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the home says about its user. The default is ready to work: onboarded, logged in, workspace trusted.
#[derive(Debug, Clone, PartialEq)]
pub struct HomeOptions {
    /// The workspace is trusted.
    pub trusted: bool,
    /// A (fake) subscription login is stored.
    pub logged_in: bool,
    /// The first-run screens are done.
    pub onboarded: bool,
    /// The warning of the bypass mode was accepted once.
    pub bypass_accepted: bool,
    /// The plan the login is for.
    pub subscription: String,
    /// `~/.claude/settings.json`; `None` = no such file.
    pub settings: Option<Value>,
    /// More keys of `~/.claude.json`; they win over the built ones.
    pub state: Map<String, Value>,
}

impl Default for HomeOptions {
    fn default() -> Self {
        Self {
            trusted: true,
            logged_in: true,
            onboarded: true,
            bypass_accepted: false,
            subscription: "max".to_owned(),
            settings: None,
            state: Map::new(),
        }
    }
}

impl HomeOptions {
    /// The workspace is not trusted: the trust dialog opens.
    #[must_use]
    pub fn untrusted() -> Self {
        Self {
            trusted: false,
            ..Self::default()
        }
    }

    /// Nobody is logged in.
    #[must_use]
    pub fn logged_out() -> Self {
        Self {
            logged_in: false,
            ..Self::default()
        }
    }

    /// The first-run screens are not done.
    #[must_use]
    pub fn not_onboarded() -> Self {
        Self {
            onboarded: false,
            ..Self::default()
        }
    }

    /// Sets `~/.claude/settings.json`.
    #[must_use]
    pub fn with_settings(mut self, settings: Value) -> Self {
        self.settings = Some(settings);
        self
    }
}

/// A home on disk. It owns nothing: whoever made the root removes it.
#[derive(Debug, Clone)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// Builds a home under `root`, which must be a private, existing, absolute directory of canonical form (Claude
    /// keeps trust by the real path of the workspace).
    ///
    /// # Errors
    /// A directory or file could not be written, or one of them exists already.
    pub fn build(root: &Path, options: &HomeOptions) -> io::Result<Self> {
        let home = Self {
            root: root.to_owned(),
        };
        let claude = home.path().join(".claude");
        for directory in [
            home.path(),
            claude.clone(),
            home.workdir(),
            home.tmp(),
            home.run_dir(),
        ] {
            fs::DirBuilder::new().mode(0o700).create(directory)?;
        }
        write_private(
            &home.path().join(".claude.json"),
            &state_file(&home.workdir(), options),
        )?;
        if options.logged_in {
            write_private(&claude.join(".credentials.json"), &credentials(options))?;
        }
        if let Some(settings) = &options.settings {
            write_private(&claude.join("settings.json"), settings)?;
        }
        Ok(home)
    }

    /// `HOME` of the child.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The workspace: empty, no git repository.
    #[must_use]
    pub fn workdir(&self) -> PathBuf {
        self.root.join("work")
    }

    /// `TMPDIR` of the child.
    #[must_use]
    pub fn tmp(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// A private directory for sockets.
    #[must_use]
    pub fn run_dir(&self) -> PathBuf {
        self.root.join("run")
    }

    /// Claude's configuration directory.
    #[must_use]
    pub fn claude_dir(&self) -> PathBuf {
        self.path().join(".claude")
    }

    /// The whole environment of a child that talks to `base_url`; nothing is taken from this process.
    ///
    /// Nonessential traffic is off. `id` marks every process of the child for the guard.
    #[must_use]
    pub fn child_env(&self, base_url: &str, id: &str) -> BTreeMap<String, String> {
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        [
            ("PATH", CHILD_PATH.to_owned()),
            ("HOME", path(self.path())),
            ("TMPDIR", path(self.tmp())),
            ("CLAUDE_CODE_TMPDIR", path(self.tmp())),
            ("TMUX_TMPDIR", path(self.run_dir())),
            ("XDG_RUNTIME_DIR", path(self.run_dir())),
            ("LANG", "C.UTF-8".to_owned()),
            ("TERM", "xterm-256color".to_owned()),
            ("SHELL", "/bin/bash".to_owned()),
            ("TZ", "UTC".to_owned()),
            ("ANTHROPIC_BASE_URL", base_url.to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("NO_PROXY", "127.0.0.1,localhost".to_owned()),
            ("no_proxy", "127.0.0.1,localhost".to_owned()),
            (crate::guard::ID_VARIABLE, id.to_owned()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }
}

fn state_file(workdir: &Path, options: &HomeOptions) -> Value {
    let mut state = json!({
        "numStartups": 5,
        "theme": "dark",
        "userID": "0".repeat(64),
        "firstStartTime": "2025-01-01T00:00:00.000Z",
    });
    let mut set = |key: &str, value: Value| {
        if let Some(state) = state.as_object_mut() {
            state.insert(key.to_owned(), value);
        }
    };
    if options.onboarded {
        set("hasCompletedOnboarding", json!(true));
        set("lastOnboardingVersion", json!(ONBOARDED_VERSION));
    }
    if options.bypass_accepted {
        set("bypassPermissionsModeAccepted", json!(true));
    }
    if options.logged_in {
        set(
            "oauthAccount",
            json!({
                "accountUuid": "00000000-0000-4000-8000-000000000001",
                "emailAddress": "test@example.com",
                "organizationUuid": "00000000-0000-4000-8000-000000000002",
                "organizationName": "Test",
                "organizationRole": "admin",
                "displayName": "Test",
            }),
        );
    }
    if options.trusted {
        let mut projects = Map::new();
        projects.insert(
            workdir.to_string_lossy().into_owned(),
            json!({
                "hasTrustDialogAccepted": true,
                "hasCompletedProjectOnboarding": true,
                "projectOnboardingSeenCount": 1,
                "allowedTools": [],
            }),
        );
        set("projects", Value::Object(projects));
    }
    for (key, value) in &options.state {
        set(key, value.clone());
    }
    state
}

fn credentials(options: &HomeOptions) -> Value {
    json!({
        "claudeAiOauth": {
            "accessToken": "sk-ant-oat01-fake",
            "refreshToken": "sk-ant-ort01-fake",
            "expiresAt": FAR_FUTURE_MS,
            "scopes": [
                "user:inference",
                "user:profile",
                "user:sessions:claude_code",
                "user:mcp_servers",
            ],
            "subscriptionType": options.subscription,
            "rateLimitTier": "default_claude_max_5x",
        }
    })
}

fn write_private(path: &Path, value: &Value) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(serde_json::to_string_pretty(value)?.as_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn read(path: &Path) -> Value {
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    }

    #[test]
    fn a_ready_home_is_onboarded_trusted_and_logged_in_and_closed_to_others() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::build(root.path(), &HomeOptions::default()).unwrap();
        let state = read(&home.path().join(".claude.json"));
        assert_eq!(state["hasCompletedOnboarding"], true);
        let workdir = home.workdir().to_string_lossy().into_owned();
        assert_eq!(state["projects"][&workdir]["hasTrustDialogAccepted"], true);
        let credentials = home.claude_dir().join(".credentials.json");
        assert_eq!(
            read(&credentials)["claudeAiOauth"]["subscriptionType"],
            "max"
        );
        for (path, mode) in [
            (credentials, 0o600),
            (home.path().join(".claude.json"), 0o600),
            (home.path(), 0o700),
            (home.workdir(), 0o700),
        ] {
            let found = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(found, mode, "{}", path.display());
        }
    }

    #[test]
    fn each_variant_lacks_what_it_names() {
        for (options, trusted, logged_in, onboarded) in [
            (HomeOptions::untrusted(), false, true, true),
            (HomeOptions::logged_out(), true, false, true),
            (HomeOptions::not_onboarded(), true, true, false),
        ] {
            let root = tempfile::tempdir().unwrap();
            let home = Home::build(root.path(), &options).unwrap();
            let state = read(&home.path().join(".claude.json"));
            assert_eq!(state.get("projects").is_some(), trusted);
            assert_eq!(
                home.claude_dir().join(".credentials.json").exists(),
                logged_in
            );
            assert_eq!(state.get("oauthAccount").is_some(), logged_in);
            assert_eq!(state.get("hasCompletedOnboarding").is_some(), onboarded);
        }
    }

    #[test]
    fn the_childs_environment_points_into_the_root_and_at_loopback_only() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::build(root.path(), &HomeOptions::default()).unwrap();
        let env = home.child_env("http://127.0.0.1:1", "some-id");
        for name in ["HOME", "TMPDIR", "TMUX_TMPDIR"] {
            assert!(Path::new(&env[name]).starts_with(root.path()), "{name}");
        }
        assert_eq!(env["NO_PROXY"], env["no_proxy"]);
        assert_eq!(env["CCD_RIG_ID"], "some-id");
        assert!(
            !env.keys()
                .any(|name| name == "USER" || name.ends_with("_PROXY") && name != "NO_PROXY")
        );
    }
}
