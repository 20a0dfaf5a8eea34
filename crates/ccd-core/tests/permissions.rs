//! Permission requests: binding, policies, the handler, and the proof that an answer had its effect.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use ccd_model::{
    command::{Accepted, Command, Refusal},
    event::{Alert, DomainEvent as E},
    ids::{FileKey, HoldId, PermissionKey, ToolKey},
    intent::{Intent, IoOp},
    observation::{Observation as O, RegistryStatus},
    outcome::Outcome,
    permission::{DecidedBy, Decision, HandlerFailure, Policy},
    screen::{Composer, Surface},
    status::{AgentStatus, PermissionStatus, ToolStatus},
};
use support::*;

const INPUT: &str = r#"{"command":"touch a","n":1}"#;
/// The same input as JavaScript might spell it elsewhere.
const SAME: &str = r#"{"n":1.0, "command":"touch a"}"#;

fn asking(policy: Policy) -> Rig {
    let mut rig = Rig::ready(policy);
    rig.run("p1", "go");
    rig.registry(RegistryStatus::Busy);
    rig.forget();
    rig.pre("p1", "t", "Bash", INPUT);
    rig.later(60).asked(1, "p1", "Bash", SAME);
    rig
}

fn resolved(rig: &Rig) -> Vec<(PermissionStatus, DecidedBy)> {
    rig.since()
        .iter()
        .filter_map(|e| match e {
            E::PermissionResolved { status, by, .. } => Some((*status, *by)),
            _ => None,
        })
        .collect()
}

fn status(rig: &Rig) -> PermissionStatus {
    rig.view().permissions[0].status
}

fn tool(rig: &Rig) -> ToolStatus {
    rig.view().tools[0].status
}

fn allowed() -> Rig {
    let mut rig = asking(Policy::Ask);
    assert_eq!(rig.decide(1, Decision::allow()), Ok(Accepted::Done));
    rig
}

fn denied() -> Rig {
    let mut rig = asking(Policy::Ask);
    assert_eq!(rig.decide(1, Decision::deny("no")), Ok(Accepted::Done));
    rig
}

#[test]
fn u2_a_request_binds_to_the_call_with_equal_input_and_asks_the_handler() {
    let rig = asking(Policy::Ask);
    assert_eq!(tool(&rig), ToolStatus::AwaitingPermission);
    assert_eq!(rig.view().status, AgentStatus::AwaitingPermission);
    assert!(rig.since().iter().any(|e| matches!(
        e,
        E::PermissionRequested { tool: Some(ToolKey(1)), asks_handler: true, tool_use_id: Some(id), .. } if **id == *"t"
    )));
    assert!(rig.intents_since().contains(&Intent::AskHandler {
        permission: PermissionKey(1)
    }));
    assert!(rig.answers().is_empty());
}

#[test]
fn another_input_name_or_agent_does_not_bind() {
    for (agent, name, input) in [
        (None, "Bash", r#"{"command":"touch b"}"#),
        (None, "Write", INPUT),
        (Some(agent("a1")), "Bash", INPUT),
    ] {
        let mut rig = Rig::ready(Policy::Ask);
        rig.run("p1", "go");
        rig.pre("p1", "t", "Bash", INPUT);
        rig.asked_by(agent, 1, "p1", name, input);
        assert_eq!(rig.view().permissions[0].tool, None);
        assert_eq!(tool(&rig), ToolStatus::Pending);
    }
}

#[test]
fn p1_u4_an_allow_runs_the_tool_and_is_resolved_by_its_result() {
    let mut rig = allowed();
    assert_eq!(rig.answers(), vec![(HoldId(1), Decision::allow())]);
    assert_eq!(status(&rig), PermissionStatus::Answered);
    assert_eq!(tool(&rig), ToolStatus::Running);
    assert_eq!(rig.count(|e| matches!(e, E::ToolStarted { .. })), 1);
    assert!(resolved(&rig).is_empty(), "the answer alone proves nothing");
    rig.later(30).post("p1", "t");
    assert_eq!(
        resolved(&rig),
        vec![(PermissionStatus::Resolved, DecidedBy::Handler)]
    );
    assert_eq!(tool(&rig), ToolStatus::Succeeded);
}

#[test]
fn an_allow_is_resolved_when_claude_goes_on_without_a_dialog() {
    let mut rig = allowed();
    rig.later(50).registry(RegistryStatus::Busy);
    assert_eq!(
        status(&rig),
        PermissionStatus::Answered,
        "the screen was not looked at since"
    );
    rig.later(50).empty();
    assert_eq!(status(&rig), PermissionStatus::Resolved);
    assert_eq!(tool(&rig), ToolStatus::Running);
}

#[test]
fn hook_seen_and_no_dialog_yet_is_normal() {
    let mut rig = asking(Policy::Ask);
    rig.empty();
    rig.same();
    rig.wait(1_500);
    assert_eq!(status(&rig), PermissionStatus::Pending);
    assert!(rig.alerts().is_empty());
}

#[test]
fn a_deny_is_resolved_by_the_batch_the_result_line_or_the_next_request() {
    for proof in 0..3 {
        let mut rig = denied();
        assert_eq!(
            tool(&rig),
            ToolStatus::AwaitingPermission,
            "denied when it is seen"
        );
        rig.later(50);
        match proof {
            0 => rig.batch("p1", &["t"]),
            1 => rig.tx_result("t", true, Some("permission-rule")),
            _ => rig.tx_request("r2", None),
        }
        assert_eq!(
            resolved(&rig),
            vec![(PermissionStatus::Resolved, DecidedBy::Handler)]
        );
        if proof < 2 {
            assert_eq!(tool(&rig), ToolStatus::Denied);
        }
    }
}

#[test]
fn p3_d_effect_an_answer_without_effect_is_left_to_the_dialog_and_told() {
    let mut rig = allowed();
    rig.later(100).screen(facts(dialog(), Composer::Unknown));
    rig.same();
    rig.wait(5_000);
    assert_eq!(status(&rig), PermissionStatus::DialogOnly);
    assert_eq!(
        rig.alerts(),
        vec![Alert::AnswerWithoutEffect {
            permission: PermissionKey(1)
        }]
    );
    assert!(
        resolved(&rig).is_empty(),
        "never resolved without its effect"
    );
    assert_eq!(rig.view().status, AgentStatus::AwaitingPermission);
    rig.post("p1", "t");
    assert_eq!(status(&rig), PermissionStatus::Resolved);
}

#[test]
fn d_effect_without_any_evidence_the_request_is_unknown() {
    let mut rig = allowed();
    rig.wait(5_000);
    assert_eq!(
        resolved(&rig),
        vec![(PermissionStatus::Unknown, DecidedBy::Handler)]
    );
}

#[test]
fn the_transcript_names_the_tool_of_an_unbound_decision() {
    let mut rig = Rig::ready(Policy::DangerouslyAllowAll);
    rig.run("p1", "go");
    rig.pre("p1", "t", "Bash", INPUT);
    rig.asked(1, "p1", "Bash", r#"{"command":"rewritten"}"#);
    assert_eq!(rig.view().permissions[0].tool, None);
    rig.tx(O::TxPermissionDecision {
        file: FileKey(1),
        tool_use_id: arc("t"),
        allow: true,
    });
    assert_eq!(rig.view().permissions[0].tool, Some(ToolKey(1)));
    assert_eq!(status(&rig), PermissionStatus::Resolved);
}

#[test]
fn two_equal_calls_are_ambiguous_and_never_allowed_by_a_policy() {
    for (policy, answers) in [(Policy::DangerouslyAllowAll, 1), (Policy::Ask, 0)] {
        let mut rig = Rig::ready(policy);
        rig.run("p1", "go");
        rig.pre("p1", "t1", "Bash", INPUT);
        rig.pre("p1", "t2", "Bash", INPUT);
        rig.asked(1, "p1", "Bash", INPUT);
        assert_eq!(rig.view().permissions[0].tool, None);
        assert_eq!(rig.answers().len(), answers);
        assert!(rig.answers().iter().all(|(_, d)| !d.allows()));
        if policy == Policy::Ask {
            assert!(rig.intents_since().contains(&Intent::AskHandler {
                permission: PermissionKey(1)
            }));
        } else {
            assert_eq!(rig.view().permissions[0].by, Some(DecidedBy::Ambiguous));
        }
    }
}

#[test]
fn policies_answer_without_the_handler() {
    for (policy, allows) in [
        (Policy::Deny, false),
        (Policy::DangerouslyAllowAll, true),
        (Policy::AllowRead, false),
    ] {
        let rig = asking(policy);
        assert_eq!(rig.answers().len(), 1);
        assert_eq!(rig.answers()[0].1.allows(), allows, "{policy:?}");
        assert!(rig.since().iter().any(|e| matches!(
            e,
            E::PermissionRequested {
                asks_handler: false,
                ..
            }
        )));
        assert_eq!(rig.view().permissions[0].by, Some(DecidedBy::Policy));
    }
}

#[test]
fn allow_read_allows_only_reading_inside_the_workspace() {
    let rows = [
        ("Read", r#"{"file_path":"/project/a.txt"}"#, true),
        ("Read", r#"{"file_path":"/project/./sub//a.txt"}"#, true),
        ("Read", r#"{"file_path":"/project"}"#, true),
        ("Read", r#"{"file_path":"/projects/a.txt"}"#, false),
        ("Read", r#"{"file_path":"/project/../etc/passwd"}"#, false),
        ("Read", r#"{"file_path":"/etc/passwd"}"#, false),
        ("Read", r#"{"file_path":"a.txt"}"#, false),
        ("Read", r#"{"file_path":"~/a.txt"}"#, false),
        ("Read", r#"{"file_path":7}"#, false),
        ("Read", r#"{}"#, false),
        ("Read", "not json", false),
        ("Glob", r#"{"pattern":"**/*.rs"}"#, true),
        ("Glob", r#"{"pattern":"/etc/*"}"#, false),
        ("Glob", r#"{"pattern":"../*"}"#, false),
        ("Glob", r#"{"pattern":"*","path":"/etc"}"#, false),
        ("Write", r#"{"file_path":"/project/a.txt"}"#, false),
    ];
    for (name, input, allows) in rows {
        let mut rig = Rig::ready(Policy::AllowRead);
        rig.run("p1", "go");
        rig.pre("p1", "t", name, input);
        rig.asked(1, "p1", name, input);
        assert_eq!(rig.answers()[0].1.allows(), allows, "{name} {input}");
    }
}

#[test]
fn questions_and_plans_are_denied_with_a_message_whatever_the_policy() {
    for policy in [Policy::Ask, Policy::DangerouslyAllowAll] {
        for name in ["AskUserQuestion", "ExitPlanMode"] {
            let mut rig = Rig::ready(policy);
            rig.run("p1", "go");
            rig.pre("p1", "t", name, "{}");
            rig.asked(1, "p1", name, "{}");
            assert!(
                matches!(&rig.answers()[0].1, Decision::Deny { message, interrupt: false } if !message.is_empty())
            );
            assert_eq!(rig.view().permissions[0].by, Some(DecidedBy::Unsupported));
        }
    }
}

#[test]
fn a_handler_that_fails_denies_and_answers_exactly_once() {
    let mut rig = asking(Policy::Ask);
    let failed = Command::HandlerFailed {
        permission: PermissionKey(1),
        failure: HandlerFailure::Panicked,
    };
    assert_eq!(rig.ask(failed.clone()), Ok(Accepted::Done));
    assert!(!rig.answers()[0].1.allows());
    assert_eq!(rig.ask(failed), Err(Refusal::NoSuchEntity));
    assert_eq!(rig.decide(1, Decision::allow()), Err(Refusal::NoSuchEntity));
    assert_eq!(
        rig.decide(99, Decision::allow()),
        Err(Refusal::NoSuchEntity)
    );
    assert_eq!(rig.answers().len(), 1);
    assert_eq!(
        rig.view().permissions[0].by,
        Some(DecidedBy::HandlerFailure)
    );
}

#[test]
fn escape_at_the_dialog_abandons_the_request_and_cancels_the_handler() {
    let mut rig = asking(Policy::Ask);
    rig.hook(O::PermissionGone { hold: HoldId(1) });
    assert_eq!(
        resolved(&rig),
        vec![(PermissionStatus::Abandoned, DecidedBy::Keyboard)]
    );
    assert!(rig.intents_since().contains(&Intent::CancelHandler {
        permission: PermissionKey(1)
    }));
    assert_eq!(rig.decide(1, Decision::allow()), Err(Refusal::NoSuchEntity));
    assert!(rig.answers().is_empty());
    rig.tx_result("t", true, Some("user-rejected"));
    assert_eq!(tool(&rig), ToolStatus::Denied);
}

#[test]
fn yes_at_the_dialog_is_seen_by_the_tools_result() {
    let mut rig = asking(Policy::Ask);
    rig.post("p1", "t");
    assert_eq!(
        resolved(&rig),
        vec![(PermissionStatus::Abandoned, DecidedBy::Keyboard)]
    );
    assert_eq!(tool(&rig), ToolStatus::Succeeded);
    assert!(rig.intents_since().contains(&Intent::CancelHandler {
        permission: PermissionKey(1)
    }));
}

#[test]
fn the_hook_threads_own_deadline_counts_as_a_deny_without_an_answer_of_ours() {
    let mut rig = asking(Policy::Ask);
    rig.hook(O::PermissionExpired { hold: HoldId(1) });
    assert_eq!(status(&rig), PermissionStatus::Answered);
    assert!(rig.answers().is_empty());
    assert_eq!(rig.decide(1, Decision::allow()), Err(Refusal::NoSuchEntity));
    rig.batch("p1", &["t"]);
    assert_eq!(
        resolved(&rig),
        vec![(PermissionStatus::Resolved, DecidedBy::Deadline)]
    );
}

#[test]
fn a_pending_request_keeps_the_status_whatever_other_tools_do() {
    let mut rig = asking(Policy::Ask);
    rig.pre("p1", "other", "Read", "{}");
    rig.post("p1", "other");
    assert_eq!(rig.view().status, AgentStatus::AwaitingPermission);
}

#[test]
fn a_failure_of_the_turn_releases_the_held_request() {
    let mut rig = asking(Policy::Ask);
    rig.stop_failed("p1", "rate_limit", "You\'ve hit your limit");
    assert_eq!(rig.answers().len(), 1);
    assert_eq!(resolved(&rig).len(), 1);
    assert_eq!(status(&rig), PermissionStatus::Abandoned);
    assert!(rig.intents_since().contains(&Intent::CancelHandler {
        permission: PermissionKey(1)
    }));
    assert_eq!(rig.view().status, AgentStatus::UsageLimited);
}

#[test]
fn a_request_of_a_background_agent_outlives_the_turn() {
    let mut rig = Rig::ready(Policy::Ask);
    let turn = rig.run("p1", "go");
    rig.hook(O::AgentStarted {
        agent: agent("a1"),
        prompt_id: arc("p1"),
    });
    rig.pre_by(Some(agent("a1")), "p1", "t", "Bash", INPUT);
    rig.asked_by(Some(agent("a1")), 1, "p1", "Bash", INPUT);
    rig.stop("p1", "");
    assert_eq!(rig.outcomes(turn), vec![Outcome::Completed]);
    assert_eq!(status(&rig), PermissionStatus::Pending);
    assert_eq!(rig.decide(1, Decision::allow()), Ok(Accepted::Done));
    rig.post_full(Some(agent("a1")), "p1", "t", None, None);
    assert_eq!(status(&rig), PermissionStatus::Resolved);
}

#[test]
fn d_dialog_a_dialog_that_no_hook_reported_is_told_once_and_gets_no_key() {
    let mut rig = Rig::ready(Policy::Ask);
    rig.run("p1", "go");
    rig.forget();
    rig.screen(facts(dialog(), Composer::Unknown));
    rig.same();
    rig.wait(1_999);
    assert!(rig.alerts().is_empty(), "the hook may still come");
    rig.wait(1);
    assert_eq!(
        rig.alerts(),
        vec![Alert::UnreportedDialog {
            text: arc("touch a")
        }]
    );
    assert_eq!(rig.view().status, AgentStatus::AwaitingInput);
    rig.same();
    rig.wait(10_000);
    assert_eq!(rig.alerts().len(), 1);
    assert_eq!(rig.ops(|op| matches!(op, IoOp::Key { .. })), 0);
}

#[test]
fn a_dialog_whose_hook_comes_in_time_is_not_told() {
    let mut rig = Rig::ready(Policy::Ask);
    rig.run("p1", "go");
    rig.pre("p1", "t", "Bash", INPUT);
    rig.screen(facts(dialog(), Composer::Unknown));
    rig.same();
    rig.later(100).asked(1, "p1", "Bash", INPUT);
    rig.wait(5_000);
    assert!(rig.alerts().is_empty());
}

#[test]
fn an_unknown_dialog_waits_for_a_person() {
    let mut rig = Rig::ready(Policy::Ask);
    rig.screen(facts(
        Surface::UnknownModal { text: arc("?") },
        Composer::Unknown,
    ));
    rig.same();
    assert_eq!(rig.view().status, AgentStatus::AwaitingInput);
    rig.wait(2_000);
    assert_eq!(rig.alerts().len(), 1);
}

#[test]
fn the_same_hold_twice_is_one_request() {
    let mut rig = asking(Policy::Deny);
    rig.asked(1, "p1", "Bash", INPUT);
    assert_eq!(rig.answers().len(), 1);
    assert_eq!(rig.view().permissions.len(), 1);
}

#[test]
fn an_answer_routes_by_its_key_across_a_new_generation() {
    let mut rig = asking(Policy::Ask);
    rig.saw(
        ccd_model::fact::Source::Registry,
        Some("s-2"),
        O::Registry {
            pid: CLAUDE,
            version: arc("2.1.316"),
            status: Some(RegistryStatus::Busy),
        },
    );
    assert_eq!(rig.decide(1, Decision::allow()), Ok(Accepted::Done));
    rig.post("p1", "t");
    assert_eq!(status(&rig), PermissionStatus::Resolved);
}

#[test]
fn a_request_of_a_turn_that_seemed_over_is_still_answered() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.run("p1", "go");
    rig.stop("p1", "");
    rig.asked(1, "p1", "Bash", INPUT);
    assert_eq!(rig.answers().len(), 1);
    assert_eq!(rig.view().permissions[0].turn, None);
    assert!(matches!(rig.alerts().as_slice(), [Alert::Conflict { .. }]));
    assert_eq!(rig.outcomes(turn).len(), 1);
}

#[test]
fn the_batch_of_an_agent_proves_nothing_about_the_main_thread() {
    let mut rig = denied();
    rig.hook(O::ToolBatch {
        calls: vec![],
        agent: Some(agent("a9")),
        prompt_id: arc("p1"),
    });
    assert_eq!(status(&rig), PermissionStatus::Answered);
}
