//! What several tests of the helper program share: the program itself, conditions with deadlines, leftovers.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub(crate) mod session;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The program under test, with an environment of nothing but a search path.
pub(crate) fn helper(args: &[OsString]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ccd-helper-alone"));
    command.args(args).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command
}

/// Runs a command to its end with this input.
pub(crate) fn output(mut command: Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that refuses to start does not read its input.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// Polls a condition until it holds.
pub(crate) fn until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for the end of any process.
pub(crate) fn wait_gone(pid: u32, limit: Duration) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return true;
    };
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return true;
    };
    poll_readable(&pidfd, limit)
}

/// Waits for the end of a child and takes its status.
pub(crate) fn wait_exit(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    wait_gone(child.id(), limit).then(|| child.wait().unwrap())
}

pub(crate) fn poll_readable(fd: &impl std::os::fd::AsFd, limit: Duration) -> bool {
    let timeout = Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap(),
        tv_nsec: limit.subsec_nanos().into(),
    };
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    rustix::event::poll(&mut fds, Some(&timeout)).unwrap() > 0
}
