//! Where the followers run.
//!
//! What lives here: the choice between the runtime of the caller and a thread with a runtime of its own. What never
//! does: what a follower does.

use std::future::Future;

/// Runs `task` to its end in the background: on the caller's tokio runtime if there is one, else on a thread.
///
/// A system without a free thread is logged; the task then never runs.
pub(crate) fn spawn(name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        drop(runtime.spawn(task));
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let started = runtime.and_then(|runtime| {
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(move || runtime.block_on(task))
    });
    if let Err(error) = started {
        tracing::error!(name, %error, "a background task could not be started");
    }
}
