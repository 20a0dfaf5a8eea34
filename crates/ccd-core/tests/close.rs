//! How a session ends: closing, escalation, crashes, lost parts, and what is left open then: nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use ccd_model::{
    command::{CloseHow, Command, Refusal},
    event::DomainEvent as E,
    intent::{Intent, Key, Signal},
    observation::{LostPart, Observation as O},
    outcome::{NotSubmitted, Outcome},
    permission::{DecidedBy, Policy},
    screen::{Composer, Surface},
    status::{AgentStatus, Lifecycle, PermissionStatus, ToolStatus},
};
use support::*;

fn exits(rig: &Rig) -> Vec<(Option<i32>, bool, String)> {
    rig.events
        .iter()
        .filter_map(|e| match e {
            E::SessionExited {
                code,
                clean,
                reason,
                ..
            } => Some((*code, *clean, reason.to_string())),
            _ => None,
        })
        .collect()
}

#[test]
fn l3_an_idle_session_leaves_by_the_exit_command() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.close(CloseHow::Graceful);
    assert_eq!(rig.staged("/exit"), 1);
    assert!(
        !rig.intents_since()
            .iter()
            .any(|i| matches!(i, Intent::Arm(_))),
        "no hook fires for it"
    );
    rig.take();
    rig.enter();
    assert_eq!(rig.keys(Key::Enter), 1);
    assert_eq!(rig.signals(Signal::Term), 0);
    rig.hook(O::SessionEnded {
        reason: arc("prompt_input_exit"),
    });
    rig.later(100).exited(Some(0));
    assert_eq!(
        exits(&rig),
        vec![(Some(0), true, "closed by the caller".into())]
    );
    assert!(rig.intents_since().contains(&Intent::Finish));
    assert_eq!(rig.view().lifecycle, Lifecycle::Exited);
    assert_eq!(rig.view().status, AgentStatus::Exited);
    assert_eq!(
        rig.ask(Command::Close {
            how: CloseHow::Kill
        }),
        Err(Refusal::SessionOver)
    );
    assert_eq!(
        rig.ask(Command::Send {
            text: arc("x"),
            as_text: false
        }),
        Err(Refusal::SessionOver)
    );
}

#[test]
fn d_term_d_kill_d_exit_escalate() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.close(CloseHow::Graceful);
    rig.take();
    rig.enter();
    rig.wait(2_499);
    assert_eq!(rig.signals(Signal::Term), 0);
    rig.wait(1);
    assert_eq!(rig.signals(Signal::Term), 1);
    rig.wait(2_500);
    assert_eq!(rig.signals(Signal::Kill), 1);
    assert!(exits(&rig).is_empty());
    rig.wait(3_000);
    assert_eq!(
        exits(&rig),
        vec![(None, false, "closed by the caller".into())]
    );
    assert!(rig.intents_since().contains(&Intent::Finish));
}

#[test]
fn a_running_turn_or_a_dirty_composer_is_closed_by_a_signal() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.run("p1", "x");
    rig.close(CloseHow::Graceful);
    assert_eq!(rig.signals(Signal::Term), 1);
    rig.exited(None);
    assert!(matches!(
        rig.outcomes(turn).as_slice(),
        [Outcome::Aborted { .. }]
    ));

    let mut rig = Rig::ready(Policy::Deny);
    rig.screen(facts(Surface::Main, text("draft")));
    rig.close(CloseHow::Graceful);
    assert_eq!((rig.signals(Signal::Term), rig.staged("/exit")), (1, 0));
}

#[test]
fn a_kill_is_a_kill_and_escalates_a_graceful_close() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.close(CloseHow::Kill);
    assert_eq!(
        (rig.signals(Signal::Term), rig.signals(Signal::Kill)),
        (0, 1)
    );
    rig.exited(None);
    assert_eq!(
        exits(&rig),
        vec![(None, false, "closed by the caller".into())]
    );

    let mut rig = Rig::ready(Policy::Deny);
    rig.close(CloseHow::Graceful);
    rig.close(CloseHow::Graceful);
    rig.close(CloseHow::Kill);
    rig.close(CloseHow::Kill);
    assert_eq!((rig.staged("/exit"), rig.signals(Signal::Kill)), (1, 1));
}

#[test]
fn an_exit_dialog_in_the_way_is_answered_by_a_signal() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.close(CloseHow::Graceful);
    rig.take();
    rig.enter();
    rig.screen(facts(Surface::ExitDialog, Composer::Unknown));
    assert_eq!(rig.signals(Signal::Term), 1);
}

#[test]
fn closing_gives_held_prompts_back_and_denies_held_requests() {
    let mut rig = Rig::ready(Policy::Ask);
    rig.run("p1", "x");
    let held = rig.send("held");
    rig.pre("p1", "t", "Bash", "{}");
    rig.asked(1, "p1", "Bash", "{}");
    rig.close(CloseHow::Graceful);
    assert_eq!(
        rig.outcomes(held),
        vec![Outcome::NotSubmitted(NotSubmitted::SessionClosed)]
    );
    assert!(!rig.answers()[0].1.allows());
    assert_eq!(rig.view().permissions[0].by, Some(DecidedBy::Close));
    // One that comes while it closes is denied as well.
    rig.asked(2, "p1", "Write", "{}");
    assert_eq!(rig.answers().len(), 2);
    rig.exited(Some(143));
    assert_eq!(
        exits(&rig),
        vec![(Some(143), true, "closed by the caller".into())]
    );
}

#[test]
fn a_prompt_not_yet_entered_is_not_submitted_and_its_staging_is_withdrawn() {
    let mut rig = Rig::ready(Policy::Ask);
    let turn = rig.send("x");
    rig.close(CloseHow::Kill);
    assert_eq!(
        rig.outcomes(turn),
        vec![Outcome::NotSubmitted(NotSubmitted::SessionClosed)]
    );

    let mut rig = Rig::ready(Policy::Ask);
    let turn = rig.send("x");
    rig.take();
    rig.close(CloseHow::Kill);
    assert_eq!(
        rig.outcomes(turn),
        vec![],
        "Enter may have been pressed: only the exit tells"
    );
    rig.exited(None);
    assert!(matches!(
        rig.outcomes(turn).as_slice(),
        [Outcome::Aborted { .. }]
    ));
}

#[test]
fn a_crash_closes_everything_inner_things_first() {
    let mut rig = Rig::ready(Policy::Ask);
    let turn = rig.run("p1", "x");
    let held = rig.send("held");
    rig.hook(O::AgentStarted {
        agent: agent("a1"),
        prompt_id: arc("p1"),
    });
    rig.tx_request("r1", None);
    rig.pre("p1", "t1", "Bash", "{}");
    rig.pre("p1", "t2", "Read", "{}");
    rig.asked(1, "p1", "Bash", "{}");
    rig.interrupt().unwrap();
    rig.forget();
    rig.exited(Some(1));
    let view = rig.view();
    assert!(matches!(
        rig.outcomes(turn).as_slice(),
        [Outcome::Aborted { .. }]
    ));
    assert_eq!(
        rig.outcomes(held),
        vec![Outcome::NotSubmitted(NotSubmitted::SessionClosed)]
    );
    assert!(view.tools.iter().all(|t| t.status == ToolStatus::Unknown));
    assert_eq!(view.permissions[0].status, PermissionStatus::Unknown);
    assert!(view.calls.is_empty() && view.background.is_empty() && view.running.is_none());
    assert_eq!(
        rig.count(|e| matches!(e, E::AgentEnded { known: false, .. })),
        1
    );
    assert_eq!(rig.count(|e| matches!(e, E::InterruptEnded { .. })), 1);
    assert_eq!(rig.count(|e| matches!(e, E::TurnSettled { .. })), 2);
    assert!(rig.since().contains(&E::StatusChanged {
        status: AgentStatus::Exited
    }));
    assert!(matches!(rig.events.last(), Some(E::SessionExited { .. })));
    assert_eq!(
        exits(&rig),
        vec![(Some(1), false, "the process ended".into())]
    );
    // Echoes after the end change nothing.
    rig.stop("p1", "late");
    rig.exited(Some(1));
    rig.wait(60_000);
    assert_eq!(exits(&rig).len(), 1);
    assert_eq!(
        rig.intents.iter().filter(|i| **i == Intent::Finish).count(),
        1
    );
}

#[test]
fn a_person_who_leaves_is_the_reason_and_never_a_clean_end_of_ours() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.hook(O::SessionEnded {
        reason: arc("prompt_input_exit"),
    });
    rig.exited(Some(0));
    assert_eq!(
        exits(&rig),
        vec![(Some(0), false, "prompt_input_exit".into())]
    );
}

#[test]
fn the_exit_of_another_process_is_ignored_and_the_panes_counts() {
    let mut rig = Rig::ready(Policy::Deny);
    for (pid, over) in [(9_999, false), (1_000, true)] {
        rig.saw(
            ccd_model::fact::Source::Process,
            None,
            O::Exited {
                pid,
                code: Some(0),
                signal: None,
            },
        );
        assert_eq!(rig.view().lifecycle == Lifecycle::Exited, over);
    }
}

#[test]
fn a_session_without_its_hooks_terminal_or_supervisor_is_killed() {
    for part in [
        LostPart::HookServer,
        LostPart::TmuxServer,
        LostPart::Supervisor,
    ] {
        let mut rig = Rig::ready(Policy::Ask);
        let turn = rig.run("p1", "x");
        rig.own(O::Lost { part });
        assert_eq!(rig.signals(Signal::Kill), 1);
        rig.exited(None);
        assert_eq!(rig.outcomes(turn).len(), 1);
        assert!(!exits(&rig)[0].1);
    }
    let mut rig = Rig::ready(Policy::Ask);
    rig.own(O::Lost {
        part: LostPart::ControlClient,
    });
    assert_eq!(rig.view().lifecycle, Lifecycle::Ready);
}

#[test]
fn abandoning_ends_everything_at_once() {
    let mut rig = Rig::launched(config(Policy::Deny), false, false);
    let turn = rig.send("early");
    rig.ask(Command::Abandon {
        reason: arc("tmux did not start"),
    })
    .unwrap();
    assert_eq!(
        rig.outcomes(turn),
        vec![Outcome::NotSubmitted(NotSubmitted::SessionClosed)]
    );
    assert_eq!(
        exits(&rig),
        vec![(None, false, "tmux did not start".into())]
    );
    assert!(rig.intents.contains(&Intent::Finish));
}

#[test]
fn closing_during_start_terminates() {
    let mut rig = Rig::launched(config(Policy::Deny), false, false);
    rig.close(CloseHow::Graceful);
    assert_eq!(rig.signals(Signal::Term), 1);
    rig.exited(Some(0));
    assert!(
        !rig.events
            .iter()
            .any(|e| matches!(e, E::SessionStartFailed { .. })),
        "it was asked for"
    );
}
