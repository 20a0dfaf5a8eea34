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

/// A scheduled prompt of Claude's own, listed by a Stop hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledItem {
    /// Claude's id of the schedule.
    pub id: Arc<str>,
    /// Cron expression or another wording of when.
    pub schedule: Arc<str>,
    /// What it will submit, shortened to its first 2 KiB.
    pub prompt: Arc<str>,
}

/// What a subagent's meta file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMeta {
    /// Claude's agent id, from the file name.
    pub agent_id: Arc<str>,
    /// Agent type.
    pub kind: Arc<str>,
    /// Description for a person.
    pub description: Arc<str>,
    /// The call that started it.
    pub tool_use_id: Option<Arc<str>>,
    /// How deep it was spawned, from 1.
    pub depth: Option<u32>,
    /// Whether it runs beside its turn; `None` when the file does not say.
    pub background: Option<bool>,
    /// It stopped normally. Absent after an interrupt or a kill.
    pub finished: bool,
}

/// How full a usage window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageWindow {
    /// Used, hundredths of a percent.
    pub used_centipercent: u32,
    /// Reset, Unix seconds.
    pub resets_at: Option<i64>,
}

/// What the status line command is told. Every part may be absent in a first call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StatusReport {
    /// Model id.
    pub model: Option<Arc<str>>,
    /// Model name for a person.
    pub model_name: Option<Arc<str>>,
    /// Effort word.
    pub effort: Option<Arc<str>>,
    /// Claude's version.
    pub version: Option<Arc<str>>,
    /// Cost of the session so far, millionths of a US dollar.
    pub cost_microusd: Option<u64>,
    /// Tokens in the context window.
    pub context_tokens: Option<u64>,
    /// Size of the context window, tokens.
    pub context_size: Option<u64>,
    /// Used part of the context window, hundredths of a percent.
    pub context_used_centipercent: Option<u32>,
    /// The five-hour usage window, once an answer carried it.
    pub five_hour: Option<UsageWindow>,
    /// The seven-day usage window.
    pub seven_day: Option<UsageWindow>,
}

/// What happened on one tunnel through the network sidecar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "tunnel")]
pub enum TunnelEvent {
    /// A tunnel was asked for and opened.
    Opened {
        /// Host name as asked for.
        host: Arc<str>,
        /// Port.
        port: u16,
    },
    /// A tunnel was asked for and not opened.
    Refused {
        /// Host name as asked for.
        host: Arc<str>,
        /// Port.
        port: u16,
        /// Why.
        reason: Arc<str>,
    },
    /// Bytes passed since the last such record.
    Bytes {
        /// From Claude.
        up: u64,
        /// To Claude.
        down: u64,
    },
    /// The tunnel is closed.
    Closed {
        /// Claude closed it; otherwise the other side did.
        by_claude: bool,
    },
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
    /// Stop listed scheduled prompts; told after [`Observation::Stopped`] whenever the list changed.
    Scheduled { items: Vec<ScheduledItem> },
    /// UserPromptExpansion: a command of the user was expanded.
    CommandExpanded {
        name: Arc<str>,
        arguments: Arc<str>,
        origin: Arc<str>,
    },
    /// PreModelSwitch.
    ModelSwitching { from: Arc<str>, to: Arc<str> },
    /// Setup.
    SetUp { trigger: Arc<str> },
    /// TeammateIdle.
    TeammateIdle { name: Arc<str>, team: Arc<str> },
    /// TaskCreated: an entry of the model's task list.
    TaskCreated {
        id: Arc<str>,
        subject: Arc<str>,
        description: Arc<str>,
    },
    /// TaskCompleted.
    TaskCompleted { id: Arc<str>, subject: Arc<str> },
    /// Elicitation: an MCP server asks.
    ElicitationAsked {
        server: Arc<str>,
        message: Arc<str>,
        mode: Arc<str>,
        schema: Option<RawJson>,
    },
    /// ElicitationResult.
    ElicitationAnswered { server: Arc<str>, action: Arc<str> },
    /// ConfigChange.
    ConfigChanged { layer: Arc<str>, path: Arc<str> },
    /// WorktreeCreate.
    WorktreeCreated { name: Arc<str> },
    /// WorktreeRemove.
    WorktreeRemoved { path: Arc<str> },
    /// InstructionsLoaded.
    InstructionsLoaded {
        path: Arc<str>,
        memory: Arc<str>,
        reason: Arc<str>,
    },
    /// CwdChanged.
    CwdChanged { from: Arc<str>, to: Arc<str> },
    /// FileChanged.
    FileChanged { path: Arc<str>, change: Arc<str> },
    /// DirectoryAdded.
    DirectoryAdded { path: Arc<str>, origin: Arc<str> },
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
    /// The conversation's title changed.
    TxTitle {
        file: FileKey,
        title: Arc<str>,
        by_user: bool,
    },
    /// The permission mode in the file's header changed. Not written when the live mode changes.
    TxMode { file: FileKey, mode: Arc<str> },
    /// Totals at the end of a conversation. Cost in millionths of a US dollar.
    TxCost {
        file: FileKey,
        microusd: u64,
        api_ms: u64,
    },
    /// A command that Claude ran itself, or its output.
    TxCommand {
        file: FileKey,
        name: Option<Arc<str>>,
        output: Arc<str>,
    },
    /// A notice for a person.
    TxNotice {
        file: FileKey,
        level: Arc<str>,
        text: Arc<str>,
    },
    /// Stop hooks ran; `errors` are the reasons of those that blocked.
    TxStopHooks {
        file: FileKey,
        count: u32,
        errors: Vec<Arc<str>>,
        prevented: bool,
    },
    /// A hook left a note in the conversation: the attachment kind says how it ended.
    TxHookNote {
        file: FileKey,
        event: Arc<str>,
        hook: Arc<str>,
        how: Arc<str>,
        tool_use_id: Option<Arc<str>>,
    },
    /// The model refused or was replaced by another.
    TxModelFallback {
        file: FileKey,
        kind: Arc<str>,
        from: Arc<str>,
        text: Arc<str>,
    },
    /// A queued prompt was taken into the running turn.
    TxAbsorbed { file: FileKey, prompt: Arc<str> },
    /// A plan file is in use or was left.
    TxPlan {
        file: FileKey,
        path: Option<Arc<str>>,
        open: bool,
    },
    /// The conversation goes on under another session id.
    TxContinuedIn { file: FileKey, session_id: Arc<str> },
    /// A subagent's meta file appeared or changed.
    AgentMeta(AgentMeta),
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
    // ---- status line ----
    /// The status line command was told something new.
    StatusReport(StatusReport),
    // ---- network ----
    /// Something happened on a tunnel. Its number is unique within the launch.
    Tunnel { tunnel: u32, what: TunnelEvent },
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
    /// What Claude left on the screen when it ended: its last lines, at most 2 KiB.
    LastScreen { text: Arc<str> },
    /// An operation ended.
    OpEnded { op: OpId, end: OpEnd },
    /// A part was lost.
    Lost { part: LostPart },
    /// Time passed.
    Tick,
    /// What the profile expects failed to come this often in a row: the row of its expectation table.
    Drift { row: Arc<str>, misses: u32 },
    /// A record that no table knows. Kept as a diagnostic.
    Unrecognized { channel: Arc<str>, what: Arc<str> },
}
