//! The end of sessions whose owner is gone.
//!
//! What lives here: finding and killing what is left of one, removing its directory and its record. What never does: a
//! process that is not surely of that session, or a session whose owner may live.
//!
//! A session's processes are its supervisor (by its recorded identity), what carries the session's marker in its
//! environment, and everything below those. Sweeps go on until two in a row find nothing.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::{Duration, Instant},
};

use ccd_helper::proc::{self, Identity};
use ccd_ports::state::{Reaped, SessionRecord, StateStore as _};
use rustix::event::{PollFd, PollFlags, Timespec};

use super::{StateDir, identity};
use crate::process::{PinnedProcess, StopSignal};

/// Sweeps in a row that must find nothing: what was forked during the first is seen by the second.
const QUIET_SWEEPS: u32 = 2;

/// How long the processes killed by one sweep are waited for.
const SWEEP_WAIT: Duration = Duration::from_millis(250);

/// When the sweeps give up (a process that cannot be killed); the record then stays for the next time.
const SWEEP_LIMIT: Duration = Duration::from_secs(5);

pub(super) fn reap(store: &StateDir) -> Vec<Reaped> {
    let orphans = store
        .list()
        .into_iter()
        .filter(|record| !store.owner_alive(record));
    orphans
        .filter_map(|record| reap_one(store, record))
        .collect()
}

fn reap_one(store: &StateDir, record: SessionRecord) -> Option<Reaped> {
    let Some(killed) = kill_all(&record, store) else {
        tracing::warn!(
            session = record.session,
            "processes of a dead session could not be killed"
        );
        return None;
    };
    let dir_removed = remove_own_dir(&record.runtime_dir).unwrap_or_else(|error| {
        let dir = record.runtime_dir.display();
        tracing::warn!(%dir, %error, "a runtime directory could not be removed");
        false
    });
    if let Err(error) = store.remove(&record.session) {
        tracing::warn!(%error, "the record of a dead session could not be removed");
    }
    Some(Reaped {
        record,
        killed,
        dir_removed,
    })
}

/// Kills everything of the session; gives the number of processes, or `None` if some are left.
fn kill_all(record: &SessionRecord, store: &StateDir) -> Option<u32> {
    let (name, value) = &record.marker;
    // An empty part would match strangers.
    let marker = (!name.is_empty() && !value.is_empty()).then(|| format!("{name}={value}"));
    let supervisor = record.supervisor.map(identity);
    let mut killed = BTreeSet::new();
    let deadline = Instant::now() + SWEEP_LIMIT;
    let mut quiet = 0;
    while quiet < QUIET_SWEEPS {
        let found = session_processes(marker.as_deref(), supervisor, identity(store.this));
        if found.is_empty() {
            quiet += 1;
            continue;
        }
        if Instant::now() >= deadline {
            return None;
        }
        quiet = 0;
        for process in &found {
            if process.stop(StopSignal::Kill).is_ok() {
                killed.insert((process.pid(), process.start_time()));
            }
        }
        wait_all(found, Instant::now() + SWEEP_WAIT);
    }
    Some(u32::try_from(killed.len()).unwrap_or(u32::MAX))
}

/// The living processes of a session, pinned. Never this process, nor one that runs it.
fn session_processes(
    marker: Option<&str>,
    supervisor: Option<Identity>,
    this: Identity,
) -> Vec<PinnedProcess> {
    let Ok(table) = proc::snapshot() else {
        return Vec::new();
    };
    // A program started from within the session may be the one that reaps.
    let spared: Vec<u32> = table
        .ancestors(this.pid)
        .iter()
        .map(|row| row.identity.pid)
        .chain([this.pid])
        .collect();
    let marked = |pid| {
        marker.is_some_and(|marker| proc::environ_has(pid, marker.as_bytes()).unwrap_or(false))
    };
    let roots: Vec<u32> = table
        .processes
        .iter()
        .filter(|row| !spared.contains(&row.identity.pid))
        .filter(|row| Some(row.identity) == supervisor || (row.alive && marked(row.identity.pid)))
        .map(|row| row.identity.pid)
        .collect();
    let below = table.descendants(&roots);
    let all = roots.iter().filter_map(|pid| table.get(*pid)).chain(below);
    all.filter(|row| row.alive && !spared.contains(&row.identity.pid))
        .filter_map(|row| {
            PinnedProcess::open_exactly(row.identity.pid, row.identity.start_time).ok()
        })
        .collect()
}

fn wait_all(mut processes: Vec<PinnedProcess>, deadline: Instant) {
    loop {
        processes.retain(|process| !process.has_ended());
        let left = deadline.saturating_duration_since(Instant::now());
        if processes.is_empty() || left.is_zero() {
            return;
        }
        let mut fds: Vec<PollFd<'_>> = processes
            .iter()
            .map(|process| PollFd::from_borrowed_fd(process.pidfd(), PollFlags::IN))
            .collect();
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Removes a directory if it is a real one of this user. Tells whether there was one.
fn remove_own_dir(path: &Path) -> io::Result<bool> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let named = path.is_absolute() && path.components().count() > 2;
    if !named || !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "not a runtime directory of this user",
        ));
    }
    fs::remove_dir_all(path)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn only_a_real_directory_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let (dir, link) = (root.path().join("dir"), root.path().join("link"));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("file"), "").unwrap();
        std::os::unix::fs::symlink(&dir, &link).unwrap();
        remove_own_dir(&link).unwrap_err();
        remove_own_dir(&dir.join("file")).unwrap_err();
        assert!(dir.join("file").exists());
        assert!(remove_own_dir(&dir).unwrap());
        assert!(!remove_own_dir(&dir).unwrap());
        remove_own_dir(Path::new("/")).unwrap_err();
        remove_own_dir(Path::new("relative"))
            .map(|removed| assert!(!removed))
            .unwrap();
    }
}
