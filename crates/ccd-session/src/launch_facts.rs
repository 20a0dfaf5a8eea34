//! The reads of a start that may block, each on a thread of its own: state directory, trace file, host.
//!
//! Here lives how they are asked for. Judging the answers never does.

use std::{collections::BTreeMap, future::Future, path::PathBuf, sync::Arc};

use ccd_model::spec::SessionSpec;
use ccd_ports::{
    Platform,
    error::{PortError, PortErrorKind},
    host::{AccountFacts, ClaudeDirs, Host, LiveClaude, SettingsLayer, WorkspaceFacts},
    state::{Reaped, StateStore},
    trace::TraceSink,
};

use crate::{preflight::KEYBINDINGS_NAME, scheduler::SessionClock};

/// What the host said.
pub(crate) struct HostFacts {
    pub(crate) dirs: ClaudeDirs,
    pub(crate) account: Result<AccountFacts, PortError>,
    pub(crate) layers: Vec<SettingsLayer>,
    /// The key-binding file, if there is a readable one.
    pub(crate) keybindings: Option<(PathBuf, Arc<str>)>,
    pub(crate) workspace: WorkspaceFacts,
    pub(crate) live: Vec<LiveClaude>,
}

/// What the state directory gave.
pub(crate) struct StateFacts {
    pub(crate) store: Arc<dyn StateStore>,
    pub(crate) reaped: Vec<Reaped>,
    pub(crate) runtime_base: PathBuf,
}

/// Runs `work` away from the kernel thread.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PortError> + Send + 'static,
) -> Result<T, PortError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(PortError::new(
            PortErrorKind::Internal,
            format!("a blocking operation did not end: {error}"),
        )),
    }
}

/// The result of `work` with the milliseconds that it took.
pub(crate) async fn timed<T>(clock: &SessionClock, work: impl Future<Output = T>) -> (u64, T) {
    let from = clock.now();
    let result = work.await;
    (clock.now().since(from), result)
}

/// Opens the state directory and cleans what crashed owners left.
pub(crate) async fn open_state(
    platform: &Arc<dyn Platform>,
    spec: &SessionSpec,
) -> Result<StateFacts, PortError> {
    let platform = Arc::clone(platform);
    let dir = spec.state_dir.clone();
    let (store, runtime_base) = blocking(move || {
        let store = platform.state(dir.as_deref())?;
        let runtime_base = store.runtime_base()?;
        Ok((store, runtime_base))
    })
    .await?;
    let reaped = store.reap().await;
    Ok(StateFacts {
        store,
        reaped,
        runtime_base,
    })
}

/// Opens the trace file, if one is asked for.
pub(crate) async fn open_trace(
    platform: &Arc<dyn Platform>,
    spec: &SessionSpec,
) -> Result<Option<Box<dyn TraceSink>>, PortError> {
    let Some(path) = spec.trace.clone() else {
        return Ok(None);
    };
    let platform = Arc::clone(platform);
    blocking(move || platform.trace(&path)).await.map(Some)
}

/// Reads everything about Claude's directories and the workspace. `env` is the child's.
pub(crate) async fn read_host(
    host: Arc<dyn Host>,
    env: BTreeMap<String, String>,
    cwd: String,
) -> Result<HostFacts, PortError> {
    blocking(move || {
        let dirs = host.dirs(&env)?;
        let workspace = host.workspace(&dirs, &cwd)?;
        let keybindings = dirs.config.join(KEYBINDINGS_NAME);
        let keybindings = host
            .exists(&keybindings)
            .then(|| host.read(&keybindings).ok())
            .flatten()
            .map(|text| (keybindings, text));
        Ok(HostFacts {
            account: host.account(&dirs),
            layers: host.layers(&dirs, &workspace.real_path),
            live: host.live_claudes(&dirs),
            keybindings,
            workspace,
            dirs,
        })
    })
    .await
}
