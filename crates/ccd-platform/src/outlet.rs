//! The adapters' way back to the session of one launch.
//!
//! What lives here: stamping raw records with launch and time, and telling a lost part once. What never does: reading
//! the records, or keeping them.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use ccd_model::{
    ids::{Launch, OpId},
    observation::{LostPart, OpEnd},
    time::Mono,
};
use ccd_ports::{PortFut, clock::Clock, inbox::Inbox, raw::Raw};

/// Where the adapters of one launch put what they saw.
pub(crate) struct Outlet {
    launch: Launch,
    inbox: Arc<dyn Inbox>,
    clock: Arc<dyn Clock>,
    /// We are ending it ourselves: nothing that goes away now is a loss.
    closing: AtomicBool,
    server_lost: AtomicBool,
    supervisor_lost: AtomicBool,
}

impl Outlet {
    pub(crate) fn new(launch: Launch, inbox: Arc<dyn Inbox>, clock: Arc<dyn Clock>) -> Self {
        Self {
            launch,
            inbox,
            clock,
            closing: AtomicBool::new(false),
            server_lost: AtomicBool::new(false),
            supervisor_lost: AtomicBool::new(false),
        }
    }

    pub(crate) fn launch(&self) -> Launch {
        self.launch
    }

    pub(crate) fn inbox(&self) -> Arc<dyn Inbox> {
        Arc::clone(&self.inbox)
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    pub(crate) fn now(&self) -> Mono {
        self.clock.now()
    }

    /// Resolves at or after `at`.
    pub(crate) fn until(&self, at: Mono) -> PortFut<'static, ()> {
        self.clock.sleep_until(at)
    }

    /// Resolves after `ms` milliseconds.
    pub(crate) fn after(&self, ms: u64) -> PortFut<'static, ()> {
        self.clock.sleep_until(self.now().after(ms))
    }

    /// `work`, or `None` when it has not ended after `ms` milliseconds.
    pub(crate) async fn within<T>(&self, ms: u64, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.after(ms) => None,
        }
    }

    pub(crate) fn push(&self, raw: Raw) {
        self.inbox.push(self.launch, self.clock.now(), raw);
    }

    pub(crate) fn end(&self, op: OpId, end: OpEnd) {
        self.push(Raw::OpEnded { op, end });
    }

    pub(crate) fn refuse(&self, op: OpId, reason: &str) {
        let reason = reason.into();
        self.end(op, OpEnd::Refused { reason });
    }

    /// Tells that a part was lost: the server and the supervisor at most once, nothing while closing.
    pub(crate) fn lost(&self, part: LostPart) {
        if self.closing.load(Ordering::SeqCst) {
            return;
        }
        let told = match part {
            LostPart::TmuxServer => self.server_lost.swap(true, Ordering::SeqCst),
            LostPart::Supervisor => self.supervisor_lost.swap(true, Ordering::SeqCst),
            LostPart::ControlClient | LostPart::HookServer => false,
        };
        if !told {
            self.push(Raw::Lost { part });
        }
    }

    /// From now on nothing is a loss.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }
}
