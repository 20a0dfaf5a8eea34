//! The command: what `ccd run` prints where, and how it ends.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use ccd_api::{Event, EventKind, TurnStatus};
use ccd_rig::service::{Block, Reply, Scenario};
use rustix::process::{Pid, Signal, kill_process};

use crate::stage::{CLEAN_UP, Stage, run, stuck_after_two_lines, wait};

#[tokio::test]
async fn on_a_pipe_only_the_answer_is_printed() {
    let reply = Reply::blocks([
        Block::thinking("hm"),
        Block::text("first line\n\nsecond *line*"),
    ]);
    let stage = Stage::new(Scenario::of([reply]));
    let ended = run(stage.ccd_run(&["hello"])).await;
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "first line\n\nsecond *line*\n"),
        "{}",
        ended.stderr
    );
    assert_eq!(ended.stderr, "");
    assert_eq!(stage.received(), ["hello"]);
    stage.guard().wait_until_idle(CLEAN_UP).unwrap();
    stage.finish();
}

#[tokio::test]
async fn a_denial_is_told_on_standard_error_and_in_the_result() {
    let stage = Stage::new(Scenario::of([
        Reply::blocks([Block::bash("touch proof.txt")]),
        Reply::text("I could not."),
    ]));
    let ended = run(stage.ccd_run(&["--output-format", "json", "make it"])).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout.lines().count(), 1, "{}", ended.stdout);
    let result = ended.result();
    assert_eq!(
        (
            result.kind.as_str(),
            result.subtype.as_str(),
            result.is_error
        ),
        ("result", "success", false)
    );
    assert_eq!(
        (result.status, result.result.as_str()),
        (TurnStatus::Completed, "I could not.")
    );
    let requests = stage.service().main_requests();
    let session = requests[0].session_id().unwrap();
    assert_eq!(result.session_id.as_deref(), Some(session));
    assert!(result.ccd_session.is_some_and(|id| id != session));
    assert_eq!(
        (result.turn.unwrap().to_string().as_str(), result.num_turns),
        ("t1", 1)
    );
    assert_eq!(result.tools.len(), 1);
    assert_eq!(result.permission_denials.len(), 1);
    let denial = &result.permission_denials[0];
    assert_eq!(
        (denial.tool_name.as_str(), &denial.tool_input["command"]),
        ("Bash", &"touch proof.txt".into())
    );
    assert_eq!(
        denial.tool_use_id.as_deref(),
        Some(result.tools[0].tool_use_id.as_str())
    );
    assert!(result.usage.is_some() && result.error.is_none() && result.duration_ms > 0);
    let denied = ended
        .stderr
        .lines()
        .filter(|line| line.starts_with("ccd: denied Bash"));
    assert_eq!(denied.count(), 1, "{}", ended.stderr);
    stage.finish();
}

#[tokio::test]
async fn events_are_one_public_event_per_line_and_the_result_last() {
    let stage = Stage::new(Scenario::of([
        Reply::blocks([Block::text("I look.\n"), Block::bash("echo hi")]),
        Reply::text("Hi."),
    ]));
    let ended = run(stage.ccd_run(&[
        "--output-format",
        "events",
        "--policy",
        "dangerously-allow-all",
        "look",
    ]))
    .await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let (last, events) = lines.split_last().unwrap();
    assert!(last.starts_with(r#"{"type":"result""#), "{last}");
    assert_eq!(ended.result().result, "Hi.");
    let events: Vec<Event> = events
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    assert!(
        events.windows(2).all(|pair| pair[0].seq < pair[1].seq),
        "positions increase"
    );
    let ready = events
        .iter()
        .position(|event| matches!(event.kind, EventKind::SessionReady { .. }));
    let tool = events
        .iter()
        .position(|event| matches!(event.kind, EventKind::ToolStarted { .. }));
    let turn = events
        .iter()
        .position(|event| matches!(event.kind, EventKind::TurnEnded { .. }));
    let exit = events
        .iter()
        .position(|event| matches!(event.kind, EventKind::SessionExited { clean: true, .. }));
    let order = [ready, tool, turn, exit].map(Option::unwrap);
    assert!(order.is_sorted(), "{order:?}");
    stage.finish();
}

#[tokio::test]
async fn a_time_limit_interrupts_and_gives_the_partial_text() {
    let stage = Stage::new(Scenario::of([stuck_after_two_lines("never")]));
    let ended = run(stage.ccd_run(&["--timeout", "3s", "talk"])).await;
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(124), ""),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("line one\nline two"),
        "{}",
        ended.stderr
    );
    stage.guard().wait_until_idle(CLEAN_UP).unwrap();
    stage.finish();
}

#[tokio::test]
async fn a_signal_ends_in_order_and_leaves_nothing() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let stage = Stage::new(Scenario::of([stuck_after_two_lines("half")]));
        let child = stage.ccd_run(&["talk"]).spawn().unwrap();
        let pid = Pid::from_child(&child);
        stage.mark("half").await;
        kill_process(pid, signal).unwrap();
        let ended = wait(child).await;
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(code), ""),
            "{}",
            ended.stderr
        );
        stage.guard().wait_until_idle(CLEAN_UP).unwrap();
        stage.finish();
    }
}

#[tokio::test]
async fn the_prompt_can_come_from_standard_input() {
    let text = "from a pipe:\n\n\tö 漢 👍\n- last line";
    let stage = Stage::plain();
    for args in [&["-"][..], &[]] {
        let mut child = stage.ccd_run(args).stdin(Stdio::piped()).spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let ended = wait(child).await;
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), "ok\n"),
            "{}",
            ended.stderr
        );
    }
    assert_eq!(stage.received(), [text, text]);
    stage.finish();
}

#[tokio::test]
async fn what_is_not_available_is_refused_as_a_usage_error() {
    let stage = Stage::plain();
    for args in [
        &["frobnicate"][..],
        &["chat"],
        &["run", "--no-such-flag", "x"],
        &["run", "--timeout", "soon", "x"],
        &["trace", "frobnicate"],
    ] {
        let mut command: Command = stage.ccd();
        command.args(args);
        let ended = run(command).await;
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(2), ""),
            "{args:?}: {}",
            ended.stderr
        );
        assert!(!ended.stderr.is_empty(), "{args:?}");
    }
    stage.finish();
}

#[tokio::test]
async fn a_refused_prompt_is_a_usage_error_and_the_session_is_closed() {
    let stage = Stage::plain();
    let ended = run(stage.ccd_run(&["/compact"])).await;
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(2), ""),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("E_PROMPT_REFUSED"),
        "{}",
        ended.stderr
    );
    let ended = run(stage.ccd_run(&["--as-text", "/compact"])).await;
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "ok\n"),
        "{}",
        ended.stderr
    );
    assert_eq!(stage.received(), [" /compact"]);
    stage.finish();
}

#[tokio::test]
async fn a_recorded_trace_replays_without_a_difference() {
    let stage = Stage::plain();
    let ended = run(stage.ccd_run(&["hello"])).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let mut replay = stage.ccd();
    replay
        .args(["trace", "replay"])
        .arg(stage.rig().root().join("command-0.ccd.jsonl"));
    let replayed = run(replay).await;
    assert_eq!(
        replayed.code,
        Some(0),
        "{}{}",
        replayed.stdout,
        replayed.stderr
    );
    stage.finish();
}

#[tokio::test]
async fn a_trace_that_cannot_be_written_is_told_and_the_answer_still_comes() {
    let stage = Stage::plain();
    let usual = stage.ccd_run(&["hello"]);
    let mut args: Vec<_> = usual.get_args().map(ToOwned::to_owned).collect();
    let at = args.iter().position(|arg| arg == "--trace").unwrap() + 1;
    args[at] = "/dev/full".into();
    let mut command = stage.ccd();
    command.args(args);
    let ended = run(command).await;
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "ok\n"),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("the trace /dev/full is incomplete"),
        "{}",
        ended.stderr
    );
    stage.finish();
}

#[tokio::test]
async fn a_report_that_cannot_be_written_is_a_failure() {
    let stage = Stage::plain();
    for args in [&["lifecheck"][..], &["lifecheck", "--json"]] {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let mut command = stage.ccd();
        command.args(args).stdout(full);
        let ended = run(command).await;
        assert_eq!(ended.code, Some(1), "{args:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains("could not be written"),
            "{}",
            ended.stderr
        );
    }
    stage.finish();
}
