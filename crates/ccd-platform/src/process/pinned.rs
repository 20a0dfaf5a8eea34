//! A process that is surely the one meant: a process id pinned by a pidfd and its start time.
//!
//! What lives here: opening, checking and signalling one process. What never does: waiting, or choosing whom to signal.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use thiserror::Error;

/// Why a process could not be pinned or signalled.
#[derive(Debug, Error)]
pub enum PinError {
    /// Nobody has this process id (any more).
    #[error("process {pid} has ended")]
    Ended {
        /// The process id.
        pid: u32,
    },
    /// The process id belongs to another process by now.
    #[error("process id {pid} belongs to another process now")]
    Other {
        /// The process id.
        pid: u32,
    },
    /// The system refused.
    #[error("process {pid}: {source}")]
    System {
        /// The process id.
        pid: u32,
        /// What it said.
        source: io::Error,
    },
}

/// The two signals that end a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// SIGTERM: asks.
    Term,
    /// SIGKILL: ends.
    Kill,
}

/// A process pinned by a pidfd: it never comes to mean another process.
///
/// Invariant: `start_time` was read while the pinned process was known to be alive.
#[derive(Debug)]
pub struct PinnedProcess {
    pid: u32,
    start_time: u64,
    pidfd: OwnedFd,
}

impl PinnedProcess {
    /// Pins whoever has this process id now.
    ///
    /// # Errors
    /// [`PinError::Ended`] if nobody has it, [`PinError::System`] if the system refuses.
    pub fn open(pid: u32) -> Result<Self, PinError> {
        let ended = || PinError::Ended { pid };
        let raw = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(ended)?;
        let pidfd = match rustix::process::pidfd_open(raw, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(Errno::SRCH) => return Err(ended()),
            Err(errno) => {
                return Err(PinError::System {
                    pid,
                    source: errno.into(),
                });
            }
        };
        let start_time = start_time(pid).ok_or_else(ended)?;
        let pinned = Self {
            pid,
            start_time,
            pidfd,
        };
        // Alive after the start time was read: the process id was not given out again in between.
        if pinned.has_ended() {
            return Err(ended());
        }
        Ok(pinned)
    }

    /// Pins the process that has this id and this start time.
    ///
    /// # Errors
    /// As [`PinnedProcess::open`], and [`PinError::Other`] if another process has the id.
    pub fn open_exactly(pid: u32, start_time: u64) -> Result<Self, PinError> {
        let pinned = Self::open(pid)?;
        if pinned.start_time == start_time {
            Ok(pinned)
        } else {
            Err(PinError::Other { pid })
        }
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// When it was started, in clock ticks since boot (field 22 of `/proc/<pid>/stat`).
    #[must_use]
    pub fn start_time(&self) -> u64 {
        self.start_time
    }

    /// The descriptor; readable when the process has ended.
    #[must_use]
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Whether it has ended (a zombie has). Never blocks.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        loop {
            match rustix::event::poll(&mut fds, Some(&now)) {
                Ok(ready) => return ready > 0,
                Err(Errno::INTR) => {}
                // Not knowable: counts as alive, a signal will tell.
                Err(_) => return false,
            }
        }
    }

    /// Signals exactly this process.
    ///
    /// # Errors
    /// [`PinError::Ended`] if it has ended, [`PinError::System`] if the system refuses.
    pub fn stop(&self, signal: StopSignal) -> Result<(), PinError> {
        self.send(match signal {
            StopSignal::Term => Signal::TERM,
            StopSignal::Kill => Signal::KILL,
        })
    }

    /// Tells exactly this process that a child of it has changed (SIGCHLD), for parents that lost the notice.
    ///
    /// # Errors
    /// As [`PinnedProcess::stop`].
    pub fn nudge_parent(&self) -> Result<(), PinError> {
        self.send(Signal::CHILD)
    }

    fn send(&self, signal: Signal) -> Result<(), PinError> {
        // A zombie takes every signal without an error, and none has an effect.
        if self.has_ended() {
            return Err(PinError::Ended { pid: self.pid });
        }
        match rustix::process::pidfd_send_signal(&self.pidfd, signal) {
            Ok(()) => Ok(()),
            Err(Errno::SRCH) => Err(PinError::Ended { pid: self.pid }),
            Err(errno) => Err(PinError::System {
                pid: self.pid,
                source: errno.into(),
            }),
        }
    }
}

/// When the process with this id was started, in clock ticks since boot; `None` if nobody has the id.
#[must_use]
pub fn start_time(pid: u32) -> Option<u64> {
    parse_start_time(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Field 22; the second field is a name in parentheses that may itself contain spaces and parentheses.
fn parse_start_time(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::process::Command;

    #[test]
    fn a_name_with_spaces_and_parentheses_moves_no_field() {
        let stat = "7 (a) Z 1 (b) S 5 6 4 34816 7 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2\n";
        assert_eq!(parse_start_time(stat), Some(987_654));
        assert_eq!(parse_start_time("7 (x) S 5 6"), None);
    }

    #[test]
    fn a_process_with_another_start_time_is_refused_and_not_signalled() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id();
        let pinned = PinnedProcess::open(pid).unwrap();
        assert!(PinnedProcess::open_exactly(pid, pinned.start_time()).is_ok());
        assert!(matches!(
            PinnedProcess::open_exactly(pid, pinned.start_time() + 1),
            Err(PinError::Other { .. })
        ));
        assert!(!pinned.has_ended());
        pinned.stop(StopSignal::Kill).unwrap();
        child.wait().unwrap();
        assert!(pinned.has_ended());
    }

    #[test]
    fn a_zombie_counts_as_ended_and_takes_no_signal() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pinned = PinnedProcess::open(child.id()).unwrap();
        child.kill().unwrap();
        let mut fds = [PollFd::from_borrowed_fd(pinned.pidfd(), PollFlags::IN)];
        rustix::event::poll(&mut fds, None).unwrap();
        // Not waited for yet: a zombie.
        assert!(matches!(
            pinned.stop(StopSignal::Term),
            Err(PinError::Ended { .. })
        ));
        assert!(matches!(
            PinnedProcess::open(child.id()),
            Err(PinError::Ended { .. })
        ));
        child.wait().unwrap();
    }
}
