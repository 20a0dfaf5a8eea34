//! How a prompt is delivered: the happy path, every repair, every way to fail without a doubled prompt.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use ccd_model::{
    command::{Accepted, Command, Refusal},
    event::{Alert, DomainEvent as E},
    ids::FileKey,
    intent::{Intent, IoOp, Key, KeyGuard, KeyHeld},
    observation::{Observation as O, OpEnd, PromptOrigin, RegistryStatus, Verdict},
    outcome::{NotSubmitted, Origin, Outcome},
    permission::Policy,
    screen::{Composer, Surface},
    status::TurnStatus,
};
use support::*;

fn not_submitted(why: NotSubmitted) -> Vec<Outcome> {
    vec![Outcome::NotSubmitted(why)]
}

/// The deciding capture shows `composer`.
fn judged(rig: &mut Rig, composer: Composer) {
    let capture = rig.last_op(|op| matches!(op, IoOp::Capture));
    rig.screen(facts(Surface::Main, composer));
    rig.op(capture, OpEnd::Done);
}

#[test]
fn t1_t2_an_exact_receipt_submits_and_starts_the_turn() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.send("hello");
    assert_eq!(rig.turn(turn).status, TurnStatus::Submitting);
    assert_eq!(rig.count(|e| matches!(e, E::TurnQueued { .. })), 0);
    let first: Vec<&Intent> = rig.intents_since().iter().take(3).collect();
    assert!(matches!(
        first.as_slice(),
        [
            Intent::Arm(_),
            Intent::Io {
                what: IoOp::Stage { .. },
                ..
            },
            Intent::Io {
                what: IoOp::Key {
                    key: Key::CtrlG,
                    ..
                },
                ..
            }
        ]
    ));
    rig.deliver("p1", "hello");
    let events: Vec<&E> = rig
        .since()
        .iter()
        .filter(|e| !matches!(e, E::StatusChanged { .. } | E::QuiescentChanged { .. }))
        .collect();
    assert_eq!(
        events,
        vec![
            &E::TurnSubmitted {
                turn,
                prompt_id: arc("p1")
            },
            &E::TurnStarted {
                turn,
                origin: Origin::Api,
                prompt: arc("hello")
            },
        ]
    );
    assert!(rig.intents_since().contains(&Intent::Disarm));
    assert_eq!(rig.keys(Key::Enter), 1);
}

#[test]
fn a_receipt_may_come_before_the_end_of_the_key() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.send("hello");
    rig.take();
    rig.prompt("p1", "hello", Verdict::Exact);
    rig.enter();
    assert_eq!(rig.turn(turn).status, TurnStatus::Running);
    rig.wait(10_000);
    assert_eq!(rig.keys(Key::Enter), 1);
    assert_eq!(rig.outcomes(turn), vec![]);
}

#[test]
fn t3_prompts_are_held_and_delivered_one_by_one_in_order() {
    let mut rig = Rig::ready(Policy::Deny);
    let a = rig.run("p1", "one");
    let b = rig.send("two");
    let c = rig.send("three");
    assert_eq!(rig.count(|e| matches!(e, E::TurnQueued { .. })), 2);
    assert_eq!(rig.staged("two"), 0);
    rig.stop("p1", "done");
    assert_eq!(rig.outcomes(a), vec![Outcome::Completed]);
    assert_eq!(rig.staged("two"), 1);
    assert_eq!(rig.staged("three"), 0);
    rig.deliver("p2", "two");
    rig.stop("p2", "done");
    rig.deliver("p3", "three");
    assert_eq!(rig.turn(b).status, TurnStatus::Completed);
    assert_eq!(rig.turn(c).status, TurnStatus::Running);
}

#[test]
fn a_held_prompt_can_be_cancelled_and_a_delivered_one_cannot() {
    let mut rig = Rig::ready(Policy::Deny);
    let a = rig.run("p1", "one");
    let b = rig.send("two");
    assert_eq!(
        rig.ask(Command::Cancel { turn: b }),
        Ok(Accepted::Turn { turn: b })
    );
    assert_eq!(rig.outcomes(b), not_submitted(NotSubmitted::Cancelled));
    assert_eq!(
        rig.ask(Command::Cancel { turn: b }),
        Err(Refusal::NoSuchEntity)
    );
    assert_eq!(rig.ask(Command::Cancel { turn: a }), Err(Refusal::NotHeld));
    rig.stop("p1", "");
    assert_eq!(rig.staged("two"), 0);
}

#[test]
fn d_editor_a_silent_editor_is_tried_twice_and_nothing_is_submitted() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.send("hello");
    let key = rig.last_key(Key::CtrlG);
    rig.op(key, OpEnd::Done);
    rig.wait(1_300);
    let stage = rig.last_stage();
    assert_eq!(
        rig.ops(|op| matches!(op, IoOp::Unstage { op } if *op == stage)),
        1
    );
    rig.op(
        stage,
        OpEnd::Refused {
            reason: arc("unstaged"),
        },
    );
    assert_eq!(rig.staged("hello"), 2);
    rig.wait(1_300);
    let stage = rig.last_stage();
    rig.op(
        stage,
        OpEnd::Refused {
            reason: arc("unstaged"),
        },
    );
    assert_eq!(
        rig.outcomes(turn),
        not_submitted(NotSubmitted::EditorSilent)
    );
    assert_eq!(rig.keys(Key::Enter), 0);
}

#[test]
fn a_text_taken_while_it_is_being_withdrawn_is_submitted() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.send("hello");
    rig.wait(1_300);
    let stage = rig.last_stage();
    rig.op(stage, OpEnd::Taken { had: arc("") });
    rig.enter();
    rig.prompt("p1", "hello", Verdict::Exact);
    assert_eq!(rig.turn(turn).status, TurnStatus::Running);
    assert_eq!(rig.staged("hello"), 1);
}

#[test]
fn a_dialog_in_front_of_the_editor_ends_as_composer_busy() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.send("hello");
    for _ in 0..2 {
        rig.held(Key::CtrlG, KeyHeld::Dialog);
        let stage = rig.last_stage();
        rig.op(
            stage,
            OpEnd::Refused {
                reason: arc("unstaged"),
            },
        );
    }
    assert_eq!(
        rig.outcomes(turn),
        not_submitted(NotSubmitted::ComposerBusy {
            what: arc("a dialog")
        })
    );
}

#[test]
fn d_receipt_a_lost_enter_is_repaired_by_one_fresh_injection() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.send("hello");
    rig.take();
    rig.enter();
    rig.wait(1_499);
    assert_eq!(rig.ops(|op| matches!(op, IoOp::Capture)), 0);
    rig.wait(1);
    judged(&mut rig, text("hello"));
    assert_eq!(rig.staged("hello"), 2);
    assert_eq!(rig.keys(Key::Enter), 1, "never on the old draft");
    rig.take();
    rig.enter();
    rig.prompt("p1", "hello", Verdict::Exact);
    assert_eq!(rig.turn(turn).status, TurnStatus::Running);
    assert_eq!(rig.keys(Key::Enter), 2);
}

#[test]
fn two_lost_enters_end_with_a_clean_composer_and_no_receipt() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.send("hello");
    for _ in 0..2 {
        rig.take();
        rig.enter();
        rig.wait(1_500);
        judged(&mut rig, text("hello"));
    }
    assert_eq!(
        rig.outcomes(turn),
        vec![],
        "not before the composer is clean"
    );
    assert_eq!(rig.staged(""), 1);
    rig.cleared();
    assert_eq!(rig.outcomes(turn), not_submitted(NotSubmitted::NoReceipt));
    assert_eq!(rig.keys(Key::Enter), 2);
}

#[test]
fn d_late_a_text_that_left_without_a_receipt_is_unknown_and_never_sent_again() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.send("hello");
    rig.take();
    rig.enter();
    rig.wait(1_500);
    judged(&mut rig, Composer::Empty);
    rig.wait(5_000);
    assert!(matches!(
        rig.outcomes(turn).as_slice(),
        [Outcome::Unknown { .. }]
    ));
    assert_eq!((rig.staged("hello"), rig.keys(Key::Enter)), (1, 1));
    assert!(
        !rig.intents_since().contains(&Intent::Disarm),
        "the guard stays armed"
    );
    // The receipt comes after all: told of, and the session is not free meanwhile.
    rig.prompt("p1", "hello", Verdict::Exact);
    assert!(matches!(rig.alerts().as_slice(), [Alert::Conflict { .. }]));
    let other = rig.send("next");
    assert_eq!(rig.turn(other).status, TurnStatus::Queued);
    assert_eq!(rig.outcomes(turn).len(), 1);
}

#[test]
fn a_late_receipt_within_the_wait_still_binds() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.send("hello");
    rig.take();
    rig.enter();
    rig.wait(1_500);
    judged(&mut rig, Composer::Empty);
    rig.wait(3_000);
    rig.prompt("p1", "hello", Verdict::Exact);
    assert_eq!(rig.turn(turn).status, TurnStatus::Running);
    assert!(rig.alerts().is_empty());
}

#[test]
fn the_transcript_can_be_the_receipt() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.send("hello");
    rig.take();
    rig.enter();
    rig.later(400).tx_prompt("p1", "hello", PromptOrigin::Human);
    assert_eq!(rig.turn(turn).prompt_id, Some(arc("p1")));
    assert_eq!(rig.turn(turn).status, TurnStatus::Running);
}

#[test]
fn d_enter_a_key_whose_end_was_lost_is_never_pressed_again_before_a_capture() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.send("hello");
    rig.take();
    let enter = rig.last_key(Key::Enter);
    rig.op(enter, OpEnd::Unknown);
    assert_eq!(rig.keys(Key::Enter), 1);
    assert_eq!(rig.ops(|op| matches!(op, IoOp::Capture)), 1);
}

#[test]
fn d_judge_without_an_answer_to_the_capture_nothing_is_sent_again() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.send("hello");
    rig.take();
    rig.enter();
    rig.wait(1_500 + 1_000 + 5_000);
    assert!(matches!(
        rig.outcomes(turn).as_slice(),
        [Outcome::Unknown { .. }]
    ));
    assert_eq!(rig.keys(Key::Enter), 1);
}

#[test]
fn a_mismatch_is_cleared_and_retried_once() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.send("hello");
    rig.take();
    rig.enter();
    rig.prompt("x1", "hellooo", Verdict::MismatchBlocked);
    assert!(rig.alerts().is_empty());
    rig.screen(facts(Surface::Main, text("hellooo")));
    rig.cleared();
    assert_eq!(rig.staged("hello"), 2);
    rig.deliver("p1", "hello");
    assert_eq!(rig.turn(turn).status, TurnStatus::Running);
}

#[test]
fn a_second_mismatch_alerts_and_is_not_submitted() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.send("hello");
    for n in 0..2 {
        rig.take();
        rig.enter();
        rig.prompt(&format!("x{n}"), "hellooo", Verdict::MismatchBlocked);
        rig.screen(facts(Surface::Main, text("hellooo")));
        rig.cleared();
    }
    assert_eq!(rig.alerts(), vec![Alert::Mismatch { turn }]);
    assert_eq!(rig.outcomes(turn), not_submitted(NotSubmitted::Mismatch));
    assert_eq!(rig.staged("hello"), 2);
}

#[test]
fn d_return_and_d_clear_bound_the_clearing() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.send("hello");
    rig.take();
    rig.enter();
    rig.prompt("x1", "hellooo", Verdict::MismatchBlocked);
    assert_eq!(rig.staged(""), 0);
    rig.wait(1_000);
    assert_eq!(
        rig.staged(""),
        1,
        "the text was never seen coming back: cleared anyway"
    );
    rig.take();
    rig.wait(3_000);
    assert!(matches!(
        rig.outcomes(turn).as_slice(),
        [Outcome::NotSubmitted(NotSubmitted::ComposerBusy { .. })]
    ));
}

#[test]
fn a_hook_of_the_user_that_blocks_ends_as_blocked_and_the_composer_is_cleared() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.run("p1", "hello");
    rig.tx(O::TxPromptBlocked {
        file: FileKey(1),
        reason: arc("no secrets"),
    });
    assert_eq!(
        rig.outcomes(turn),
        not_submitted(NotSubmitted::BlockedByHook {
            message: arc("no secrets")
        })
    );
    assert_eq!(rig.staged(""), 1);
    let next = rig.send("next");
    assert_eq!(rig.turn(next).status, TurnStatus::Queued);
    rig.cleared();
    assert_eq!(rig.turn(next).status, TurnStatus::Submitting);
}

#[test]
fn d_free_foreign_text_is_never_touched_and_ends_the_wait() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.screen(facts(Surface::Main, text("somebody types")));
    let turn = rig.send("hello");
    assert_eq!(rig.turn(turn).status, TurnStatus::Queued);
    rig.wait(10_000);
    assert_eq!(
        rig.outcomes(turn),
        not_submitted(NotSubmitted::ComposerBusy {
            what: arc("text that is not ours")
        })
    );
    assert_eq!(
        rig.ops(|op| matches!(op, IoOp::Stage { .. } | IoOp::Key { .. })),
        0
    );

    let waits = rig.send("again");
    rig.wait(5_000);
    rig.empty();
    assert_eq!(rig.turn(waits).status, TurnStatus::Submitting);
}

#[test]
fn shell_mode_and_dialogs_hold_a_prompt() {
    for (surface, composer) in [
        (Surface::Main, Composer::Shell),
        (dialog(), Composer::Unknown),
        (Surface::UsageLimitMenu, Composer::Unknown),
        (Surface::Modal { title: arc("Help") }, Composer::Unknown),
    ] {
        let mut rig = Rig::ready(Policy::Deny);
        rig.screen(facts(surface, composer));
        let turn = rig.send("hello");
        assert_eq!(rig.turn(turn).status, TurnStatus::Queued);
        assert_eq!(rig.ops(|op| matches!(op, IoOp::Stage { .. })), 0);
    }
}

#[test]
fn a_large_prompt_has_more_time_for_enter_and_receipt() {
    let mut rig = Rig::ready(Policy::Deny);
    let long = "x".repeat(1_048_576);
    let turn = rig.send(&long);
    rig.take();
    let within = rig.intents_since().iter().rev().find_map(|i| match i {
        Intent::Io {
            what:
                IoOp::Key {
                    key: Key::Enter,
                    within_ms,
                    ..
                },
            ..
        } => Some(*within_ms),
        _ => None,
    });
    assert_eq!(within, Some(3_000));
    rig.enter();
    rig.wait(3_999);
    assert_eq!(rig.ops(|op| matches!(op, IoOp::Capture)), 0);
    rig.prompt("p1", &long, Verdict::Exact);
    assert_eq!(rig.turn(turn).status, TurnStatus::Running);
}

#[test]
fn a_prompt_that_claude_queued_behind_another_runs_under_its_own_id() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.send("hello");
    rig.take();
    rig.hook(O::PromptSeen {
        prompt_id: arc("n1"),
        text: arc("<task-notification>"),
        verdict: Verdict::Foreign,
        mode: None,
        task_notification: true,
    });
    rig.enter();
    rig.prompt("n1", "hello", Verdict::Exact);
    assert!(rig.turn(turn).submitted);
    assert_eq!(rig.turn(turn).status, TurnStatus::Submitting);
    rig.stop("n1", "noted");
    rig.later(200).tx_prompt("p9", "hello", PromptOrigin::Human);
    assert_eq!(rig.turn(turn).status, TurnStatus::Running);
    assert_eq!(rig.turn(turn).prompt_id, Some(arc("p9")));
    rig.stop("p9", "hi");
    assert_eq!(rig.outcomes(turn), vec![Outcome::Completed]);
}

#[test]
fn d_hosted_an_absorbed_prompt_ends_like_its_host_and_a_lost_one_is_unknown() {
    for absorbed in [true, false] {
        let mut rig = Rig::ready(Policy::Deny);
        let turn = rig.send("hello");
        rig.take();
        rig.hook(O::PromptSeen {
            prompt_id: arc("n1"),
            text: arc("<task-notification>"),
            verdict: Verdict::Foreign,
            mode: None,
            task_notification: true,
        });
        rig.enter();
        rig.prompt("n1", "hello", Verdict::Exact);
        rig.tx(O::TxQueue {
            file: FileKey(1),
            operation: arc("remove"),
            content: Some(arc("hello")),
            absorbed,
        });
        rig.stop("n1", "both answered");
        rig.wait(3_000);
        if absorbed {
            assert_eq!(rig.outcomes(turn), vec![Outcome::Completed]);
            assert_eq!(&*rig.turn(turn).text, "both answered");
        } else {
            assert!(matches!(
                rig.outcomes(turn).as_slice(),
                [Outcome::Unknown { .. }]
            ));
        }
    }
}

#[test]
fn a_receipt_that_names_the_turn_before_is_bound_by_the_next_hook() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.run("p1", "one");
    rig.stop("p1", "");
    let turn = rig.send("two");
    rig.take();
    rig.enter();
    rig.prompt("p1", "two", Verdict::Exact);
    assert_eq!(rig.turn(turn).status, TurnStatus::Running);
    assert_eq!(rig.turn(turn).prompt_id, None);
    rig.pre("p2", "tool1", "Bash", "{}");
    assert_eq!(rig.turn(turn).prompt_id, Some(arc("p2")));
    rig.stop("p2", "ok");
    assert_eq!(rig.outcomes(turn), vec![Outcome::Completed]);
}

#[test]
fn nothing_is_delivered_while_claude_still_works_on_a_turn_that_ended_unknown() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.send("hello");
    rig.take();
    rig.enter();
    rig.wait(1_500);
    judged(&mut rig, Composer::Empty);
    rig.registry(RegistryStatus::Busy);
    rig.wait(5_000);
    let next = rig.send("next");
    assert_eq!(rig.turn(next).status, TurnStatus::Queued);
    rig.registry(RegistryStatus::Idle);
    assert_eq!(rig.turn(next).status, TurnStatus::Submitting);
}

#[test]
fn a_prompt_during_start_is_held_until_ready() {
    let mut rig = Rig::launched(config(Policy::Deny), false, false);
    let turn = rig.send("early");
    assert_eq!(rig.turn(turn).status, TurnStatus::Queued);
    rig.start_hook();
    rig.empty();
    rig.same();
    assert_eq!(rig.turn(turn).status, TurnStatus::Submitting);
}

#[test]
fn without_a_login_a_prompt_is_refused() {
    let mut rig = Rig::ready(Policy::Deny);
    let mut out = facts(Surface::Main, Composer::Empty);
    out.logged_out = true;
    rig.screen(out);
    assert_eq!(
        rig.ask(Command::Send {
            text: arc("x"),
            as_text: false
        }),
        Err(Refusal::AuthRequired)
    );
}

#[test]
fn d_unstage_a_withdrawal_without_an_end_counts_as_refused_and_leaves_a_dirty_composer() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.send("hello");
    rig.wait(1_300 + 1_000 + 1_300 + 1_000);
    assert_eq!(
        rig.outcomes(turn),
        not_submitted(NotSubmitted::EditorSilent)
    );
    rig.screen(facts(Surface::Main, text("hello")));
    let next = rig.send("next");
    assert_eq!(rig.staged(""), 1, "what is ours is cleared first");
    rig.cleared();
    assert_eq!(rig.turn(next).status, TurnStatus::Submitting);
}

#[test]
fn a_capture_from_before_the_clearing_is_no_failure_of_it() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.send("hello");
    rig.take();
    rig.enter();
    rig.prompt("x1", "hellooo", Verdict::MismatchBlocked);
    rig.screen(facts(Surface::Main, text("hellooo")));
    rig.same();
    rig.take();
    rig.later(15).same();
    rig.later(15).same();
    assert_eq!(rig.staged(""), 1);
    rig.later(300).same();
    assert_eq!(rig.staged(""), 2, "it still stands: cleared again");
}

/// The guard of the last press of `wanted`.
fn guard_of(rig: &Rig, wanted: Key) -> Option<KeyGuard> {
    rig.intents.iter().rev().find_map(|intent| match intent {
        Intent::Io {
            what: IoOp::Key { key, guard, .. },
            ..
        } if *key == wanted => Some(*guard),
        _ => None,
    })
}

#[test]
fn only_a_tall_text_is_submitted_where_the_composer_does_not_fit_the_pane() {
    for (lines, guard) in [(10, KeyGuard::Composer), (100, KeyGuard::TallComposer)] {
        let mut rig = Rig::ready(Policy::Deny);
        rig.send(&vec!["line"; lines].join("\n"));
        // The first editor key meets a composer that was seen empty.
        assert_eq!(guard_of(&rig, Key::CtrlG), Some(KeyGuard::EmptyComposer));
        rig.take();
        assert_eq!(guard_of(&rig, Key::Enter), Some(guard), "{lines} lines");
    }
}

#[test]
fn a_tall_text_whose_enter_was_lost_is_still_there_though_it_cannot_be_read() {
    let mut rig = Rig::ready(Policy::Deny);
    let tall = vec!["line"; 100].join("\n");
    let turn = rig.send(&tall);
    rig.take();
    rig.enter();
    rig.screen(facts(Surface::Main, Composer::Unknown));
    rig.wait(1_500);
    rig.screen(facts(Surface::Main, Composer::Empty));
    rig.screen(facts(Surface::Main, Composer::Unknown));
    let capture = rig.last_op(|op| matches!(op, IoOp::Capture));
    rig.op(capture, OpEnd::Done);
    assert_eq!(rig.staged(&tall), 2);
    assert_eq!(guard_of(&rig, Key::CtrlG), Some(KeyGuard::TallComposer));
    rig.take();
    rig.enter();
    rig.prompt("p1", &tall, Verdict::Exact);
    assert_eq!(rig.turn(turn).status, TurnStatus::Running);
}
