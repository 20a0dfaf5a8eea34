//! The state directory: one record for each live session, so that a later start finds what a crash left behind.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{PortFut, error::PortError};

/// A process with its start time, so that a reused pid is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// Pid.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub start_time: u64,
}

/// What is recorded of a live session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Record format, 1.
    pub format: u32,
    /// Our session id.
    pub session: String,
    /// Claude's session id.
    pub claude_session: String,
    /// The owning process.
    pub owner: ProcessId,
    /// The supervisor, once started.
    pub supervisor: Option<ProcessId>,
    /// Runtime directory.
    pub runtime_dir: PathBuf,
    /// The variable that marks every process of this session.
    pub marker: (String, String),
    /// Working directory.
    pub cwd: PathBuf,
    /// Start, Unix milliseconds.
    pub started_ms: i64,
}

/// What a reaped session left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reaped {
    /// The record.
    pub record: SessionRecord,
    /// Processes that were still alive and were killed.
    pub killed: u32,
    /// The runtime directory was still there and was removed.
    pub dir_removed: bool,
}

/// The records.
pub trait StateStore: Send + Sync {
    /// Writes or replaces a record, 0600.
    fn write(&self, record: &SessionRecord) -> Result<(), PortError>;
    /// Removes a record; a missing one is no error.
    fn remove(&self, session: &str) -> Result<(), PortError>;
    /// All records; unreadable files are skipped.
    fn list(&self) -> Vec<SessionRecord>;
    /// Whether the owner of the record lives, identity checked.
    fn owner_alive(&self, record: &SessionRecord) -> bool;
    /// Kills what is left of sessions whose owner is gone and removes their directories and records.
    fn reap(&self) -> PortFut<'_, Vec<Reaped>>;
    /// This process.
    fn this_process(&self) -> ProcessId;
    /// Base directory for runtime directories: short, private, existing.
    fn runtime_base(&self) -> Result<PathBuf, PortError>;
    /// Whether this self-test key succeeded before.
    fn self_test_known(&self, key: &str) -> bool;
    /// Remembers a successful self-test.
    fn remember_self_test(&self, key: &str);
}
