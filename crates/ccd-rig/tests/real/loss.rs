//! Losses: a part of the machinery dies under a running session. What cannot be controlled any more is ended, with a
//! reason; what can be restored is.

use std::{
    fs,
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use ccd_api::{AgentStatus, EventKind, ExitInfo, Permissions, ToolRunStatus, Turn, TurnStatus};
use ccd_rig::{
    home::HomeOptions,
    rig::RigOptions,
    service::{Block, Reply, Scenario},
};
use rustix::{
    net::{Shutdown, shutdown},
    process::{
        Pid, PidfdFlags, PidfdGetfdFlags, Signal, getpid, kill_process, pidfd_getfd, pidfd_open,
    },
};
use serde_json::json;

use crate::{
    live::{Live, reason},
    stage::{PATIENCE, Stage, stuck_after_two_lines, until},
};

/// From a loss to the end of the session: the kill is at once, the clean-up bounded.
const END: Duration = Duration::from_secs(10);

/// The session's runtime directory.
fn runtime_dir(stage: &Stage) -> PathBuf {
    let sessions = ccd_runtime::list_sessions(stage.state_dir().to_str()).unwrap();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    PathBuf::from(&sessions[0].runtime_dir)
}

/// The only process with all of these words on its command line.
fn process_with(words: &[&str]) -> Option<Pid> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut found = pids.filter(|pid| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let given: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
        words.iter().all(|word| given.contains(&word.as_bytes()))
    });
    let first = found.next()?;
    assert_eq!(found.next(), None, "{words:?} is not one process");
    Pid::from_raw(first)
}

fn kill(pid: Option<Pid>) {
    kill_process(pid.expect("the process runs"), Signal::KILL).unwrap();
}

/// A session in the middle of a turn.
async fn in_mid_turn(stage: &Stage) -> (Live, Turn) {
    let live = stage.start(Permissions::Deny).await;
    let turn = live.send_now("talk").await;
    stage.mark("half").await;
    (live, turn)
}

/// After the loss: the turn is over without a success, the session with this reason, and nothing is left.
async fn ends(stage: Stage, live: Live, turn: Turn, lost: &str) -> ExitInfo {
    let exit = live
        .within("the end of the session", END, live.exited())
        .await;
    live.check(
        !exit.clean && exit.reason.contains(lost),
        &format!("{lost:?} is not the reason: {exit:?}"),
    )
    .await;
    let outcome = live.done(&turn).await;
    live.check(
        matches!(outcome.status, TurnStatus::Aborted | TurnStatus::Unknown)
            && !reason(&outcome).is_empty(),
        &format!("{outcome:?}"),
    )
    .await;
    live.event("the exit", |kind| {
        matches!(kind, EventKind::SessionExited { clean: false, .. }).then_some(())
    })
    .await;
    assert_eq!(live.within("the close", PATIENCE, live.close()).await, exit);
    drop(live);
    stage.finish();
    exit
}

/// A duplicate of this process's own descriptor of a socket.
fn own_socket(inode: u64) -> OwnedFd {
    let wanted = format!("socket:[{inode}]");
    let entries = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let number = entries
        .filter(|entry| {
            fs::read_link(entry.path()).is_ok_and(|link| link == Path::new(wanted.as_str()))
        })
        .find_map(|entry| entry.file_name().to_str()?.parse().ok())
        .expect("the socket is this process's own");
    let own = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    pidfd_getfd(own.as_fd(), number, PidfdGetfdFlags::empty()).unwrap()
}

/// The listening socket of this port, from the table of the network namespace.
fn inode_of_port(port: u16) -> u64 {
    let local = format!("0100007F:{port:04X}");
    let table = fs::read_to_string("/proc/self/net/tcp").unwrap();
    let row = table.lines().skip(1).find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        // 0A: listening.
        (columns[1] == local && columns[3] == "0A").then(|| columns[9].parse().unwrap())
    });
    row.expect("the hook server listens")
}

/// The port that the hooks in the settings point at.
fn hook_port(runtime_dir: &Path) -> u16 {
    let settings = fs::read_to_string(runtime_dir.join("settings.json")).unwrap();
    let (_, rest) = settings.split_once("http://127.0.0.1:").unwrap();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[tokio::test]
async fn without_its_hook_server_a_session_is_killed_and_says_so() {
    let stage = Stage::new(Scenario::of([stuck_after_two_lines("half")]));
    let (live, turn) = in_mid_turn(&stage).await;
    let listener = own_socket(inode_of_port(hook_port(&runtime_dir(&stage))));
    shutdown(&listener, Shutdown::Both).unwrap();
    drop(listener);
    let exit = ends(stage, live, turn, "hook server").await;
    assert_eq!(exit.signal, Some(9), "{exit:?}");
}

#[tokio::test]
async fn when_the_tmux_server_is_killed_the_session_is_over_and_nothing_is_left() {
    let stage = Stage::new(Scenario::of([stuck_after_two_lines("half")]));
    let (live, turn) = in_mid_turn(&stage).await;
    let told = Command::new("tmux")
        .arg("-S")
        .arg(runtime_dir(&stage).join("tmux.sock"))
        .args(["display-message", "-p", "#{pid}"])
        .env_remove("TMUX")
        .output()
        .unwrap();
    let pid = String::from_utf8(told.stdout).unwrap();
    kill(pid.trim().parse().ok().and_then(Pid::from_raw));
    ends(stage, live, turn, "").await;
}

#[tokio::test]
async fn when_the_supervisor_is_killed_the_session_is_over_and_nothing_is_left() {
    let stage = Stage::new(Scenario::of([stuck_after_two_lines("half")]));
    let (live, turn) = in_mid_turn(&stage).await;
    kill(process_with(&["--session", &live.debug().session]));
    ends(stage, live, turn, "supervisor").await;
}

#[tokio::test]
async fn a_lost_control_client_is_attached_again_and_the_turn_completes() {
    let stage = Stage::new(Scenario::of([
        stuck_after_two_lines("half"),
        Reply::text("and again"),
    ]));
    let (live, turn) = in_mid_turn(&stage).await;
    let socket = runtime_dir(&stage).join("tmux.sock");
    let client = || process_with(&[socket.to_str().unwrap(), "-C", "attach-session"]);
    let first = client();
    kill(first);
    until("another client", PATIENCE, || {
        client().is_some_and(|client| Some(client) != first)
    })
    .await;
    stage.service().release("half");
    let outcome = live.done(&turn).await;
    live.is(&outcome, TurnStatus::Completed).await;
    // Typing works through the new one.
    live.completes("more", "and again").await;
    assert_eq!(stage.received(), ["talk", "more"]);
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn when_claude_ends_by_itself_the_exit_tells_how() {
    let stage = Stage::plain();
    let live = stage.start(Permissions::Deny).await;
    live.completes("hello", "ok").await;
    let state = live.state();
    assert!(matches!(state.status, AgentStatus::Idle), "{state:?}");
    let pid = i32::try_from(state.claude_pid.unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    let exit = live
        .within("the end of the session", END, live.exited())
        .await;
    live.check(
        !exit.clean && !exit.reason.is_empty(),
        &format!("an end from outside is not clean: {exit:?}"),
    )
    .await;
    // Claude handles the signal and exits with its number, or dies of it.
    assert!(
        matches!(
            (exit.code, exit.signal),
            (Some(143), None) | (None, Some(15))
        ),
        "{exit:?}"
    );
    live.event("the exit", |kind| {
        matches!(kind, EventKind::SessionExited { clean: false, .. }).then_some(())
    })
    .await;
    drop(live);
    stage.finish();
}

#[tokio::test]
async fn a_slow_hook_of_the_user_does_not_weaken_a_deny_rule() {
    let ran = "hook-ran";
    let allow = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"mine"}}"#;
    let hook = format!("sleep 2; touch {ran}; echo '{allow}'");
    let settings =
        json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": hook}]}]}});
    let home = HomeOptions::default().with_settings(settings);
    let scenario = Scenario::of([
        Reply::blocks([Block::bash("touch denied.txt")]),
        Reply::text("done"),
    ]);
    let stage = Stage::with(RigOptions { scenario, home });
    let options = stage
        .options(Permissions::DangerouslyAllowAll)
        .disallowed_tools(["Bash(touch:*)"]);
    let live = stage.start_with(options).await;
    let outcome = live.completes("make it", "done").await;
    assert!(!stage.work("denied.txt").exists());
    live.check(
        outcome.tools[0].status != ToolRunStatus::Succeeded,
        &format!("{:?}", outcome.tools),
    )
    .await;
    assert!(stage.service().main_requests()[1].tool_results()[0].is_error);
    live.closes().await;
    assert!(stage.work(ran).exists(), "the user's own hook ran");
    stage.finish();
}
