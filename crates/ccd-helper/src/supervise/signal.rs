//! Signals to processes that are surely the ones meant.
//!
//! What lives here: a process pinned by a pidfd after its identity was checked, signals to it, waiting for its end.
//! What never does: choosing whom to signal.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::proc::{self, Identity};

/// How often a process without a pidfd is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// One process, pinned.
#[derive(Debug)]
pub(super) struct Target {
    identity: Identity,
    /// Missing only where no descriptor was to be had (the table is full).
    pidfd: Option<OwnedFd>,
}

impl Target {
    /// Pins a process; `None` if it is gone, or if its process id belongs to another one by now.
    pub(super) fn open(identity: Identity) -> Option<Self> {
        let pidfd = match rustix::process::pidfd_open(pid(identity)?, PidfdFlags::empty()) {
            Ok(pidfd) => Some(pidfd),
            Err(Errno::SRCH) => return None,
            Err(_) => None,
        };
        // Checked after the descriptor was opened: from here on it cannot come to mean another process.
        let same = proc::start_time(identity.pid).ok().flatten() == Some(identity.start_time);
        same.then_some(Self { identity, pidfd })
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    pub(super) fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(OwnedFd::as_fd)
    }

    pub(super) fn is_alive(&self) -> bool {
        // Where /proc does not answer, the process counts as alive: the sweep decides.
        proc::is_alive(self.identity).unwrap_or(true)
    }

    /// Sends a signal. A process that is gone, or may not be signalled, is left to the next look.
    pub(super) fn send(&self, signal: Signal) {
        if let Some(pidfd) = &self.pidfd {
            let _ = rustix::process::pidfd_send_signal(pidfd, signal);
        } else if self.is_alive()
            && let Some(pid) = pid(self.identity)
        {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// Waits until one of the processes has ended, at the latest until `deadline`.
pub(super) fn wait_any(targets: &[Target], deadline: Instant) {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let all_pinned = targets.iter().all(|target| target.pidfd.is_some());
        let unpinned_ended = targets
            .iter()
            .any(|target| target.pidfd.is_none() && !target.is_alive());
        if targets.is_empty() || left.is_zero() || unpinned_ended {
            return;
        }
        let mut fds: Vec<PollFd<'_>> = targets
            .iter()
            .filter_map(Target::pidfd)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let timeout = timespec(if all_pinned { left } else { left.min(LOOK) });
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// Waits until all of the processes have ended, at the latest until `deadline`; tells whether they have.
pub(super) fn wait_all(mut targets: Vec<Target>, deadline: Instant) -> bool {
    loop {
        targets.retain(Target::is_alive);
        if targets.is_empty() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        wait_any(&targets, deadline);
    }
}

/// Lets time pass where there is nothing to wait for.
pub(super) fn pause(duration: Duration) {
    let _ = rustix::event::poll(&mut [], Some(&timespec(duration)));
}

fn pid(identity: Identity) -> Option<Pid> {
    i32::try_from(identity.pid).ok().and_then(Pid::from_raw)
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_process_id_with_another_start_is_not_pinned() {
        let own = proc::identity(std::process::id()).unwrap().unwrap();
        assert!(Target::open(own).is_some_and(|target| target.is_alive()));
        let earlier = Identity {
            start_time: own.start_time - 1,
            ..own
        };
        assert!(Target::open(earlier).is_none());
    }

    #[test]
    fn the_wait_is_over_when_the_last_one_has_ended_or_the_time_is_up() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let identity = proc::identity(child.id()).unwrap().unwrap();
        let soon = Instant::now() + Duration::from_millis(30);
        let timely = wait_all(vec![Target::open(identity).unwrap()], soon);
        let target = Target::open(identity).unwrap();
        target.send(Signal::KILL);
        let ended = wait_all(vec![target], Instant::now() + Duration::from_secs(10));
        child.wait().unwrap();
        assert!(!timely && ended);
        assert!(Target::open(identity).is_none());
    }
}
