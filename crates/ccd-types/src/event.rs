//! Public events. Each has a position, two times and a kind; the kind's name is the contract.

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::{
    AgentId, AgentStatus, CallId, Error, Json, MessageId, NormalizationChange, PermissionDecision,
    PermissionId, ToolId, ToolRunStatus, TurnId, TurnStatus,
};

/// One event of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// Position in the session's event log, from 1; strictly increasing, not dense.
    pub seq: u64,
    /// Milliseconds since the session's start.
    pub at_ms: u64,
    /// Wall-clock time, RFC 3339 in UTC.
    pub ts: String,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl Event {
    /// An event from its parts.
    #[must_use]
    pub fn new(seq: u64, at_ms: u64, ts: String, kind: EventKind) -> Self {
        Self {
            seq,
            at_ms,
            ts,
            kind,
        }
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let value = Json::deserialize(d)?;
        let number = |name: &'static str| {
            value
                .get(name)
                .and_then(Json::as_u64)
                .ok_or_else(|| de::Error::missing_field(name))
        };
        let (seq, at_ms) = (number("seq")?, number("at_ms")?);
        let ts = value
            .get("ts")
            .and_then(Json::as_str)
            .ok_or_else(|| de::Error::missing_field("ts"))?
            .to_owned();
        let kind = serde_json::from_value(value).map_err(de::Error::custom)?;
        Ok(Self {
            seq,
            at_ms,
            ts,
            kind,
        })
    }
}

/// Who asked for a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnOrigin {
    /// This API.
    Api,
    /// A person typing in an attached terminal.
    Attached,
    /// A finished background task.
    TaskNotification,
    /// Claude's own continuation after a usage limit.
    AutoContinue,
}

/// How a permission request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PermissionResolution {
    /// The answer had its effect.
    Resolved,
    /// The answer had no visible effect, or only a dialog is known.
    DialogOnly,
    /// The request went away without our answer.
    Abandoned,
    /// Evidence ran out.
    Unknown,
}

/// Who gave a permission answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PermissionAnswer {
    /// A named policy.
    Policy,
    /// The handler.
    Handler,
    /// The handler panicked, timed out or was dropped: denied.
    HandlerFailure,
    /// The request could not be told apart from another one: denied.
    Ambiguous,
    /// The deadline passed: denied.
    Deadline,
    /// An interrupt: denied.
    Interrupt,
    /// The session closed: denied.
    Close,
    /// A person at the dialog.
    Keyboard,
    /// Questions and plans are not supported yet: denied.
    Unsupported,
}

/// How a tool ended, with its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// How it ended.
    pub status: ToolRunStatus,
    /// Result text, shortened to 2 KiB.
    pub result: String,
    /// Run time in milliseconds, as Claude measured it.
    pub duration_ms: Option<u64>,
}

impl ToolResult {
    /// A result from its parts.
    #[must_use]
    pub const fn new(status: ToolRunStatus, result: String, duration_ms: Option<u64>) -> Self {
        Self {
            status,
            result,
            duration_ms,
        }
    }
}

/// Why a compaction ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionTrigger {
    /// Asked for.
    Manual,
    /// By Claude itself.
    Auto,
}

/// What an alert is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AlertKind {
    /// A prompt arrived that is not the one sent; it was blocked before the model saw it.
    Mismatch,
    /// Sources disagree for too long.
    Conflict,
    /// What is seen does not fit the version profile.
    Drift,
    /// A dialog stands that no hook reported.
    UnreportedDialog,
    /// A permission answer had no visible effect.
    AnswerWithoutEffect,
    /// A deny rule of ours stopped a tool.
    DenyRuleHeld,
    /// Sessions of crashed owners were found and cleaned.
    OrphansFound,
    /// Content may be missing from the transcript.
    TranscriptGap,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
#[allow(
    missing_docs,
    reason = "field names repeat their types; the variant says what happened"
)]
pub enum EventKind {
    /// Ready for prompts.
    #[serde(rename = "session.ready")]
    SessionReady {
        session_id: String,
        model: Option<String>,
        self_tested: bool,
    },
    /// Over. `clean` when the end was ours and orderly.
    #[serde(rename = "session.exited")]
    SessionExited {
        code: Option<i32>,
        signal: Option<i32>,
        clean: bool,
        reason: String,
    },
    /// The delivered text differs from the given one.
    #[serde(rename = "prompt.normalized")]
    PromptNormalized {
        turn: TurnId,
        text: String,
        changes: Vec<NormalizationChange>,
    },
    /// Accepted and held until the session is idle.
    #[serde(rename = "turn.queued")]
    TurnQueued { turn: TurnId, origin: TurnOrigin },
    /// The exact text was acknowledged: the receipt.
    #[serde(rename = "turn.submitted")]
    TurnSubmitted { turn: TurnId, prompt_id: String },
    /// Running.
    #[serde(rename = "turn.started")]
    TurnStarted {
        turn: TurnId,
        origin: TurnOrigin,
        prompt: String,
    },
    /// Ended.
    #[serde(rename = "turn.ended")]
    TurnEnded {
        turn: TurnId,
        origin: TurnOrigin,
        status: TurnStatus,
        text: String,
        returned: Option<String>,
        error: Option<Error>,
    },
    /// A tool call is known.
    #[serde(rename = "tool.proposed")]
    ToolProposed {
        tool: ToolId,
        turn: Option<TurnId>,
        agent: Option<AgentId>,
        tool_use_id: String,
        name: String,
        input: Json,
    },
    /// A tool runs.
    #[serde(rename = "tool.started")]
    ToolStarted {
        tool: ToolId,
        turn: Option<TurnId>,
        name: String,
    },
    /// A tool ended.
    #[serde(rename = "tool.ended")]
    ToolEnded {
        tool: ToolId,
        turn: Option<TurnId>,
        name: String,
        result: ToolResult,
    },
    /// A permission is asked for.
    #[serde(rename = "permission.requested")]
    PermissionRequested {
        permission: PermissionId,
        turn: Option<TurnId>,
        tool: Option<ToolId>,
        agent: Option<AgentId>,
        tool_name: String,
        tool_input: Json,
        tool_use_id: Option<String>,
        permission_suggestions: Option<Json>,
    },
    /// A permission request ended.
    #[serde(rename = "permission.resolved")]
    PermissionResolved {
        permission: PermissionId,
        turn: Option<TurnId>,
        tool_name: String,
        resolution: PermissionResolution,
        decision: Option<PermissionDecision>,
        by: PermissionAnswer,
    },
    /// A subagent works.
    #[serde(rename = "agent.started")]
    AgentStarted {
        agent: AgentId,
        turn: Option<TurnId>,
        kind: String,
    },
    /// A subagent ended; `known` is false when evidence ran out.
    #[serde(rename = "agent.ended")]
    AgentEnded {
        agent: AgentId,
        known: bool,
        text: String,
    },
    /// A model call left.
    #[serde(rename = "model_call.started")]
    ModelCallStarted {
        call: CallId,
        turn: Option<TurnId>,
        agent: Option<AgentId>,
    },
    /// The next attempt waits.
    #[serde(rename = "model_call.retrying")]
    ModelCallRetrying {
        call: CallId,
        turn: Option<TurnId>,
        attempt: u32,
        max_attempts: u32,
        delay_s: u32,
        reason: String,
    },
    /// Quiet for too long.
    #[serde(rename = "model_call.stalled")]
    ModelCallStalled {
        call: CallId,
        turn: Option<TurnId>,
        evidence: String,
    },
    /// Moves again.
    #[serde(rename = "model_call.resumed")]
    ModelCallResumed { call: CallId, turn: Option<TurnId> },
    /// A model call ended.
    #[serde(rename = "model_call.ended")]
    ModelCallEnded {
        call: CallId,
        turn: Option<TurnId>,
        ended_well: bool,
    },
    /// Whole lines of the main thread's answer.
    #[serde(rename = "message.delta")]
    MessageDelta {
        message: MessageId,
        turn: Option<TurnId>,
        index: u32,
        text: String,
    },
    /// A text block is final; `confirmed` when the transcript said so.
    #[serde(rename = "message.final")]
    MessageFinal {
        message: MessageId,
        turn: Option<TurnId>,
        text: String,
        confirmed: bool,
    },
    /// A thinking block is final.
    #[serde(rename = "thinking.final")]
    ThinkingFinal { turn: Option<TurnId>, text: String },
    /// The usage limit was reached; `resets_at` in Unix seconds.
    #[serde(rename = "usage_limit.reached")]
    UsageLimitReached {
        resets_at: Option<i64>,
        message: String,
    },
    /// The usage limit is over.
    #[serde(rename = "usage_limit.cleared")]
    UsageLimitCleared {},
    /// Compaction began.
    #[serde(rename = "compaction.started")]
    CompactionStarted { trigger: CompactionTrigger },
    /// Compaction ended.
    #[serde(rename = "compaction.ended")]
    CompactionEnded {},
    /// The permission mode changed, as Claude spells it.
    #[serde(rename = "mode.changed")]
    ModeChanged { mode: String },
    /// The model changed.
    #[serde(rename = "model.changed")]
    ModelChanged { model: String },
    /// The agent's status changed.
    #[serde(rename = "status.changed")]
    StatusChanged { status: AgentStatus },
    /// Something a person should know.
    #[serde(rename = "alert.raised")]
    AlertRaised { alert: AlertKind, message: String },
    /// Events were dropped because the reader was too slow.
    #[serde(rename = "gap")]
    Gap { from: u64, to: u64 },
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_event_is_one_flat_object_and_reads_back() {
        let event = Event::new(
            7,
            12,
            "2026-01-01T00:00:00Z".into(),
            EventKind::TurnStarted {
                turn: TurnId::new("t1"),
                origin: TurnOrigin::Api,
                prompt: "hi".into(),
            },
        );
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(
            text,
            r#"{"seq":7,"at_ms":12,"ts":"2026-01-01T00:00:00Z","type":"turn.started","turn":"t1","origin":"api","prompt":"hi"}"#
        );
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
    }
}
