//! Recorded hook calls become the observations of their event; what cannot be read is told, in bounded text.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;

use ccd_model::{
    fact::Source,
    ids::HoldId,
    json::RawJson,
    observation::{AgentRef, Observation, StartSource, Verdict},
};
use ccd_ports::raw::{HookRecord, Raw};
use common::{channels, files, hook, one, text, unrecognized};
use serde_json::Value;

/// Known events that say nothing.
const IGNORED: [&str; 14] = [
    "UserPromptExpansion",
    "PreModelSwitch",
    "Setup",
    "TeammateIdle",
    "TaskCreated",
    "TaskCompleted",
    "Elicitation",
    "ElicitationResult",
    "ConfigChange",
    "WorktreeCreate",
    "WorktreeRemove",
    "InstructionsLoaded",
    "CwdChanged",
    "FileChanged",
];

fn payload(name: &str) -> Observation {
    let event = name.split('.').next().unwrap();
    let body = text("hooks/payloads", &format!("{name}.json"));
    let observed = one(&mut channels(), &hook(event, &body));
    assert_eq!(observed.len(), 1, "{name}");
    observed[0].what.clone()
}

#[test]
fn every_recorded_payload_is_understood() {
    let mut events = BTreeMap::new();
    for (name, body) in files("hooks/payloads", "json") {
        let event = name.split('.').next().unwrap();
        let observed = one(&mut channels(), &hook(event, &body));
        assert!(unrecognized(&observed).is_empty(), "{name}: {observed:?}");
        let silent = IGNORED.contains(&event) || event == "DirectoryAdded";
        assert_eq!(observed.is_empty(), silent, "{name}");
        if let [only] = observed.as_slice() {
            assert_eq!(only.source, Source::Hook);
            let value: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(only.session.as_deref(), value["session_id"].as_str());
        }
        events.insert(event.to_owned(), ());
    }
    assert_eq!(events.len(), 29);
}

#[test]
fn a_recorded_thousand_calls_is_understood_in_order() {
    let mut channels = channels();
    let mut calls = 0;
    for line in text("hooks/sequences", "all-hooks.jsonl").lines() {
        let call: Value = serde_json::from_str(line).unwrap();
        let event = call["event"].as_str().unwrap();
        let observed = one(&mut channels, &hook(event, &call["payload"].to_string()));
        assert!(unrecognized(&observed).is_empty(), "{line}");
        calls += 1;
    }
    assert!(calls > 1000);
}

#[test]
fn known_events_without_meaning_are_silent_and_unknown_ones_told_once() {
    let mut channels = channels();
    for event in IGNORED {
        assert!(
            one(&mut channels, &hook(event, "not json")).is_empty(),
            "{event}"
        );
    }
    assert_eq!(
        unrecognized(&one(&mut channels, &hook("Brandnew", "{}"))).len(),
        1
    );
    assert!(one(&mut channels, &hook("Brandnew", "{}")).is_empty());
}

#[test]
fn a_prompt_keeps_its_verdict_and_a_finished_task_is_told_apart() {
    let body = text("hooks/payloads", "UserPromptSubmit.typed.json");
    let Raw::Hook(record) = hook("UserPromptSubmit", &body) else {
        panic!("no hook");
    };
    let exact = Raw::Hook(HookRecord {
        verdict: Some(Verdict::Exact),
        ..record
    });
    let observed = one(&mut channels(), &exact);
    assert!(matches!(
        &observed[0].what,
        Observation::PromptSeen { verdict: Verdict::Exact, task_notification: false, mode: Some(mode), .. }
            if &**mode == "default"
    ));
    for name in ["agent", "shell"] {
        assert!(matches!(
            payload(&format!("UserPromptSubmit.task-notification-{name}")),
            Observation::PromptSeen {
                verdict: Verdict::Foreign,
                task_notification: true,
                ..
            }
        ));
    }
}

#[test]
fn tool_calls_carry_raw_bodies_agents_and_background_ids() {
    let Observation::ToolPre {
        input,
        agent,
        denied_by_us,
        ..
    } = payload("PreToolUse.Bash-subagent")
    else {
        panic!("no ToolPre");
    };
    assert!(input.value().unwrap().is_object());
    assert!(agent.is_some_and(|agent| &*agent.kind == "general-purpose"));
    assert_eq!(denied_by_us, None);
    let Observation::ToolPost {
        background_id,
        agent_id,
        duration_ms,
        ..
    } = payload("PostToolUse.Bash-background")
    else {
        panic!("no ToolPost");
    };
    assert!(background_id.is_some_and(|id| id.len() == 9));
    assert_eq!(agent_id, None);
    assert!(duration_ms.is_some());
    assert!(matches!(
        payload("PostToolUse.Agent"),
        Observation::ToolPost {
            agent_id: Some(_),
            background_id: None,
            ..
        }
    ));
    assert!(matches!(
        payload("PostToolUse.mcp-echo"),
        Observation::ToolPost { agent_id: None, result, .. } if !result.is_empty() && !result.starts_with('[')
    ));
    assert!(matches!(
        payload("PostToolUseFailure.Bash"),
        Observation::ToolFailed { error, duration_ms: Some(_), .. } if !error.is_empty()
    ));
}

#[test]
fn a_permission_request_keeps_its_hold_and_tells_absent_from_empty_suggestions() {
    assert!(matches!(
        payload("PermissionRequest.Bash-absent"),
        Observation::PermissionAsked {
            hold: HoldId(1),
            suggestions: None,
            ..
        }
    ));
    assert!(matches!(
        payload("PermissionRequest.Bash-nosuggestions"),
        Observation::PermissionAsked { suggestions: Some(list), .. } if list.get() == "[]"
    ));
    assert!(matches!(
        payload("PermissionRequest.Bash-addDirectories-setMode-subagent"),
        Observation::PermissionAsked { agent: Some(_), .. }
    ));
    let body = text("hooks/payloads", "PermissionRequest.Bash-absent.json");
    let Raw::Hook(record) = hook("PermissionRequest", &body) else {
        panic!("no hook");
    };
    let unheld = Raw::Hook(HookRecord {
        hold: None,
        ..record
    });
    assert_eq!(unrecognized(&one(&mut channels(), &unheld)).len(), 1);
}

#[test]
fn ends_of_turns_name_background_work_and_errors() {
    let Observation::Stopped {
        background,
        stop_hook_active,
        ..
    } = payload("Stop.first-bg-shell")
    else {
        panic!("no Stopped");
    };
    assert_eq!(&*background[0].kind, "shell");
    assert_eq!(&*background[0].status, "running");
    assert!(!stop_hook_active);
    assert!(matches!(
        payload("Stop.active"),
        Observation::Stopped {
            stop_hook_active: true,
            ..
        }
    ));
    assert!(matches!(
        payload("StopFailure.authentication_failed-subagent-403"),
        Observation::StopFailed { agent: Some(AgentRef { kind, .. }), error, .. }
            if kind.is_empty() && &*error == "authentication_failed"
    ));
    assert!(matches!(
        payload("StopFailure.server_error-529"),
        Observation::StopFailed { agent: None, .. }
    ));
}

#[test]
fn a_session_start_says_why_and_where() {
    for (name, expected) in [
        ("startup", StartSource::Startup),
        ("resume", StartSource::Resume),
        ("clear", StartSource::Clear),
        ("compact", StartSource::Compact),
    ] {
        assert!(matches!(
            payload(&format!("SessionStart.{name}")),
            Observation::SessionStarted { start, transcript_path, .. }
                if start == expected && transcript_path.ends_with(".jsonl")
        ));
    }
    let other = r#"{"session_id":"s","transcript_path":"/t","source":"teleport"}"#;
    assert!(matches!(
        one(&mut channels(), &hook("SessionStart", other))[0].what,
        Observation::SessionStarted {
            start: StartSource::Other,
            ..
        }
    ));
}

#[test]
fn streamed_text_keeps_index_and_end() {
    assert!(matches!(
        payload("MessageDisplay.delta-first"),
        Observation::MessageDelta {
            index: 0,
            last: false,
            prompt_id: Some(_),
            ..
        }
    ));
    assert!(matches!(
        payload("MessageDisplay.final"),
        Observation::MessageDelta { last: true, .. }
    ));
}

#[test]
fn the_response_of_a_batch_call_is_text_of_at_most_two_kibibytes() {
    let Observation::ToolBatch { calls, .. } = payload("PostToolBatch.parallel2") else {
        panic!("no ToolBatch");
    };
    assert_eq!(calls.len(), 2);
    assert!(
        calls[0]
            .response
            .starts_with("Async agent launched successfully.")
    );
    let long = "é".repeat(3000);
    let body = format!(
        r#"{{"session_id":"s","prompt_id":"p","tool_calls":[{{"tool_name":"Bash","tool_use_id":"t","tool_response":"a{long}"}}]}}"#
    );
    let observed = one(&mut channels(), &hook("PostToolBatch", &body));
    let Observation::ToolBatch { calls, .. } = &observed[0].what else {
        panic!("no ToolBatch");
    };
    assert_eq!(calls[0].response.len(), 2047);
    assert!(calls[0].response.ends_with('é'));
}

#[test]
fn lone_surrogates_are_repaired_in_texts_and_in_raw_bodies() {
    let body = r#"{"session_id":"s","prompt_id":"p","prompt":"cut \ud83d here"}"#;
    assert!(matches!(
        &one(&mut channels(), &hook("UserPromptSubmit", body))[0].what,
        Observation::PromptSeen { text, .. } if &**text == "cut \u{fffd} here"
    ));
    let body = r#"{"session_id":"s","tool_use_id":"t","tool_name":"Write","tool_input":{"content":"\ud83d"}}"#;
    let observed = one(&mut channels(), &hook("PreToolUse", body));
    let Observation::ToolPre { input, .. } = &observed[0].what else {
        panic!("no ToolPre");
    };
    assert_eq!(input.value().unwrap()["content"], "\u{fffd}");
}

#[test]
fn a_body_that_cannot_be_read_is_told_in_bounded_text() {
    let huge = format!(r#"{{"session_id":{}}}"#, "[".repeat(100_000));
    for body in [
        "",
        "null",
        "[]",
        "{",
        r#"{"session_id":1}"#,
        r#"{"hook_event_name":"Stop"}"#,
        r#"{"session_id":"s","tool_name":"Bash"}"#,
        &huge,
    ] {
        let observed = one(&mut channels(), &hook("PreToolUse", body));
        assert!(matches!(
            &observed[0].what,
            Observation::Unrecognized { channel, what } if &**channel == "hook" && what.len() <= 200
        ));
    }
}

#[test]
fn ends_of_holds_name_the_hold() {
    let hold = HoldId(7);
    let gone = one(&mut channels(), &Raw::HookGone { hold });
    assert_eq!(gone[0].what, Observation::PermissionGone { hold });
    let expired = one(&mut channels(), &Raw::HookExpired { hold });
    assert_eq!(expired[0].what, Observation::PermissionExpired { hold });
    assert_eq!(expired[0].source, Source::Hook);
}

#[test]
fn a_large_body_is_kept_byte_for_byte() {
    let content = "x".repeat(8 << 20);
    let input = format!(r#"{{ "content" : "{content}" }}"#);
    let body = format!(
        r#"{{"session_id":"s","tool_use_id":"t","tool_name":"Write","tool_input":{input}}}"#
    );
    let observed = one(&mut channels(), &hook("PreToolUse", &body));
    let Observation::ToolPre { input: found, .. } = &observed[0].what else {
        panic!("no ToolPre");
    };
    assert_eq!(*found, RawJson::new(input));
}
