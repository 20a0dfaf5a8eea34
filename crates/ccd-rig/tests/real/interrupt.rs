//! Interrupts: what runs stops, with evidence, and the session goes on.

use std::future::pending;

use ccd_api::{ErrorCode, EventKind, InterruptResult, Permissions, TurnStatus};
use ccd_rig::service::{Block, Reply, Scenario};

use crate::{
    live::Live,
    stage::{PATIENCE, Stage, stuck_after_two_lines},
};

async fn interrupt(live: &Live) {
    let result = live
        .within("the interrupt", PATIENCE, live.interrupt())
        .await;
    live.check(
        matches!(result, Ok(InterruptResult::Confirmed)),
        &format!("{result:?}"),
    )
    .await;
}

/// A second prompt arrives exactly and gets its own answer.
async fn goes_on(stage: &Stage, live: &Live) {
    live.completes("and on we go", "going on").await;
    assert_eq!(
        stage.received().last().map(String::as_str),
        Some("and on we go")
    );
}

#[tokio::test]
async fn streaming_text_stops_and_what_came_so_far_is_kept() {
    let stage = Stage::new(Scenario::of([
        stuck_after_two_lines("never"),
        Reply::text("going on"),
    ]));
    let live = stage.start(Permissions::Deny).await;
    let turn = live.send_now("talk").await;
    live.delta("line one\n").await;
    interrupt(&live).await;
    let outcome = live.done(&turn).await;
    live.is(&outcome, TurnStatus::Interrupted).await;
    live.check(
        outcome.text.starts_with("line one\nline two"),
        &format!("{:?}", outcome.text),
    )
    .await;
    assert_eq!(outcome.error.unwrap().code, ErrorCode::TurnInterrupted);
    assert_eq!(
        stage.service().disconnects().len(),
        1,
        "the call to the model is closed"
    );
    goes_on(&stage, &live).await;
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_running_tool_stops() {
    let stage = Stage::new(Scenario::of([
        Reply::blocks([Block::bash("cat never.fifo")]),
        Reply::text("going on"),
    ]));
    stage.pipe("never.fifo");
    let live = stage.start(Permissions::DangerouslyAllowAll).await;
    let turn = live.send_now("wait").await;
    live.event("the tool runs", |kind| {
        matches!(kind, EventKind::ToolStarted { .. }).then_some(())
    })
    .await;
    let reads = || {
        stage
            .guard()
            .running()
            .iter()
            .any(|survivor| survivor.to_string().ends_with(": cat never.fifo"))
    };
    crate::stage::until("the command runs", PATIENCE, reads).await;
    interrupt(&live).await;
    let outcome = live.done(&turn).await;
    live.is(&outcome, TurnStatus::Interrupted).await;
    crate::stage::until("the command is gone", PATIENCE, || !reads()).await;
    assert_eq!(stage.service().main_requests().len(), 1);
    goes_on(&stage, &live).await;
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_pending_permission_is_denied() {
    let stage = Stage::new(Scenario::of([
        Reply::blocks([Block::bash("touch proof.txt")]),
        Reply::text("going on"),
    ]));
    let live = stage.start(Permissions::ask(|_| pending())).await;
    let turn = live.send_now("make it").await;
    live.event("the request", |kind| {
        matches!(kind, EventKind::PermissionRequested { .. }).then_some(())
    })
    .await;
    assert_eq!(live.state().pending_permissions.len(), 1);
    interrupt(&live).await;
    let outcome = live.done(&turn).await;
    live.is(&outcome, TurnStatus::Interrupted).await;
    live.event("it ends", |kind| {
        matches!(kind, EventKind::PermissionResolved { .. }).then_some(())
    })
    .await;
    assert!(live.state().pending_permissions.is_empty());
    assert!(!stage.work("proof.txt").exists());
    goes_on(&stage, &live).await;
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn before_any_output_the_prompt_comes_back_to_the_caller() {
    let text = "say it\n\tin two lines, ö 👍";
    let stage = Stage::new(Scenario::of([
        Reply::text("never said").gate("never"),
        Reply::text("going on"),
    ]));
    let live = stage.start(Permissions::Deny).await;
    let turn = live.send_now(text).await;
    stage.mark("never").await;
    interrupt(&live).await;
    let outcome = live.done(&turn).await;
    live.is(&outcome, TurnStatus::Withdrawn).await;
    assert_eq!(outcome.returned.as_deref(), Some(text));
    goes_on(&stage, &live).await;
    live.check(live.composer_is_empty(), "the composer is empty")
        .await;
    let last = stage
        .service()
        .main_requests()
        .last()
        .unwrap()
        .human_texts
        .clone();
    assert_eq!(
        last,
        ["and on we go"],
        "the withdrawn prompt is no part of the conversation"
    );
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn prompts_that_are_held_survive_an_interrupt() {
    let stage = Stage::new(Scenario::of([
        stuck_after_two_lines("never"),
        Reply::text("going on"),
    ]));
    let live = stage.start(Permissions::Deny).await;
    let first = live.send_now("talk").await;
    live.delta("line one\n").await;
    let held = live.send_now("and on we go").await;
    interrupt(&live).await;
    let outcome = live.done(&first).await;
    live.is(&outcome, TurnStatus::Interrupted).await;
    let outcome = live.done(&held).await;
    live.is(&outcome, TurnStatus::Completed).await;
    assert_eq!(stage.received(), ["talk", "and on we go"]);
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn with_nothing_to_interrupt_it_is_refused() {
    let stage = Stage::plain();
    let live = stage.start(Permissions::Deny).await;
    for _ in 0..2 {
        let error = live.interrupt().await.unwrap_err();
        assert_eq!(
            (error.code, error.details.reason.as_str()),
            (ErrorCode::PromptRefused, "nothing_to_interrupt")
        );
        live.completes("a whole turn", "ok").await;
    }
    live.closes().await;
    stage.finish();
}
