//! The one kernel thread of this process: a current-thread runtime on which every session lives, started on first use and kept.
//!
//! Here lives the thread. What runs on it never does.

use std::{
    io,
    sync::{Arc, OnceLock},
};

use ccd_platform::RealPlatform;
use ccd_ports::{
    Platform,
    error::{PortError, PortErrorKind},
};
use ccd_session::{LaunchError, LaunchStep};
use tokio::{runtime::Handle, task::JoinHandle};

static KERNEL: OnceLock<Result<Handle, String>> = OnceLock::new();
static PLATFORM: OnceLock<Arc<dyn Platform>> = OnceLock::new();

/// The kernel thread's runtime.
///
/// # Errors
/// When the thread could not be started, now or at the first use.
pub(crate) fn handle() -> io::Result<Handle> {
    KERNEL
        .get_or_init(|| start().map_err(|error| error.to_string()))
        .clone()
        .map_err(io::Error::other)
}

/// The real platform: one clock for all sessions of the process.
pub(crate) fn platform() -> Arc<dyn Platform> {
    Arc::clone(PLATFORM.get_or_init(|| Arc::new(RealPlatform::new())))
}

fn start() -> io::Result<Handle> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("ccd-kernel".to_owned())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(handle)
}

/// A task that ends when nobody waits for it any more.
pub(crate) struct AbortOnDrop<T>(pub(crate) JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T> AbortOnDrop<Result<T, LaunchError>> {
    /// The task's own result.
    pub(crate) async fn result(mut self) -> Result<T, LaunchError> {
        match (&mut self.0).await {
            Ok(result) => result,
            Err(error) => {
                let error = PortError::new(
                    PortErrorKind::Internal,
                    format!("the start did not end: {error}"),
                );
                Err(LaunchError::new(LaunchStep::Ready, error))
            }
        }
    }
}
