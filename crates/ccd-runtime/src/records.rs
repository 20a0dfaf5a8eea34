//! What the state directory knows about sessions, without a session: listing and reaping.
//!
//! Here live the two functions and their shapes. The records themselves are the platform's.

use ccd_model::kernel::BoxFut;
use ccd_ports::{error::PortError, state::SessionRecord};
use thiserror::Error;

use crate::kernel_thread;

/// Why the state directory could not be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct RecordsError {
    /// One sentence for a person.
    pub message: String,
    /// What a person can do about it.
    pub fix: Option<String>,
}

impl From<PortError> for RecordsError {
    fn from(error: PortError) -> Self {
        Self {
            message: error.message,
            fix: error.fix,
        }
    }
}

/// A recorded session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedSession {
    /// Our session id.
    pub session: String,
    /// Claude's session id, empty when Claude chose it.
    pub claude_session: String,
    /// Pid of the owning process.
    pub owner_pid: u32,
    /// The owner lives, identity checked. A session without its owner is an orphan.
    pub owner_alive: bool,
    /// Runtime directory.
    pub runtime_dir: String,
    /// Working directory.
    pub cwd: String,
    /// Start, Unix milliseconds.
    pub started_ms: i64,
}

/// What was left of a session whose owner is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReapedSession {
    /// The session, as recorded.
    pub session: RecordedSession,
    /// Processes that still lived and were killed.
    pub killed: u32,
    /// Its runtime directory was still there and was removed.
    pub dir_removed: bool,
}

fn recorded(record: SessionRecord, owner_alive: bool) -> RecordedSession {
    RecordedSession {
        session: record.session,
        claude_session: record.claude_session,
        owner_pid: record.owner.pid,
        owner_alive,
        runtime_dir: record.runtime_dir.to_string_lossy().into_owned(),
        cwd: record.cwd.to_string_lossy().into_owned(),
        started_ms: record.started_ms,
    }
}

/// The recorded sessions of the state directory `dir`, the default one when absent. Blocks on file reads.
///
/// # Errors
/// The directory cannot be used.
pub fn list_sessions(dir: Option<&str>) -> Result<Vec<RecordedSession>, RecordsError> {
    let store = kernel_thread::platform().state(dir)?;
    let records = store.list();
    Ok(records
        .into_iter()
        .map(|record| {
            let alive = store.owner_alive(&record);
            recorded(record, alive)
        })
        .collect())
}

/// Kills what is left of sessions whose owner is gone and removes their files. Runs on any executor.
///
/// # Errors
/// The directory cannot be used.
pub fn reap(dir: Option<&str>) -> BoxFut<Result<Vec<ReapedSession>, RecordsError>> {
    let dir = dir.map(ToOwned::to_owned);
    Box::pin(async move {
        let kernel = kernel_thread::handle().map_err(|error| failed(&error))?;
        let task = kernel.spawn(async move {
            let store = tokio::task::spawn_blocking(move || {
                kernel_thread::platform().state(dir.as_deref())
            })
            .await
            .map_err(|error| failed(&error))??;
            let reaped = store.reap().await;
            Ok(reaped
                .into_iter()
                .map(|reaped| ReapedSession {
                    session: recorded(reaped.record, false),
                    killed: reaped.killed,
                    dir_removed: reaped.dir_removed,
                })
                .collect())
        });
        // Not aborted when dropped: what was begun is cleaned to the end.
        task.await.map_err(|error| failed(&error))?
    })
}

fn failed(error: &impl std::fmt::Display) -> RecordsError {
    RecordsError {
        message: format!("the state directory was not read: {error}"),
        fix: None,
    }
}
