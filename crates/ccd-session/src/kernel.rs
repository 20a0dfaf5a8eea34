//! The kernel's handle: implements the kernel port over the queue, the log and the published view. Usable from any thread and executor.
//!
//! Here lives the handle. The loop behind it and its lifecycle never do.

use std::sync::{Arc, Mutex, PoisonError};

use ccd_model::{
    command::{Accepted, CloseHow, Command, Refusal},
    ids::Seq,
    kernel::{BoxFut, Cursor, DebugInfo, Decide, SessionKernel},
    view::{ExitView, View},
};
use tokio::sync::{oneshot, watch};

use crate::{
    event_log::EventLog,
    permission_broker::{Handler, HandlerSeat},
    queue::Queue,
};

/// The handle of one session. Dropping the last one starts a graceful close.
pub(crate) struct Kernel {
    pub(crate) queue: Queue,
    pub(crate) log: Arc<EventLog>,
    pub(crate) view: watch::Receiver<Arc<View>>,
    pub(crate) exit: watch::Receiver<Option<ExitView>>,
    pub(crate) seat: HandlerSeat,
    pub(crate) debug: Arc<Mutex<DebugInfo>>,
}

impl SessionKernel for Kernel {
    fn dispatch(&self, command: Command) -> BoxFut<Result<Accepted, Refusal>> {
        let queue = self.queue.clone();
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            queue.command(command, Some(reply));
            answer.await.unwrap_or(Err(Refusal::SessionOver))
        })
    }

    fn events(&self, from: Seq) -> Box<dyn Cursor> {
        self.log.cursor(from)
    }

    fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.borrow())
    }

    fn wait_for(
        &self,
        pred: Box<dyn Fn(&View) -> bool + Send + Sync>,
    ) -> BoxFut<Option<Arc<View>>> {
        let mut view = self.view.clone();
        Box::pin(async move {
            let found = view.wait_for(|view| pred(view)).await.ok()?;
            Some(Arc::clone(&found))
        })
    }

    fn on_permission(&self, handler: Arc<dyn Decide>) {
        match Handler::capture(handler) {
            Ok(handler) => self.seat.set(Some(handler)),
            Err(error) => {
                // Without a place to run it there is no handler: every request is denied.
                tracing::error!(%error, "no thread for the permission handler");
                self.seat.set(None);
            }
        }
    }

    fn close(&self, how: CloseHow) -> BoxFut<ExitView> {
        // Here and not in the future: a caller that does not wait has asked all the same.
        self.queue.command(Command::Close { how }, None);
        self.exited()
    }

    fn exited(&self) -> BoxFut<ExitView> {
        let mut exit = self.exit.clone();
        Box::pin(async move {
            let known = exit.wait_for(Option::is_some).await;
            known
                .ok()
                .and_then(|exit| exit.clone())
                .unwrap_or_else(|| unexplained("the kernel ended"))
        })
    }

    fn debug(&self) -> DebugInfo {
        self.debug
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let how = CloseHow::Graceful;
        self.queue.command(Command::Close { how }, None);
    }
}

/// An end that the core did not explain.
pub(crate) fn unexplained(reason: &str) -> ExitView {
    ExitView {
        code: None,
        signal: None,
        clean: false,
        reason: reason.into(),
    }
}
