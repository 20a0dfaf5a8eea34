//! Process facts where there is no Linux `/proc`: the typed answer that there are none.

use super::{ProcError, Process, Snapshot};

pub(super) fn process(_pid: u32) -> Result<Option<Process>, ProcError> {
    Err(ProcError::Unsupported)
}

/// Start time of a process in clock ticks since boot; `None` if there is no such process.
///
/// # Errors
/// Always [`ProcError::Unsupported`].
pub fn start_time(_pid: u32) -> Result<Option<u64>, ProcError> {
    Err(ProcError::Unsupported)
}

/// All processes that this one can see.
///
/// # Errors
/// Always [`ProcError::Unsupported`].
pub fn snapshot() -> Result<Snapshot, ProcError> {
    Err(ProcError::Unsupported)
}

/// Whether a process was started with exactly this environment entry.
///
/// # Errors
/// Always [`ProcError::Unsupported`].
pub fn environ_has(_pid: u32, _entry: &[u8]) -> Result<bool, ProcError> {
    Err(ProcError::Unsupported)
}
