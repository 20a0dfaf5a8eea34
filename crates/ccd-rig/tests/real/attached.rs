//! A person at the same terminal, and keys that come at a bad moment: nothing of theirs is lost, nothing is claimed that was not seen.

use std::process::Command;

use ccd_api::{EventKind, Permissions, TurnStatus};
use ccd_rig::service::{Reply, Scenario};

use crate::{
    live::{Live, reason},
    stage::Stage,
};

/// Runs tmux on the session's server.
fn tmux(live: &Live, args: &[&str]) -> String {
    let attach = live.debug().attach;
    let words: Vec<&str> = attach.split_whitespace().collect();
    let server = words
        .iter()
        .position(|word| word.starts_with("attach"))
        .unwrap();
    let output = Command::new(words[0])
        .args(&words[1..server])
        .args(args)
        .env_remove("TMUX")
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Types into the pane as a person would, and waits until it is painted.
async fn types(live: &Live, text: &str) {
    tmux(live, &["send-keys", "-t", "%0", "-l", text]);
    let painted = async {
        while !tmux(live, &["capture-pane", "-p", "-t", "%0"]).contains(text) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::stage::PATIENCE, painted)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_draft_left_by_hand_is_never_overwritten() {
    let stage = Stage::plain();
    let live = stage.start(Permissions::Deny).await;
    types(&live, "my precious draft").await;
    // At once: the driver's last look at the screen is older than the draft.
    let outcome = live.prompt("ours").await;
    live.is(&outcome, TurnStatus::NotSubmitted).await;
    assert_eq!(reason(&outcome), "composer_busy");
    assert!(tmux(&live, &["capture-pane", "-p", "-t", "%0"]).contains("my precious draft"));
    assert_eq!(stage.received(), [""; 0]);
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_draft_is_not_taken_for_a_withdrawn_prompt() {
    let stage = Stage::new(Scenario::of([
        Reply::text("never").gate("never"),
        Reply::text("went on"),
    ]));
    let live = stage.start(Permissions::Deny).await;
    let turn = live.send_now("first").await;
    stage.main_requests(1).await;
    types(&live, "a person's draft").await;
    live.interrupt().await.unwrap();
    let outcome = live.done(&turn).await;
    live.check(
        outcome.status != TurnStatus::Withdrawn && outcome.returned.is_none(),
        &format!("{outcome:?}"),
    )
    .await;
    assert!(tmux(&live, &["capture-pane", "-p", "-t", "%0"]).contains("a person's draft"));
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn interrupts_that_come_too_late_open_no_menu() {
    let stage = Stage::new(Scenario::new().forever(Reply::text("quick answer")));
    let live = stage.start(Permissions::Deny).await;
    for n in 0..8 {
        let mut turn = live.send(format!("turn {n}")).await.unwrap();
        while let Some(event) = turn.next().await {
            if matches!(event.kind, EventKind::MessageDelta { .. }) {
                break;
            }
        }
        // The answer is all but over; by now there may be nothing left to interrupt.
        let _late = live.interrupt().await;
        let outcome = live.done(&turn).await;
        live.check(
            matches!(
                outcome.status,
                TurnStatus::Completed | TurnStatus::Interrupted
            ),
            &format!("turn {n}: {outcome:?}"),
        )
        .await;
    }
    live.completes("still there?", "quick answer").await;
    live.closes().await;
    stage.finish();
}
