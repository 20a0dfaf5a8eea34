//! The composition root: builds the real adapters and wires them to the session loop.
//!
//! Exports exactly the model, [`create_kernel`], the replay and the functions over the records of sessions. A facade needs nothing else.
//! Experimental: the shape may change until a second facade has been built on it.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod kernel_thread;
mod records;

use std::{fs::File, io::BufReader, path::Path, sync::Arc};

use ccd_model::{
    kernel::{BoxFut, Decide, SessionKernel},
    spec::SessionSpec,
};
use ccd_ports::{
    Platform,
    error::{PortError, PortErrorKind},
};
use ccd_session::{Handler, start_with};

pub use ccd_model as model;
pub use ccd_session::{LaunchError, LaunchErrorKind, LaunchStep, ReplayError, Replayed};
pub use records::{ReapedSession, RecordedSession, RecordsError, list_sessions, reap};

/// Starts a session on this machine; resolves when it is ready for prompts. Runs on any executor: the work is done on the kernel thread.
///
/// The handler runs on the tokio runtime of the calling thread if there is one, else on a thread of its own. Dropping the future gives
/// the start up and leaves nothing behind.
///
/// # Errors
/// [`LaunchError`], typed by kind and step; then nothing is left behind.
pub fn create_kernel(
    spec: SessionSpec,
    handler: Option<Arc<dyn Decide>>,
) -> BoxFut<Result<Arc<dyn SessionKernel>, LaunchError>> {
    create_kernel_on(kernel_thread::platform(), spec, handler)
}

/// Like [`create_kernel`] on a platform of the caller's choice. For tests with fakes.
///
/// # Errors
/// As [`create_kernel`].
pub fn create_kernel_on(
    platform: Arc<dyn Platform>,
    spec: SessionSpec,
    handler: Option<Arc<dyn Decide>>,
) -> BoxFut<Result<Arc<dyn SessionKernel>, LaunchError>> {
    // Here, on the caller's thread: the handler belongs to its runtime.
    let handler = handler.map(Handler::capture).transpose();
    Box::pin(async move {
        let handler = handler.map_err(|error| no_thread(&error))?;
        let kernel = kernel_thread::handle().map_err(|error| no_thread(&error))?;
        let start = kernel.spawn(start_with(platform, spec, handler));
        kernel_thread::AbortOnDrop(start).result().await
    })
}

/// Replays a trace file through the same channels and core that made it.
///
/// # Errors
/// [`ReplayError`] when it cannot be read; differences are no error.
pub fn replay_file(path: impl AsRef<Path>) -> Result<Replayed, ReplayError> {
    ccd_session::replay(BufReader::new(File::open(path)?))
}

fn no_thread(error: &std::io::Error) -> LaunchError {
    let error = PortError::new(
        PortErrorKind::Internal,
        format!("a thread of the driver cannot be started: {error}"),
    );
    LaunchError::new(LaunchStep::Config, error)
}
