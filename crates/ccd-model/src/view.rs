//! The live view: the only way out of the core's state.

use alloc::{sync::Arc, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    ids::{AgentKey, CallKey, GenerationKey, PermissionKey, ToolKey, TurnKey},
    json::RawJson,
    outcome::{Origin, Outcome, Usage},
    permission::{DecidedBy, Decision},
    status::{
        AgentRunStatus, AgentStatus, CallStatus, Lifecycle, PermissionStatus, ToolStatus,
        TurnStatus,
    },
    time::Mono,
};

/// A turn in the view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnView {
    /// Key.
    pub turn: TurnKey,
    /// Claude's prompt id, once known.
    pub prompt_id: Option<Arc<str>>,
    /// Who asked.
    pub origin: Origin,
    /// Status.
    pub status: TurnStatus,
    /// Prompt text.
    pub prompt: Arc<str>,
    /// Acknowledged exactly.
    pub submitted: bool,
    /// Text so far, or final.
    pub text: Arc<str>,
    /// Outcome, once ended.
    pub outcome: Option<Outcome>,
    /// Prompt text that came back to the composer.
    pub returned: Option<Arc<str>>,
    /// Usage, once the transcript gave it.
    pub usage: Option<Usage>,
    /// Model that answered.
    pub model: Option<Arc<str>>,
    /// The transcript has caught up.
    pub settled: bool,
    /// When it was accepted.
    pub accepted_at: Mono,
    /// When it ended.
    pub ended_at: Option<Mono>,
    /// Its tool runs, in order of appearance.
    pub tools: Vec<ToolKey>,
}

/// A tool run in the view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolView {
    /// Key.
    pub tool: ToolKey,
    /// Claude's id.
    pub tool_use_id: Arc<str>,
    /// Turn.
    pub turn: Option<TurnKey>,
    /// Subagent, when not the main thread.
    pub agent: Option<AgentKey>,
    /// Tool name.
    pub name: Arc<str>,
    /// Input.
    pub input: RawJson,
    /// Status.
    pub status: ToolStatus,
    /// A source above the screen confirmed the status.
    pub confirmed: bool,
    /// Result text, shortened.
    pub result: Option<Arc<str>>,
    /// Run time, milliseconds, as Claude measured it.
    pub duration_ms: Option<u64>,
}

/// A permission request in the view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionView {
    /// Key.
    pub permission: PermissionKey,
    /// Turn.
    pub turn: Option<TurnKey>,
    /// Tool run, when exactly one fits.
    pub tool: Option<ToolKey>,
    /// Claude's id of that call.
    pub tool_use_id: Option<Arc<str>>,
    /// Subagent, when not the main thread.
    pub agent: Option<AgentKey>,
    /// Tool name.
    pub name: Arc<str>,
    /// Input.
    pub input: RawJson,
    /// Claude's suggestions.
    pub suggestions: Option<RawJson>,
    /// Status.
    pub status: PermissionStatus,
    /// Decision, once made.
    pub decision: Option<Decision>,
    /// Who decided.
    pub by: Option<DecidedBy>,
}

/// A subagent in the view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentView {
    /// Key.
    pub agent: AgentKey,
    /// Claude's id.
    pub id: Arc<str>,
    /// Type.
    pub kind: Arc<str>,
    /// Status.
    pub status: AgentRunStatus,
}

/// A model call in the view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallView {
    /// Key.
    pub call: CallKey,
    /// Turn.
    pub turn: Option<TurnKey>,
    /// Status.
    pub status: CallStatus,
    /// Attempts so far.
    pub attempts: u32,
}

/// Everything a facade may know, published once per batch of steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Lifecycle.
    pub lifecycle: Lifecycle,
    /// Derived status.
    pub status: AgentStatus,
    /// No turn and no background work.
    pub quiescent: bool,
    /// Claude's session id in force.
    pub session_id: Arc<str>,
    /// Generation in force.
    pub generation: GenerationKey,
    /// Transcript in force, once known.
    pub transcript_path: Option<Arc<str>>,
    /// Claude's pid, once known.
    pub claude_pid: Option<u32>,
    /// Claude's version as the registry says.
    pub claude_version: Option<Arc<str>>,
    /// Model in force, once known.
    pub model: Option<Arc<str>>,
    /// Permission mode in force, as Claude spells it.
    pub mode: Option<Arc<str>>,
    /// Turns still held in full, oldest first.
    pub turns: Vec<TurnView>,
    /// The turn that runs.
    pub running: Option<TurnKey>,
    /// Tool runs of the turns above.
    pub tools: Vec<ToolView>,
    /// Permission requests of the turns above.
    pub permissions: Vec<PermissionView>,
    /// Subagents that run or ran in the turns above.
    pub agents: Vec<AgentView>,
    /// Model calls that are open.
    pub calls: Vec<CallView>,
    /// Background tasks and agents that run.
    pub background: Vec<Arc<str>>,
    /// Usage-limit reset, Unix seconds; `Some(None)` when limited without a known time.
    pub usage_limit: Option<Option<i64>>,
    /// Diagnostics so far.
    pub diagnostics: u64,
    /// How it ended, once exited.
    pub exit: Option<ExitView>,
}

/// How the session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitView {
    /// Exit code.
    pub code: Option<i32>,
    /// Signal.
    pub signal: Option<i32>,
    /// The end was ours and orderly.
    pub clean: bool,
    /// In words.
    pub reason: Arc<str>,
}
