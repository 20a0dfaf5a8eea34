//! Reads about this machine.
//!
//! What lives here: the host port, each question in a file of its own. What never does: a secret's value in an answer,
//! or a write but the one of trust.

mod account;
mod binaries;
mod files;
mod json_object;
mod layers;
mod live;
mod run;
mod trust_seed;
mod workspace;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use ccd_ports::{
    PortFut,
    clock::Clock,
    error::PortError,
    host::{
        AccountFacts, ClaudeBinary, ClaudeDirs, Host, LiveClaude, SettingsLayer, TmuxBinary,
        WorkspaceFacts,
    },
};

/// This machine. Its two asynchronous questions run programs and must be polled inside a tokio runtime.
#[derive(Clone)]
pub struct RealHost {
    clock: Arc<dyn Clock>,
}

impl RealHost {
    /// The host; `clock` bounds the programs that are asked for their version.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }
}

impl Host for RealHost {
    fn env(&self) -> BTreeMap<String, String> {
        crate::env::process_environment()
    }

    fn claude<'a>(
        &'a self,
        option: Option<&'a str>,
        pinned: &'a str,
        env: &'a BTreeMap<String, String>,
    ) -> PortFut<'a, Result<ClaudeBinary, PortError>> {
        Box::pin(binaries::claude(option, pinned, env, &self.clock))
    }

    fn tmux<'a>(
        &'a self,
        env: &'a BTreeMap<String, String>,
    ) -> PortFut<'a, Result<TmuxBinary, PortError>> {
        Box::pin(binaries::tmux(env, &self.clock))
    }

    fn helper<'a>(
        &'a self,
        option: Option<&'a str>,
        env: &'a BTreeMap<String, String>,
    ) -> PortFut<'a, Result<PathBuf, PortError>> {
        Box::pin(async move { binaries::helper(option, env, std::env::current_exe().ok()) })
    }

    fn dirs(&self, env: &BTreeMap<String, String>) -> Result<ClaudeDirs, PortError> {
        account::dirs(env)
    }

    fn layers(&self, dirs: &ClaudeDirs, workspace: &Path) -> Vec<SettingsLayer> {
        layers::layers(dirs, workspace, Path::new(layers::MANAGED_DIR))
    }

    fn account(&self, dirs: &ClaudeDirs) -> Result<AccountFacts, PortError> {
        account::account(dirs)
    }

    fn workspace(&self, dirs: &ClaudeDirs, cwd: &str) -> Result<WorkspaceFacts, PortError> {
        workspace::workspace(dirs, cwd)
    }

    fn seed_trust(&self, dirs: &ClaudeDirs, workspace: &Path) -> Result<(), PortError> {
        trust_seed::seed_trust(dirs, workspace)
    }

    fn live_claudes(&self, dirs: &ClaudeDirs) -> Vec<LiveClaude> {
        live::live_claudes(dirs)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn read(&self, path: &Path) -> Result<Arc<str>, PortError> {
        files::read(path).map(Arc::from)
    }
}
