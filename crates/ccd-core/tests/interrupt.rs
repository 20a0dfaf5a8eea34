//! Interrupts: what is done, what counts as evidence, and what happens without any.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use ccd_model::{
    command::{Accepted, Refusal},
    event::{DomainEvent as E, InterruptEnd},
    ids::FileKey,
    intent::{Intent, IoOp, Key, KeyGuard, KeyHeld},
    observation::{Observation as O, OpEnd, RegistryStatus, Verdict},
    outcome::{NotSubmitted, Outcome},
    permission::{Decision, Policy},
    screen::{Composer, ScreenFacts, Surface},
    status::{AgentStatus, PermissionStatus, ToolStatus, TurnStatus},
};
use support::*;

fn ends(rig: &Rig) -> Vec<InterruptEnd> {
    rig.events
        .iter()
        .filter_map(|e| match e {
            E::InterruptEnded { end, .. } => Some(*end),
            _ => None,
        })
        .collect()
}

fn interrupted_line() -> ScreenFacts {
    let mut f = facts(Surface::Main, Composer::Empty);
    f.interrupted = true;
    f
}

/// A running turn that was asked to stop, Escape pressed.
fn pressed() -> (Rig, ccd_model::ids::TurnKey) {
    let mut rig = Rig::ready(Policy::Ask);
    let turn = rig.run("p1", "do something");
    rig.later(100).registry(RegistryStatus::Busy);
    rig.forget();
    assert_eq!(rig.later(100).interrupt(), Ok(Accepted::Turn { turn }));
    let escape = rig.last_key(Key::Escape);
    rig.later(5).op(escape, OpEnd::Done);
    rig.later(5);
    (rig, turn)
}

#[test]
fn nothing_runs_nothing_to_interrupt() {
    let mut rig = Rig::ready(Policy::Deny);
    assert_eq!(rig.interrupt(), Err(Refusal::NothingToInterrupt));
    rig.run("p1", "x");
    rig.stop("p1", "");
    assert_eq!(rig.interrupt(), Err(Refusal::NothingToInterrupt));
}

#[test]
fn one_escape_under_the_dialog_guard_and_never_a_second() {
    let (mut rig, turn) = pressed();
    assert_eq!(rig.interrupt(), Ok(Accepted::Turn { turn }));
    rig.wait(4_000);
    assert_eq!(rig.interrupt(), Ok(Accepted::Turn { turn }));
    assert_eq!(rig.keys(Key::Escape), 1);
    assert_eq!(
        rig.ops(|op| matches!(
            op,
            IoOp::Key {
                guard: KeyGuard::Composer,
                ..
            }
        )),
        0
    );
    assert_eq!(rig.view().status, AgentStatus::Interrupting);
    let fast = rig
        .intents_since()
        .iter()
        .any(|i| matches!(i, Intent::Cadence(c) if c.screen_ms == 15));
    assert!(fast);
}

#[test]
fn the_marker_confirms() {
    let (mut rig, turn) = pressed();
    rig.later(200).tx_interrupted("p1");
    assert_eq!(rig.outcomes(turn), vec![Outcome::Interrupted]);
    assert_eq!(ends(&rig), vec![InterruptEnd::Confirmed]);
    assert!(
        rig.turn(turn).settled,
        "the marker is the last line of the turn"
    );
}

#[test]
fn the_screen_line_confirms_only_with_the_registry_and_in_two_captures() {
    let (mut rig, turn) = pressed();
    rig.screen(interrupted_line());
    rig.same();
    assert_eq!(rig.outcomes(turn), vec![], "still busy");
    rig.later(50).registry(RegistryStatus::Idle);
    assert_eq!(rig.outcomes(turn), vec![Outcome::Interrupted]);

    let (mut rig, turn) = pressed();
    rig.registry(RegistryStatus::Idle);
    assert_eq!(
        rig.outcomes(turn),
        vec![],
        "the registry alone says only that nothing runs"
    );
    rig.screen(interrupted_line());
    assert_eq!(rig.outcomes(turn), vec![]);
    rig.same();
    assert_eq!(rig.outcomes(turn), vec![Outcome::Interrupted]);
}

#[test]
fn a_line_on_screen_before_the_key_is_no_evidence() {
    let mut rig = Rig::ready(Policy::Ask);
    let turn = rig.run("p1", "x");
    rig.registry(RegistryStatus::Idle);
    rig.screen(interrupted_line());
    rig.same();
    rig.same();
    rig.interrupt().unwrap();
    assert_eq!(rig.outcomes(turn), vec![]);
}

#[test]
fn a_prompt_back_in_the_composer_is_withdrawn_handed_back_and_cleared() {
    let (mut rig, turn) = pressed();
    rig.later(100).registry(RegistryStatus::Idle);
    rig.screen(facts(Surface::Main, text("do something")));
    assert_eq!(rig.outcomes(turn), vec![], "one capture is no proof");
    rig.same();
    assert_eq!(rig.outcomes(turn), vec![Outcome::Withdrawn]);
    assert_eq!(rig.turn(turn).returned, Some(arc("do something")));
    assert_eq!(ends(&rig), vec![InterruptEnd::Confirmed]);
    assert_eq!(rig.staged(""), 1);
    let next = rig.send("next");
    assert_eq!(
        rig.turn(next).status,
        TurnStatus::Queued,
        "not into a dirty composer"
    );
    rig.cleared();
    assert_eq!(rig.turn(next).status, TurnStatus::Submitting);
}

#[test]
fn text_in_the_composer_after_output_must_be_the_prompt() {
    let (mut rig, turn) = pressed();
    rig.delta("p1", "d1", 0, "some output\n", false);
    rig.registry(RegistryStatus::Idle);
    rig.screen(facts(Surface::Main, text("a draft of somebody")));
    rig.same();
    rig.same();
    assert_eq!(rig.outcomes(turn), vec![]);
}

#[test]
fn a_stop_that_was_first_wins() {
    let (mut rig, turn) = pressed();
    rig.stop("p1", "finished");
    assert_eq!(rig.outcomes(turn), vec![Outcome::Completed]);
    assert_eq!(ends(&rig), vec![InterruptEnd::TooLate]);
    rig.tx_interrupted("p1");
    assert_eq!(rig.outcomes(turn).len(), 1);
}

#[test]
fn d_interrupt_without_evidence_the_turn_stays_as_it_is() {
    let (mut rig, turn) = pressed();
    rig.wait(5_000);
    assert_eq!(ends(&rig), vec![InterruptEnd::Unconfirmed]);
    assert_eq!(rig.turn(turn).status, TurnStatus::Running);
    // Afterwards a new request is possible.
    rig.interrupt().unwrap();
    assert_eq!(rig.keys(Key::Escape), 2);
}

#[test]
fn open_tools_of_the_main_thread_are_interrupted() {
    let mut rig = Rig::ready(Policy::Ask);
    rig.run("p1", "x");
    rig.pre("p1", "t", "Bash", "{}");
    rig.wait(500);
    rig.interrupt().unwrap();
    let escape = rig.last_key(Key::Escape);
    rig.op(escape, OpEnd::Done);
    rig.later(200).tx_result("t", true, Some("user-rejected"));
    assert_eq!(rig.view().tools[0].status, ToolStatus::Interrupted);
    rig.tx_interrupted("p1");

    let mut rig = Rig::ready(Policy::Ask);
    rig.run("p1", "x");
    rig.pre("p1", "t", "Bash", "{}");
    rig.tx_interrupted("p1");
    assert_eq!(rig.view().tools[0].status, ToolStatus::Interrupted);
}

#[test]
fn a_held_request_is_denied_with_the_turn_instead_of_a_key() {
    let mut rig = Rig::ready(Policy::Ask);
    let turn = rig.run("p1", "x");
    rig.registry(RegistryStatus::Busy);
    rig.pre("p1", "t", "Bash", "{}");
    rig.asked(1, "p1", "Bash", "{}");
    rig.registry(RegistryStatus::Waiting {
        waiting_for: arc("permission prompt"),
    });
    rig.forget();
    rig.interrupt().unwrap();
    assert_eq!(rig.keys(Key::Escape), 0);
    assert!(matches!(
        rig.answers().as_slice(),
        [(
            _,
            Decision::Deny {
                interrupt: true,
                ..
            }
        )]
    ));
    assert_eq!(rig.count(|e| matches!(e, E::InterruptEnded { .. })), 0);
    rig.later(80).registry(RegistryStatus::Idle);
    assert_eq!(rig.outcomes(turn), vec![Outcome::Interrupted]);
    assert_eq!(rig.view().permissions[0].status, PermissionStatus::Resolved);
    assert_eq!(rig.view().tools[0].status, ToolStatus::Interrupted);
}

#[test]
fn a_request_that_arrives_while_an_interrupt_is_open_is_denied_with_the_turn() {
    let (mut rig, turn) = pressed();
    rig.pre("p1", "t", "Bash", "{}");
    rig.asked(1, "p1", "Bash", "{}");
    assert!(matches!(
        rig.answers().as_slice(),
        [(
            _,
            Decision::Deny {
                interrupt: true,
                ..
            }
        )]
    ));
    rig.tx_interrupted("p1");
    assert_eq!(rig.outcomes(turn), vec![Outcome::Interrupted]);
}

#[test]
fn an_escape_held_back_by_a_dialog_waits_for_its_request() {
    let mut rig = Rig::ready(Policy::Ask);
    rig.run("p1", "x");
    rig.pre("p1", "t", "Bash", "{}");
    rig.forget();
    rig.interrupt().unwrap();
    rig.held(Key::Escape, KeyHeld::Dialog);
    assert_eq!(rig.keys(Key::Escape), 1);
    rig.asked(1, "p1", "Bash", "{}");
    assert!(matches!(
        rig.answers().as_slice(),
        [(
            _,
            Decision::Deny {
                interrupt: true,
                ..
            }
        )]
    ));
}

#[test]
fn an_escape_that_was_never_pressed_is_tried_once_more() {
    let mut rig = Rig::ready(Policy::Ask);
    rig.run("p1", "x");
    rig.forget();
    rig.interrupt().unwrap();
    rig.held(Key::Escape, KeyHeld::NotPainted);
    assert_eq!(rig.keys(Key::Escape), 2);
    rig.held(Key::Escape, KeyHeld::NotPainted);
    assert_eq!(rig.keys(Key::Escape), 2);
}

#[test]
fn an_escape_whose_end_was_lost_is_never_pressed_again() {
    let mut rig = Rig::ready(Policy::Ask);
    let turn = rig.run("p1", "x");
    rig.forget();
    rig.interrupt().unwrap();
    let escape = rig.last_key(Key::Escape);
    rig.op(escape, OpEnd::Unknown);
    assert_eq!(rig.ops(|op| matches!(op, IoOp::Capture)), 1);
    rig.wait(4_000);
    assert_eq!(rig.keys(Key::Escape), 1);
    rig.tx_interrupted("p1");
    assert_eq!(rig.outcomes(turn), vec![Outcome::Interrupted]);
}

#[test]
fn a_prompt_interrupted_before_enter_is_taken_back() {
    let mut rig = Rig::ready(Policy::Ask);
    let turn = rig.send("hello");
    rig.interrupt().unwrap();
    let stage = rig.last_stage();
    rig.op(
        stage,
        OpEnd::Refused {
            reason: arc("unstaged"),
        },
    );
    assert_eq!(
        rig.outcomes(turn),
        vec![Outcome::NotSubmitted(NotSubmitted::Cancelled)]
    );
    assert_eq!(ends(&rig), vec![InterruptEnd::Confirmed]);
    assert_eq!(rig.keys(Key::Enter) + rig.keys(Key::Escape), 0);

    // The editor was faster: the composer is cleared first.
    let turn = rig.send("hello");
    rig.interrupt().unwrap();
    let stage = rig.last_stage();
    rig.op(stage, OpEnd::Taken { had: arc("") });
    assert_eq!(rig.staged(""), 1);
    rig.cleared();
    assert_eq!(
        rig.outcomes(turn),
        vec![Outcome::NotSubmitted(NotSubmitted::Cancelled)]
    );
    assert_eq!(rig.keys(Key::Enter), 0);
}

#[test]
fn a_prompt_interrupted_between_enter_and_receipt_is_interrupted_after_the_receipt() {
    let mut rig = Rig::ready(Policy::Ask);
    let turn = rig.send("hello");
    rig.take();
    rig.interrupt().unwrap();
    assert_eq!(rig.keys(Key::Escape), 0);
    rig.enter();
    rig.prompt("p1", "hello", Verdict::Exact);
    assert_eq!(rig.keys(Key::Escape), 1);
    let escape = rig.last_key(Key::Escape);
    rig.op(escape, OpEnd::Done);
    rig.later(300).tx_interrupted("p1");
    assert_eq!(rig.outcomes(turn), vec![Outcome::Interrupted]);
    assert_eq!(ends(&rig), vec![InterruptEnd::Confirmed]);
}

#[test]
fn a_marker_without_a_request_of_ours_is_a_persons_escape() {
    let mut rig = Rig::ready(Policy::Ask);
    let turn = rig.run("p1", "x");
    rig.tx_interrupted("p1");
    assert_eq!(rig.outcomes(turn), vec![Outcome::Interrupted]);
    assert!(ends(&rig).is_empty());
}

#[test]
fn a_subagents_marker_does_not_concern_the_turn() {
    let mut rig = Rig::ready(Policy::Ask);
    let turn = rig.run("p1", "x");
    rig.tx(O::TxInterrupted {
        file: FileKey(2),
        agent: Some(arc("a1")),
        prompt_id: Some(arc("p1")),
        for_tool: true,
        message_id: None,
    });
    assert_eq!(rig.turn(turn).status, TurnStatus::Running);
}

#[test]
fn d_escape_after_one_that_came_too_late_the_next_escape_keeps_its_distance() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.run("p1", "one");
    rig.interrupt().unwrap();
    let escape = rig.last_key(Key::Escape);
    rig.op(escape, OpEnd::Done);
    rig.stop("p1", "done");
    assert_eq!(ends(&rig), vec![InterruptEnd::TooLate]);
    rig.empty();
    rig.run("p2", "two");
    rig.interrupt().unwrap();
    assert_eq!(rig.keys(Key::Escape), 1);
    rig.wait(1_200);
    assert_eq!(rig.keys(Key::Escape), 2);
    // One that waits and is not needed any more is never pressed.
    rig.stop("p2", "done");
    rig.empty();
    rig.run("p3", "three");
    rig.interrupt().unwrap();
    rig.stop("p3", "done");
    rig.wait(2_000);
    assert_eq!(rig.keys(Key::Escape), 2);
}

#[test]
fn text_that_comes_after_an_interrupt_still_belongs_to_the_turn() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.run("p1", "talk");
    rig.delta("p1", "m", 0, "line one\n", false);
    rig.interrupt().unwrap();
    let escape = rig.last_key(Key::Escape);
    rig.op(escape, OpEnd::Done);
    rig.tx_interrupted("p1");
    assert_eq!(rig.turn(turn).status, TurnStatus::Interrupted);
    rig.delta("p1", "m", 1, "line two\n", false);
    assert_eq!(&*rig.turn(turn).text, "line one\nline two\n");
}
