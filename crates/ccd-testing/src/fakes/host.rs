//! A machine that says what the test wants.
//!
//! What lives here: the [`Host`] port as one table of answers. What never does: a look at this machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ccd_ports::{
    PortFut,
    error::{PortError, PortErrorKind},
    host::{
        AccountFacts, ClaudeBinary, ClaudeDirs, Host, LiveClaude, SettingsLayer, TmuxBinary,
        WorkspaceFacts,
    },
};

/// The answers. The default is a machine on which everything is in order.
#[derive(Debug, Clone)]
pub struct HostAnswers {
    /// The environment of the host process.
    pub env: BTreeMap<String, String>,
    /// Claude.
    pub claude: Result<ClaudeBinary, PortError>,
    /// tmux.
    pub tmux: Result<TmuxBinary, PortError>,
    /// The helper.
    pub helper: Result<PathBuf, PortError>,
    /// Claude's directories.
    pub dirs: Result<ClaudeDirs, PortError>,
    /// Settings layers.
    pub layers: Vec<SettingsLayer>,
    /// The account.
    pub account: Result<AccountFacts, PortError>,
    /// MCP servers of every workspace.
    pub mcp_servers: Vec<String>,
    /// Workspaces that are trusted.
    pub trusted: BTreeSet<PathBuf>,
    /// What a wish to seed trust meets.
    pub seed: Result<(), PortError>,
    /// Living Claude processes.
    pub live: Vec<LiveClaude>,
    /// Files by path.
    pub files: BTreeMap<PathBuf, String>,
}

impl Default for HostAnswers {
    fn default() -> Self {
        let home = PathBuf::from("/home/user");
        let env = [
            ("HOME", "/home/user"),
            ("PATH", "/usr/bin:/bin"),
            ("LANG", "C.UTF-8"),
        ];
        Self {
            env: env
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            claude: Ok(ClaudeBinary {
                path: "/opt/claude".into(),
                version: "2.1.316".to_owned(),
                fingerprint: "1-1.0".to_owned(),
            }),
            tmux: Ok(TmuxBinary {
                path: "/usr/bin/tmux".into(),
                version: "3.3a".to_owned(),
            }),
            helper: Ok("/opt/ccd-helper".into()),
            dirs: Ok(ClaudeDirs {
                config: home.join(".claude"),
                global: home.join(".claude.json"),
                home,
            }),
            layers: Vec::new(),
            account: Ok(AccountFacts {
                onboarded: true,
                oauth: true,
                subscription: Some("max".to_owned()),
                expires_at: None,
                refreshable: true,
                stored_api_key: false,
            }),
            mcp_servers: Vec::new(),
            trusted: BTreeSet::from(["/work".into()]),
            seed: Ok(()),
            live: Vec::new(),
            files: BTreeMap::new(),
        }
    }
}

/// The host; clones share the answers.
#[derive(Clone, Default)]
pub struct FakeHost(Arc<Mutex<HostAnswers>>);

impl FakeHost {
    /// A machine on which everything is in order.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes the answers.
    pub fn set(&self, change: impl FnOnce(&mut HostAnswers)) {
        change(&mut self.answers());
    }

    fn answers(&self) -> MutexGuard<'_, HostAnswers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host for FakeHost {
    fn env(&self) -> BTreeMap<String, String> {
        self.answers().env.clone()
    }

    fn claude<'a>(
        &'a self,
        _option: Option<&'a str>,
        _pinned: &'a str,
        _env: &'a BTreeMap<String, String>,
    ) -> PortFut<'a, Result<ClaudeBinary, PortError>> {
        let claude = self.answers().claude.clone();
        Box::pin(async move { claude })
    }

    fn tmux<'a>(
        &'a self,
        _env: &'a BTreeMap<String, String>,
    ) -> PortFut<'a, Result<TmuxBinary, PortError>> {
        let tmux = self.answers().tmux.clone();
        Box::pin(async move { tmux })
    }

    fn helper<'a>(
        &'a self,
        _option: Option<&'a str>,
        _env: &'a BTreeMap<String, String>,
    ) -> PortFut<'a, Result<PathBuf, PortError>> {
        let helper = self.answers().helper.clone();
        Box::pin(async move { helper })
    }

    fn dirs(&self, _env: &BTreeMap<String, String>) -> Result<ClaudeDirs, PortError> {
        self.answers().dirs.clone()
    }

    fn layers(&self, _dirs: &ClaudeDirs, _workspace: &Path) -> Vec<SettingsLayer> {
        self.answers().layers.clone()
    }

    fn account(&self, _dirs: &ClaudeDirs) -> Result<AccountFacts, PortError> {
        self.answers().account.clone()
    }

    fn workspace(&self, _dirs: &ClaudeDirs, cwd: &str) -> Result<WorkspaceFacts, PortError> {
        let answers = self.answers();
        let real_path = PathBuf::from(cwd);
        Ok(WorkspaceFacts {
            trusted: real_path
                .ancestors()
                .any(|above| answers.trusted.contains(above)),
            mcp_servers: answers.mcp_servers.clone(),
            real_path,
        })
    }

    fn seed_trust(&self, _dirs: &ClaudeDirs, workspace: &Path) -> Result<(), PortError> {
        let mut answers = self.answers();
        answers.seed.clone()?;
        answers.trusted.insert(workspace.to_owned());
        Ok(())
    }

    fn live_claudes(&self, _dirs: &ClaudeDirs) -> Vec<LiveClaude> {
        self.answers().live.clone()
    }

    fn exists(&self, path: &Path) -> bool {
        self.answers().files.contains_key(path)
    }

    fn read(&self, path: &Path) -> Result<Arc<str>, PortError> {
        match self.answers().files.get(path) {
            Some(text) => Ok(text.as_str().into()),
            None => {
                let message = format!("{} cannot be read: no such file", path.display());
                Err(PortError::new(PortErrorKind::FileUnreadable, message))
            }
        }
    }
}
