//! Turns: text, thinking, tools, figures, retries, failures, limits and background work, as events and as outcomes.

use ccd_api::{ErrorCode, EventKind, Permissions, ToolRunStatus, TurnOrigin, TurnStatus};
use ccd_rig::service::{
    Block, LimitClaim, Matcher, Point, RateLimits, Reply, Scenario, Step, Usage,
};
use serde_json::json;

use crate::{
    live::reason,
    stage::{PATIENCE, Stage, run, stuck_after_two_lines},
};

#[tokio::test]
async fn text_streams_line_by_line_before_the_message_ends() {
    let stage = Stage::new(Scenario::of([stuck_after_two_lines("half")]));
    let live = stage.start(Permissions::Deny).await;
    let turn = live.send_now("tell me").await;
    stage.mark("half").await;
    live.delta("line two\n").await;
    assert!(!live.state().quiescent);
    stage.service().release("half");
    let outcome = live.done(&turn).await;
    live.is(&outcome, TurnStatus::Completed).await;
    assert_eq!(outcome.text, "line one\nline two\nline three\nline four");
    live.event("the final text", |kind| {
        matches!(kind, EventKind::MessageFinal { text, .. } if *text == outcome.text).then_some(())
    })
    .await;
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn thinking_is_told_apart_from_the_answer() {
    let reply = Reply::blocks([
        Block::thinking("let me see what this is"),
        Block::text("It is a test."),
    ]);
    let stage = Stage::new(Scenario::of([reply]));
    let live = stage.start(Permissions::Deny).await;
    live.completes("what is this?", "It is a test.").await;
    let thought = live.event("the thinking", |kind| match kind {
        EventKind::ThinkingFinal { text, .. } => Some(text.clone()),
        _ => None,
    });
    assert_eq!(thought.await, "let me see what this is");
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn parallel_tools_run_and_their_results_reach_the_model_under_their_ids() {
    let calls = Reply::blocks([
        Block::text("Three at once."),
        Block::tool_with_id(
            "toolu_01aaaaaaaaaaaaaaaaaaaaaa",
            "Bash",
            json!({"command": "echo alpha", "description": "a"}),
        ),
        Block::tool_with_id(
            "toolu_01bbbbbbbbbbbbbbbbbbbbbb",
            "Bash",
            json!({"command": "echo beta > b.txt && cat b.txt", "description": "b"}),
        ),
        Block::tool_with_id(
            "toolu_01cccccccccccccccccccccc",
            "Bash",
            json!({"command": "echo oops >&2; exit 3", "description": "c"}),
        ),
    ]);
    let stage = Stage::new(Scenario::of([calls, Reply::text("All done.")]));
    let live = stage.start(Permissions::DangerouslyAllowAll).await;
    let outcome = live.completes("run three", "All done.").await;
    let requests = stage.service().main_requests();
    assert_eq!(requests.len(), 2);
    let results = requests[1].tool_results();
    let found: Vec<(&str, bool)> = results
        .iter()
        .map(|result| (result.text.trim(), result.is_error))
        .collect();
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found[..2], [("alpha", false), ("beta", false)]);
    assert!(found[2].0.contains("oops") && found[2].1, "{found:?}");
    let ids: Vec<&str> = results
        .iter()
        .map(|result| result.tool_use_id.as_str())
        .collect();
    let runs: Vec<(&str, ToolRunStatus)> = outcome
        .tools
        .iter()
        .map(|tool| (tool.tool_use_id.as_str(), tool.status))
        .collect();
    use ToolRunStatus::{Failed, Succeeded};
    live.check(
        runs == [(ids[0], Succeeded), (ids[1], Succeeded), (ids[2], Failed)],
        &format!("{runs:?}"),
    )
    .await;
    let texts: Vec<&str> = outcome
        .tools
        .iter()
        .map(|tool| tool.result.as_deref().unwrap_or_default().trim())
        .collect();
    live.check(
        texts[..2] == ["alpha", "beta"],
        &format!("the results are texts: {texts:?}"),
    )
    .await;
    let seen = live.seen().await;
    let count =
        |wanted: fn(&EventKind) -> bool| seen.iter().filter(|event| wanted(&event.kind)).count();
    assert_eq!(
        count(|kind| matches!(kind, EventKind::ToolProposed { .. })),
        3
    );
    assert_eq!(
        count(|kind| matches!(kind, EventKind::ToolStarted { .. })),
        3
    );
    assert_eq!(count(|kind| matches!(kind, EventKind::ToolEnded { .. })), 3);
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_large_tool_output_reaches_the_model_as_claude_shortens_it_and_the_caller_in_short() {
    let stage = Stage::new(Scenario::of([
        Reply::blocks([Block::bash("seq 1 300000")]),
        Reply::text("That was long."),
    ]));
    let live = stage.start(Permissions::DangerouslyAllowAll).await;
    let outcome = live.completes("count", "That was long.").await;
    let result = outcome.tools[0].result.clone().unwrap_or_default();
    assert!(
        result.starts_with("1\n2\n3\n") || result.contains("Output too large"),
        "{result}"
    );
    assert!(result.len() <= 2048 + 64, "{} bytes", result.len());
    let sent = stage.service().main_requests()[1].tool_results();
    assert!(
        sent[0].text.contains("Output too large"),
        "{}",
        sent[0].text.len()
    );
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn the_outcome_has_the_token_counts_and_the_model() {
    let usage = |input, output| Usage {
        input_tokens: input,
        cache_creation_input_tokens: 100,
        cache_read_input_tokens: 1000,
        output_tokens: output,
    };
    let scenario = Scenario::of([
        Reply::blocks([Block::bash("true")]).usage(usage(11, 22)),
        Reply::text("done").usage(usage(33, 44)),
    ]);
    let stage = Stage::new(scenario);
    let live = stage.start(Permissions::DangerouslyAllowAll).await;
    let outcome = live.completes("count tokens", "done").await;
    let expected = ccd_api::Usage::new(44, 66, 200, 2000);
    live.check(
        outcome.usage == Some(expected),
        &format!("{:?}", outcome.usage),
    )
    .await;
    let asked = stage.service().main_requests()[0].body["model"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(outcome.model, Some(asked));
    assert!(outcome.duration_ms > 0);
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn an_overloaded_service_is_retried_and_told() {
    let stage = Stage::new(
        Scenario::new()
            .times(2, Reply::overloaded())
            .reply(Reply::text("at last")),
    );
    let live = stage.start(Permissions::Deny).await;
    live.completes("try", "at last").await;
    assert_eq!(stage.service().main_requests().len(), 3);
    let (attempt, max) = live
        .event("a retry", |kind| match kind {
            EventKind::ModelCallRetrying {
                attempt,
                max_attempts,
                ..
            } => Some((*attempt, *max_attempts)),
            _ => None,
        })
        .await;
    assert!(attempt >= 1 && max >= attempt, "attempt {attempt} of {max}");
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_stream_that_breaks_is_retried_and_only_the_whole_answer_counts() {
    let broken = Reply::blocks([Block::text_deltas([
        "half an\n",
        "answer that\n",
        "breaks\n",
    ])])
    .at(
        Point::InBlock {
            block: 0,
            deltas: 2,
        },
        Step::Reset,
    );
    let stage = Stage::new(Scenario::of([broken, Reply::text("the whole answer")]));
    let live = stage.start(Permissions::Deny).await;
    live.completes("try", "the whole answer").await;
    assert_eq!(stage.service().main_requests().len(), 2);
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn an_api_error_fails_the_turn_and_the_session_goes_on() {
    let refused = Reply::error(
        400,
        "invalid_request_error",
        "Your credit balance is too low to access the Anthropic API",
    );
    let stage = Stage::new(Scenario::of([refused, Reply::text("better")]));
    let live = stage.start(Permissions::Deny).await;
    let outcome = live.prompt("try").await;
    live.is(&outcome, TurnStatus::Failed).await;
    let error = outcome.error.clone().unwrap();
    assert_eq!(
        (error.code, error.details.reason.as_str()),
        (ErrorCode::TurnFailed, "billing_error")
    );
    assert!(
        error.message.contains("Credit balance"),
        "{}",
        error.message
    );
    live.completes("again", "better").await;
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_failed_turn_is_exit_code_5() {
    let stage = Stage::new(Scenario::new().forever(Reply::error(
        400,
        "invalid_request_error",
        "no such thing",
    )));
    let ended = run(stage.ccd_run(&["--output-format", "json", "try"])).await;
    assert_eq!(ended.code, Some(5), "{}", ended.stderr);
    let result = ended.result();
    assert!(result.is_error);
    assert_eq!(
        (result.status, result.subtype.as_str()),
        (TurnStatus::Failed, "error_failed")
    );
    assert!(ended.stderr.contains("E_TURN_FAILED"), "{}", ended.stderr);
    stage.finish();
}

#[tokio::test]
async fn a_reached_usage_limit_is_its_own_error_and_the_next_prompt_works_once_it_is_over() {
    let limit = Reply::usage_limit(RateLimits::rejected(LimitClaim::FiveHour, 3 * 3600));
    let stage = Stage::new(Scenario::of([limit, Reply::text("again")]));
    let live = stage.start(Permissions::Deny).await;
    let outcome = live.prompt("one more").await;
    live.is(&outcome, TurnStatus::Failed).await;
    assert_eq!(
        outcome.error.as_ref().unwrap().code,
        ErrorCode::UsageLimit,
        "{outcome:?}"
    );
    let resets_at = live
        .event("the limit", |kind| match kind {
            // Told at once by the hook; the time follows with the transcript.
            EventKind::UsageLimitReached { resets_at, .. } => *resets_at,
            _ => None,
        })
        .await;
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let ahead = resets_at - i64::try_from(now).unwrap();
    assert!(
        (3 * 3600 - 120..=3 * 3600).contains(&ahead),
        "{ahead} s ahead"
    );
    live.completes("and now?", "again").await;
    // Claude itself joins a prompt that had no answer with the next one.
    assert_eq!(stage.received(), ["one more", "one more\n\nand now?"]);
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_reached_usage_limit_is_exit_code_7() {
    let stage = Stage::new(
        Scenario::new().forever(Reply::usage_limit(RateLimits::rejected(
            LimitClaim::FiveHour,
            3600,
        ))),
    );
    let ended = run(stage.ccd_run(&["--output-format", "json", "try"])).await;
    assert_eq!(ended.code, Some(7), "{}", ended.stderr);
    assert_eq!(ended.result().error.unwrap().code, ErrorCode::UsageLimit);
    stage.finish();
}

#[tokio::test]
async fn quiescent_waits_for_a_background_shell_and_the_turn_that_reports_it() {
    let command =
        json!({"command": "cat go.fifo", "description": "wait", "run_in_background": true});
    let scenario = Scenario::of([Reply::tool("Bash", command), Reply::text("It runs.")])
        .reply_when(
            Matcher::last_message("<task-notification>"),
            Reply::text("It has ended."),
        );
    let stage = Stage::new(scenario);
    stage.pipe("go.fifo");
    let live = stage.start(Permissions::DangerouslyAllowAll).await;
    live.completes("start it", "It runs.").await;
    let state = live.state();
    live.check(
        !state.quiescent && !state.background.is_empty(),
        "the shell is known",
    )
    .await;
    stage.open_pipe("go.fifo", "gone\n").await;
    notification_turn(&live, "It has ended.").await;
    live.within("the rest", PATIENCE, live.quiescent()).await;
    assert_eq!(stage.service().main_requests().len(), 3);
    live.closes().await;
    stage.finish();
}

async fn notification_turn(live: &crate::live::Live, answer: &str) {
    let ended = live
        .event("the turn that reports it", |kind| match kind {
            EventKind::TurnEnded {
                origin: TurnOrigin::TaskNotification,
                status,
                text,
                ..
            } => Some((*status, text.clone())),
            _ => None,
        })
        .await;
    live.check(
        ended == (TurnStatus::Completed, answer.to_owned()),
        &format!("{ended:?}"),
    )
    .await;
}

#[tokio::test]
async fn quiescent_waits_for_a_background_agent_and_the_turn_that_reports_it() {
    let agent = json!({"description": "look around", "prompt": "Look around and report.", "subagent_type": "general-purpose"});
    let scenario = Scenario::of([Reply::tool("Agent", agent), Reply::text("It works.")])
        .subagent_reply(Reply::text("Nothing here.").gate("agent"))
        .reply_when(
            Matcher::last_message("<task-notification>"),
            Reply::text("It found nothing."),
        );
    let stage = Stage::new(scenario);
    let live = stage.start(Permissions::DangerouslyAllowAll).await;
    live.completes("send someone", "It works.").await;
    live.event("the agent works", |kind| {
        matches!(kind, EventKind::AgentStarted { .. }).then_some(())
    })
    .await;
    stage.mark("agent").await;
    let state = live.state();
    live.check(
        !state.quiescent && state.running_agents.len() == 1,
        "the agent is known",
    )
    .await;
    stage.service().release("agent");
    notification_turn(&live, "It found nothing.").await;
    live.event("the agent ended", |kind| {
        matches!(kind, EventKind::AgentEnded { known: true, .. }).then_some(())
    })
    .await;
    live.within("the rest", PATIENCE, live.quiescent()).await;
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn the_users_own_stop_hook_continues_the_same_turn() {
    let hook = "grep -q '\"stop_hook_active\":true' || echo '{\"decision\":\"block\",\"reason\":\"say more\"}'";
    let settings = json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": hook}]}]}});
    let home = ccd_rig::home::HomeOptions::default().with_settings(settings);
    let scenario = Scenario::of([Reply::text("short"), Reply::text("longer")]);
    let stage = Stage::with(ccd_rig::rig::RigOptions { scenario, home });
    let live = stage.start(Permissions::Deny).await;
    let outcome = live.prompt("talk").await;
    live.is(&outcome, TurnStatus::Completed).await;
    live.check(
        outcome.text.ends_with("longer"),
        &format!("{:?} {}", outcome.text, reason(&outcome)),
    )
    .await;
    assert_eq!(stage.service().main_requests().len(), 2);
    let ends = live
        .seen()
        .await
        .into_iter()
        .filter(|event| matches!(event.kind, EventKind::TurnEnded { .. }));
    assert_eq!(ends.count(), 1, "one prompt is one turn");
    live.closes().await;
    stage.finish();
}
