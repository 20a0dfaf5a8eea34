//! The real outside world behind the platform port.
//!
//! What lives here: which adapter stands behind which port. What never does: the adapters.

use std::sync::Arc;

use ccd_model::ids::Launch;
use ccd_ports::{
    Platform,
    clock::{Clock, Ids},
    error::PortError,
    host::Host,
    inbox::Inbox,
    session::SessionPorts,
    state::StateStore,
    trace::TraceSink,
};

use crate::{
    clock::BootClock, env, host::RealHost, ids::OsIds, session_ports::LaunchPorts,
    state_dir::StateDir, trace_file::TraceFile,
};

/// This machine, for all sessions of the process. One clock serves them all.
#[derive(Clone)]
pub struct RealPlatform {
    clock: Arc<dyn Clock>,
}

impl RealPlatform {
    /// The platform; its clock starts now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            clock: Arc::new(BootClock::new()),
        }
    }
}

impl Default for RealPlatform {
    fn default() -> Self {
        Self::new()
    }
}

impl Platform for RealPlatform {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    fn ids(&self) -> Arc<dyn Ids> {
        Arc::new(OsIds)
    }

    fn host(&self) -> Arc<dyn Host> {
        Arc::new(RealHost::new(self.clock()))
    }

    fn state(&self, dir: Option<&str>) -> Result<Arc<dyn StateStore>, PortError> {
        Ok(Arc::new(StateDir::open(dir, &env::process_environment())?))
    }

    fn open(&self, launch: Launch, inbox: Arc<dyn Inbox>) -> Box<dyn SessionPorts> {
        Box::new(LaunchPorts::new(launch, inbox, self.clock()))
    }

    fn trace(&self, path: &str) -> Result<Box<dyn TraceSink>, PortError> {
        Ok(Box::new(TraceFile::create(path)?))
    }
}
