//! The supervisor's orderly life: set-up, commands, the end by `CLOSE`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ccd_helper::{Acknowledged, Identity, OwnerCommand, Report, owner, proc};
use rustix::process::Signal;
use support::session::{Plan, SOON, Stray, kill};
use support::until;

#[test]
fn close_ends_polite_and_stubborn_processes_and_removes_the_files() {
    let mut plan = Plan::fake("client", "polite");
    let spare = plan.base.path().join("spare.sock");
    let absent = plan.base.path().join("absent");
    fs::write(&spare, "").unwrap();
    plan.args.unlink = vec![spare.clone(), absent];
    let mut session = plan.started();
    let dir = session.plan.args.dir.clone();
    assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o7777, 0o700);
    fs::create_dir(dir.join("sub")).unwrap();
    let pane = session.role("pane");
    let server = session.role("server");
    let tool = session.role("tool");
    // The set-up that the test relies on: a server and an orphaned tool as the supervisor's own children.
    let children = proc::children(session.child.id()).unwrap();
    assert!(children.contains(&server) && children.contains(&tool));
    let table = proc::snapshot().unwrap();
    let supervisor = table.get(session.child.id()).unwrap();
    assert_eq!(supervisor.session, session.child.id());
    session.watch(pane);
    let start = Instant::now();
    // The tool alone needs SIGKILL; the server is not counted, the pane ends at SIGTERM.
    assert_eq!(session.close(), 1);
    assert!(
        start.elapsed() < Duration::from_millis(1500),
        "no needless grace"
    );
    session.assert_nothing_left();
    assert!(!spare.exists());
}

#[test]
fn a_watched_process_gets_its_grace_and_then_sigkill() {
    let mut plan = Plan::fake("client", "stubborn");
    plan.args.grace = Duration::from_millis(300);
    let mut session = plan.started();
    session.watch(session.role("pane"));
    let start = Instant::now();
    assert_eq!(session.close(), 2);
    assert!(start.elapsed() >= Duration::from_millis(300));
    session.assert_nothing_left();
}

#[test]
fn without_a_watched_process_the_panes_are_asked() {
    let mut session = Plan::fake("client", "polite").started();
    assert_eq!(session.close(), 1);
    session.assert_nothing_left();
}

#[test]
fn a_watched_identity_of_another_start_is_never_signalled() {
    let stranger = Stray::new(Command::new("sleep").arg("1000").stdout(Stdio::null()));
    let mut session = Plan::fake("client", "polite").started();
    session.watch(Identity {
        start_time: stranger.0.start_time - 1,
        ..stranger.0
    });
    session.close();
    session.assert_nothing_left();
    assert!(proc::is_alive(stranger.0).unwrap());
}

#[test]
fn close_before_start_only_removes_the_directory() {
    let mut session = Plan::fake("client", "polite").ready();
    assert!(session.plan.args.dir.is_dir());
    assert_eq!(session.close(), 0);
    session.assert_nothing_left();
}

#[test]
fn the_marker_finds_processes_that_another_reaper_took() {
    let mut session = Plan::fake("client", "polite").started();
    let marker = session.plan.args.marker.clone();
    let orphan = |value: &str| {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!"])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env(marker.name(), value)
            .stderr(Stdio::null());
        let pid = command.output().unwrap().stdout;
        Stray::adopt(String::from_utf8(pid).unwrap().trim().parse().unwrap())
    };
    let ours = orphan(marker.value());
    // Another session whose id merely begins the same.
    let other = orphan(&format!("{}x", marker.value()));
    let below = proc::descendants(session.child.id()).unwrap();
    assert!(!below.contains(&ours.0) && !below.contains(&other.0));
    assert_eq!(session.close(), 2);
    session.assert_nothing_left();
    assert!(!proc::is_alive(ours.0).unwrap());
    assert!(proc::is_alive(other.0).unwrap(), "another session lives on");
}

#[test]
fn held_sockets_keep_their_port_until_the_end() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap();
    let mut plan = Plan::fake("client", "polite");
    let path = plan.base.path().join("hook.sock");
    let unix = UnixListener::bind(&path).unwrap();
    plan.args.unlink = vec![path.clone()];
    let mut session = plan.ready();
    let stream = session.owner.as_ref().unwrap();
    owner::send_listeners(stream, &[tcp.as_fd(), unix.as_fd()]).unwrap();
    assert_eq!(session.report(), Some(Report::Ok(Acknowledged::Listen)));
    let inodes = [tcp.as_fd(), unix.as_fd()].map(|fd| rustix::fs::fstat(fd).unwrap().st_ino);
    drop((tcp, unix));
    session.command(OwnerCommand::Start);
    assert_eq!(session.report(), Some(Report::Started { code: 0 }));
    let taken = TcpListener::bind(address).unwrap_err();
    assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
    // Nobody accepts, the backlog does.
    let waiting = (
        TcpStream::connect(address).unwrap(),
        UnixStream::connect(&path).unwrap(),
    );
    // The server does not inherit them: it would keep the port after the supervisor's end.
    let server = session.role("server").pid;
    let holds = |pid: u32| -> usize {
        let fds = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let links = fds.map(|fd| fs::read_link(fd.unwrap().path()).unwrap_or_default());
        let sockets = inodes.map(|inode| PathBuf::from(format!("socket:[{inode}]")));
        links.filter(|link| sockets.contains(link)).count()
    };
    assert_eq!(holds(session.child.id()), 2);
    assert_eq!(holds(server), 0);
    session.close();
    drop(waiting);
    session.assert_nothing_left();
    let refused = TcpStream::connect(address).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    assert!(!path.exists());
}

#[test]
fn wrong_commands_are_reported_and_the_session_goes_on() {
    let mut session = Plan::fake("client", "polite").ready();
    let wrong = [
        "HELLO\n",
        "LISTEN 1\n",
        "LISTEN 0\n",
        "WATCH 1\n",
        "\n",
        &format!("{}\n", "x".repeat(400)),
    ];
    for line in wrong {
        session.raw(line);
        let report = session.report();
        assert!(matches!(report, Some(Report::Failed { .. })), "{line:?}");
    }
    session.command(OwnerCommand::Start);
    assert_eq!(session.report(), Some(Report::Started { code: 0 }));
    session.command(OwnerCommand::Start);
    assert!(matches!(session.report(), Some(Report::Failed { .. })));
    session.close();
    session.assert_nothing_left();
}

#[test]
fn a_tmux_that_fails_is_reported_with_its_first_line() {
    let plan = Plan::new(
        "/bin/sh",
        &[
            "-c",
            "echo >&2; echo 'no \\ \u{e9}' >&2; echo more >&2; exit 3",
        ],
    );
    let mut session = plan.ready();
    session.command(OwnerCommand::Start);
    let expected = Report::Failed {
        message: "exit status 3: no \\ \u{e9}".to_owned(),
    };
    assert_eq!(session.report(), Some(expected));
    session.close();
    session.assert_nothing_left();

    let mut session = Plan::new("/bin/sh", &["-c", "kill -9 $$"]).ready();
    session.command(OwnerCommand::Start);
    let expected = Report::Failed {
        message: "signal 9".to_owned(),
    };
    assert_eq!(session.report(), Some(expected));
    session.close();
    session.assert_nothing_left();

    let mut session = Plan::new("/nonexistent/tmux", &[]).ready();
    session.command(OwnerCommand::Start);
    assert!(matches!(session.report(), Some(Report::Failed { .. })));
    session.close();
    session.assert_nothing_left();
}

#[test]
fn a_command_that_leaves_no_server_is_server_gone() {
    let mut session = Plan::new("/bin/sh", &["-c", "exit 0"]).started();
    assert_eq!(session.report(), Some(Report::ServerGone));
    assert_eq!(session.close(), 0);
    session.assert_nothing_left();
}

#[test]
fn a_server_that_ends_by_itself_is_reported_once() {
    let mut session = Plan::fake("client", "polite").started();
    let start = Instant::now();
    kill(session.role("server").pid, Signal::KILL);
    assert_eq!(session.report(), Some(Report::ServerGone));
    assert!(
        start.elapsed() < Duration::from_millis(500),
        "not by the tick"
    );
    // The pane survives its server and is asked when it is watched.
    session.watch(session.role("pane"));
    assert_eq!(session.close(), 1);
    session.assert_nothing_left();
}

#[test]
fn orphans_are_reaped_while_the_session_runs() {
    let mut session = Plan::fake("orphans", "polite").started();
    let supervisor = session.child.id();
    until(
        "no zombie below the supervisor",
        Duration::from_secs(4),
        || {
            let table = proc::snapshot().unwrap();
            let ended = table.children(supervisor).all(|row| row.alive);
            // The five short ones are gone too, alive or not: only server and tool stay.
            ended && table.children(supervisor).count() == 2
        },
    );
    session.close();
    session.assert_nothing_left();
}

#[test]
fn a_directory_that_exists_or_has_no_parent_is_refused_untouched() {
    let plan = Plan::fake("client", "polite");
    fs::create_dir(&plan.args.dir).unwrap();
    fs::write(plan.args.dir.join("file"), "x").unwrap();
    let mut session = plan.launch();
    assert!(matches!(session.report(), Some(Report::Failed { .. })));
    assert_eq!(session.report(), None);
    assert_eq!(session.exit(SOON).code(), Some(1));
    assert!(session.plan.args.dir.join("file").exists());

    let mut plan = Plan::fake("client", "polite");
    plan.args.dir = plan.base.path().join("a/b");
    let mut session = plan.launch();
    assert!(matches!(session.report(), Some(Report::Failed { .. })));
    assert_eq!(session.exit(SOON).code(), Some(1));
    session.assert_nothing_left();
}

#[test]
fn a_stdin_that_is_no_socket_is_refused() {
    let plan = Plan::fake("client", "polite");
    let result = support::output(support::helper(&plan.args.to_argv()), b"START\n");
    assert_eq!(result.status.code(), Some(1));
    let said = String::from_utf8(result.stdout).unwrap();
    assert!(said.starts_with("CCD1 FAILED "), "{said:?}");
    assert!(!plan.args.dir.exists());
}
