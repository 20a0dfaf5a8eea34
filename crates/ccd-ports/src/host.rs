//! Reads about this machine: binaries, settings, account, trust. Never a secret's value.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use ccd_model::json::RawJson;
use serde::{Deserialize, Serialize};

use crate::{PortFut, error::PortError};

/// The Claude binary that will run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaudeBinary {
    /// Absolute path, symlinks resolved.
    pub path: PathBuf,
    /// Version as the binary prints it, without its suffix (`2.1.316`).
    pub version: String,
    /// Size and modification time in one text, to recognise the same binary again.
    pub fingerprint: String,
}

/// The tmux binary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TmuxBinary {
    /// Absolute path.
    pub path: PathBuf,
    /// Version as tmux prints it (`3.3a`).
    pub version: String,
}

/// Where a settings layer comes from, lowest precedence first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerKind {
    /// `<config>/settings.json`.
    User,
    /// `<workspace>/.claude/settings.json`.
    Project,
    /// `<workspace>/.claude/settings.local.json`.
    Local,
    /// Managed settings of the machine.
    Managed,
}

/// One settings file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsLayer {
    /// Kind.
    pub kind: LayerKind,
    /// Path.
    pub path: PathBuf,
    /// Its JSON text, or why it cannot be read.
    pub content: Result<RawJson, String>,
}

/// Whether and how somebody is logged in. Carries no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountFacts {
    /// First-run onboarding was completed.
    pub onboarded: bool,
    /// An OAuth login with inference scope is stored.
    pub oauth: bool,
    /// Subscription type as stored (`max`, `pro`, …).
    pub subscription: Option<String>,
    /// Access-token expiry, Unix milliseconds.
    pub expires_at: Option<i64>,
    /// A refresh token is stored.
    pub refreshable: bool,
    /// An API key is stored in Claude's own config.
    pub stored_api_key: bool,
}

/// The workspace as Claude will see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceFacts {
    /// Real path, symlinks resolved.
    pub real_path: PathBuf,
    /// The user accepted the trust dialog for it or a parent.
    pub trusted: bool,
    /// Names of servers in the project's `.mcp.json`.
    pub mcp_servers: Vec<String>,
}

/// Where Claude keeps its things.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaudeDirs {
    /// Home directory of the child.
    pub home: PathBuf,
    /// Configuration directory: `CLAUDE_CONFIG_DIR`, else `<home>/.claude`.
    pub config: PathBuf,
    /// The global state file: `<CLAUDE_CONFIG_DIR>/.claude.json`, else `<home>/.claude.json`.
    pub global: PathBuf,
}

/// A Claude process listed in Claude's registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveClaude {
    /// Pid.
    pub pid: u32,
    /// Claude's session id.
    pub session_id: String,
    /// Working directory.
    pub cwd: PathBuf,
}

/// Reads about this machine. Each read is bounded in time; none writes, but [`Host::seed_trust`].
pub trait Host: Send + Sync {
    /// The environment of this process.
    fn env(&self) -> BTreeMap<String, String>;
    /// Finds Claude: `option`, else `CCD_CLAUDE` of `env`, else the managed install of `pinned`, else PATH of `env`. Runs `--version` with an empty environment.
    fn claude<'a>(
        &'a self,
        option: Option<&'a str>,
        pinned: &'a str,
        env: &'a BTreeMap<String, String>,
    ) -> PortFut<'a, Result<ClaudeBinary, PortError>>;
    /// Finds tmux on PATH of `env` and asks its version; older than 3.2 is an error.
    fn tmux<'a>(
        &'a self,
        env: &'a BTreeMap<String, String>,
    ) -> PortFut<'a, Result<TmuxBinary, PortError>>;
    /// Finds the helper program: `option`, else `CCD_HELPER` of `env`, else a sibling of this executable. Never PATH. Checks the protocol version.
    fn helper<'a>(
        &'a self,
        option: Option<&'a str>,
        env: &'a BTreeMap<String, String>,
    ) -> PortFut<'a, Result<PathBuf, PortError>>;
    /// Where Claude keeps its things under the child's environment `env`. A home that cannot be read is an error.
    fn dirs(&self, env: &BTreeMap<String, String>) -> Result<ClaudeDirs, PortError>;
    /// The settings layers that exist, lowest precedence first.
    fn layers(&self, dirs: &ClaudeDirs, workspace: &std::path::Path) -> Vec<SettingsLayer>;
    /// The stored login.
    fn account(&self, dirs: &ClaudeDirs) -> Result<AccountFacts, PortError>;
    /// The workspace.
    fn workspace(&self, dirs: &ClaudeDirs, cwd: &str) -> Result<WorkspaceFacts, PortError>;
    /// Writes trust for `workspace` into the global state file: read again, changed, renamed, verified.
    fn seed_trust(&self, dirs: &ClaudeDirs, workspace: &std::path::Path) -> Result<(), PortError>;
    /// Claude processes that live, by Claude's registry, identity checked.
    fn live_claudes(&self, dirs: &ClaudeDirs) -> Vec<LiveClaude>;
    /// Whether this file exists.
    fn exists(&self, path: &std::path::Path) -> bool;
    /// Reads a small UTF-8 file, at most 16 MiB.
    fn read(&self, path: &std::path::Path) -> Result<Arc<str>, PortError>;
}
