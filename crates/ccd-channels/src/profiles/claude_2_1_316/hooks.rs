//! The 33 hook events of 2.1.316, their payload fields, and how each is registered and read.

use std::{borrow::Cow, sync::Arc};

use ccd_model::observation::{
    AgentRef, BackgroundItem, BatchCall, Observation, StartSource, Verdict,
};
use ccd_ports::raw::HookRecord;
use serde::Deserialize;
use serde_json::{Number, value::RawValue};

use super::{
    TASK_NOTIFICATION,
    blocks::{response_text, result_text},
};
use crate::{
    hooks::{HookReader, HookRow, HookTimeout, Registration, Transport},
    text::{Unreadable, arc, raw_json, shortened},
};

/// Longest response text kept of a call in a batch, bytes.
const BATCH_RESPONSE: usize = 2048;

const OBSERVE: Option<Registration> = Some(Registration {
    transport: Transport::Http,
    timeout: HookTimeout::Seconds(10),
    fails_closed: false,
});
const GUARD: Option<Registration> = Some(Registration {
    transport: Transport::Http,
    timeout: HookTimeout::Seconds(30),
    fails_closed: true,
});
/// HTTP hooks are skipped for this event.
const START: Option<Registration> = Some(Registration {
    transport: Transport::Command,
    timeout: HookTimeout::Seconds(10),
    fails_closed: false,
});
const PERMISSION: Option<Registration> = Some(Registration {
    transport: Transport::Command,
    timeout: HookTimeout::DeadlineAnd(60),
    fails_closed: true,
});

pub(super) const PERMISSION_EVENT: &str = "PermissionRequest";
pub(super) const PROMPT_EVENT: &str = "UserPromptSubmit";
pub(super) const TOOL_EVENT: &str = "PreToolUse";
pub(super) const PROMPT_FIELD: &str = "prompt";

const fn observed(
    event: &'static str,
    reader: HookReader,
    registration: Option<Registration>,
) -> HookRow {
    HookRow {
        event,
        reader: Some(reader),
        registration,
    }
}

const fn ignored(event: &'static str) -> HookRow {
    HookRow {
        event,
        reader: None,
        registration: None,
    }
}

pub(super) static EVENTS: [HookRow; 33] = [
    observed(TOOL_EVENT, pre_tool_use, GUARD),
    observed("PostToolUse", post_tool_use, OBSERVE),
    observed("PostToolUseFailure", post_tool_use_failure, OBSERVE),
    observed("PostToolBatch", post_tool_batch, OBSERVE),
    observed("Notification", notification, OBSERVE),
    observed(PROMPT_EVENT, user_prompt_submit, GUARD),
    ignored("UserPromptExpansion"),
    observed("SessionStart", session_start, START),
    observed("SessionEnd", session_end, OBSERVE),
    observed("Stop", stop, OBSERVE),
    observed("StopFailure", stop_failure, OBSERVE),
    observed("SubagentStart", subagent_start, OBSERVE),
    observed("SubagentStop", subagent_stop, OBSERVE),
    observed("PreCompact", pre_compact, OBSERVE),
    observed("PostCompact", post_compact, OBSERVE),
    ignored("PreModelSwitch"),
    observed("PostModelSwitch", post_model_switch, OBSERVE),
    observed(PERMISSION_EVENT, permission_request, PERMISSION),
    observed("PermissionDenied", permission_denied, OBSERVE),
    ignored("Setup"),
    ignored("TeammateIdle"),
    ignored("TaskCreated"),
    ignored("TaskCompleted"),
    ignored("Elicitation"),
    ignored("ElicitationResult"),
    ignored("ConfigChange"),
    ignored("WorktreeCreate"),
    ignored("WorktreeRemove"),
    ignored("InstructionsLoaded"),
    ignored("CwdChanged"),
    ignored("FileChanged"),
    ignored("DirectoryAdded"),
    observed("MessageDisplay", message_display, OBSERVE),
];

const START_SOURCES: [(&str, StartSource); 5] = [
    ("startup", StartSource::Startup),
    ("resume", StartSource::Resume),
    ("clear", StartSource::Clear),
    ("compact", StartSource::Compact),
    ("fork", StartSource::Fork),
];

/// Every field that a reader below uses. Bodies stay raw.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    hook_event_name: Option<Cow<'a, str>>,
    session_id: Option<Arc<str>>,
    transcript_path: Option<Arc<str>>,
    prompt_id: Option<Arc<str>>,
    permission_mode: Option<Arc<str>>,
    agent_id: Option<Arc<str>>,
    agent_type: Option<Arc<str>>,
    source: Option<Arc<str>>,
    model: Option<Arc<str>>,
    reason: Option<Arc<str>>,
    prompt: Option<Arc<str>>,
    tool_name: Option<Arc<str>>,
    tool_use_id: Option<Arc<str>>,
    #[serde(borrow)]
    tool_input: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_response: Option<&'a RawValue>,
    #[serde(borrow)]
    permission_suggestions: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Call<'a>>>,
    duration_ms: Option<Number>,
    error: Option<Arc<str>>,
    turn_id: Option<Arc<str>>,
    message_id: Option<Arc<str>>,
    index: Option<u32>,
    #[serde(rename = "final")]
    last: Option<bool>,
    delta: Option<Arc<str>>,
    stop_hook_active: Option<bool>,
    last_assistant_message: Option<Arc<str>>,
    background_tasks: Option<Vec<Task>>,
    message: Option<Arc<str>>,
    notification_type: Option<Arc<str>>,
    trigger: Option<Arc<str>>,
    to_model: Option<Arc<str>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    tool_name: Arc<str>,
    tool_use_id: Arc<str>,
    #[serde(borrow)]
    tool_response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Task {
    id: Arc<str>,
    #[serde(rename = "type", default)]
    kind: Option<Arc<str>>,
    #[serde(default)]
    status: Option<Arc<str>>,
    #[serde(default)]
    description: Option<Arc<str>>,
}

/// The parts of a tool's own result object that name background work.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseIds<'a> {
    #[serde(borrow)]
    background_task_id: Option<&'a RawValue>,
    #[serde(borrow)]
    agent_id: Option<&'a RawValue>,
}

type Read = Result<(Option<Arc<str>>, Observation), Unreadable>;

fn parse<'a>(record: &HookRecord, body: &'a str) -> Result<Body<'a>, Unreadable> {
    let body: Body<'a> = serde_json::from_str(body)?;
    match &body.hook_event_name {
        Some(name) if *name != *record.event => {
            Err(Unreadable::new(format!("the body says {name}")))
        }
        _ => Ok(body),
    }
}

fn need<T>(value: Option<T>, field: &str) -> Result<T, Unreadable> {
    value.ok_or_else(|| Unreadable::new(format!("no field {field}")))
}

fn or_empty(value: Option<Arc<str>>) -> Arc<str> {
    value.unwrap_or_else(|| arc(""))
}

fn millis(number: Option<Number>) -> Option<u64> {
    number.and_then(|n| n.as_u64().or_else(|| n.as_f64().map(|f| f.max(0.0) as u64)))
}

/// The subagent that the event happened in; `None` on the main thread.
fn agent(body: &Body<'_>) -> Option<AgentRef> {
    body.agent_id.clone().map(|id| AgentRef {
        id,
        kind: or_empty(body.agent_type.clone()),
    })
}

fn string_of(raw: Option<&RawValue>) -> Option<Arc<str>> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
}

fn pre_tool_use(record: &HookRecord, body: &str) -> Read {
    let body = parse(record, body)?;
    let what = Observation::ToolPre {
        agent: agent(&body),
        tool_use_id: need(body.tool_use_id, "tool_use_id")?,
        name: need(body.tool_name, "tool_name")?,
        input: raw_json(need(body.tool_input, "tool_input")?),
        prompt_id: or_empty(body.prompt_id),
        mode: body.permission_mode,
        denied_by_us: record.denied_by.clone(),
    };
    Ok((body.session_id, what))
}

fn post_tool_use(record: &HookRecord, body: &str) -> Read {
    let body = parse(record, body)?;
    let ids = body
        .tool_response
        .filter(|raw| raw.get().starts_with('{'))
        .and_then(|raw| serde_json::from_str::<ResponseIds<'_>>(raw.get()).ok());
    let what = Observation::ToolPost {
        agent: agent(&body),
        tool_use_id: need(body.tool_use_id, "tool_use_id")?,
        name: need(body.tool_name, "tool_name")?,
        input: raw_json(need(body.tool_input, "tool_input")?),
        result: body.tool_response.map_or_else(
            || arc(""),
            |raw| arc(shortened(&response_text(raw), BATCH_RESPONSE)),
        ),
        prompt_id: or_empty(body.prompt_id),
        duration_ms: millis(body.duration_ms),
        background_id: ids
            .as_ref()
            .and_then(|ids| string_of(ids.background_task_id)),
        agent_id: ids.as_ref().and_then(|ids| string_of(ids.agent_id)),
    };
    Ok((body.session_id, what))
}

fn post_tool_use_failure(record: &HookRecord, body: &str) -> Read {
    let body = parse(record, body)?;
    let what = Observation::ToolFailed {
        agent: agent(&body),
        tool_use_id: need(body.tool_use_id, "tool_use_id")?,
        name: need(body.tool_name, "tool_name")?,
        error: or_empty(body.error),
        prompt_id: or_empty(body.prompt_id),
        duration_ms: millis(body.duration_ms),
    };
    Ok((body.session_id, what))
}

fn post_tool_batch(record: &HookRecord, body: &str) -> Read {
    let mut body = parse(record, body)?;
    let calls = need(body.tool_calls.take(), "tool_calls")?
        .into_iter()
        .map(|call| BatchCall {
            tool_use_id: call.tool_use_id,
            name: call.tool_name,
            response: call.tool_response.map_or_else(
                || arc(""),
                |raw| arc(shortened(&result_text(raw), BATCH_RESPONSE)),
            ),
        })
        .collect();
    let what = Observation::ToolBatch {
        calls,
        agent: agent(&body),
        prompt_id: or_empty(body.prompt_id),
    };
    Ok((body.session_id, what))
}

fn permission_request(record: &HookRecord, body: &str) -> Read {
    let body = parse(record, body)?;
    let what = Observation::PermissionAsked {
        hold: need(record.hold, "hold")?,
        agent: agent(&body),
        name: need(body.tool_name, "tool_name")?,
        input: raw_json(need(body.tool_input, "tool_input")?),
        prompt_id: or_empty(body.prompt_id),
        suggestions: body.permission_suggestions.map(raw_json),
    };
    Ok((body.session_id, what))
}

fn permission_denied(record: &HookRecord, body: &str) -> Read {
    let body = parse(record, body)?;
    let what = Observation::ToolRefusedByMode {
        tool_use_id: need(body.tool_use_id, "tool_use_id")?,
        reason: or_empty(body.reason),
    };
    Ok((body.session_id, what))
}

fn user_prompt_submit(record: &HookRecord, body: &str) -> Read {
    let body = parse(record, body)?;
    let text = need(body.prompt, PROMPT_FIELD)?;
    let what = Observation::PromptSeen {
        prompt_id: or_empty(body.prompt_id),
        task_notification: text.starts_with(TASK_NOTIFICATION),
        text,
        verdict: record.verdict.unwrap_or(Verdict::Foreign),
        mode: body.permission_mode,
    };
    Ok((body.session_id, what))
}

fn session_start(record: &HookRecord, body: &str) -> Read {
    let body = parse(record, body)?;
    let source = need(body.source, "source")?;
    let what = Observation::SessionStarted {
        start: START_SOURCES
            .into_iter()
            .find(|(word, _)| *word == &*source)
            .map_or(StartSource::Other, |(_, start)| start),
        transcript_path: need(body.transcript_path, "transcript_path")?,
        model: body.model,
        claude_pid: record.claude_pid,
    };
    Ok((body.session_id, what))
}

fn session_end(record: &HookRecord, body: &str) -> Read {
    let body = parse(record, body)?;
    let what = Observation::SessionEnded {
        reason: or_empty(body.reason),
    };
    Ok((body.session_id, what))
}

fn stop(record: &HookRecord, body: &str) -> Read {
    let body = parse(record, body)?;
    let background = body
        .background_tasks
        .unwrap_or_default()
        .into_iter()
        .map(|task| BackgroundItem {
            id: task.id,
            kind: or_empty(task.kind),
            status: or_empty(task.status),
            description: or_empty(task.description),
        })
        .collect();
    let what = Observation::Stopped {
        prompt_id: or_empty(body.prompt_id),
        text: or_empty(body.last_assistant_message),
        stop_hook_active: body.stop_hook_active.unwrap_or(false),
        background,
        mode: body.permission_mode,
    };
    Ok((body.session_id, what))
}

fn stop_failure(record: &HookRecord, body: &str) -> Read {
    let body = parse(record, body)?;
    let what = Observation::StopFailed {
        agent: agent(&body),
        prompt_id: or_empty(body.prompt_id),
        error: or_empty(body.error),
        text: or_empty(body.last_assistant_message),
    };
    Ok((body.session_id, what))
}

fn subagent_start(record: &HookRecord, body: &str) -> Read {
    let body = parse(record, body)?;
    let what = Observation::AgentStarted {
        agent: need(agent(&body), "agent_id")?,
        prompt_id: or_empty(body.prompt_id),
    };
    Ok((body.session_id, what))
}

fn subagent_stop(record: &HookRecord, body: &str) -> Read {
    let body = parse(record, body)?;
    let what = Observation::AgentStopped {
        agent: need(agent(&body), "agent_id")?,
        text: or_empty(body.last_assistant_message),
    };
    Ok((body.session_id, what))
}

fn notification(record: &HookRecord, body: &str) -> Read {
    let body = parse(record, body)?;
    let what = Observation::Notified {
        kind: or_empty(body.notification_type),
        message: or_empty(body.message),
    };
    Ok((body.session_id, what))
}

fn pre_compact(record: &HookRecord, body: &str) -> Read {
    let body = parse(record, body)?;
    let what = Observation::CompactionStarted {
        trigger: or_empty(body.trigger),
    };
    Ok((body.session_id, what))
}

fn post_compact(record: &HookRecord, body: &str) -> Read {
    let body = parse(record, body)?;
    let what = Observation::CompactionEnded {
        trigger: or_empty(body.trigger),
    };
    Ok((body.session_id, what))
}

fn post_model_switch(record: &HookRecord, body: &str) -> Read {
    let body = parse(record, body)?;
    let what = Observation::ModelSwitched {
        to: need(body.to_model, "to_model")?,
    };
    Ok((body.session_id, what))
}

fn message_display(record: &HookRecord, body: &str) -> Read {
    let body = parse(record, body)?;
    let what = Observation::MessageDelta {
        turn_id: need(body.turn_id, "turn_id")?,
        message_id: need(body.message_id, "message_id")?,
        index: need(body.index, "index")?,
        last: body.last.unwrap_or(false),
        delta: or_empty(body.delta),
        prompt_id: body.prompt_id,
    };
    Ok((body.session_id, what))
}
