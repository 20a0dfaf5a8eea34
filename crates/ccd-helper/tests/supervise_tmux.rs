//! The supervisor with the real tmux.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use ccd_helper::{Identity, Report, proc};
use support::session::{Plan, Session};

/// A session of the real tmux that runs this shell command in its pane.
fn real(pane: &str) -> Plan {
    let mut plan = Plan::new("tmux", &[]);
    let socket = plan.args.dir.join("t.sock");
    plan.args.program_args = vec!["-S".into(), socket.into()];
    for word in ["-f", "/dev/null", "new-session", "-d", pane] {
        plan.args.program_args.push(word.into());
    }
    plan
}

fn tmux(session: &Session, args: &[&str]) -> String {
    let output = Command::new("tmux")
        .arg("-S")
        .arg(session.plan.args.dir.join("t.sock"))
        .args(args)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn pid_of(session: &Session, format: &str) -> Identity {
    let pid = tmux(session, &["display-message", "-p", format]);
    proc::identity(pid.trim().parse().unwrap())
        .unwrap()
        .unwrap()
}

#[test]
fn close_ends_the_real_server_and_its_pane() {
    let mut session = real("exec sleep 1000").started();
    let server = pid_of(&session, "#{pid}");
    let pane = pid_of(&session, "#{pane_pid}");
    assert!(
        proc::children(session.child.id())
            .unwrap()
            .contains(&server)
    );
    assert!(proc::children(server.pid).unwrap().contains(&pane));
    session.watch(pane);
    // The pane ended at SIGTERM and the server is not counted; but the server may have just started its short-lived
    // log-out helper (utempter) for the pane.
    assert!(session.close() <= 1);
    assert!(!proc::is_alive(server).unwrap() && !proc::is_alive(pane).unwrap());
    session.assert_nothing_left();
}

#[test]
fn the_owners_death_ends_the_real_server_and_a_tool_in_its_own_session() {
    let mut session = real("trap '' TERM HUP; setsid sleep 1000 & exec sleep 1000").started();
    let server = pid_of(&session, "#{pid}");
    session.watch(pid_of(&session, "#{pane_pid}"));
    let start = Instant::now();
    session.drop_owner();
    assert!(session.exit(Duration::from_secs(3)).success());
    assert!(start.elapsed() < Duration::from_secs(3));
    assert!(!proc::is_alive(server).unwrap());
    session.assert_nothing_left();
}

#[test]
fn a_server_ended_by_kill_server_is_reported() {
    let mut session = real("exec sleep 1000").started();
    tmux(&session, &["kill-server"]);
    assert_eq!(session.report(), Some(Report::ServerGone));
    session.close();
    session.assert_nothing_left();
}

#[test]
fn a_command_line_that_tmux_refuses_is_reported_in_its_words() {
    let mut plan = real("exec sleep 1000");
    plan.args.program_args.push("--no-such-flag".into());
    plan.args.program_args.insert(4, "-Q".into());
    let mut session = plan.ready();
    session.command(ccd_helper::OwnerCommand::Start);
    let report = session.report();
    let Some(Report::Failed { message }) = &report else {
        panic!("{report:?}");
    };
    assert!(message.starts_with("exit status 1: "), "{message}");
    session.close();
    session.assert_nothing_left();
}
