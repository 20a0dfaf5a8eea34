//! The platform under the kernel port: the Claude in memory that the session loop's own tests use, in real time.
//!
//! What lives here: everything that a facade never sees. What never does: a scenario.

use std::sync::Arc;

use ccd_model::{ids::Launch, spec::SessionSpec, time::Mono};
use ccd_platform::clock::BootClock;
use ccd_ports::{
    Platform,
    clock::{Clock, Ids},
    error::PortError,
    host::Host,
    inbox::Inbox,
    raw::Raw,
    session::SessionPorts,
    state::StateStore,
    trace::TraceSink,
};

#[path = "../../../ccd-session/tests/support/mod.rs"]
#[allow(dead_code, reason = "written for more tests than these five scenarios")]
mod support;

use support::World;

/// The world in memory with the real clock: the kernel thread waits for time by itself.
#[derive(Clone)]
pub(crate) struct Fake {
    world: World,
    clock: BootClock,
}

impl Fake {
    pub(crate) fn new() -> Self {
        Self {
            world: World::new(),
            clock: BootClock::new(),
        }
    }

    pub(crate) fn port(&self) -> Arc<dyn Platform> {
        Arc::new(self.clone())
    }

    /// Everything that was started has been ended, and the session's record is gone.
    pub(crate) fn is_clean(&self) -> bool {
        self.world.with(|ledger| {
            ledger.records.is_empty() && ledger.steps.iter().any(|step| step == "teardown")
        })
    }
}

/// A session in the fake world.
pub(crate) fn spec() -> SessionSpec {
    SessionSpec {
        trace: None,
        ..support::spec()
    }
}

impl Platform for Fake {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clock.clone())
    }
    fn ids(&self) -> Arc<dyn Ids> {
        self.world.ids()
    }
    fn host(&self) -> Arc<dyn Host> {
        self.world.host()
    }
    fn state(&self, dir: Option<&str>) -> Result<Arc<dyn StateStore>, PortError> {
        self.world.state(dir)
    }
    fn open(&self, launch: Launch, inbox: Arc<dyn Inbox>) -> Box<dyn SessionPorts> {
        let clock = self.clock.clone();
        self.world.open(launch, Arc::new(Stamped { inbox, clock }))
    }
    fn trace(&self, path: &str) -> Result<Box<dyn TraceSink>, PortError> {
        self.world.trace(path)
    }
}

/// Stamps with the real time what the fake world stamps with its own.
struct Stamped {
    inbox: Arc<dyn Inbox>,
    clock: BootClock,
}

impl Inbox for Stamped {
    fn push(&self, launch: Launch, _at: Mono, raw: Raw) {
        self.inbox.push(launch, self.clock.now(), raw);
    }
}
