//! The port traits and raw records between the adapters (L0) and the session loop (L3).
//!
//! Requests go in through the traits, results come back through ONE inbox as raw records, so that the inbox is the only tap a trace needs.
//! Object-safe, no async runtime in any signature, no operating-system code.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod clock;
pub mod error;
pub mod host;
pub mod inbox;
pub mod raw;
pub mod session;
pub mod state;
pub mod trace;

use std::{future::Future, pin::Pin};

/// A boxed future that may borrow the port it came from.
pub type PortFut<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

use std::sync::Arc;

use ccd_model::ids::Launch;

/// Everything the session layer asks of the outside world.
pub trait Platform: Send + Sync {
    /// The clock of all sessions.
    fn clock(&self) -> Arc<dyn clock::Clock>;
    /// Fresh identifiers and secrets.
    fn ids(&self) -> Arc<dyn clock::Ids>;
    /// Reads about this machine, before anything is started.
    fn host(&self) -> Arc<dyn host::Host>;
    /// The state directory with one record for each live session.
    fn state(&self, dir: Option<&str>) -> Result<Arc<dyn state::StateStore>, error::PortError>;
    /// The adapters of one launch. Nothing is started yet.
    fn open(&self, launch: Launch, inbox: Arc<dyn inbox::Inbox>) -> Box<dyn session::SessionPorts>;
    /// Opens a trace file for writing, mode 0600.
    fn trace(&self, path: &str) -> Result<Box<dyn trace::TraceSink>, error::PortError>;
}
