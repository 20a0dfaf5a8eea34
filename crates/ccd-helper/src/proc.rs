//! Facts about processes: identity, children, environment.
//!
//! What lives here: what both the supervisor and the host must ask of the system, typed; on a system other than Linux
//! every question is answered [`ProcError::Unsupported`]. What never does: signals, or waiting for processes.

use std::fmt;
use std::io;

#[cfg(target_os = "linux")]
#[path = "proc/linux.rs"]
mod imp;
#[cfg(not(target_os = "linux"))]
#[path = "proc/unsupported.rs"]
mod imp;

pub use imp::{environ_has, snapshot, start_time};

/// A process for good: a process id alone is given out again after its process is reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The process id.
    pub pid: u32,
    /// When it was started, in clock ticks since boot (field 22 of `/proc/<pid>/stat`).
    pub start_time: u64,
}

/// Why a question could not be answered.
#[derive(Debug)]
pub enum ProcError {
    /// This system has no `/proc` of the Linux kind.
    Unsupported,
    /// `/proc` could not be read; a process that is gone is never this.
    Io(io::Error),
    /// A file of `/proc` has an unknown form.
    Malformed {
        /// The process asked about.
        pid: u32,
    },
}

impl fmt::Display for ProcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported => f.write_str("process facts are not supported on this system"),
            Self::Io(error) => write!(f, "/proc could not be read: {error}"),
            Self::Malformed { pid } => write!(f, "/proc/{pid} has an unknown form"),
        }
    }
}

impl std::error::Error for ProcError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Unsupported | Self::Malformed { .. } => None,
        }
    }
}

/// One row of a [`Snapshot`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Who it is.
    pub identity: Identity,
    /// Its parent's process id (0 if outside of this pid namespace).
    pub parent: u32,
    /// Its session id; a session leader has its own process id here.
    pub session: u32,
    /// Whether it runs code. A zombie does not; a process whose first thread has ended while others go on does.
    pub alive: bool,
    /// The kernel's name of it (at most 15 bytes, may contain anything).
    pub command: String,
}

/// All processes at about one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The rows, in no particular order. Each process id occurs once.
    pub processes: Vec<Process>,
}

impl Snapshot {
    /// The row of a process id.
    #[must_use]
    pub fn get(&self, pid: u32) -> Option<&Process> {
        self.processes.iter().find(|row| row.identity.pid == pid)
    }

    /// The direct children of `pid`, zombies included.
    pub fn children(&self, pid: u32) -> impl Iterator<Item = &Process> {
        self.processes.iter().filter(move |row| row.parent == pid)
    }

    /// All processes below the given ones (which are not part of the answer), zombies included.
    #[must_use]
    pub fn descendants(&self, roots: &[u32]) -> Vec<&Process> {
        let mut below: Vec<&Process> = Vec::new();
        let mut todo: Vec<u32> = roots.to_vec();
        while let Some(pid) = todo.pop() {
            for child in self.children(pid) {
                let id = child.identity.pid;
                let seen = roots.contains(&id) || below.iter().any(|row| row.identity.pid == id);
                if !seen {
                    below.push(child);
                    todo.push(id);
                }
            }
        }
        below
    }

    /// The parent of `pid`, its parent, and so on.
    #[must_use]
    pub fn ancestors(&self, pid: u32) -> Vec<&Process> {
        let mut above: Vec<&Process> = Vec::new();
        let mut row = self.get(pid);
        while let Some(parent) = row.and_then(|row| self.get(row.parent)) {
            if above.contains(&parent) {
                break;
            }
            above.push(parent);
            row = Some(parent);
        }
        above
    }
}

/// Who has this process id now; `None` if nobody has.
///
/// # Errors
/// [`ProcError`] if the system cannot tell.
pub fn identity(pid: u32) -> Result<Option<Identity>, ProcError> {
    Ok(start_time(pid)?.map(|start_time| Identity { pid, start_time }))
}

/// Whether exactly this process still runs code (a zombie does not).
///
/// # Errors
/// [`ProcError`] if the system cannot tell.
pub fn is_alive(identity: Identity) -> Result<bool, ProcError> {
    Ok(imp::process(identity.pid)?.is_some_and(|row| row.identity == identity && row.alive))
}

/// The living direct children of `pid`.
///
/// # Errors
/// [`ProcError`] if the system cannot tell.
pub fn children(pid: u32) -> Result<Vec<Identity>, ProcError> {
    let snapshot = snapshot()?;
    let rows = snapshot.children(pid).filter(|row| row.alive);
    Ok(rows.map(|row| row.identity).collect())
}

/// All living processes below `pid`.
///
/// # Errors
/// [`ProcError`] if the system cannot tell.
pub fn descendants(pid: u32) -> Result<Vec<Identity>, ProcError> {
    let snapshot = snapshot()?;
    let rows = snapshot.descendants(&[pid]);
    let alive = rows.into_iter().filter(|row| row.alive);
    Ok(alive.map(|row| row.identity).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn row(pid: u32, parent: u32) -> Process {
        Process {
            identity: Identity { pid, start_time: 1 },
            parent,
            session: pid,
            alive: true,
            command: String::new(),
        }
    }

    fn pids(rows: &[&Process]) -> Vec<u32> {
        let mut pids: Vec<u32> = rows.iter().map(|row| row.identity.pid).collect();
        pids.sort_unstable();
        pids
    }

    #[test]
    fn descendants_and_ancestors_follow_parents_and_survive_loops() {
        let mut table = Snapshot {
            processes: vec![row(1, 0), row(2, 1), row(3, 2), row(4, 3), row(5, 1)],
        };
        assert_eq!(pids(&table.descendants(&[2])), [3, 4]);
        assert_eq!(pids(&table.descendants(&[2, 3])), [4]);
        assert_eq!(pids(&table.ancestors(4)), [1, 2, 3]);
        // A torn read of /proc can show a loop.
        table.processes = vec![row(2, 3), row(3, 2)];
        assert_eq!(pids(&table.descendants(&[2])), [3]);
        assert_eq!(pids(&table.ancestors(2)), [2, 3]);
    }
}
