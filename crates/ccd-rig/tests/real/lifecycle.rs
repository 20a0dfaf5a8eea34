//! Lifecycle: closing, dropping, resuming, and sessions side by side.

use ccd_api::{Close, ErrorCode, EventKind, Lifecycle, Permissions, TurnStatus};
use ccd_rig::service::{Matcher, Reply, Scenario};

use crate::{
    live::{Live, reason},
    stage::{PATIENCE, Stage, stuck_after_two_lines},
};

#[tokio::test]
async fn a_graceful_close_is_clean_and_final() {
    let stage = Stage::plain();
    let live = stage.start(Permissions::Deny).await;
    live.completes("hello", "ok").await;
    let exit = live.closes().await;
    // By its exit command, or by SIGTERM where the composer was not known to be empty: in order either way.
    assert!(
        matches!((exit.code, exit.signal), (Some(0 | 143), None)),
        "{exit:?}"
    );
    assert_eq!(live.state().lifecycle, Lifecycle::Exited);
    assert_eq!(live.exited().await, exit);
    assert_eq!(live.closes().await, exit, "closing twice is the same");
    assert_eq!(
        live.send("more").await.err().unwrap().code,
        ErrorCode::SessionExited
    );
    assert_eq!(
        live.interrupt().await.unwrap_err().code,
        ErrorCode::SessionExited
    );
    let exits = live
        .seen()
        .await
        .into_iter()
        .filter(|event| matches!(event.kind, EventKind::SessionExited { clean: true, .. }));
    assert_eq!(exits.count(), 1);
    stage.finish();
}

#[tokio::test]
async fn a_kill_ends_at_once_even_in_mid_turn() {
    let stage = Stage::new(Scenario::of([stuck_after_two_lines("half")]));
    let live = stage.start(Permissions::Deny).await;
    let turn = live.send_now("talk").await;
    stage.mark("half").await;
    let exit = live
        .within(
            "the kill",
            std::time::Duration::from_secs(5),
            live.close_with(Close::Kill),
        )
        .await;
    assert!(exit.clean || exit.signal.is_some(), "{exit:?}");
    let outcome = live.done(&turn).await;
    live.is(&outcome, TurnStatus::Aborted).await;
    stage.finish();
}

#[tokio::test]
async fn a_close_ends_the_running_turn_and_refuses_the_held_prompt() {
    let stage = Stage::new(Scenario::of([stuck_after_two_lines("half")]));
    let live = stage.start(Permissions::Deny).await;
    let running = live.send_now("talk").await;
    stage.mark("half").await;
    let held = live.send_now("later").await;
    live.closes().await;
    let outcome = live.done(&held).await;
    live.is(&outcome, TurnStatus::NotSubmitted).await;
    assert_eq!(reason(&outcome), "session_closed");
    let outcome = live.done(&running).await;
    live.check(
        matches!(
            outcome.status,
            TurnStatus::Aborted | TurnStatus::Interrupted
        ),
        &format!("{outcome:?}"),
    )
    .await;
    assert_eq!(stage.received(), ["talk"]);
    stage.finish();
}

#[tokio::test]
async fn a_close_with_background_work_does_not_hang_at_its_dialog() {
    let command = serde_json::json!({"command": "cat never.fifo", "description": "wait", "run_in_background": true});
    let stage = Stage::new(Scenario::of([
        Reply::tool("Bash", command),
        Reply::text("It runs."),
    ]));
    stage.pipe("never.fifo");
    let live = stage.start(Permissions::DangerouslyAllowAll).await;
    live.completes("start it", "It runs.").await;
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn dropping_the_session_closes_it() {
    let stage = Stage::plain();
    let live = stage.start(Permissions::Deny).await;
    live.completes("hello", "ok").await;
    let mut events = live.events_from_now();
    drop(live);
    let over = async {
        // The stream ends when nothing of the session is left.
        let mut clean = false;
        while let Some(event) = events.next().await {
            clean |= matches!(event.kind, EventKind::SessionExited { clean: true, .. });
        }
        clean
    };
    assert!(
        tokio::time::timeout(PATIENCE, over).await.unwrap(),
        "the session ended without a clean exit"
    );
    let idle = tokio::task::spawn_blocking({
        let guard = stage.guard().clone();
        move || guard.wait_until_idle(PATIENCE)
    });
    idle.await.unwrap().unwrap();
    stage.finish();
}

#[tokio::test]
async fn a_resumed_session_continues_the_conversation() {
    let stage = Stage::new(Scenario::of([
        Reply::text("I will."),
        Reply::text("It was kiwi."),
        Reply::text("Still kiwi."),
    ]));
    let live = stage.start(Permissions::Deny).await;
    live.completes("remember the word kiwi", "I will.").await;
    let id = live.state().session_id;
    live.closes().await;

    let resumed = stage
        .start_with(stage.options(Permissions::Deny).resume(id.as_str()))
        .await;
    assert_eq!(resumed.state().session_id, id);
    resumed
        .completes("which word was it?", "It was kiwi.")
        .await;
    let request = stage.service().main_requests().pop().unwrap();
    assert_eq!(
        request.human_texts,
        ["remember the word kiwi", "which word was it?"]
    );
    assert_eq!(request.session_id(), Some(id.as_str()));
    assert!(request.body.to_string().contains("I will."));
    resumed.closes().await;

    let forked = stage
        .start_with(stage.options(Permissions::Deny).resume(id.as_str()).fork())
        .await;
    forked.completes("and now?", "Still kiwi.").await;
    let request = stage.service().main_requests().pop().unwrap();
    assert_eq!(request.human_texts.len(), 3);
    assert_ne!(
        request.session_id(),
        Some(id.as_str()),
        "a fork has an id of its own"
    );
    forked.closes().await;
    stage.finish();
}

#[tokio::test]
async fn two_sessions_at_once_do_not_touch_each_other() {
    let scenario = Scenario::new()
        .reply_when(
            Matcher::last_text("alpha"),
            Reply::text("to alpha").gate("both"),
        )
        .reply_when(
            Matcher::last_text("beta"),
            Reply::text("to beta").gate("both"),
        );
    let stage = Stage::new(scenario);
    let (alpha, beta) = tokio::join!(
        stage.start(Permissions::Deny),
        stage.start(Permissions::Deny)
    );
    assert_ne!(alpha.state().session_id, beta.state().session_id);
    let (one, two) = (
        alpha.send_now("I am alpha").await,
        beta.send_now("I am beta").await,
    );
    stage.main_requests(2).await;
    stage.service().release("both");
    let (one, two) = tokio::join!(alpha.done(&one), beta.done(&two));
    assert_eq!(
        (one.text.as_str(), two.text.as_str()),
        ("to alpha", "to beta")
    );
    alpha.closes().await;
    beta.completes("still here?", "ok").await;
    beta.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_session_that_is_held_cannot_be_resumed_beside() {
    let stage = Stage::plain();
    let live = stage.start(Permissions::Deny).await;
    live.completes("hello", "ok").await;
    let id = live.state().session_id;
    let beside = stage
        .options(Permissions::Deny)
        .resume(id)
        .trace(stage.work("no-trace"));
    let error = Live::start(beside).await.err().unwrap();
    assert_eq!(
        (error.code, error.details.reason.as_str()),
        (ErrorCode::SessionBusy, "session_busy")
    );
    live.completes("untouched", "ok").await;
    live.closes().await;
    stage.finish();
}
