//! The kill ladder: SIGTERM to Claude, grace, then SIGKILL to everything of the session until nothing is found.
//!
//! What lives here: who is to be ended, and in which order. What never does: files, sockets, reports.
//!
//! Claude ends its own trees when it is asked by SIGTERM; its shell tools run in sessions of their own, so no group
//! signal reaches them. What it leaves is found twice over: as a descendant of the supervisor (orphans come back to
//! the subreaper), and by the marker in the environment (a process that some other subreaper took).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::reap_children;
use super::signal::{self, Target};
use crate::proc::{self, Identity, ProcError, Snapshot};

/// Sweeps in a row that must find nothing: a process that forked during the first one is seen by the second.
const QUIET_SWEEPS: u32 = 2;

/// How long the processes killed by one sweep are waited for.
const SWEEP_WAIT: Duration = Duration::from_millis(250);

/// When the sweeps give up (a process in uninterruptible sleep, or one that may not be signalled).
const SWEEP_LIMIT: Duration = Duration::from_secs(5);

pub(super) struct Ladder<'a> {
    pub(super) own_pid: u32,
    /// Never signalled.
    pub(super) protected: &'a [Identity],
    /// The environment entry of the session's processes.
    pub(super) marker: &'a [u8],
    /// Claude, if the owner has named it.
    pub(super) watch: Option<Identity>,
    /// The tmux server, if it is known.
    pub(super) server: Option<Identity>,
    pub(super) grace: Duration,
}

impl Ladder<'_> {
    /// Runs the whole ladder; gives the number of processes that SIGKILL was needed for, the tmux server not counted.
    pub(super) fn run(&self) -> u32 {
        self.ask();
        let mut killed = BTreeSet::new();
        let deadline = Instant::now() + SWEEP_LIMIT;
        let mut quiet = 0;
        while quiet < QUIET_SWEEPS && Instant::now() < deadline {
            reap_children();
            let found = match self.survivors() {
                Ok(found) if found.is_empty() => {
                    quiet += 1;
                    continue;
                }
                Ok(found) => found,
                // Nothing can be said without /proc; a full descriptor table may pass.
                Err(_) => {
                    signal::pause(SWEEP_WAIT);
                    continue;
                }
            };
            quiet = 0;
            let found: Vec<Target> = found.into_iter().filter_map(Target::open).collect();
            for target in &found {
                target.send(Signal::KILL);
                killed.insert(target.identity());
            }
            signal::wait_all(found, Instant::now() + SWEEP_WAIT);
        }
        reap_children();
        let counted = killed.iter().filter(|id| Some(**id) != self.server).count();
        u32::try_from(counted).unwrap_or(u32::MAX)
    }

    /// SIGTERM and grace.
    fn ask(&self) {
        let asked = self.addressees();
        for target in &asked {
            target.send(Signal::TERM);
        }
        signal::wait_all(asked, Instant::now() + self.grace);
    }

    /// Claude if it is known and lives; else what runs in the panes; else (no server is known) all there is.
    fn addressees(&self) -> Vec<Target> {
        if let Some(claude) = self.watch.and_then(Target::open).filter(Target::is_alive) {
            return vec![claude];
        }
        let Ok(table) = proc::snapshot() else {
            return Vec::new();
        };
        let rows = match self.server {
            Some(server) => table.children(server.pid).collect(),
            None => table.descendants(&[self.own_pid]),
        };
        let alive = rows.into_iter().filter(|row| row.alive);
        alive.filter_map(|row| Target::open(row.identity)).collect()
    }

    fn survivors(&self) -> Result<Vec<Identity>, ProcError> {
        let table = proc::snapshot()?;
        let marked = |pid| proc::environ_has(pid, self.marker).unwrap_or(false);
        Ok(session_processes(
            &table,
            self.own_pid,
            self.protected,
            &marked,
        ))
    }
}

/// The living processes of the session: what is below the supervisor, what carries the marker, and what is below
/// that. Neither the supervisor nor a protected process is ever part of it.
fn session_processes(
    table: &Snapshot,
    own_pid: u32,
    protected: &[Identity],
    marked: &dyn Fn(u32) -> bool,
) -> Vec<Identity> {
    let spared = |id: &Identity| id.pid == own_pid || protected.contains(id);
    let mut roots = vec![own_pid];
    for row in &table.processes {
        if row.alive && !spared(&row.identity) && marked(row.identity.pid) {
            roots.push(row.identity.pid);
        }
    }
    let outside = roots.iter().filter_map(|pid| table.get(*pid));
    let below = table.descendants(&roots);
    outside
        .chain(below)
        .filter(|row| row.alive && !spared(&row.identity))
        .map(|row| row.identity)
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::proc::Process;

    fn row(pid: u32, parent: u32, alive: bool) -> Process {
        Process {
            identity: Identity { pid, start_time: 9 },
            parent,
            session: pid,
            alive,
            command: String::new(),
        }
    }

    #[test]
    fn the_session_is_descendants_and_marked_ones_but_never_owner_or_self() {
        let table = Snapshot {
            processes: vec![
                row(1, 0, true),
                row(10, 1, true),  // the owner, marked
                row(20, 10, true), // the supervisor, marked
                row(21, 20, true), // the server
                row(22, 21, true), // a pane
                row(23, 21, false),
                row(30, 1, true),  // an orphan elsewhere, marked
                row(31, 30, true), // its child with an emptied environment
                row(32, 1, false), // a marked zombie
                row(40, 1, true),  // a stranger
                row(41, 10, true), // another child of the owner
            ],
        };
        let owner = Identity {
            pid: 10,
            start_time: 9,
        };
        let marked = |pid| matches!(pid, 10 | 20 | 21 | 30 | 32);
        let mut found: Vec<u32> = session_processes(&table, 20, &[owner], &marked)
            .iter()
            .map(|id| id.pid)
            .collect();
        found.sort_unstable();
        assert_eq!(found, [21, 22, 30, 31]);
    }
}
