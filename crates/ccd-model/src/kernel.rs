//! The kernel port: all that a facade needs of a session. Object-safe, runtime-agnostic.

use alloc::{boxed::Box, string::String, sync::Arc};
use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use crate::{
    command::{Accepted, CloseHow, Command, Refusal},
    event::Published,
    ids::{PermissionKey, Seq},
    permission::Decision,
    view::{ExitView, PermissionView, View},
};

/// A boxed future that any executor can run.
pub type BoxFut<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An item of the event log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogItem {
    /// An event.
    Event(Arc<Published>),
    /// Events were dropped because the reader was too slow.
    Gap {
        /// First missing position.
        from: Seq,
        /// Last missing position.
        to: Seq,
    },
}

/// A reader of the event log.
pub trait Cursor: Send + Sync {
    /// The next item; `None` once the session is over and all was read.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<LogItem>>;
}

/// A permission request as a handler sees it.
pub type PermissionRequest = PermissionView;

/// Decides permission requests. Runs outside the kernel thread; a panic, a drop or a missed deadline is a deny.
pub trait Decide: Send + Sync {
    /// Answers one request.
    fn decide(&self, request: PermissionRequest) -> BoxFut<Decision>;

    /// The request `permission` needs no answer any more.
    fn cancelled(&self, permission: PermissionKey) {
        let _ = permission;
    }
}

/// For attaching and inspecting.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DebugInfo {
    /// Our session id.
    pub session: String,
    /// Command line that attaches a terminal read-only.
    pub attach: String,
    /// Trace file.
    pub trace: Option<String>,
    /// Why the trace is incomplete; known once the session is over.
    pub trace_error: Option<String>,
    /// Last capture.
    pub screen: Arc<str>,
}

/// One running session.
pub trait SessionKernel: Send + Sync {
    /// Hands a command to the core. Resolves at acceptance, never at completion.
    fn dispatch(&self, command: Command) -> BoxFut<Result<Accepted, Refusal>>;
    /// Reads events from position `from` on; `Seq(u64::MAX)` begins with the next event.
    fn events(&self, from: Seq) -> Box<dyn Cursor>;
    /// The latest view.
    fn view(&self) -> Arc<View>;
    /// Resolves with the first view for which `pred` holds; `None` when the session ended without one.
    fn wait_for(&self, pred: Box<dyn Fn(&View) -> bool + Send + Sync>)
    -> BoxFut<Option<Arc<View>>>;
    /// Sets the permission handler.
    fn on_permission(&self, handler: Arc<dyn Decide>);
    /// Ends the session. Acts at the call, also when the future is dropped; resolves when nothing of it is left.
    fn close(&self, how: CloseHow) -> BoxFut<ExitView>;
    /// Resolves when the session is over and torn down.
    fn exited(&self) -> BoxFut<ExitView>;
    /// For attaching and inspecting.
    fn debug(&self) -> DebugInfo;
}
