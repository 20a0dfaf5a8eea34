//! Recorded transcript lines are understood, and each kind of line says what it should.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::Arc;

use ccd_channels::{Channels, FileRole};
use ccd_model::{
    fact::Source,
    ids::FileKey,
    observation::{AssistantBlock, Observation, Observed, PromptOrigin},
};
use ccd_ports::raw::{Raw, TailNote};
use common::{channels, files, line, one, text, unrecognized};

const FILE: FileKey = FileKey(1);

/// Channels that know file 1 as what the name of the recording says.
fn reader(name: &str) -> Channels {
    let mut channels = channels();
    let role = name.split_once(".agent-").map_or_else(
        || FileRole::Main {
            session_id: "main".into(),
        },
        |(_, id)| FileRole::Agent {
            agent_id: id.into(),
        },
    );
    channels.register_file(FILE, role);
    channels
}

fn replay(name: &str) -> Vec<Observed> {
    let mut channels = reader(name);
    let mut out = Vec::new();
    for text in text("transcripts", &format!("{name}.jsonl")).lines() {
        channels.normalize(&line(1, text), &mut out);
    }
    out
}

fn found(name: &str) -> Vec<Observation> {
    replay(name).into_iter().map(|o| o.what).collect()
}

fn read(text: &str) -> Vec<Observation> {
    one(&mut reader("x"), &line(1, text))
        .into_iter()
        .map(|o| o.what)
        .collect()
}

#[test]
fn every_recorded_line_is_understood() {
    let mut lines = 0;
    for (name, body) in files("transcripts", "jsonl") {
        let mut channels = reader(&name);
        for text in body.lines() {
            let observed = one(&mut channels, &line(1, text));
            assert!(unrecognized(&observed).is_empty(), "{name}: {observed:?}");
            assert!(observed.iter().all(|o| o.source == Source::Transcript));
            lines += 1;
        }
    }
    assert!(lines > 1000);
}

#[test]
fn a_simple_turn_is_prompt_request_answer_and_end() {
    let observed = replay("simple-turn");
    let order: Vec<&str> = observed
        .iter()
        .map(|o| match &o.what {
            Observation::TxPrompt {
                origin: PromptOrigin::Human,
                meta: false,
                ..
            } => "prompt",
            Observation::TxApiRequest { retry_of: None, .. } => "request",
            Observation::TxAssistant { .. } => "answer",
            Observation::TxTurnDuration { .. } => "end",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(order, ["prompt", "request", "answer", "end"]);
    assert!(
        observed
            .iter()
            .all(|o| o.session.as_deref().is_some_and(|s| s != "main"))
    );
    let Observation::TxAssistant {
        index,
        usage,
        stop_reason,
        request_ref,
        aborted,
        agent,
        ..
    } = &observed[2].what
    else {
        panic!("no answer");
    };
    assert_eq!(*index, 0);
    assert_eq!(usage.unwrap().output_tokens, 20);
    assert_eq!(stop_reason.as_deref(), Some("end_turn"));
    assert!(!aborted);
    assert_eq!(*agent, None);
    let Observation::TxApiRequest { id, .. } = &observed[1].what else {
        panic!("no request");
    };
    assert_eq!(request_ref.as_ref(), Some(id));
}

#[test]
fn blocks_of_one_message_keep_their_index() {
    let blocks: Vec<(u32, &str)> = found("parallel-tools")
        .iter()
        .filter_map(|o| match o {
            Observation::TxAssistant { index, block, .. } => Some((
                *index,
                match block {
                    AssistantBlock::Text { .. } => "text",
                    AssistantBlock::Thinking { .. } => "thinking",
                    AssistantBlock::ToolUse { .. } => "tool",
                },
            )),
            _ => None,
        })
        .collect();
    assert!(blocks.contains(&(0, "text")) && blocks.contains(&(1, "tool")));
    assert!(blocks.iter().filter(|(_, kind)| *kind == "tool").count() >= 2);
    assert!(found("thinking").iter().any(|o| matches!(
        o,
        Observation::TxAssistant { block: AssistantBlock::Thinking { text }, .. } if !text.is_empty()
    )));
}

#[test]
fn each_retry_names_the_attempt_before_it() {
    let requests: Vec<(Arc<str>, Option<Arc<str>>)> = found("api-529-five-retries")
        .into_iter()
        .filter_map(|o| match o {
            Observation::TxApiRequest { id, retry_of, .. } => Some((id, retry_of)),
            _ => None,
        })
        .collect();
    assert_eq!(requests.len(), 6);
    assert_eq!(requests[0].1, None);
    for pair in requests.windows(2) {
        assert_eq!(pair[1].1.as_ref(), Some(&pair[0].0));
    }
    // Other requests of a turn build on the one before, but add messages.
    assert!(found("tool-success").iter().all(|o| !matches!(
        o,
        Observation::TxApiRequest {
            retry_of: Some(_),
            ..
        }
    )));
}

#[test]
fn api_errors_carry_class_status_prompt_and_reset() {
    for (name, class, code) in [
        ("api-error-final-529", "server_error", Some(529)),
        ("api-error-400", "unknown", Some(400)),
        ("api-error-401", "authentication_failed", Some(401)),
        ("api-error-403", "authentication_failed", Some(403)),
        ("api-error-429-usage-limit", "rate_limit", Some(429)),
        ("api-max-tokens", "max_output_tokens", None),
        ("api-refusal", "invalid_request", None),
    ] {
        let observed = found(name);
        let (prompt, error) = observed
            .iter()
            .find_map(|o| match o {
                Observation::TxApiError {
                    prompt_id, error, ..
                } => Some((prompt_id, error)),
                _ => None,
            })
            .expect(name);
        assert!(prompt.is_some(), "{name}");
        assert_eq!((&*error.error, error.status), (class, code), "{name}");
        assert!(!error.text.is_empty());
        let limited = name.contains("usage-limit");
        assert_eq!(error.resets_at, limited.then_some(1_796_088_772));
    }
}

#[test]
fn lines_that_claude_makes_up_after_a_crash_are_no_answer() {
    assert!(text("transcripts", "resume-after-kill.jsonl").contains("No response requested."));
    assert!(found("resume-after-kill").iter().all(|o| !matches!(
        o,
        Observation::TxAssistant { block: AssistantBlock::Text { text }, .. }
            if &**text == "No response requested."
    )));
}

#[test]
fn interrupt_markers_tell_interrupts_from_dialog_denials() {
    for (name, tool, message) in [
        ("interrupt-text", false, true),
        ("interrupt-text-ctrl-c", false, true),
        ("interrupt-tool", true, true),
        ("interrupt-parallel-tools", true, true),
        ("keyboard-denial-esc", true, false),
        ("keyboard-denial-no", true, false),
        ("ask-user-question-declined", true, false),
    ] {
        let observed = found(name);
        let (for_tool, message_id, prompt) = observed
            .iter()
            .find_map(|o| match o {
                Observation::TxInterrupted {
                    for_tool,
                    message_id,
                    prompt_id,
                    ..
                } => Some((*for_tool, message_id.is_some(), prompt_id)),
                _ => None,
            })
            .expect(name);
        assert_eq!((for_tool, message_id), (tool, message), "{name}");
        assert!(prompt.is_some());
    }
    let cut = found("interrupt-text");
    assert!(cut.iter().any(|o| matches!(
        o,
        Observation::TxAssistant {
            aborted: true,
            stop_reason: None,
            ..
        }
    )));
}

#[test]
fn a_prompt_that_quotes_a_marker_is_a_prompt() {
    let quoted = r#"{"type":"user","uuid":"u","origin":{"kind":"human"},"message":{"role":"user","content":"[Request interrupted by user]"}}"#;
    assert!(matches!(
        read(quoted).as_slice(),
        [Observation::TxPrompt {
            origin: PromptOrigin::Human,
            ..
        }]
    ));
}

#[test]
fn tool_results_say_error_and_denial() {
    let result = |name: &str| {
        found(name)
            .into_iter()
            .find_map(|o| match o {
                Observation::TxToolResult {
                    is_error,
                    denial,
                    text,
                    ..
                } => Some((is_error, denial, text)),
                _ => None,
            })
            .expect(name)
    };
    let (is_error, denial, text) = result("tool-success");
    assert!(!is_error && denial.is_none() && !text.is_empty());
    let (is_error, _, text) = result("tool-fail");
    assert!(is_error && text.starts_with("Exit code 3"));
    assert_eq!(
        result("keyboard-denial-esc").1.as_deref(),
        Some("user-rejected")
    );
    assert_eq!(result("hook-denial").1.as_deref(), Some("permission-rule"));
}

#[test]
fn commands_shell_lines_and_injected_texts_are_no_human_prompts() {
    for (name, wanted) in [
        ("bash-mode", "<bash-input>"),
        ("cmd-effort", "<command-name>"),
    ] {
        assert!(found(name).iter().any(|o| matches!(
            o,
            Observation::TxPrompt { text, origin: PromptOrigin::Other, meta: false, .. }
                if text.starts_with(wanted)
        )));
    }
    assert!(found("stop-hook-block").iter().any(|o| matches!(
        o,
        Observation::TxPrompt { text, meta: true, .. } if text.starts_with("Stop hook feedback:")
    )));
    assert!(found("compact").iter().any(|o| matches!(
        o,
        Observation::TxPrompt { text, meta: true, .. }
            if text.starts_with("This session is being continued")
    )));
    assert!(found("background-bash").iter().any(|o| matches!(
        o,
        Observation::TxPrompt {
            origin: PromptOrigin::TaskNotification,
            ..
        }
    )));
}

#[test]
fn lines_of_agents_name_the_agent_and_the_main_session() {
    let observed = replay("subagent-background.agent-a87c31efbdd63eb50");
    let mut agents = 0;
    for observed in &observed {
        assert!(observed.session.as_deref().is_some_and(|s| s != "main"));
        match &observed.what {
            Observation::TxAssistant { agent, .. }
            | Observation::TxToolResult { agent, .. }
            | Observation::TxApiRequest { agent, .. }
            | Observation::TxInterrupted { agent, .. } => {
                assert_eq!(agent.as_deref(), Some("a87c31efbdd63eb50"));
                agents += 1;
            }
            _ => {}
        }
    }
    assert!(agents > 3);
    let side = r#"{"type":"assistant","isSidechain":true,"message":{"id":"m","model":"x","content":[{"type":"text","text":"t"}]}}"#;
    assert!(matches!(
        read(side).as_slice(),
        [Observation::TxAssistant { agent: Some(_), .. }]
    ));
}

#[test]
fn a_blocked_prompt_gives_the_reason() {
    assert!(matches!(
        found("prompt-blocked-by-hook").as_slice(),
        [Observation::TxPromptBlocked { reason, .. }] if &**reason == "prompt blocked by hook"
    ));
}

#[test]
fn each_withdrawal_is_told_once_although_metadata_repeats() {
    let withdrawn = |o: &Observation| matches!(o, Observation::TxWithdrawn { .. });
    let observed = found("interrupt-withdrawn");
    assert_eq!(observed.iter().filter(|o| withdrawn(o)).count(), 2);
    let pointer = r#"{"type":"last-prompt","leafUuid":"00000000-0000-0000-0000-000000000000","explicit":true,"sessionId":"s"}"#;
    let mut reader = reader("x");
    assert_eq!(one(&mut reader, &line(1, pointer)).len(), 1);
    assert!(one(&mut reader, &line(1, pointer)).is_empty());
    let implicit = pointer.replace("\"explicit\":true,", "");
    assert!(read(&implicit).is_empty());
}

#[test]
fn the_queue_says_operation_content_and_absorption() {
    let absorbed = found("queue-absorbed-mid-turn");
    assert!(absorbed.iter().any(|o| matches!(
        o,
        Observation::TxQueue { operation, content: Some(content), absorbed: true, .. }
            if &**operation == "remove" && &**content == "queued mid tool K_QA"
    )));
    assert!(found("queue-popped").iter().any(|o| matches!(
        o,
        Observation::TxQueue { operation, absorbed: false, .. } if &**operation == "popAll"
    )));
}

#[test]
fn a_hook_decision_gives_the_call_it_belongs_to() {
    let decision = |event: &str, decision: &str| {
        read(&format!(
            r#"{{"type":"attachment","attachment":{{"type":"hook_permission_decision","decision":"{decision}","toolUseID":"toolu_1","hookEvent":"{event}"}},"sessionId":"s"}}"#
        ))
    };
    assert!(matches!(
        decision("PermissionRequest", "allow").as_slice(),
        [Observation::TxPermissionDecision { tool_use_id, allow: true, .. }]
            if &**tool_use_id == "toolu_1"
    ));
    assert!(matches!(
        decision("PermissionRequest", "deny").as_slice(),
        [Observation::TxPermissionDecision { allow: false, .. }]
    ));
    assert!(decision("PreToolUse", "allow").is_empty());
}

#[test]
fn compaction_and_turn_ends_are_told() {
    assert!(
        found("compact")
            .iter()
            .any(|o| matches!(o, Observation::TxCompacted { .. }))
    );
    assert!(found("subagent-background").iter().any(|o| matches!(
        o,
        Observation::TxTurnDuration {
            pending_agents: 1,
            ..
        }
    )));
}

#[test]
fn copied_history_of_a_branch_is_not_told_again() {
    let observed = found("branch.12f11120-82d3");
    let prompts = observed
        .iter()
        .filter(|o| {
            matches!(
                o,
                Observation::TxPrompt {
                    origin: PromptOrigin::Human,
                    ..
                }
            )
        })
        .count();
    assert_eq!(prompts, 1);
}

#[test]
fn unknown_kinds_are_told_once_each() {
    let mut reader = reader("x");
    for text in [
        r#"{"type":"brand-new"}"#,
        r#"{"type":"system","subtype":"brand_new"}"#,
        r#"{"type":"attachment","attachment":{"type":"brand_new"}}"#,
        r#"{"type":"assistant","message":{"id":"m","model":"x","content":[{"type":"brand_new"}]}}"#,
    ] {
        assert_eq!(
            unrecognized(&one(&mut reader, &line(1, text))).len(),
            1,
            "{text}"
        );
        assert!(one(&mut reader, &line(1, text)).is_empty(), "{text}");
    }
}

#[test]
fn broken_lines_are_told_and_the_reader_goes_on() {
    let mut reader = reader("x");
    for text in ["{", "nonsense", r#"{"type":7}"#, r#"{"type":"user"}"#] {
        let observed = one(&mut reader, &line(1, text));
        assert_eq!(unrecognized(&observed).len(), 1, "{text}");
        assert_eq!(observed.len(), 1);
    }
    assert!(one(&mut reader, &line(1, "  ")).is_empty());
    let good = r#"{"type":"user","uuid":"u","message":{"content":"cut \ud83d"}}"#;
    assert!(matches!(
        &one(&mut reader, &line(1, good))[0].what,
        Observation::TxPrompt { text, .. } if &**text == "cut \u{fffd}"
    ));
}

#[test]
fn only_notes_about_missing_content_are_gaps() {
    let note = |note| one(&mut reader("x"), &Raw::Tail { file: FILE, note });
    for missing in [
        TailNote::Shrank,
        TailNote::Replaced,
        TailNote::Oversize { bytes: 9 },
    ] {
        let observed = note(missing);
        assert!(matches!(
            observed[0].what,
            Observation::TxGap { file: FILE, .. }
        ));
        assert_eq!(observed[0].session.as_deref(), Some("main"));
    }
    assert!(note(TailNote::Appeared).is_empty());
    assert!(note(TailNote::Repaired).is_empty());
}
