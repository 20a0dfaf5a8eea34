//! Observations: what one channel reported, already free of version-specific strings.

use alloc::{sync::Arc, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    fact::Source,
    ids::{FileKey, HoldId, OpId},
    intent::KeyHeld,
    json::RawJson,
    outcome::Usage,
    screen::ScreenFacts,
};

/// An observation with who said it and for which Claude session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// The channel.
    pub source: Source,
    /// Claude's session id that the source named; the core turns it into a generation.
    pub session: Option<Arc<str>>,
    /// What it reported.
    pub what: Observation,
}

/// A subagent as hooks name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRef {
    /// Claude's agent id.
    pub id: Arc<str>,
    /// Agent type; empty for Claude's internal agents.
    pub kind: Arc<str>,
}

/// One background item listed by a Stop hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundItem {
    /// Task or agent id.
    pub id: Arc<str>,
    /// `subagent`, `shell`, ….
    pub kind: Arc<str>,
    /// `running`, ….
    pub status: Arc<str>,
    /// Description for a person.
    pub description: Arc<str>,
}

/// One resolved call of a tool batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchCall {
    /// Claude's id of the call.
    pub tool_use_id: Arc<str>,
    /// Tool name.
    pub name: Arc<str>,
    /// Model-facing result, shortened to its first 2 KiB of text.
    pub response: Arc<str>,
}

/// The hook thread's verdict about a submitted prompt, decided before the model can see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Exactly the text of the armed guard.
    Exact,
    /// The self-test's nonce; blocked.
    SelfTest,
    /// Not the armed text; blocked.
    MismatchBlocked,
    /// No guard was armed, or the text is not ours: passed.
    Foreign,
}

/// Why a session id came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartSource {
    /// A new process.
    Startup,
    /// A resumed conversation.
    Resume,
    /// The clear command.
    Clear,
    /// Compaction.
    Compact,
    /// A fork.
    Fork,
    /// Named, but not known.
    Other,
}

/// Live status in Claude's session registry file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum RegistryStatus {
    /// A turn or a background agent runs.
    Busy,
    /// Nothing runs.
    Idle,
    /// Idle, but a background shell runs.
    Shell,
    /// Waits for a person.
    Waiting {
        /// Claude's own word for what it waits for.
        waiting_for: Arc<str>,
    },
    /// A status that this version's profile does not know.
    Other {
        /// The word.
        word: Arc<str>,
    },
}

/// Who a transcript prompt came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptOrigin {
    /// Typed or queued by a person or by us.
    Human,
    /// A finished background task.
    TaskNotification,
    /// Claude's continuation after a usage limit.
    AutoContinue,
    /// Another origin.
    Other,
}

/// One content block of an assistant transcript line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "block")]
pub enum AssistantBlock {
    /// Text.
    Text {
        /// The text.
        text: Arc<str>,
    },
    /// Thinking.
    Thinking {
        /// The text, empty when Claude does not store it.
        text: Arc<str>,
    },
    /// A tool call.
    ToolUse {
        /// Claude's id.
        id: Arc<str>,
        /// Tool name.
        name: Arc<str>,
        /// Input object.
        input: RawJson,
    },
}

/// An API error that ended a turn, from a synthetic transcript line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiError {
    /// Error class.
    pub error: Arc<str>,
    /// HTTP status.
    pub status: Option<u16>,
    /// Text shown to a person.
    pub text: Arc<str>,
    /// Usage-limit reset, Unix seconds.
    pub resets_at: Option<i64>,
}

/// How an I/O operation ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "end")]
pub enum OpEnd {
    /// Done.
    Done,
    /// The editor took the staged text and ended.
    Taken {
        /// What the composer held before.
        had: Arc<str>,
    },
    /// A guarded key was not pressed; nothing was sent.
    Held {
        /// Why.
        held: KeyHeld,
    },
    /// Refused before anything was done.
    Refused {
        /// Why.
        reason: Arc<str>,
    },
    /// Asked for, but the acknowledgement was lost. Never repeated blindly.
    Unknown,
}

/// A part of the machinery that was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LostPart {
    /// The control client to tmux; re-attached by the adapter when the server lives.
    ControlClient,
    /// The tmux server.
    TmuxServer,
    /// The hook server thread.
    HookServer,
    /// The supervisor process.
    Supervisor,
}

/// What the launcher found out and set up, told once per launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launched {
    /// Claude's session id that was asked for with `--session-id` or `--resume`.
    pub session_id: Arc<str>,
    /// A conversation is resumed.
    pub resume: bool,
    /// Run the self-test before ready.
    pub self_test: bool,
    /// A Stop hook that is not ours exists in some settings layer, so that Stop may not be the end.
    pub other_stop_hooks: bool,
    /// Process in the pane. Claude's own pid comes from hooks and the registry.
    pub pane_pid: u32,
}

/// A semantic fact reported by one channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "o")]
#[allow(
    missing_docs,
    reason = "field names are those of the recorded payloads; the variant says what they mean"
)]
pub enum Observation {
    // ---- hooks ----
    /// SessionStart.
    SessionStarted {
        start: StartSource,
        transcript_path: Arc<str>,
        model: Option<Arc<str>>,
        claude_pid: Option<u32>,
    },
    /// SessionEnd.
    SessionEnded { reason: Arc<str> },
    /// UserPromptSubmit.
    PromptSeen {
        prompt_id: Arc<str>,
        text: Arc<str>,
        verdict: Verdict,
        mode: Option<Arc<str>>,
        task_notification: bool,
    },
    /// PreToolUse.
    ToolPre {
        tool_use_id: Arc<str>,
        name: Arc<str>,
        input: RawJson,
        agent: Option<AgentRef>,
        prompt_id: Arc<str>,
        mode: Option<Arc<str>>,
        denied_by_us: Option<Arc<str>>,
    },
    /// PermissionRequest, held open.
    PermissionAsked {
        hold: HoldId,
        name: Arc<str>,
        input: RawJson,
        agent: Option<AgentRef>,
        prompt_id: Arc<str>,
        suggestions: Option<RawJson>,
    },
    /// A held PermissionRequest ended without our answer: its caller went away.
    PermissionGone { hold: HoldId },
    /// The hook thread itself denied a held request at its deadline.
    PermissionExpired { hold: HoldId },
    /// PostToolUse. `result` is readable text, shortened to its first 2 KiB.
    ToolPost {
        tool_use_id: Arc<str>,
        name: Arc<str>,
        input: RawJson,
        result: Arc<str>,
        agent: Option<AgentRef>,
        prompt_id: Arc<str>,
        duration_ms: Option<u64>,
        background_id: Option<Arc<str>>,
        agent_id: Option<Arc<str>>,
    },
    /// PostToolUseFailure.
    ToolFailed {
        tool_use_id: Arc<str>,
        name: Arc<str>,
        error: Arc<str>,
        agent: Option<AgentRef>,
        prompt_id: Arc<str>,
        duration_ms: Option<u64>,
    },
    /// PostToolBatch.
    ToolBatch {
        calls: Vec<BatchCall>,
        agent: Option<AgentRef>,
        prompt_id: Arc<str>,
    },
    /// PermissionDenied: refused by Claude's auto mode.
    ToolRefusedByMode {
        tool_use_id: Arc<str>,
        reason: Arc<str>,
    },
    /// MessageDisplay.
    MessageDelta {
        turn_id: Arc<str>,
        message_id: Arc<str>,
        index: u32,
        last: bool,
        delta: Arc<str>,
        prompt_id: Option<Arc<str>>,
    },
    /// Stop.
    Stopped {
        prompt_id: Arc<str>,
        text: Arc<str>,
        stop_hook_active: bool,
        background: Vec<BackgroundItem>,
        mode: Option<Arc<str>>,
    },
    /// StopFailure.
    StopFailed {
        prompt_id: Arc<str>,
        error: Arc<str>,
        text: Arc<str>,
        agent: Option<AgentRef>,
    },
    /// SubagentStart.
    AgentStarted {
        agent: AgentRef,
        prompt_id: Arc<str>,
    },
    /// SubagentStop.
    AgentStopped { agent: AgentRef, text: Arc<str> },
    /// Notification.
    Notified { kind: Arc<str>, message: Arc<str> },
    /// PreCompact.
    CompactionStarted { trigger: Arc<str> },
    /// PostCompact.
    CompactionEnded { trigger: Arc<str> },
    /// PostModelSwitch.
    ModelSwitched { to: Arc<str> },
    // ---- transcript ----
    /// A prompt line.
    TxPrompt {
        file: FileKey,
        uuid: Arc<str>,
        prompt_id: Option<Arc<str>>,
        text: Arc<str>,
        origin: PromptOrigin,
        meta: bool,
    },
    /// One block of an assistant message.
    TxAssistant {
        file: FileKey,
        agent: Option<Arc<str>>,
        message_id: Arc<str>,
        request_ref: Option<Arc<str>>,
        index: u32,
        block: AssistantBlock,
        stop_reason: Option<Arc<str>>,
        usage: Option<Usage>,
        model: Arc<str>,
        aborted: bool,
    },
    /// A turn ended by an API error.
    TxApiError {
        file: FileKey,
        prompt_id: Option<Arc<str>>,
        error: ApiError,
    },
    /// A tool result line.
    TxToolResult {
        file: FileKey,
        agent: Option<Arc<str>>,
        prompt_id: Option<Arc<str>>,
        tool_use_id: Arc<str>,
        is_error: bool,
        text: Arc<str>,
        denial: Option<Arc<str>>,
    },
    /// An interrupt marker.
    TxInterrupted {
        file: FileKey,
        agent: Option<Arc<str>>,
        prompt_id: Option<Arc<str>>,
        for_tool: bool,
        message_id: Option<Arc<str>>,
    },
    /// A model request left, retries included.
    TxApiRequest {
        file: FileKey,
        agent: Option<Arc<str>>,
        id: Arc<str>,
        retry_of: Option<Arc<str>>,
    },
    /// A turn that was not interrupted ended.
    TxTurnDuration {
        file: FileKey,
        duration_ms: u64,
        pending_agents: u32,
    },
    /// Claude's own prompt queue.
    TxQueue {
        file: FileKey,
        operation: Arc<str>,
        content: Option<Arc<str>>,
        absorbed: bool,
    },
    /// A prompt was blocked by a hook.
    TxPromptBlocked { file: FileKey, reason: Arc<str> },
    /// A hook decided a permission; gives the tool_use_id that PermissionRequest lacks.
    TxPermissionDecision {
        file: FileKey,
        tool_use_id: Arc<str>,
        allow: bool,
    },
    /// A withdrawn prompt left the conversation.
    TxWithdrawn { file: FileKey },
    /// Compaction boundary.
    TxCompacted { file: FileKey },
    /// A file shrank, was replaced, or had an oversize line: content may be missing.
    TxGap { file: FileKey, reason: Arc<str> },
    // ---- registry ----
    /// The registry file's live status.
    Registry {
        pid: u32,
        version: Arc<str>,
        status: Option<RegistryStatus>,
    },
    /// The registry file is gone.
    RegistryGone,
    // ---- screen ----
    /// A capture that differs from the one before.
    Screen { facts: ScreenFacts },
    /// The same frame once more.
    ScreenSame,
    // ---- process and own ----
    /// Claude was launched.
    Launched(Launched),
    /// Claude ended.
    Exited {
        pid: u32,
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// An operation ended.
    OpEnded { op: OpId, end: OpEnd },
    /// A part was lost.
    Lost { part: LostPart },
    /// Time passed.
    Tick,
    /// A record that no table knows. Kept as a diagnostic.
    Unrecognized { channel: Arc<str>, what: Arc<str> },
}
