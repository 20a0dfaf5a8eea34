//! The owner dies, at every moment, and nothing of the session is left.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ccd_helper::{OwnerCommand, proc};
use rustix::process::Signal;
use support::session::{Plan, SOON, kill, kill_marked, marked};
use support::{until, wait_gone};

/// The bound for everything, with the default grace of 2 s.
const BOUND: Duration = Duration::from_secs(3);

#[test]
fn before_anything_was_said() {
    let mut session = Plan::fake("client", "polite").launch();
    session.drop_owner();
    assert!(session.exit(BOUND).success());
    session.assert_nothing_left();
}

#[test]
fn before_start() {
    let mut session = Plan::fake("client", "polite").ready();
    let start = Instant::now();
    session.drop_owner();
    assert!(session.exit(BOUND).success());
    assert!(start.elapsed() < Duration::from_secs(1));
    session.assert_nothing_left();
}

#[test]
fn right_after_start_was_sent() {
    for _ in 0..10 {
        let mut session = Plan::fake("client", "polite").ready();
        session.command(OwnerCommand::Start);
        session.drop_owner();
        assert!(session.exit(BOUND).success());
        session.assert_nothing_left();
    }
}

#[test]
fn while_the_stand_in_is_forking() {
    for role in ["server", "pane", "tool"] {
        let mut session = Plan::fake("client", "stubborn").ready();
        session.command(OwnerCommand::Start);
        let file = session.plan.state().join(role);
        until("the role runs", SOON, || file.exists());
        session.drop_owner();
        assert!(session.exit(BOUND).success());
        session.assert_nothing_left();
    }
}

#[test]
fn while_the_tmux_command_hangs() {
    let mut session = Plan::fake("hang", "polite").ready();
    session.command(OwnerCommand::Start);
    let file = session.plan.state().join("hang");
    until("the command runs", SOON, || file.exists());
    session.drop_owner();
    assert!(session.exit(BOUND).success());
    session.assert_nothing_left();
}

#[test]
fn later_with_a_claude_that_ends_at_sigterm() {
    let mut session = Plan::fake("client", "polite").started();
    session.watch(session.role("pane"));
    let start = Instant::now();
    session.drop_owner();
    assert!(session.exit(BOUND).success());
    assert!(start.elapsed() < Duration::from_secs(1));
    session.assert_nothing_left();
}

#[test]
fn later_with_a_claude_that_does_not() {
    let mut session = Plan::fake("client", "stubborn").started();
    session.watch(session.role("pane"));
    let start = Instant::now();
    session.drop_owner();
    assert!(session.exit(BOUND).success());
    assert!(start.elapsed() >= Duration::from_secs(2));
    session.assert_nothing_left();
}

#[test]
fn during_close() {
    let mut session = Plan::fake("client", "stubborn").started();
    session.watch(session.role("pane"));
    session.command(OwnerCommand::Close);
    session.drop_owner();
    assert!(session.exit(BOUND).success());
    session.assert_nothing_left();
}

/// An owner in a process of its own: this test program again, in the ignored test below.
struct StandIn {
    child: Child,
    note: PathBuf,
    _base: tempfile::TempDir,
}

const NOTE: &str = "CCD_TEST_OWNER_NOTE";
const LEAK: &str = "CCD_TEST_OWNER_LEAK";

impl StandIn {
    fn start(leak: bool) -> Self {
        let base = tempfile::tempdir().unwrap();
        let note = base.path().join("note");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "owner_stand_in", "--ignored", "--nocapture"])
            .env(NOTE, &note)
            .env("TMPDIR", base.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .process_group(0);
        if leak {
            command.env(LEAK, "1");
        }
        let child = command.spawn().unwrap();
        until("the owner has started its session", SOON, || note.exists());
        Self {
            child,
            note,
            _base: base,
        }
    }

    /// Supervisor's pid, leaked process's pid (0 if none), marker entry, runtime directory.
    fn facts(&self) -> (u32, u32, String, PathBuf) {
        let text = fs::read_to_string(&self.note).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let [supervisor, leaked, marker, dir] = lines.as_slice() else {
            panic!("{text:?}");
        };
        (
            supervisor.parse().unwrap(),
            leaked.parse().unwrap(),
            (*marker).to_owned(),
            PathBuf::from(dir),
        )
    }

    fn sigkill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn assert_killed_with_owner(leak: bool) {
    let mut owner = StandIn::start(leak);
    let (supervisor, leaked, marker, dir) = owner.facts();
    assert!(dir.is_dir());
    assert!(marked(&marker).len() >= 4, "supervisor, server, pane, tool");
    let start = Instant::now();
    owner.sigkill();
    let ended = wait_gone(supervisor, BOUND);
    let took = start.elapsed();
    let left = marked(&marker);
    if leak {
        assert!(
            proc::identity(leaked).unwrap().is_some(),
            "the leak lived on"
        );
        kill(leaked, Signal::KILL);
    }
    kill_marked(&marker);
    assert!(ended && took < BOUND, "{took:?}");
    assert_eq!(left, []);
    assert!(!dir.exists());
}

#[test]
fn an_owner_killed_by_sigkill_takes_its_session_along() {
    assert_killed_with_owner(false);
}

#[test]
fn a_leaked_socket_end_does_not_hide_the_owners_death() {
    assert_killed_with_owner(true);
}

#[test]
#[ignore = "a process that other tests start and kill"]
fn owner_stand_in() {
    let Some(note) = std::env::var_os(NOTE) else {
        return;
    };
    let mut session = Plan::fake("client", "polite").started();
    session.watch(session.role("pane"));
    let leaked = std::env::var_os(LEAK).map(|_| {
        let end = session.owner.as_ref().unwrap().try_clone().unwrap();
        let stdin = std::os::fd::OwnedFd::from(end);
        Command::new("sleep")
            .arg("1000")
            .stdin(stdin)
            .spawn()
            .unwrap()
    });
    let text = format!(
        "{}\n{}\n{}\n{}\n",
        session.child.id(),
        leaked.as_ref().map_or(0, Child::id),
        session.plan.args.marker.entry(),
        session.plan.args.dir.display()
    );
    let note = Path::new(&note);
    let draft = note.with_extension("draft");
    fs::write(&draft, text).unwrap();
    fs::rename(draft, note).unwrap();
    // Until it is killed.
    let _ = session.report();
}

const OWN_MARKER: &str = "CCD_TEST_OWNER_MARKER";

#[test]
fn an_owner_that_carries_the_marker_itself_is_spared() {
    let value = format!("owner-{}", std::process::id());
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "marked_owner_stand_in", "--ignored"])
        .env(OWN_MARKER, &value)
        .env("CCD_TEST_SESSION", &value)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    kill_marked(&format!("CCD_TEST_SESSION={value}"));
    assert!(status.success(), "{status:?}");
}

#[test]
#[ignore = "a process that another test starts"]
fn marked_owner_stand_in() {
    let Ok(value) = std::env::var(OWN_MARKER) else {
        return;
    };
    let mut plan = Plan::fake("client", "polite");
    plan.args.marker = ccd_helper::Marker::new("CCD_TEST_SESSION", &value).unwrap();
    let mut session = plan.started();
    assert_eq!(session.close(), 1);
    session.assert_nothing_left();
}
