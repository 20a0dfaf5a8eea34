//! Crashes: Claude's death is told at once; a host's death leaves nothing that runs, and the next start says so.

use std::{
    collections::BTreeMap,
    future::pending,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use ccd_api::{AlertKind, ClaudeSession, EventKind, Options, Permissions, TurnStatus};
use ccd_rig::service::{Block, Reply, Scenario};
use rustix::process::{Pid, Signal, kill_process};

use crate::stage::{CLEAN_UP, PATIENCE, Stage, stuck_after_two_lines, until, wait};

#[tokio::test]
async fn when_claude_is_killed_the_turn_is_aborted_and_the_session_is_over_at_once() {
    let stage = Stage::new(Scenario::of([stuck_after_two_lines("half")]));
    let live = stage.start(Permissions::Deny).await;
    let turn = live.send_now("talk").await;
    stage.mark("half").await;
    let held = live.send_now("later").await;
    let pid = i32::try_from(live.state().claude_pid.unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let exit = live
        .within("the end of the session", CLEAN_UP, live.exited())
        .await;
    assert!(!exit.clean, "{exit:?}");
    assert_eq!(exit.signal, Some(9), "{exit:?}");
    let outcome = live.done(&turn).await;
    live.is(&outcome, TurnStatus::Aborted).await;
    let outcome = live.done(&held).await;
    live.check(
        matches!(
            outcome.status,
            TurnStatus::NotSubmitted | TurnStatus::Aborted
        ),
        &format!("{outcome:?}"),
    )
    .await;
    live.event("the exit", |kind| {
        matches!(kind, EventKind::SessionExited { clean: false, .. }).then_some(())
    })
    .await;
    live.within("the close", PATIENCE, live.close()).await;
    stage.finish();
}

/// Kills the host: within three seconds nothing runs any more, and the next start tells what was found.
async fn dies(stage: Stage, host: Child, state_dir: PathBuf, recorded: bool) {
    kill_process(Pid::from_child(&host), Signal::KILL).unwrap();
    let ended = wait(host).await;
    assert_eq!(
        ended.code, None,
        "the host ended by itself: {}",
        ended.stderr
    );
    let guard = stage.guard().clone();
    tokio::task::spawn_blocking(move || guard.wait_until_idle(CLEAN_UP))
        .await
        .unwrap()
        .unwrap();
    assert!(
        !stage.work("proof.txt").exists(),
        "a tool ran without its permission"
    );
    stage.forget_command_traces();

    let live = stage
        .start_with(stage.options(Permissions::Deny).state_dir(&state_dir))
        .await;
    if recorded {
        live.event("what was left is told", |kind| {
            matches!(
                kind,
                EventKind::AlertRaised {
                    alert: AlertKind::OrphansFound,
                    ..
                }
            )
            .then_some(())
        })
        .await;
    }
    let own = live.debug().session;
    let records = ccd_runtime::list_sessions(state_dir.to_str()).unwrap();
    let others: Vec<_> = records
        .iter()
        .filter(|record| record.session != own)
        .collect();
    assert!(others.is_empty(), "stale records: {others:?}");
    live.completes("hello", "ok").await;
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_host_killed_right_after_its_start_leaves_nothing() {
    let stage = Stage::plain();
    let host = stage.ccd_run(&["hello"]).spawn().unwrap();
    let state = stage.command_state_dir();
    dies(stage, host, state, false).await;
}

#[tokio::test]
async fn a_host_killed_while_claude_starts_leaves_nothing() {
    let stage = Stage::plain();
    let host = stage.ccd_run(&["hello"]).spawn().unwrap();
    let state = stage.command_state_dir();
    let claude = format!(
        "): {} --session-id",
        stage.rig().claude().unwrap().display()
    );
    until("Claude runs", PATIENCE, || {
        stage
            .guard()
            .running()
            .iter()
            .any(|survivor| survivor.to_string().contains(&claude))
    })
    .await;
    dies(stage, host, state, true).await;
}

#[tokio::test]
async fn a_host_killed_when_the_model_is_asked_leaves_nothing() {
    let stage = Stage::new(Scenario::of([Reply::text("never").gate("asked")]));
    let host = stage.ccd_run(&["hello"]).spawn().unwrap();
    let state = stage.command_state_dir();
    stage.mark("asked").await;
    dies(stage, host, state, true).await;
}

#[tokio::test]
async fn a_host_killed_while_a_tool_runs_leaves_nothing_not_even_the_tool() {
    let command = "setsid cat never.fifo & cat never.fifo";
    let stage = Stage::new(Scenario::of([Reply::blocks([Block::bash(command)])]));
    stage.pipe("never.fifo");
    let host = stage
        .ccd_run(&["--policy", "dangerously-allow-all", "wait"])
        .spawn()
        .unwrap();
    let state = stage.command_state_dir();
    until("both commands run", PATIENCE, || {
        let running = stage.guard().running();
        running
            .iter()
            .filter(|survivor| survivor.to_string().ends_with(": cat never.fifo"))
            .count()
            >= 2
    })
    .await;
    dies(stage, host, state, true).await;
}

const HOST: &str = "CCD_REAL_TEST_HOST";

#[tokio::test]
async fn a_host_killed_while_a_permission_is_held_leaves_nothing_and_the_tool_never_runs() {
    let stage = Stage::new(Scenario::of([Reply::blocks([Block::bash(
        "touch proof.txt",
    )])]));
    let mut host = Command::new(std::env::current_exe().unwrap());
    host.args([
        "crash::host_of_the_test_above",
        "--exact",
        "--ignored",
        "--nocapture",
    ]);
    host.env_clear()
        .envs(stage.rig().env())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for name in ["CCD_CLAUDE", "CCD_HELPER"] {
        host.env(name, std::env::var_os(name).unwrap());
    }
    let told = serde_json::json!({
        "cwd": stage.rig().cwd(),
        "state": stage.state_dir(),
        "asked": stage.work("asked"),
        "env": stage.rig().env(),
    });
    let host = host.env(HOST, told.to_string()).spawn().unwrap();
    until("the handler is asked", PATIENCE, || {
        stage.work("asked").exists()
    })
    .await;
    let state = stage.state_dir();
    dies(stage, host, state, true).await;
}

/// Not a test by itself: the host process of the test above, which starts it by name. Does nothing otherwise.
#[tokio::test]
#[ignore = "the host process of another test"]
async fn host_of_the_test_above() {
    #[derive(serde::Deserialize)]
    struct Told {
        cwd: PathBuf,
        state: PathBuf,
        asked: PathBuf,
        env: BTreeMap<String, String>,
    }
    let Ok(told) = std::env::var(HOST) else {
        return;
    };
    let told: Told = serde_json::from_str(&told).unwrap();
    let asked = told.asked.clone();
    let handler = Permissions::ask(move |_| {
        std::fs::write(&asked, "").unwrap();
        pending()
    });
    let mut options = Options::new(told.cwd)
        .permissions(handler)
        .state_dir(told.state)
        .claude(std::env::var("CCD_CLAUDE").unwrap());
    for (name, value) in told
        .env
        .into_iter()
        .filter(|(name, _)| !name.starts_with("TMUX"))
    {
        options = options.env(name, value);
    }
    let session = ClaudeSession::start(options).await.unwrap();
    let turn = session.send("make it").await.unwrap();
    let _ = tokio::time::timeout(Duration::from_secs(60), turn.done()).await;
}
