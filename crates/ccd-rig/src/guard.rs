//! The survivor guard: proves that nothing of one rig is left on the machine.
//!
//! What lives here: finding processes, sockets and directories of one rig, waiting for them to go, and ending those
//! that do not. What never does: anything about processes that are not provably of that rig.

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The environment variable that marks every process of a rig.
pub const ID_VARIABLE: &str = "CCD_RIG_ID";

/// How often the machine is looked at while something is expected to go.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Something that is still there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Survivor {
    /// A process (a tmux server is one).
    Process {
        /// Its process id.
        pid: i32,
        /// Its command line, or its name where it has none.
        command: String,
        /// Why it is ours.
        because: Because,
    },
    /// A unix socket that something listens on, or is bound to.
    Socket {
        /// Its path.
        path: String,
    },
    /// A directory.
    Directory {
        /// Its path.
        path: PathBuf,
    },
}

/// Why a process belongs to the rig.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// Its environment carries the rig's id.
    Environment,
    /// Its program lies under the rig's root.
    Program,
    /// It works in a directory under the rig's root.
    WorkingDirectory,
    /// Its command line names the rig's root.
    CommandLine,
}

impl fmt::Display for Survivor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process {
                pid,
                command,
                because,
            } => write!(formatter, "process {pid} ({because:?}): {command}"),
            Self::Socket { path } => write!(formatter, "unix socket {path}"),
            Self::Directory { path } => write!(formatter, "directory {}", path.display()),
        }
    }
}

/// Something of a rig survived it.
#[derive(Debug, thiserror::Error)]
#[error("after {waited:?} this is still there:\n{}", list(.survivors))]
pub struct Survived {
    /// What.
    pub survivors: Vec<Survivor>,
    /// How long it was waited for.
    pub waited: Duration,
}

fn list(survivors: &[Survivor]) -> String {
    survivors
        .iter()
        .map(|survivor| format!("  {survivor}"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Looks for what belongs to one rig: its id in an environment, its root in a program, working directory, command line
/// or socket path. Other rigs of the same process are not seen.
#[derive(Debug, Clone)]
pub struct Guard {
    id: String,
    root: PathBuf,
    also: Vec<PathBuf>,
}

impl Guard {
    /// A guard for the rig of this id and root. The root must be of canonical form.
    #[must_use]
    pub fn new(id: &str, root: &Path) -> Self {
        Self {
            id: id.to_owned(),
            root: root.to_owned(),
            also: Vec::new(),
        }
    }

    /// Counts another path as the rig's: it must be gone at the end, too.
    pub fn watch(&mut self, path: PathBuf) {
        self.also.push(path);
    }

    /// Processes and sockets of the rig, now. The calling process is never one of them.
    #[must_use]
    pub fn running(&self) -> Vec<Survivor> {
        let mut found = self.processes();
        found.extend(self.sockets());
        found
    }

    /// All that is left of the rig, now: processes, sockets, its root, watched paths.
    #[must_use]
    pub fn survivors(&self) -> Vec<Survivor> {
        let mut found = self.running();
        let paths = std::iter::once(&self.root).chain(&self.also);
        found.extend(
            paths
                .filter(|path| path.symlink_metadata().is_ok())
                .map(|path| Survivor::Directory { path: path.clone() }),
        );
        found
    }

    /// Waits until no process and no socket of the rig is there.
    ///
    /// # Errors
    /// Something is still there after `patience`.
    pub fn wait_until_idle(&self, patience: Duration) -> Result<(), Survived> {
        wait(patience, || self.running())
    }

    /// Waits until nothing of the rig is there.
    ///
    /// # Errors
    /// Something is still there after `patience`.
    pub fn wait_until_gone(&self, patience: Duration) -> Result<(), Survived> {
        wait(patience, || self.survivors())
    }

    /// Kills the rig's processes, those that are started meanwhile too, and gives those it had to kill.
    pub fn kill(&self, patience: Duration) -> Vec<Survivor> {
        let mut killed: Vec<Survivor> = Vec::new();
        // Each look kills what it finds; a look that finds nothing ends the loop.
        let _ = wait(patience, || {
            let found = self.processes();
            for survivor in &found {
                if let Survivor::Process { pid, .. } = survivor {
                    self.kill_one(*pid);
                }
                if !killed.contains(survivor) {
                    killed.push(survivor.clone());
                }
            }
            found
        });
        killed
    }

    /// Kills by a handle, and only if the process is still ours once the handle is held.
    fn kill_one(&self, pid: i32) {
        let Some(pid) = Pid::from_raw(pid) else {
            return;
        };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
            return;
        };
        if self.process(pid.as_raw_nonzero().get()).is_some() {
            // It may have gone in between; that is what was wanted.
            let _ = pidfd_send_signal(handle, Signal::KILL);
        }
    }

    fn processes(&self) -> Vec<Survivor> {
        let own = getpid().as_raw_nonzero().get();
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        let mut found: Vec<Survivor> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
            .filter(|pid| *pid != own)
            .filter_map(|pid| self.process(pid))
            .collect();
        found.sort_by_key(|survivor| match survivor {
            Survivor::Process { pid, .. } => *pid,
            Survivor::Socket { .. } | Survivor::Directory { .. } => 0,
        });
        found
    }

    fn process(&self, pid: i32) -> Option<Survivor> {
        let proc = PathBuf::from(format!("/proc/{pid}"));
        let marker = format!("{ID_VARIABLE}={}", self.id);
        // A process that ends while it is looked at reads as empty, and is not there any more.
        let environment = fs::read(proc.join("environ")).unwrap_or_default();
        let command = fs::read(proc.join("cmdline")).unwrap_or_default();
        let under_root = |link: &str| {
            fs::read_link(proc.join(link)).is_ok_and(|target| target.starts_with(&self.root))
        };
        let because = if environment
            .split(|byte| *byte == 0)
            .any(|entry| entry == marker.as_bytes())
        {
            Because::Environment
        } else if under_root("exe") {
            Because::Program
        } else if under_root("cwd") {
            Because::WorkingDirectory
        } else if contains(&command, self.root.as_os_str().as_bytes()) {
            Because::CommandLine
        } else {
            return None;
        };
        let readable = command
            .split(|byte| *byte == 0)
            .map(String::from_utf8_lossy)
            .collect::<Vec<_>>()
            .join(" ");
        let command = if readable.trim().is_empty() {
            fs::read_to_string(proc.join("comm")).unwrap_or_default()
        } else {
            readable
        };
        Some(Survivor::Process {
            pid,
            command: command.trim().to_owned(),
            because,
        })
    }

    fn sockets(&self) -> Vec<Survivor> {
        let table = fs::read_to_string("/proc/self/net/unix").unwrap_or_default();
        let root = self.root.to_string_lossy();
        let mut paths: Vec<String> = table
            .lines()
            .skip(1)
            // Seven columns, then the path.
            .filter_map(|line| line.split_whitespace().nth(7))
            .filter(|path| path.trim_start_matches('@').starts_with(root.as_ref()))
            .map(str::to_owned)
            .collect();
        paths.sort();
        paths.dedup();
        paths
            .into_iter()
            .map(|path| Survivor::Socket { path })
            .collect()
    }
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    !needle.is_empty() && haystack.windows(needle.len()).any(|part| part == needle)
}

/// Looks until nothing is found.
fn wait(patience: Duration, mut look: impl FnMut() -> Vec<Survivor>) -> Result<(), Survived> {
    let start = Instant::now();
    loop {
        let survivors = look();
        if survivors.is_empty() {
            return Ok(());
        }
        let waited = start.elapsed();
        if waited >= patience {
            return Err(Survived { survivors, waited });
        }
        std::thread::sleep(LOOK_EVERY.min(patience.saturating_sub(waited)));
    }
}
