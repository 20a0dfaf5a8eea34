//! From launch to ready: evidence, gates, the self-test, the start deadline.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use ccd_model::{
    event::{DomainEvent as E, StartFailure},
    fact::Source,
    intent::{Intent, IoOp, Key, KeyGuard, Signal},
    observation::{Launched, LostPart, Observation as O, RegistryStatus, Verdict},
    permission::Policy,
    screen::{Composer, Gate, Surface},
    status::{AgentStatus, Lifecycle},
};
use support::*;

fn failure(rig: &Rig) -> Option<StartFailure> {
    let mut failures = rig.events.iter().filter_map(|e| match e {
        E::SessionStartFailed { failure } => Some(failure.clone()),
        _ => None,
    });
    let first = failures.next();
    assert!(failures.next().is_none(), "a start fails once");
    first
}

fn is_ready(rig: &Rig) -> bool {
    rig.events
        .iter()
        .any(|e| matches!(e, E::SessionReady { .. }))
}

#[test]
fn l1_ready_needs_hook_pid_and_an_empty_composer_seen_twice_in_any_order() {
    let mut rig = Rig::launched(config(Policy::Deny), false, false);
    rig.empty();
    rig.same();
    rig.same();
    assert!(!is_ready(&rig), "no hook yet");
    rig.start_hook();
    assert!(is_ready(&rig));
    assert_eq!(rig.view().lifecycle, Lifecycle::Ready);
    assert_eq!(rig.view().status, AgentStatus::Idle);
    assert!(rig.view().quiescent);
    assert!(rig.intents.contains(&Intent::WatchProcess { pid: CLAUDE }));
    assert!(rig.intents.contains(&Intent::Follow {
        path: arc("/t/s-1.jsonl"),
        session_id: arc(SESSION)
    }));

    let mut rig = Rig::launched(config(Policy::Deny), false, false);
    rig.start_hook();
    rig.empty();
    assert!(!is_ready(&rig), "one capture is no proof");
    rig.same();
    assert!(is_ready(&rig));
}

#[test]
fn what_claude_reports_before_the_launcher_does_still_counts() {
    let mut rig = Rig::bare(config(Policy::Deny));
    rig.start_hook();
    rig.empty();
    rig.same();
    assert!(!is_ready(&rig));
    rig.own(O::Launched(Launched {
        session_id: arc(SESSION),
        resume: false,
        self_test: false,
        other_stop_hooks: false,
        pane_pid: 1_000,
    }));
    assert!(is_ready(&rig));
}

#[test]
fn the_registry_can_give_the_pid_that_the_hook_lacks() {
    let mut rig = Rig::launched(config(Policy::Deny), false, false);
    rig.hook(O::SessionStarted {
        start: ccd_model::observation::StartSource::Startup,
        transcript_path: arc("/t"),
        model: None,
        claude_pid: None,
    });
    rig.empty();
    rig.same();
    assert!(!is_ready(&rig));
    rig.registry(RegistryStatus::Idle);
    assert!(is_ready(&rig));
}

#[test]
fn a_composer_with_text_is_not_ready() {
    let mut rig = Rig::launched(config(Policy::Deny), false, false);
    rig.start_hook();
    rig.screen(facts(Surface::Main, text("left over")));
    rig.same();
    assert!(!is_ready(&rig));
}

#[test]
fn a_start_gate_seen_twice_fails_the_start_without_a_key() {
    let mut rig = Rig::launched(config(Policy::Deny), false, false);
    let gate = Surface::StartupGate {
        gate: Gate::Trust,
        text: arc("Accessing workspace"),
    };
    rig.screen(facts(gate, Composer::Unknown));
    assert_eq!(failure(&rig), None, "one capture decides nothing");
    rig.same();
    assert_eq!(
        failure(&rig),
        Some(StartFailure::Gate {
            gate: arc("trust"),
            text: arc("Accessing workspace")
        })
    );
    assert_eq!(rig.ops(|op| matches!(op, IoOp::Key { .. })), 0);
    assert_eq!(rig.signals(Signal::Term), 1);
    assert_eq!(rig.view().lifecycle, Lifecycle::Closing);
}

#[test]
fn the_wrong_renderer_and_a_missing_login_fail_the_start() {
    let mut rig = Rig::launched(config(Policy::Deny), false, false);
    rig.screen(facts(Surface::WrongRenderer, Composer::Unknown));
    rig.same();
    assert_eq!(failure(&rig), Some(StartFailure::WrongRenderer));

    let mut rig = Rig::launched(config(Policy::Deny), false, false);
    rig.start_hook();
    let mut logged_out = facts(Surface::Main, Composer::Empty);
    logged_out.logged_out = true;
    rig.screen(logged_out);
    rig.same();
    assert_eq!(failure(&rig), Some(StartFailure::LoggedOut));
}

#[test]
fn d_start_names_what_is_missing() {
    let mut rig = Rig::launched(config(Policy::Deny), false, false);
    rig.empty();
    rig.wait(29_999);
    assert_eq!(failure(&rig), None);
    rig.wait(1);
    let Some(StartFailure::Timeout { missing }) = failure(&rig) else {
        panic!("{:?}", rig.events);
    };
    assert_eq!(
        &*missing,
        "the SessionStart hook, Claude's pid, a stable screen"
    );
}

#[test]
fn an_exit_before_ready_is_a_failed_start_and_never_a_clean_exit() {
    let mut rig = Rig::launched(config(Policy::Deny), false, false);
    let turn = rig.send("early");
    rig.exited(Some(0));
    assert!(matches!(
        failure(&rig),
        Some(StartFailure::Exited { code: Some(0), .. })
    ));
    assert!(
        rig.events
            .iter()
            .any(|e| matches!(e, E::SessionExited { clean: false, .. }))
    );
    assert_eq!(rig.outcomes(turn).len(), 1);
    assert_eq!(
        rig.intents.last(),
        Some(&Intent::Cadence(ccd_core::CADENCES[0].cadence))
    );
    assert!(rig.intents.contains(&Intent::Finish));
}

#[test]
fn a_lost_hook_server_while_starting_fails_and_kills() {
    let mut rig = Rig::launched(config(Policy::Deny), false, false);
    rig.own(O::Lost {
        part: LostPart::HookServer,
    });
    assert!(matches!(failure(&rig), Some(StartFailure::Lost { .. })));
    assert_eq!(rig.signals(Signal::Kill), 1);
    rig.wait(3_000);
    assert!(
        rig.events
            .iter()
            .any(|e| matches!(e, E::SessionExited { code: None, .. }))
    );
    assert!(rig.intents.contains(&Intent::Finish));
}

/// Launched, with everything that readiness needs, so that the self-test runs.
fn testing() -> Rig {
    let mut rig = Rig::launched(config(Policy::Deny), true, false);
    rig.start_hook();
    rig.empty();
    rig.same();
    rig
}

const NONCE: &str = "ccd self-test s-1";

#[test]
fn the_self_test_arms_stages_enters_clears_and_makes_ready() {
    let mut rig = testing();
    assert!(!is_ready(&rig));
    let armed = rig
        .intents
        .iter()
        .any(|i| matches!(i, Intent::Arm(guard) if guard.self_test && *guard.text == *NONCE));
    assert!(armed, "{:?}", rig.intents);
    assert_eq!(rig.staged(NONCE), 1);
    rig.later(80).take();
    let within = rig.intents.iter().find_map(|i| match i {
        Intent::Io {
            what:
                IoOp::Key {
                    key: Key::Enter,
                    guard: KeyGuard::Composer,
                    within_ms,
                },
            ..
        } => Some(*within_ms),
        _ => None,
    });
    assert_eq!(within, Some(1_000), "an Enter belongs to a fresh injection");
    rig.later(20).enter();
    rig.later(10).prompt("p0", NONCE, Verdict::SelfTest);
    assert_eq!(
        rig.staged(""),
        0,
        "the text is not back yet: clearing now would be too early"
    );
    rig.later(20).screen(facts(Surface::Main, text(NONCE)));
    assert_eq!(rig.staged(""), 1);
    rig.take();
    rig.empty();
    assert!(!is_ready(&rig), "one capture is no proof");
    rig.same();
    assert!(is_ready(&rig));
    assert!(rig.events.iter().any(|e| matches!(
        e,
        E::SessionReady {
            self_tested: true,
            ..
        }
    )));
    assert!(rig.intents.contains(&Intent::Disarm));
    // The transcript's line about our own block ends no turn.
    let turn = rig.run("p1", "hello");
    rig.tx(O::TxPromptBlocked {
        file: ccd_model::ids::FileKey(1),
        reason: arc("blocked"),
    });
    assert_eq!(rig.outcomes(turn), vec![]);
}

#[test]
fn a_self_test_without_a_receipt_is_repaired_once_and_then_fails() {
    let mut rig = testing();
    rig.take();
    rig.later(20).enter();
    rig.wait(1_500);
    let capture = rig.last_op(|op| matches!(op, IoOp::Capture));
    rig.screen(facts(Surface::Main, text(NONCE)));
    rig.op(capture, ccd_model::observation::OpEnd::Done);
    assert_eq!(rig.staged(NONCE), 2, "the draft is old: injected again");
    rig.take();
    rig.enter();
    rig.wait(1_500);
    let capture = rig.last_op(|op| matches!(op, IoOp::Capture));
    rig.screen(facts(Surface::Main, text(NONCE)));
    rig.op(capture, ccd_model::observation::OpEnd::Done);
    rig.cleared();
    assert_eq!(
        failure(&rig),
        Some(StartFailure::SelfTest {
            reason: arc("no receipt")
        })
    );
    assert_eq!(rig.keys(Key::Enter), 2);
}

#[test]
fn inputs_of_an_older_launch_are_ignored() {
    let mut rig = Rig::bare(config(Policy::Deny));
    rig.launch = 2;
    rig.own(O::Launched(Launched {
        session_id: arc(SESSION),
        resume: false,
        self_test: false,
        other_stop_hooks: false,
        pane_pid: 5,
    }));
    rig.launch = 1;
    rig.saw(
        Source::Process,
        None,
        O::Exited {
            pid: 5,
            code: Some(1),
            signal: None,
        },
    );
    assert_eq!(rig.view().lifecycle, Lifecycle::Starting);
    assert_eq!(rig.diagnostics.len(), 1);
}
