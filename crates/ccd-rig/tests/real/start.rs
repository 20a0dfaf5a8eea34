//! Starting: a ready session cost no model call; what cannot start says why, at once, and leaves nothing.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use ccd_api::{Error, EventKind, Lifecycle, Permissions};
use ccd_rig::{home::HomeOptions, rig::RigOptions, service::Scenario};

use crate::stage::{CLEAN_UP, Ended, Stage, run};

/// A failed start is told within this time.
const AT_ONCE: Duration = Duration::from_secs(10);

fn stage_with(home: HomeOptions) -> Stage {
    Stage::with(RigOptions {
        scenario: Scenario::new(),
        home,
    })
}

/// Runs a command that must fail with this exit code, code and reason, quickly, without a model call, leaving nothing.
async fn fails(stage: &Stage, command: Command, exit: i32, code: &str, reason: &str) -> Ended {
    let start = Instant::now();
    let ended = run(command).await;
    let took = start.elapsed();
    let told: Error = ended.result().error.unwrap();
    assert_eq!(ended.code, Some(exit), "{}", ended.stderr);
    assert_eq!(
        (told.code.as_str(), told.details.reason.as_str()),
        (code, reason),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains(code), "{}", ended.stderr);
    assert!(took < AT_ONCE, "it took {took:?}");
    stage.guard().wait_until_idle(CLEAN_UP).unwrap();
    assert!(
        stage.service().log().requests.is_empty(),
        "{}",
        stage.service().log().summary()
    );
    stage.forget_command_traces();
    ended
}

fn prompt<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["--output-format", "json"], more, &["a prompt"]].concat()
}

#[tokio::test]
async fn a_ready_session_has_sent_no_request_and_its_composer_is_empty() {
    let stage = Stage::plain();
    let live = stage.start(Permissions::Deny).await;
    let tested = live.event("ready", |kind| match kind {
        EventKind::SessionReady { self_tested, .. } => Some(*self_tested),
        _ => None,
    });
    assert!(tested.await, "the first start of a home tests itself");
    live.check(live.composer_is_empty(), "the composer is empty")
        .await;
    let state = live.state();
    assert_eq!(state.lifecycle, Lifecycle::Ready);
    assert_eq!(state.claude_version.as_deref(), Some("2.1.316"));
    assert!(state.claude_pid.is_some() && state.quiescent, "{state:?}");
    let log = stage.service().log();
    assert!(log.requests.is_empty(), "{}", log.summary());
    live.closes().await;

    let again = stage.start(Permissions::Deny).await;
    let tested = again.event("ready", |kind| match kind {
        EventKind::SessionReady { self_tested, .. } => Some(*self_tested),
        _ => None,
    });
    assert!(!tested.await, "a success is remembered");
    again.completes("hello", "ok").await;
    again.closes().await;
    stage.finish();
}

#[tokio::test]
async fn an_untrusted_workspace_is_refused_until_trust_is_seeded() {
    let stage = stage_with(HomeOptions::untrusted());
    let refused = stage.ccd_run(&prompt(&[]));
    fails(&stage, refused, 4, "E_TRUST_REQUIRED", "trust_required").await;
    let seeded = run(stage.ccd_run(&["--trust", "seed", "hello"])).await;
    assert_eq!(
        (seeded.code, seeded.stdout.as_str()),
        (Some(0), "ok\n"),
        "{}",
        seeded.stderr
    );
    let trusted = run(stage.ccd_run(&["hello again"])).await;
    assert_eq!(trusted.code, Some(0), "the seed lasts: {}", trusted.stderr);
    stage.finish();
}

#[tokio::test]
async fn what_claude_itself_says_when_it_cannot_start_is_told() {
    let stage = Stage::plain();
    let unknown = "11111111-2222-4333-8444-555555555555";
    for (args, says) in [
        (&["-c"][..], "No conversation found to continue"),
        (
            &["--resume", unknown],
            "No conversation found with session ID",
        ),
        (
            &["--mcp-config", "/no/such/file.json"],
            "/no/such/file.json",
        ),
    ] {
        let command = stage.ccd_run(&prompt(args));
        let ended = fails(&stage, command, 3, "E_START_FAILED", "start_failed").await;
        assert!(ended.stderr.contains(says), "{args:?}: {}", ended.stderr);
    }
    stage.finish();
}

#[tokio::test]
async fn a_missing_or_wrong_program_is_named() {
    let stage = Stage::plain();
    let empty = stage.rig().root().join("empty");
    fs::create_dir(&empty).unwrap();
    let mut no_tmux = stage.ccd_run(&prompt(&["--env", &format!("PATH={}", empty.display())]));
    no_tmux.env("PATH", &empty);
    fails(&stage, no_tmux, 3, "E_ENVIRONMENT", "tmux_missing").await;

    let no_claude = stage.ccd_run(&prompt(&["--claude", "/no/such/claude"]));
    fails(&stage, no_claude, 3, "E_CLAUDE_MISSING", "claude_missing").await;

    let other = script(&stage, "other-claude", "echo '9.9.9 (Claude Code)'");
    let version = stage.ccd_run(&prompt(&["--claude", other.to_str().unwrap()]));
    let ended = fails(&stage, version, 3, "E_VERSION", "claude_version").await;
    assert!(
        ended.stderr.contains("9.9.9") && ended.stderr.contains("2.1.316"),
        "{}",
        ended.stderr
    );

    let broken = script(&stage, "broken-claude", "exit 7");
    let broken = stage.ccd_run(&prompt(&["--claude", broken.to_str().unwrap()]));
    fails(&stage, broken, 3, "E_CLAUDE_MISSING", "claude_broken").await;

    let mut no_helper = stage.ccd_run(&prompt(&[]));
    no_helper.env("CCD_HELPER", "/no/such/helper");
    fails(&stage, no_helper, 3, "E_ENVIRONMENT", "helper_missing").await;
    stage.finish();
}

fn script(stage: &Stage, name: &str, body: &str) -> PathBuf {
    let path = stage.rig().root().join(name);
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path
}

#[tokio::test]
async fn an_account_that_is_not_ready_is_refused() {
    for (home, reason) in [
        (HomeOptions::logged_out(), "logged_out"),
        (HomeOptions::not_onboarded(), "not_onboarded"),
    ] {
        let stage = stage_with(home);
        let command = stage.ccd_run(&prompt(&[]));
        fails(&stage, command, 4, "E_ACCOUNT", reason).await;
        stage.finish();
    }
}

#[tokio::test]
async fn an_unusable_home_is_an_environment_error_and_is_not_made() {
    let stage = Stage::plain();
    let file = stage.rig().root().join("a-file");
    fs::write(&file, "").unwrap();
    let missing = stage.rig().root().join("no-such-home");
    for home in [&file, &missing] {
        let mut command = stage.ccd_run(&prompt(&["--env", &format!("HOME={}", home.display())]));
        command.env("HOME", home);
        let ended = fails(&stage, command, 3, "E_ENVIRONMENT", "dir_unusable").await;
        assert!(
            ended.stderr.contains(home.to_str().unwrap()),
            "{}",
            ended.stderr
        );
    }
    assert!(!missing.exists(), "a home was made");
    stage.finish();
}

#[tokio::test]
async fn contradictions_on_the_command_line_are_usage_errors() {
    let stage = Stage::plain();
    for (args, code, reason) in [
        (&["--policy", "ask"][..], "E_CONFIG", "ask_without_terminal"),
        (
            &["--policy", "deny", "--permission-mode", "auto"],
            "E_CONFIG",
            "policy_mode",
        ),
        (
            &[
                "--policy",
                "dangerously-allow-all",
                "--permission-mode",
                "dontAsk",
            ],
            "E_CONFIG",
            "policy_mode",
        ),
        (
            &["--permission-mode", "nonsense"],
            "E_CONFIG",
            "permission_mode",
        ),
        (&["--fork-session"], "E_CONFIG", "fork_without_resume"),
        (&["--allowedTools", "Bash("], "E_CONFIG", "config"),
        (&["--env", "TMUX=x"], "E_CONFIG", "config"),
        (
            &["--env", "ANTHROPIC_API_KEY=x"],
            "E_ACCOUNT",
            "account_refused",
        ),
        (&["--network", "on"], "E_UNSUPPORTED", "flag"),
    ] {
        let exit = if code == "E_ACCOUNT" { 4 } else { 2 };
        fails(&stage, stage.ccd_run(&prompt(args)), exit, code, reason).await;
    }
    stage.finish();
}

#[tokio::test]
async fn settings_that_make_driving_impossible_are_refused() {
    let home = HomeOptions::default().with_settings(serde_json::json!({"disableAllHooks": true}));
    let stage = stage_with(home);
    let command = stage.ccd_run(&prompt(&[]));
    let ended = fails(
        &stage,
        command,
        3,
        "E_SETTINGS_CONFLICT",
        "settings_conflict",
    )
    .await;
    assert!(ended.stderr.contains("disableAllHooks"), "{}", ended.stderr);
    stage.finish();
}
