//! Subagents, background tasks, quiescence.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use ccd_model::{
    event::DomainEvent as E,
    observation::{AgentRef, Observation as O, RegistryStatus, Verdict},
    outcome::{Origin, Outcome},
    permission::Policy,
    status::{AgentRunStatus, AgentStatus, ToolStatus, TurnStatus},
};
use support::*;

fn started(rig: &mut Rig, id: &str) {
    rig.hook(O::AgentStarted {
        agent: agent(id),
        prompt_id: arc("p1"),
    });
}

fn stopped(rig: &mut Rig, id: &str) {
    rig.hook(O::AgentStopped {
        agent: agent(id),
        text: arc("found it"),
    });
}

#[test]
fn a_background_agent_outlives_its_turn_and_keeps_the_session_from_being_quiescent() {
    for start_first in [true, false] {
        let mut rig = Rig::ready(Policy::Deny);
        let turn = rig.run("p1", "go");
        rig.pre("p1", "t", "Agent", "{}");
        if start_first {
            started(&mut rig, "a1");
            rig.post_full(None, "p1", "t", None, Some("a1"));
        } else {
            rig.post_full(None, "p1", "t", None, Some("a1"));
            started(&mut rig, "a1");
        }
        assert_eq!(rig.view().tools[0].status, ToolStatus::Launched);
        rig.tx_result("t", false, None);
        assert_eq!(rig.view().tools[0].status, ToolStatus::Launched);
        rig.stop("p1", "started it");
        assert_eq!(rig.outcomes(turn), vec![Outcome::Completed]);
        assert_eq!(rig.view().status, AgentStatus::Idle);
        assert!(!rig.view().quiescent);
        assert_eq!(rig.view().background, vec![arc("a1")]);
        stopped(&mut rig, "a1");
        stopped(&mut rig, "a1");
        assert_eq!(
            rig.count(|e| matches!(e, E::AgentEnded { known: true, .. })),
            1
        );
        assert_eq!(rig.view().tools[0].status, ToolStatus::Succeeded);
        assert!(rig.view().quiescent);
    }
}

#[test]
fn a_foreground_agents_tool_ends_with_its_result() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.run("p1", "go");
    rig.pre("p1", "t", "Agent", "{}");
    started(&mut rig, "a1");
    stopped(&mut rig, "a1");
    rig.post_full(None, "p1", "t", None, Some("a1"));
    assert_eq!(rig.view().tools[0].status, ToolStatus::Succeeded);
}

#[test]
fn ghosts_stay_outside() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.run("p1", "go");
    let ghost = AgentRef {
        id: arc("g1"),
        kind: arc(""),
    };
    rig.hook(O::AgentStarted {
        agent: ghost.clone(),
        prompt_id: arc("p1"),
    });
    rig.pre_by(Some(ghost.clone()), "p1", "t", "Bash", "{}");
    rig.hook(O::AgentStopped {
        agent: ghost.clone(),
        text: arc(""),
    });
    rig.hook(O::StopFailed {
        prompt_id: arc("p1"),
        error: arc("server_error"),
        text: arc("x"),
        agent: Some(ghost),
    });
    let ghost = AgentRef {
        id: arc("g2"),
        kind: arc(""),
    };
    rig.asked_by(Some(ghost), 1, "p1", "Bash", "{}");
    assert_eq!(rig.answers().len(), 1, "a request is answered whoever asks");
    assert!(rig.view().agents.is_empty() && rig.view().tools.is_empty());
    assert_eq!(rig.turn(turn).status, TurnStatus::Running);
}

#[test]
fn a_subagents_events_never_start_or_continue_a_turn() {
    let mut rig = Rig::ready_with(config(Policy::Deny), true);
    let turn = rig.run("p1", "go");
    started(&mut rig, "a1");
    rig.stop("p1", "");
    rig.pre_by(Some(agent("a1")), "p1", "t", "Bash", "{}");
    assert_eq!(rig.turn(turn).status, TurnStatus::Stopping);
    rig.tx_duration();
    rig.pre_by(Some(agent("a1")), "p9", "t2", "Bash", "{}");
    assert_eq!(rig.view().turns.len(), 1);
    assert_eq!(rig.view().tools.len(), 2);
    assert_eq!(rig.view().status, AgentStatus::Idle);
}

#[test]
fn an_agent_that_ends_leaves_nothing_of_it_open() {
    let mut rig = Rig::ready(Policy::Ask);
    rig.run("p1", "go");
    started(&mut rig, "a1");
    rig.pre_by(Some(agent("a1")), "p1", "t", "Bash", "{}");
    rig.asked_by(Some(agent("a1")), 1, "p1", "Bash", "{}");
    stopped(&mut rig, "a1");
    assert_eq!(rig.view().tools[0].status, ToolStatus::Unknown);
    assert!(
        rig.view()
            .permissions
            .iter()
            .all(|p| p.status != ccd_model::status::PermissionStatus::Pending)
    );
    assert_eq!(rig.answers().len(), 1);
}

#[test]
fn a_background_shell_is_known_by_the_tool_and_the_stop_and_ends_by_its_notification() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.run("p1", "go");
    rig.pre("p1", "t", "Bash", "{}");
    rig.post_full(None, "p1", "t", Some("br7"), None);
    assert_eq!(rig.view().tools[0].status, ToolStatus::Launched);
    rig.stop_full("p1", "", false, vec![background("br7")]);
    assert_eq!(rig.view().background, vec![arc("br7")]);
    assert!(!rig.view().quiescent);
    rig.hook(O::PromptSeen {
        prompt_id: arc("n1"),
        text: arc("<task-notification><task-id>br7</task-id>"),
        verdict: Verdict::Foreign,
        mode: None,
        task_notification: true,
    });
    assert!(rig.view().background.is_empty());
    assert_eq!(rig.view().tools[0].status, ToolStatus::Succeeded);
    let running = rig.view().running.unwrap();
    assert_eq!(rig.turn(running).origin, Origin::TaskNotification);
    rig.stop("n1", "");
    assert!(rig.view().quiescent);
}

#[test]
fn a_task_that_the_next_stop_no_longer_lists_has_ended_without_a_known_result() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.run("p1", "go");
    rig.pre("p1", "t", "Bash", "{}");
    rig.post_full(None, "p1", "t", Some("br7"), None);
    rig.stop_full("p1", "", false, vec![background("br7")]);
    rig.run("p2", "next");
    rig.stop("p2", "");
    assert_eq!(rig.view().tools[0].status, ToolStatus::Unknown);
    assert!(rig.view().quiescent);
}

#[test]
fn d_agent_an_agent_whose_end_was_never_reported_is_unknown_when_nothing_runs() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.run("p1", "go");
    started(&mut rig, "a1");
    rig.stop("p1", "");
    rig.registry(RegistryStatus::Idle);
    rig.wait(1_999);
    assert_eq!(rig.view().agents[0].status, AgentRunStatus::Running);
    rig.wait(1);
    assert_eq!(rig.view().agents[0].status, AgentRunStatus::Unknown);
    assert!(rig.view().quiescent);
}

#[test]
fn d_agent_is_taken_back_when_something_runs_again() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.run("p1", "go");
    started(&mut rig, "a1");
    rig.stop("p1", "");
    rig.registry(RegistryStatus::Idle);
    rig.later(500).registry(RegistryStatus::Busy);
    rig.wait(10_000);
    assert_eq!(rig.view().agents[0].status, AgentRunStatus::Running);
}

#[test]
fn quiescence_is_published_on_change_only() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.run("p1", "one");
    rig.stop("p1", "");
    rig.run("p2", "two");
    rig.stop("p2", "");
    assert_eq!(
        rig.count(|e| matches!(e, E::QuiescentChanged { quiescent: false })),
        2
    );
    assert_eq!(
        rig.count(|e| matches!(e, E::QuiescentChanged { quiescent: true })),
        2
    );
}

#[test]
fn an_agents_calls_are_its_own() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.run("p1", "go");
    started(&mut rig, "a1");
    rig.tx(O::TxApiRequest {
        file: ccd_model::ids::FileKey(2),
        agent: Some(arc("a1")),
        id: arc("ra"),
        retry_of: None,
    });
    assert_eq!(rig.view().calls.len(), 1);
    assert_eq!(rig.view().status, AgentStatus::Working);
    stopped(&mut rig, "a1");
    assert!(rig.view().calls.is_empty());
}
