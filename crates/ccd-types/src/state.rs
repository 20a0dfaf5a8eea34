//! The live state of a session.

use serde::{Deserialize, Serialize};

use crate::{AgentId, PermissionRequest, ToolRun, TurnId, TurnOrigin, TurnStatus};

/// Life of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Lifecycle {
    /// Launched, not ready.
    Starting,
    /// Ready for prompts.
    Ready,
    /// Being closed.
    Closing,
    /// Over.
    Exited,
}

/// Phase of an open model call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "phase")]
#[non_exhaustive]
pub enum CallPhase {
    /// Nothing came back yet.
    Waiting,
    /// Output arrives.
    Streaming,
    /// Claude waits before the next attempt.
    Retrying {
        /// Number of the coming attempt.
        attempt: u32,
        /// Highest attempt number.
        max_attempts: u32,
        /// Cause as Claude shows it.
        reason: String,
    },
    /// Quiet for too long.
    Stalled,
}

/// What the agent is doing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
#[non_exhaustive]
pub enum AgentStatus {
    /// The session is over.
    Exited,
    /// Not ready yet.
    Starting,
    /// A permission request waits.
    AwaitingPermission,
    /// A question, a plan or an unknown dialog waits for a person.
    AwaitingInput,
    /// An interrupt is being confirmed.
    Interrupting,
    /// Claude is not logged in.
    AuthRequired,
    /// The usage limit was reached.
    UsageLimited,
    /// The conversation is being compacted.
    Compacting,
    /// At least one tool runs.
    RunningTools,
    /// Text is being written.
    Writing,
    /// A model call is open.
    ModelRequest {
        /// How it is doing.
        #[serde(flatten)]
        phase: CallPhase,
    },
    /// A turn is running and no more is known.
    Working,
    /// Nothing runs in the foreground.
    Idle,
    /// Evidence ran out.
    Unknown,
}

/// A turn that is open or ended lately.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TurnState {
    /// The turn.
    pub turn: TurnId,
    /// Who asked.
    pub origin: TurnOrigin,
    /// Status.
    pub status: TurnStatus,
    /// Text so far.
    pub text: String,
}

impl TurnState {
    /// A turn's state from its parts.
    #[must_use]
    pub const fn new(turn: TurnId, origin: TurnOrigin, status: TurnStatus, text: String) -> Self {
        Self {
            turn,
            origin,
            status,
            text,
        }
    }
}

/// A permission request that waits for an answer.
pub type PendingPermission = PermissionRequest;

/// How the session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExitInfo {
    /// Exit code of Claude.
    pub code: Option<i32>,
    /// Signal that ended Claude.
    pub signal: Option<i32>,
    /// The end was ours and orderly.
    pub clean: bool,
    /// In words.
    pub reason: String,
}

impl ExitInfo {
    /// An exit from its parts.
    #[must_use]
    pub const fn new(code: Option<i32>, signal: Option<i32>, clean: bool, reason: String) -> Self {
        Self {
            code,
            signal,
            clean,
            reason,
        }
    }
}

/// The live state of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct State {
    /// Lifecycle.
    pub lifecycle: Lifecycle,
    /// What the agent is doing.
    pub status: AgentStatus,
    /// No turn and no background work.
    pub quiescent: bool,
    /// Claude's session id.
    pub session_id: String,
    /// Transcript file, once known.
    pub transcript_path: Option<String>,
    /// Claude's pid, once known.
    pub claude_pid: Option<u32>,
    /// Claude's version, once known.
    pub claude_version: Option<String>,
    /// Model, once known.
    pub model: Option<String>,
    /// Permission mode as Claude spells it.
    pub permission_mode: Option<String>,
    /// Turns, oldest first, at most the last 64.
    pub turns: Vec<TurnState>,
    /// Tool runs that are open.
    pub open_tools: Vec<ToolRun>,
    /// Permission requests that wait.
    pub pending_permissions: Vec<PendingPermission>,
    /// Subagents that work.
    pub running_agents: Vec<AgentId>,
    /// Background work in words.
    pub background: Vec<String>,
    /// How the session ended.
    pub exit: Option<ExitInfo>,
}

impl State {
    /// A state with its required parts; lists start empty.
    #[must_use]
    pub fn new(
        lifecycle: Lifecycle,
        status: AgentStatus,
        quiescent: bool,
        session_id: String,
    ) -> Self {
        Self {
            lifecycle,
            status,
            quiescent,
            session_id,
            transcript_path: None,
            claude_pid: None,
            claude_version: None,
            model: None,
            permission_mode: None,
            turns: Vec::new(),
            open_tools: Vec::new(),
            pending_permissions: Vec::new(),
            running_agents: Vec::new(),
            background: Vec::new(),
            exit: None,
        }
    }
}
