//! A trace in memory.
//!
//! What lives here: the [`TraceSink`] port as a list of lines. What never does: a file.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ccd_ports::{error::PortError, trace::TraceSink};

#[derive(Default)]
struct State {
    lines: Vec<String>,
    finished: bool,
    failure: Option<PortError>,
}

/// The sink; clones share the lines.
#[derive(Clone, Default)]
pub struct FakeTrace(Arc<Mutex<State>>);

impl FakeTrace {
    /// An empty trace.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What `finish` will report, once.
    pub fn fail_with(&self, error: PortError) {
        self.lock().failure = Some(error);
    }

    /// The lines so far.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.lock().lines.clone()
    }

    /// Whether it was finished.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.lock().finished
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TraceSink for FakeTrace {
    fn line(&mut self, line: String) {
        let mut state = self.lock();
        if !state.finished {
            state.lines.push(line);
        }
    }

    fn finish(&mut self) -> Result<(), PortError> {
        let mut state = self.lock();
        state.finished = true;
        state.failure.take().map_or(Ok(()), Err)
    }
}
