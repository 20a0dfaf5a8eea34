//! Process facts from Linux `/proc`.

use std::io;
use std::os::unix::fs::MetadataExt as _;

use super::{Identity, ProcError, Process, Snapshot};

/// The row of one process; `None` if there is no such process.
pub(super) fn process(pid: u32) -> Result<Option<Process>, ProcError> {
    match std::fs::read(format!("/proc/{pid}/stat")) {
        Ok(stat) => parse_stat(pid, &stat)
            .map(Some)
            .ok_or(ProcError::Malformed { pid }),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(ProcError::Io(error)),
    }
}

/// Start time of a process in clock ticks since boot; `None` if there is no such process.
///
/// # Errors
/// [`ProcError`] if `/proc` cannot be read.
pub fn start_time(pid: u32) -> Result<Option<u64>, ProcError> {
    Ok(process(pid)?.map(|row| row.identity.start_time))
}

/// All processes that this one can see. Processes that end meanwhile are left out.
///
/// # Errors
/// [`ProcError::Io`] if `/proc` itself cannot be listed.
pub fn snapshot() -> Result<Snapshot, ProcError> {
    let mut processes = Vec::new();
    for entry in std::fs::read_dir("/proc").map_err(ProcError::Io)? {
        let Ok(entry) = entry else { continue };
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        // What cannot be read is not ours.
        if let Some(pid) = pid
            && let Ok(Some(row)) = process(pid)
        {
            processes.push(row);
        }
    }
    Ok(Snapshot { processes })
}

/// Whether a process of this user was started with exactly this environment entry (`NAME=VALUE`).
///
/// Processes of other users, those that are gone, and those whose environment may not be read have none.
///
/// # Errors
/// [`ProcError::Io`] if reading fails in another way.
pub fn environ_has(pid: u32, entry: &[u8]) -> Result<bool, ProcError> {
    let none =
        |error: &io::Error| is_gone(error) || error.kind() == io::ErrorKind::PermissionDenied;
    let uid = match std::fs::metadata(format!("/proc/{pid}")) {
        Ok(metadata) => metadata.uid(),
        Err(error) if none(&error) => return Ok(false),
        Err(error) => return Err(ProcError::Io(error)),
    };
    if entry.is_empty() || uid != rustix::process::geteuid().as_raw() {
        return Ok(false);
    }
    match std::fs::read(format!("/proc/{pid}/environ")) {
        Ok(block) => Ok(block.split(|byte| *byte == 0).any(|found| found == entry)),
        Err(error) if none(&error) => Ok(false),
        Err(error) => Err(ProcError::Io(error)),
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// Reads `/proc/<pid>/stat`. The name in parentheses may contain anything, parentheses too.
fn parse_stat(pid: u32, stat: &[u8]) -> Option<Process> {
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let command = String::from_utf8_lossy(stat.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
    // Fields from the third on: state, ppid, pgrp, session, ...; num_threads is the 20th, starttime the 22nd.
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let state = fields.first()?;
    let threads: u32 = fields.get(17)?.parse().ok()?;
    Some(Process {
        identity: Identity {
            pid,
            start_time: fields.get(19)?.parse().ok()?,
        },
        parent: fields.get(1)?.parse().ok()?,
        // Minus one, or a process outside of this namespace, is nobody.
        session: fields.get(3)?.parse().unwrap_or(0),
        alive: !matches!(*state, "Z" | "X" | "x") || threads > 1,
        command,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    const TAIL: &str = "34816 7 4194304 1 2 3 4 5 6 7 8 20 0 THREADS 0 987654 1 2 3 4";

    fn stat(name: &str, state: &str, threads: u32) -> Option<Process> {
        let tail = TAIL.replace("THREADS", &threads.to_string());
        parse_stat(7, format!("7 ({name}) {state} 5 6 4 {tail}\n").as_bytes())
    }

    #[test]
    fn a_name_with_spaces_and_parentheses_moves_no_field() {
        let row = stat("a) Z 1 (b", "S", 1).unwrap();
        assert_eq!(row.identity.start_time, 987_654);
        assert_eq!((row.parent, row.session, row.alive), (5, 4, true));
        assert_eq!(row.command, "a) Z 1 (b");
    }

    #[test]
    fn a_zombie_is_dead_unless_other_threads_go_on() {
        assert!(!stat("x", "Z", 1).unwrap().alive);
        assert!(stat("x", "Z", 2).unwrap().alive);
    }

    #[test]
    fn a_cut_line_is_no_process() {
        assert_eq!(parse_stat(7, b"7 (x) S 5 6"), None);
        assert_eq!(parse_stat(7, b""), None);
    }

    #[test]
    fn this_process_has_an_identity_and_its_own_environment() {
        let pid = std::process::id();
        let identity = super::super::identity(pid).unwrap().unwrap();
        assert!(super::super::is_alive(identity).unwrap());
        let other = Identity {
            start_time: identity.start_time + 1,
            ..identity
        };
        assert!(!super::super::is_alive(other).unwrap());
        let path = format!("PATH={}", std::env::var("PATH").unwrap());
        assert!(environ_has(pid, path.as_bytes()).unwrap());
        assert!(!environ_has(pid, b"PATH=").unwrap(), "a prefix is no match");
        assert!(snapshot().unwrap().get(pid).is_some());
    }
}
