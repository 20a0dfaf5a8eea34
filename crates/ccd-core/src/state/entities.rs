//! The entities: turn, tool run, permission request, subagent, model call, message. Data only.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    sync::Arc,
    vec::Vec,
};

use ccd_model::{
    ids::{AgentKey, CallKey, HoldId, MessageKey, PermissionKey, ToolKey, TurnKey},
    json::RawJson,
    lattice::Status,
    observation::ApiError,
    outcome::{Origin, Outcome, Usage},
    permission::{DecidedBy, Decision},
    status::{AgentRunStatus, CallStatus, PermissionStatus, ToolStatus, TurnStatus},
    time::Mono,
};

/// A turn.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) key: TurnKey,
    pub(crate) prompt_id: Option<Arc<str>>,
    pub(crate) origin: Origin,
    pub(crate) status: Status<TurnStatus>,
    pub(crate) prompt: Arc<str>,
    pub(crate) submitted: bool,
    /// When it began to run.
    pub(crate) started_at: Option<Mono>,
    /// Something of it was seen: text or a tool.
    pub(crate) output: bool,
    /// A model request of it was seen in the transcript.
    pub(crate) requested: bool,
    /// When the last Stop hook arrived.
    pub(crate) stopped_at: Option<Mono>,
    pub(crate) stop_text: Option<Arc<str>>,
    /// The last text block of the main thread in the transcript.
    pub(crate) tx_text: Option<Arc<str>>,
    pub(crate) tx_error: Option<ApiError>,
    /// The transcript showed the end: the duration line or an interrupt marker.
    pub(crate) tx_done: bool,
    /// Waits inside Claude's queue while this turn runs.
    pub(crate) host: Option<TurnKey>,
    /// Claude took it into its host's turn.
    pub(crate) absorbed: bool,
    /// Final text.
    pub(crate) text: Arc<str>,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) returned: Option<Arc<str>>,
    pub(crate) usage: Option<Usage>,
    /// Message ids whose usage is counted.
    pub(crate) counted: BTreeSet<Arc<str>>,
    /// Transcript blocks that were taken in: message id and block index.
    pub(crate) blocks: BTreeSet<(Arc<str>, u32)>,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) settled: bool,
    pub(crate) accepted_at: Mono,
    pub(crate) ended_at: Option<Mono>,
    pub(crate) tools: Vec<ToolKey>,
    pub(crate) permissions: Vec<PermissionKey>,
    pub(crate) agents: Vec<AgentKey>,
    pub(crate) messages: Vec<MessageKey>,
    pub(crate) requests: Vec<Arc<str>>,
}

/// A tool run.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) key: ToolKey,
    pub(crate) id: Arc<str>,
    pub(crate) turn: Option<TurnKey>,
    pub(crate) agent: Option<AgentKey>,
    pub(crate) name: Arc<str>,
    pub(crate) input: RawJson,
    pub(crate) status: Status<ToolStatus>,
    /// `ToolStarted` was published.
    pub(crate) started: bool,
    /// An open permission request is bound to it.
    pub(crate) permission: Option<PermissionKey>,
    /// The background task or agent that it launched.
    pub(crate) launched: Option<Arc<str>>,
    pub(crate) result: Option<Arc<str>>,
    pub(crate) duration_ms: Option<u64>,
}

/// A permission request.
#[derive(Debug, Clone)]
pub(crate) struct Permission {
    pub(crate) key: PermissionKey,
    pub(crate) hold: HoldId,
    pub(crate) turn: Option<TurnKey>,
    pub(crate) tool: Option<ToolKey>,
    pub(crate) agent: Option<AgentKey>,
    pub(crate) name: Arc<str>,
    pub(crate) input: RawJson,
    pub(crate) suggestions: Option<RawJson>,
    pub(crate) status: Status<PermissionStatus>,
    pub(crate) asks_handler: bool,
    pub(crate) decision: Option<Decision>,
    pub(crate) by: Option<DecidedBy>,
    pub(crate) decided_at: Option<Mono>,
}

/// A subagent.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub(crate) key: AgentKey,
    pub(crate) id: Arc<str>,
    pub(crate) kind: Arc<str>,
    pub(crate) turn: Option<TurnKey>,
    pub(crate) status: Status<AgentRunStatus>,
}

/// An open model call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) key: CallKey,
    pub(crate) turn: Option<TurnKey>,
    pub(crate) agent: Option<AgentKey>,
    pub(crate) status: Status<CallStatus>,
    pub(crate) attempts: u32,
    /// The attempt that a retry banner announced last, of how many, and why.
    pub(crate) retry: Option<(u32, u32, Arc<str>)>,
}

/// A message of the main thread.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) key: MessageKey,
    pub(crate) id: Option<Arc<str>>,
    pub(crate) turn: Option<TurnKey>,
    pub(crate) text: String,
    pub(crate) next_index: u32,
    /// Deltas that came before their predecessors.
    pub(crate) early: BTreeMap<u32, (Arc<str>, bool)>,
    /// The last delta was applied.
    pub(crate) complete: bool,
    /// `MessageFinal` was published.
    pub(crate) finalized: bool,
}
