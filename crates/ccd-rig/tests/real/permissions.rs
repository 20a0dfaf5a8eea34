//! Permissions: the answer is what happens, and without a clear answer nothing happens.

use std::{
    fs,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ccd_api::{
    ErrorCode, EventKind, PermissionAnswer, PermissionDecision, PermissionMode, PermissionRequest,
    PermissionResolution, Permissions, ToolRunStatus, TurnStatus,
};
use ccd_rig::service::{Block, Reply, Scenario, ToolResult};
use serde_json::json;

use crate::{
    live::Live,
    stage::{PATIENCE, Stage},
};

/// A model that makes one call, then says "done".
fn one_call(command: &str) -> Scenario {
    Scenario::of([Reply::blocks([Block::bash(command)]), Reply::text("done")])
}

fn answer(decision: PermissionDecision) -> Permissions {
    Permissions::ask(move |_| {
        let decision = decision.clone();
        async move { decision }
    })
}

/// Who answered the permission request number `index`, and how it ended.
async fn resolved(live: &Live, index: usize) -> (PermissionAnswer, PermissionResolution) {
    let mut before = 0;
    live.event("the permission is resolved", |kind| match kind {
        EventKind::PermissionResolved { by, resolution, .. } => {
            before += 1;
            (before > index).then_some((*by, *resolution))
        }
        _ => None,
    })
    .await
}

/// The tool results that the last main request carried.
fn results(stage: &Stage) -> Vec<ToolResult> {
    stage
        .service()
        .main_requests()
        .last()
        .unwrap()
        .tool_results()
}

#[tokio::test]
async fn an_allowed_call_runs_once() {
    let stage = Stage::new(one_call("echo ran >> proof.txt"));
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let live = stage
        .start(Permissions::ask(move |request: PermissionRequest| {
            count.fetch_add(1, Ordering::SeqCst);
            let expected = request.tool_name == "Bash"
                && request.tool_input["command"] == "echo ran >> proof.txt"
                && request.tool_use_id.is_some()
                && request.turn.is_some();
            async move {
                if expected {
                    PermissionDecision::allow()
                } else {
                    PermissionDecision::deny("unexpected")
                }
            }
        }))
        .await;
    let outcome = live.completes("make it", "done").await;
    assert_eq!(
        fs::read_to_string(stage.work("proof.txt")).unwrap(),
        "ran\n"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(outcome.tools[0].status, ToolRunStatus::Succeeded);
    assert_eq!(
        resolved(&live, 0).await,
        (PermissionAnswer::Handler, PermissionResolution::Resolved)
    );
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_denied_call_does_not_run_and_the_model_gets_exactly_the_message() {
    let message = "No: \"quoted\", über-genau,\nsecond line.";
    let stage = Stage::new(one_call("touch proof.txt"));
    let live = stage.start(answer(PermissionDecision::deny(message))).await;
    let outcome = live.completes("make it", "done").await;
    assert_eq!(outcome.tools[0].status, ToolRunStatus::Denied);
    let results = results(&stage);
    assert_eq!(
        (results[0].text.as_str(), results[0].is_error),
        (message, true)
    );
    assert!(!stage.work("proof.txt").exists());
    assert_eq!(
        resolved(&live, 0).await,
        (PermissionAnswer::Handler, PermissionResolution::Resolved)
    );
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_deny_with_interrupt_ends_the_turn_and_the_next_prompt_works() {
    let stage = Stage::new(one_call("touch proof.txt"));
    let deny = PermissionDecision::Deny {
        message: "stop here".into(),
        interrupt: true,
    };
    let live = stage.start(answer(deny)).await;
    let outcome = live.prompt("make it").await;
    live.is(&outcome, TurnStatus::Interrupted).await;
    assert_eq!(stage.service().main_requests().len(), 1);
    assert!(!stage.work("proof.txt").exists());
    live.completes("go on", "done").await;
    assert_eq!(stage.received().last().map(String::as_str), Some("go on"));
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_handler_that_panics_or_never_answers_denies() {
    let scenario = Scenario::of([
        Reply::blocks([Block::bash("touch panics.txt")]),
        Reply::text("one"),
        Reply::blocks([Block::bash("touch silent.txt")]),
        Reply::text("two"),
    ]);
    let stage = Stage::new(scenario);
    let handler = Permissions::ask(|request: PermissionRequest| async move {
        assert!(
            !request.tool_input["command"]
                .as_str()
                .unwrap()
                .contains("panics"),
            "this panic is part of the test"
        );
        pending().await
    });
    let options = stage
        .options(handler)
        .permission_timeout(Duration::from_secs(1));
    let live = stage.start_with(options).await;
    live.completes("first", "one").await;
    assert_eq!(resolved(&live, 0).await.0, PermissionAnswer::HandlerFailure);
    live.completes("second", "two").await;
    let (by, resolution) = resolved(&live, 1).await;
    live.check(
        matches!(
            by,
            PermissionAnswer::Deadline | PermissionAnswer::HandlerFailure
        ),
        &format!("{by:?}"),
    )
    .await;
    assert_eq!(resolution, PermissionResolution::Resolved);
    for name in ["panics.txt", "silent.txt"] {
        assert!(!stage.work(name).exists(), "{name}");
    }
    assert!(results(&stage)[0].is_error);
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_handler_whose_runtime_goes_away_denies() {
    let stage = Stage::new(one_call("touch proof.txt"));
    let handler = Permissions::ask(|_| pending());
    let options = stage.options(handler);
    // The session belongs to a runtime of its own, which goes away while its handler is asked.
    let (live, runtime) = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let live = runtime.block_on(Live::start(options)).unwrap();
        (live, runtime)
    })
    .await
    .unwrap();
    stage.driven().note_runtime_dirs();
    let turn = live.send_now("make it").await;
    live.event("the request", |kind| {
        matches!(kind, EventKind::PermissionRequested { .. }).then_some(())
    })
    .await;
    runtime.shutdown_background();
    let outcome = live.done(&turn).await;
    live.is(&outcome, TurnStatus::Completed).await;
    assert_eq!(resolved(&live, 0).await.0, PermissionAnswer::HandlerFailure);
    assert!(!stage.work("proof.txt").exists());
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn the_deny_policy_denies_without_a_handler() {
    let stage = Stage::new(one_call("touch proof.txt"));
    let live = stage.start(Permissions::Deny).await;
    live.completes("make it", "done").await;
    assert!(results(&stage)[0].is_error);
    assert!(!stage.work("proof.txt").exists());
    assert_eq!(
        resolved(&live, 0).await,
        (PermissionAnswer::Policy, PermissionResolution::Resolved)
    );
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_deny_rule_holds_even_where_everything_is_allowed() {
    for (rule, other_runs) in [("Bash(touch:*)", true), ("Bash", false)] {
        let scenario = Scenario::of([
            Reply::blocks([Block::bash("touch denied.txt")]),
            Reply::blocks([Block::bash("echo hi > other.txt")]),
            Reply::text("done"),
        ]);
        let stage = Stage::new(scenario);
        let options = stage
            .options(Permissions::DangerouslyAllowAll)
            .disallowed_tools([rule]);
        let live = stage.start_with(options).await;
        live.completes("make it", "done").await;
        assert!(!stage.work("denied.txt").exists(), "{rule}");
        assert_eq!(stage.work("other.txt").exists(), other_runs, "{rule}");
        let requests = stage.service().main_requests();
        assert!(requests[1].tool_results()[0].is_error, "{rule}");
        live.closes().await;
        stage.finish();
    }
}

#[tokio::test]
async fn an_allow_rule_saves_the_question() {
    let stage = Stage::new(one_call("touch proof.txt"));
    let options = stage
        .options(answer(PermissionDecision::deny("never asked")))
        .allowed_tools(["Bash(touch proof.txt)"]);
    let live = stage.start_with(options).await;
    live.completes("make it", "done").await;
    assert!(stage.work("proof.txt").exists());
    let asked = live
        .seen()
        .await
        .into_iter()
        .any(|event| matches!(event.kind, EventKind::PermissionRequested { .. }));
    assert!(!asked);
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn an_updated_input_is_what_runs() {
    let stage = Stage::new(one_call("echo original > proof.txt"));
    let allow = PermissionDecision::Allow {
        updated_input: Some(
            json!({"command": "echo changed > proof.txt", "description": "changed"}),
        ),
        updated_permissions: None,
    };
    let live = stage.start(answer(allow)).await;
    live.completes("make it", "done").await;
    assert_eq!(
        fs::read_to_string(stage.work("proof.txt")).unwrap(),
        "changed\n"
    );
    assert_eq!(
        resolved(&live, 0).await,
        (PermissionAnswer::Handler, PermissionResolution::Resolved)
    );
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn questions_and_plans_are_denied_with_a_message() {
    let question = json!({"questions": [{
        "question": "Which color?",
        "header": "Color",
        "multiSelect": false,
        "options": [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}],
    }]});
    for (mode, call) in [
        (
            PermissionMode::Default,
            Reply::tool("AskUserQuestion", question),
        ),
        (
            PermissionMode::Plan,
            Reply::tool("ExitPlanMode", json!({"plan": "1. do it"})),
        ),
    ] {
        let stage = Stage::new(Scenario::of([call, Reply::text("done")]));
        let options = stage
            .options(Permissions::DangerouslyAllowAll)
            .permission_mode(mode);
        let live = stage.start_with(options).await;
        live.completes("ask me", "done").await;
        let results = results(&stage);
        live.check(
            results[0].is_error && !results[0].text.is_empty(),
            &format!("{results:?}"),
        )
        .await;
        assert_eq!(
            resolved(&live, 0).await.0,
            PermissionAnswer::Unsupported,
            "{mode:?}"
        );
        live.closes().await;
        stage.finish();
    }
}

#[tokio::test]
async fn two_permissions_of_one_turn_are_answered_apart() {
    let calls = Reply::blocks([Block::bash("touch yes.txt"), Block::bash("touch no.txt")]);
    let stage = Stage::new(Scenario::of([calls, Reply::text("done")]));
    let live = stage
        .start(Permissions::ask(|request: PermissionRequest| async move {
            if request.tool_input["command"] == "touch yes.txt" {
                PermissionDecision::allow()
            } else {
                PermissionDecision::deny("not this one")
            }
        }))
        .await;
    live.completes("make two", "done").await;
    assert!(stage.work("yes.txt").exists() && !stage.work("no.txt").exists());
    let results = results(&stage);
    assert_eq!(results.len(), 2);
    assert!(!results[0].is_error);
    assert_eq!(
        (results[1].text.as_str(), results[1].is_error),
        ("not this one", true)
    );
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_call_of_a_background_agent_is_asked_for_under_the_agent() {
    let agent = json!({"description": "work", "prompt": "Make the file.", "subagent_type": "general-purpose"});
    let scenario = Scenario::of([Reply::tool("Agent", agent), Reply::text("It works.")])
        .subagent_reply(Reply::blocks([Block::bash("touch by-agent.txt")]));
    let stage = Stage::new(scenario);
    let live = stage
        .start(Permissions::ask(|request: PermissionRequest| async move {
            if request.tool_name == "Agent" || request.agent.is_some() {
                PermissionDecision::allow()
            } else {
                PermissionDecision::deny("not by an agent")
            }
        }))
        .await;
    live.completes("send someone", "It works.").await;
    live.within("the agent", PATIENCE, live.quiescent()).await;
    live.check(stage.work("by-agent.txt").exists(), "the agent's call ran")
        .await;
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_session_without_a_choice_about_permissions_does_not_start() {
    let stage = Stage::plain();
    let options = ccd_api::Options::new(stage.rig().cwd());
    let error = Live::start(options).await.err().unwrap();
    assert_eq!(
        (error.code, error.details.reason.as_str()),
        (ErrorCode::Config, "permissions_missing")
    );
    stage.finish();
}
