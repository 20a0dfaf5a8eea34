//! Domain events: what the core publishes. Facades map them to their own public shapes.

use alloc::{sync::Arc, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    ids::{AgentKey, CallKey, GenerationKey, MessageKey, PermissionKey, Seq, ToolKey, TurnKey},
    json::RawJson,
    outcome::{Normalization, Origin, Outcome, Usage},
    permission::{DecidedBy, Decision},
    status::{AgentStatus, PermissionStatus, ToolStatus},
    time::{Mono, Wall},
};

/// A published event with its place in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// Position in the event log, from 1.
    pub seq: Seq,
    /// Monotonic time.
    pub at: Mono,
    /// Wall-clock time.
    pub wall: Wall,
    /// The event.
    pub event: DomainEvent,
}

/// Why a session could not become ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "start_failure")]
pub enum StartFailure {
    /// A start-up dialog stands on screen.
    Gate {
        /// Which one, as its table row is called.
        gate: Arc<str>,
        /// Its text.
        text: Arc<str>,
    },
    /// Nobody is logged in.
    LoggedOut,
    /// Claude ended before it was ready.
    Exited {
        /// Exit code.
        code: Option<i32>,
        /// Signal.
        signal: Option<i32>,
        /// Last screen text.
        screen: Arc<str>,
    },
    /// The self-test prompt did not come back through our hook.
    SelfTest {
        /// What was missing.
        reason: Arc<str>,
    },
    /// No readiness evidence within the limit.
    Timeout {
        /// What was missing.
        missing: Arc<str>,
    },
    /// The screen is not the classic renderer at our size.
    WrongRenderer,
    /// A part of the machinery was lost.
    Lost {
        /// Which.
        part: Arc<str>,
    },
}

/// How an interrupt request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptEnd {
    /// Confirmed: the turn ended interrupted or withdrawn.
    Confirmed,
    /// The turn ended by itself first.
    TooLate,
    /// No evidence within the limit.
    Unconfirmed,
}

/// Alerts: something a person should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "alert")]
pub enum Alert {
    /// A prompt arrived that is not the one sent; blocked before the model saw it.
    Mismatch {
        /// The turn.
        turn: TurnKey,
    },
    /// A sustained disagreement between sources.
    Conflict {
        /// About what.
        what: Arc<str>,
    },
    /// The version profile does not fit what is seen.
    Drift {
        /// The table row.
        row: Arc<str>,
    },
    /// A dialog that no hook reported.
    UnreportedDialog {
        /// Its text.
        text: Arc<str>,
    },
    /// An answer had no visible effect.
    AnswerWithoutEffect {
        /// The request.
        permission: PermissionKey,
    },
    /// A deny rule of ours stopped a tool that Claude would have run.
    DenyRuleHeld {
        /// The tool.
        tool: Arc<str>,
    },
    /// Sessions of crashed owners were found and cleaned.
    OrphansFound {
        /// How many.
        count: u32,
        /// One line for each.
        details: Vec<Arc<str>>,
    },
    /// Content may be missing from the transcript.
    TranscriptGap {
        /// Why.
        reason: Arc<str>,
    },
}

/// What the core publishes after a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "e")]
#[allow(
    missing_docs,
    reason = "field names repeat their types; the variant says what happened"
)]
pub enum DomainEvent {
    /// Ready for prompts.
    SessionReady {
        session_id: Arc<str>,
        model: Option<Arc<str>>,
        self_tested: bool,
    },
    /// Could not become ready; the session closes.
    SessionStartFailed { failure: StartFailure },
    /// Over. `clean` when the end was ours and orderly.
    SessionExited {
        code: Option<i32>,
        signal: Option<i32>,
        clean: bool,
        reason: Arc<str>,
    },
    /// A new Claude session id within our session.
    GenerationChanged {
        generation: GenerationKey,
        session_id: Arc<str>,
        transcript_path: Arc<str>,
    },
    /// The text differs from what was given.
    PromptNormalized {
        turn: TurnKey,
        text: Arc<str>,
        changes: Vec<Normalization>,
    },
    /// Accepted and held.
    TurnQueued { turn: TurnKey, origin: Origin },
    /// The exact text was acknowledged.
    TurnSubmitted { turn: TurnKey, prompt_id: Arc<str> },
    /// Running.
    TurnStarted {
        turn: TurnKey,
        origin: Origin,
        prompt: Arc<str>,
    },
    /// A Stop hook arrived, other Stop hooks may continue the turn.
    TurnStopping { turn: TurnKey },
    /// A stopping turn goes on.
    TurnContinued { turn: TurnKey },
    /// Ended. `text` is the final answer; `returned` is prompt text that came back to the composer and was cleared.
    TurnEnded {
        turn: TurnKey,
        origin: Origin,
        outcome: Outcome,
        text: Arc<str>,
        returned: Option<Arc<str>>,
    },
    /// The transcript has caught up with an ended turn, or the wait is over.
    TurnSettled {
        turn: TurnKey,
        usage: Option<Usage>,
        model: Option<Arc<str>>,
        complete: bool,
    },
    /// A tool call is known.
    ToolProposed {
        tool: ToolKey,
        turn: Option<TurnKey>,
        agent: Option<AgentKey>,
        tool_use_id: Arc<str>,
        name: Arc<str>,
        input: RawJson,
    },
    /// A tool runs.
    ToolStarted { tool: ToolKey },
    /// A tool ended. `result` is shortened text.
    ToolEnded {
        tool: ToolKey,
        status: ToolStatus,
        result: Arc<str>,
        duration_ms: Option<u64>,
    },
    /// A permission is asked for.
    PermissionRequested {
        permission: PermissionKey,
        turn: Option<TurnKey>,
        tool: Option<ToolKey>,
        agent: Option<AgentKey>,
        tool_use_id: Option<Arc<str>>,
        name: Arc<str>,
        input: RawJson,
        suggestions: Option<RawJson>,
        asks_handler: bool,
    },
    /// A permission request ended or was answered for good.
    PermissionResolved {
        permission: PermissionKey,
        status: PermissionStatus,
        decision: Option<Decision>,
        by: DecidedBy,
    },
    /// A subagent works.
    AgentStarted {
        agent: AgentKey,
        turn: Option<TurnKey>,
        kind: Arc<str>,
    },
    /// A subagent ended.
    AgentEnded {
        agent: AgentKey,
        known: bool,
        text: Arc<str>,
    },
    /// A model call left.
    CallStarted {
        call: CallKey,
        turn: Option<TurnKey>,
        agent: Option<AgentKey>,
    },
    /// The next attempt waits.
    CallRetrying {
        call: CallKey,
        attempt: u32,
        max: u32,
        delay_s: u32,
        reason: Arc<str>,
    },
    /// Quiet for too long.
    CallStalled { call: CallKey, evidence: Arc<str> },
    /// Moves again.
    CallResumed { call: CallKey },
    /// A model call ended.
    CallEnded { call: CallKey, ended_well: bool },
    /// Whole lines of the main thread's answer.
    MessageDelta {
        message: MessageKey,
        turn: Option<TurnKey>,
        index: u32,
        text: Arc<str>,
    },
    /// A text block is final. `confirmed` when the transcript said so.
    MessageFinal {
        message: MessageKey,
        turn: Option<TurnKey>,
        text: Arc<str>,
        confirmed: bool,
    },
    /// A thinking block is final.
    ThinkingFinal {
        turn: Option<TurnKey>,
        text: Arc<str>,
    },
    /// The usage limit was reached.
    UsageLimitReached {
        resets_at: Option<i64>,
        message: Arc<str>,
    },
    /// The usage limit is over.
    UsageLimitCleared,
    /// Compaction began.
    CompactionStarted { trigger: Arc<str> },
    /// Compaction ended.
    CompactionEnded,
    /// The permission mode changed.
    ModeChanged { mode: Arc<str> },
    /// The model changed.
    ModelChanged { model: Arc<str> },
    /// An interrupt request ended.
    InterruptEnded {
        turn: Option<TurnKey>,
        end: InterruptEnd,
    },
    /// The derived status changed.
    StatusChanged { status: AgentStatus },
    /// Nothing runs, in the foreground or the background; or something does again.
    QuiescentChanged { quiescent: bool },
    /// Something a person should know.
    Alert(Alert),
}
