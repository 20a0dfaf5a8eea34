//! Tool runs, model calls and messages of a turn.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use ccd_model::{
    event::{Alert, DomainEvent as E},
    ids::FileKey,
    json::RawJson,
    observation::{AssistantBlock, Observation as O},
    permission::Policy,
    screen::{Composer, StatusLine, Surface},
    status::{AgentStatus, CallPhase, CallStatus, ToolStatus},
};
use support::*;

fn tool_use(id: &str) -> AssistantBlock {
    AssistantBlock::ToolUse {
        id: arc(id),
        name: arc("Bash"),
        input: RawJson::new("{}"),
    }
}

fn status(rig: &Rig) -> Vec<ToolStatus> {
    rig.view().tools.iter().map(|t| t.status).collect()
}

fn running() -> Rig {
    let mut rig = Rig::ready(Policy::Deny);
    rig.run("p1", "go");
    rig.forget();
    rig
}

#[test]
fn u3_d_tool_a_tool_runs_when_no_permission_request_follows() {
    let mut rig = running();
    rig.pre("p1", "t", "Bash", r#"{"command":"ls"}"#);
    assert_eq!(rig.view().status, AgentStatus::RunningTools);
    assert_eq!(rig.count(|e| matches!(e, E::ToolProposed { .. })), 1);
    rig.wait(499);
    assert_eq!(status(&rig), vec![ToolStatus::Pending]);
    rig.wait(1);
    assert_eq!(status(&rig), vec![ToolStatus::Running]);
    assert_eq!(rig.count(|e| matches!(e, E::ToolStarted { .. })), 1);
    rig.post("p1", "t");
    rig.post("p1", "t");
    assert_eq!(status(&rig), vec![ToolStatus::Succeeded]);
    assert_eq!(
        rig.count(|e| matches!(
            e,
            E::ToolEnded {
                duration_ms: Some(7),
                ..
            }
        )),
        1
    );
}

#[test]
fn a_fast_tool_starts_and_ends_in_order() {
    let mut rig = running();
    rig.pre("p1", "t", "Bash", "{}");
    rig.post("p1", "t");
    let kinds: Vec<&str> = rig
        .since()
        .iter()
        .filter_map(|e| match e {
            E::ToolProposed { .. } => Some("proposed"),
            E::ToolStarted { .. } => Some("started"),
            E::ToolEnded { .. } => Some("ended"),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, vec!["proposed", "started", "ended"]);
}

#[test]
fn the_transcript_proposes_u1_and_corroborates_and_completes() {
    let mut rig = running();
    rig.tx_request("r1", None);
    rig.tx_block("m1", 0, "r1", tool_use("t"), Some("tool_use"));
    assert_eq!(status(&rig), vec![ToolStatus::Proposed]);
    rig.pre("p1", "t", "Bash", "{}");
    assert_eq!(status(&rig), vec![ToolStatus::Pending]);
    rig.tx_block("m1", 0, "r1", tool_use("t"), Some("tool_use"));
    rig.tx_result("t", false, None);
    assert_eq!(status(&rig), vec![ToolStatus::Succeeded]);
    rig.post("p1", "t");
    assert_eq!(rig.count(|e| matches!(e, E::ToolProposed { .. })), 1);
    assert_eq!(rig.count(|e| matches!(e, E::ToolEnded { .. })), 1);
}

#[test]
fn a_failure_hook_fails_and_an_error_line_fails() {
    let mut rig = running();
    rig.pre("p1", "a", "Bash", "{}");
    rig.hook(O::ToolFailed {
        tool_use_id: arc("a"),
        name: arc("Bash"),
        error: arc("exit 3"),
        agent: None,
        prompt_id: arc("p1"),
        duration_ms: None,
    });
    rig.tx_request("r1", None);
    rig.tx_block("m1", 0, "r1", tool_use("b"), Some("tool_use"));
    rig.tx_result("b", true, None);
    assert_eq!(status(&rig), vec![ToolStatus::Failed, ToolStatus::Failed]);
}

#[test]
fn the_batch_denies_what_never_ran_and_waits_for_what_was_running() {
    let mut rig = running();
    rig.pre("p1", "a", "Bash", "{}");
    rig.wait(500);
    rig.pre("p1", "b", "Bash", "{}");
    rig.batch("p1", &["a", "b", "never-seen"]);
    assert_eq!(status(&rig), vec![ToolStatus::Running, ToolStatus::Denied]);
    rig.tx_result("a", true, Some("permission-rule"));
    assert_eq!(status(&rig), vec![ToolStatus::Denied, ToolStatus::Denied]);
}

#[test]
fn our_own_deny_rule_denies_and_tells() {
    let mut rig = running();
    rig.hook(O::ToolPre {
        tool_use_id: arc("t"),
        name: arc("Bash"),
        input: RawJson::new("{}"),
        agent: None,
        prompt_id: arc("p1"),
        mode: None,
        denied_by_us: Some(arc("Bash(rm:*)")),
    });
    assert_eq!(status(&rig), vec![ToolStatus::Denied]);
    assert_eq!(
        rig.alerts(),
        vec![Alert::DenyRuleHeld { tool: arc("Bash") }]
    );
}

#[test]
fn auto_mode_refusals_deny() {
    let mut rig = running();
    rig.pre("p1", "t", "Bash", "{}");
    rig.hook(O::ToolRefusedByMode {
        tool_use_id: arc("t"),
        reason: arc("no"),
    });
    assert_eq!(status(&rig), vec![ToolStatus::Denied]);
}

#[test]
fn a_turn_that_ends_leaves_no_tool_of_the_main_thread_open() {
    let mut rig = running();
    rig.pre("p1", "t", "Bash", "{}");
    rig.stop("p1", "done");
    assert_eq!(status(&rig), vec![ToolStatus::Unknown]);
    let ended = rig
        .since()
        .iter()
        .position(|e| matches!(e, E::ToolEnded { .. }))
        .unwrap();
    let turn = rig
        .since()
        .iter()
        .position(|e| matches!(e, E::TurnEnded { .. }))
        .unwrap();
    assert!(ended < turn, "inner things end first");
}

#[test]
fn a_lost_pre_hook_is_made_up_for_by_the_post_hook() {
    let mut rig = running();
    rig.post("p1", "t");
    assert_eq!(status(&rig), vec![ToolStatus::Succeeded]);
    assert_eq!(rig.count(|e| matches!(e, E::ToolProposed { .. })), 1);
}

#[test]
fn c4_retries_join_one_call_and_banners_tell_the_wait() {
    let mut rig = running();
    rig.tx_request("r1", None);
    assert_eq!(
        rig.view().status,
        AgentStatus::ModelRequest {
            phase: CallPhase::Waiting
        }
    );
    let banner = |seconds, attempt| {
        let mut f = facts(Surface::Main, Composer::Empty);
        f.status_line = StatusLine::Retrying {
            reason: arc("API error"),
            seconds,
            attempt,
            max: 10,
        };
        f
    };
    rig.screen(banner(2, 1));
    rig.screen(banner(1, 1));
    assert_eq!(
        rig.count(|e| matches!(
            e,
            E::CallRetrying {
                attempt: 1,
                delay_s: 2,
                ..
            }
        )),
        1
    );
    assert_eq!(
        rig.count(|e| matches!(e, E::CallRetrying { .. })),
        1,
        "a countdown is no new attempt"
    );
    assert_eq!(
        rig.view().status,
        AgentStatus::ModelRequest {
            phase: CallPhase::Retrying {
                attempt: 1,
                max: 10,
                reason: arc("API error")
            }
        }
    );
    rig.tx_request("r2", Some("r1"));
    assert_eq!(rig.view().calls.len(), 1);
    assert_eq!(rig.view().calls[0].attempts, 2);
    assert_eq!(rig.view().calls[0].status, CallStatus::Waiting);
    rig.screen(banner(4, 2));
    rig.tx_request("r3", Some("r2"));
    rig.tx_text("m1", "r3", "after all");
    assert_eq!(
        rig.count(|e| matches!(
            e,
            E::CallEnded {
                ended_well: true,
                ..
            }
        )),
        1
    );
    assert!(rig.view().calls.is_empty());
}

#[test]
fn c10_a_stall_banner_stalls_and_text_resumes() {
    let mut rig = running();
    rig.tx_request("r1", None);
    let mut stalled = facts(Surface::Main, Composer::Empty);
    stalled.status_line = StatusLine::Stalled {
        text: arc("Waiting for API response"),
    };
    rig.screen(stalled);
    rig.same();
    assert_eq!(rig.count(|e| matches!(e, E::CallStalled { .. })), 1);
    assert_eq!(
        rig.view().status,
        AgentStatus::ModelRequest {
            phase: CallPhase::Stalled
        }
    );
    rig.delta("p1", "d1", 0, "line\n", false);
    assert_eq!(rig.count(|e| matches!(e, E::CallResumed { .. })), 1);
    assert_eq!(rig.view().status, AgentStatus::Writing);
}

#[test]
fn the_next_request_and_the_end_of_the_turn_close_calls() {
    let mut rig = running();
    rig.tx_request("r1", None);
    rig.tx_request("r2", None);
    assert_eq!(
        rig.count(|e| matches!(
            e,
            E::CallEnded {
                ended_well: true,
                ..
            }
        )),
        1
    );
    rig.stop_failed("p1", "server_error", "x");
    assert_eq!(
        rig.count(|e| matches!(
            e,
            E::CallEnded {
                ended_well: false,
                ..
            }
        )),
        1
    );
    assert!(rig.view().calls.is_empty());
}

#[test]
fn an_aborted_line_aborts_the_call() {
    let mut rig = running();
    rig.tx_request("r1", None);
    rig.tx(O::TxAssistant {
        file: FileKey(1),
        agent: None,
        message_id: arc("m1"),
        request_ref: Some(arc("r1")),
        index: 0,
        block: AssistantBlock::Text { text: arc("par") },
        stop_reason: None,
        usage: None,
        model: arc("opus"),
        aborted: true,
    });
    assert_eq!(
        rig.count(|e| matches!(
            e,
            E::CallEnded {
                ended_well: false,
                ..
            }
        )),
        1
    );
}

fn deltas(rig: &Rig) -> Vec<(u32, String)> {
    rig.since()
        .iter()
        .filter_map(|e| match e {
            E::MessageDelta { index, text, .. } => Some((*index, text.to_string())),
            _ => None,
        })
        .collect()
}

#[test]
fn streamed_lines_are_published_in_index_order_once() {
    let mut rig = running();
    rig.delta("p1", "d1", 1, "two\n", false);
    assert!(deltas(&rig).is_empty());
    rig.delta("p1", "d1", 0, "one\n", false);
    rig.delta("p1", "d1", 0, "one\n", false);
    rig.delta("p1", "d1", 2, "", true);
    assert_eq!(deltas(&rig), vec![(0, "one\n".into()), (1, "two\n".into())]);
    let turn = rig.view().running.unwrap();
    assert_eq!(&*rig.turn(turn).text, "one\ntwo\n");
}

#[test]
fn the_transcript_finalizes_the_streamed_message() {
    let mut rig = running();
    rig.delta("p1", "d1", 0, "one\n", false);
    rig.tx_request("r1", None);
    rig.tx_text("m1", "r1", "one\ntwo");
    let finals: Vec<_> = rig
        .since()
        .iter()
        .filter_map(|e| match e {
            E::MessageFinal {
                message,
                text,
                confirmed,
                ..
            } => Some((message.0, text.to_string(), *confirmed)),
            _ => None,
        })
        .collect();
    assert_eq!(finals, vec![(1, "one\ntwo".into(), true)]);
}

#[test]
fn text_that_the_transcript_never_shows_is_kept_unconfirmed() {
    let mut rig = running();
    rig.delta("p1", "d1", 0, "only streamed\n", true);
    rig.stop("p1", "");
    let turn = rig.view().turns[0].clone();
    assert_eq!(&*turn.text, "only streamed\n");
    rig.wait(1_500);
    assert_eq!(
        rig.count(|e| matches!(
            e,
            E::MessageFinal {
                confirmed: false,
                ..
            }
        )),
        1
    );
}

#[test]
fn a_last_chunk_after_the_stop_still_belongs_to_its_message() {
    let mut rig = running();
    rig.delta("p1", "d1", 0, "one\n", false);
    rig.stop("p1", "one\ntwo");
    rig.delta("p1", "d1", 1, "two", true);
    assert_eq!(deltas(&rig).len(), 2);
}

#[test]
fn long_results_are_shortened_at_a_character() {
    let mut rig = running();
    rig.pre("p1", "t", "Bash", "{}");
    rig.hook(O::ToolFailed {
        tool_use_id: arc("t"),
        name: arc("Bash"),
        error: arc(&"é".repeat(5_000)),
        agent: None,
        prompt_id: arc("p1"),
        duration_ms: None,
    });
    let result = rig.view().tools[0].result.clone().unwrap();
    assert_eq!(result.len(), 2_048);
}
