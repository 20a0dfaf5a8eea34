//! The core changes: everything that can happen to the state, as data.

use alloc::{boxed::Box, collections::BTreeMap, sync::Arc};

use ccd_model::{
    fact::Source,
    ids::{AgentKey, CallKey, Launch, MessageKey, OpId, PermissionKey, ToolKey, TurnKey},
    intent::Cadence,
    observation::{ApiError, Launched, RegistryStatus},
    outcome::{Origin, Outcome, Usage},
    permission::{DecidedBy, Decision},
    screen::{ScreenFacts, Surface},
    status::{
        AgentRunStatus, AgentStatus, CallStatus, Lifecycle, PermissionStatus, ToolStatus,
        TurnStatus,
    },
    time::{Mono, Stamp},
    view::ExitView,
};

use crate::{
    deadlines::Row,
    state::{
        Agent, Call, Closing, Interrupt, Job, Message, OpFor, Permission, Request, Tool, Turn,
    },
};

/// A change of the state.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Session(SessionChange),
    OpenTurn(Box<Turn>),
    Turn(TurnKey, TurnChange),
    OpenTool(Box<Tool>),
    Tool(ToolKey, ToolChange),
    OpenPermission(Box<Permission>),
    Permission(PermissionKey, PermissionChange),
    OpenAgent(Agent),
    Agent(AgentKey, AgentChange),
    /// A call and the id of its first request.
    OpenCall(Call, Arc<str>),
    Call(CallKey, CallChange),
    OpenMessage(Message),
    Message(MessageKey, MessageChange),
    /// A model request that belongs to a turn, with or without an open call.
    Request(Arc<str>, Request),
    Job(Option<Box<Job>>),
    Interrupt(Option<Interrupt>),
    Op(OpId, OpFor),
    OpEnded(OpId),
    Arm(Row, u32, Mono),
    Disarm(Row, u32),
    DisarmAll,
}

/// A change of the session as a whole.
#[derive(Debug, Clone)]
pub(crate) enum SessionChange {
    /// An input arrived.
    Input(Stamp),
    /// Time passed.
    Time(Mono),
    Launched(Launch, Launched),
    Life(Lifecycle, Source),
    HookStarted,
    SelfTested,
    Pid(u32),
    Version(Arc<str>),
    /// The session id, before or without a change of generation.
    Id(Arc<str>),
    /// A new generation.
    Generation(Arc<str>),
    Path(Arc<str>),
    Model(Arc<str>, Source),
    Mode(Arc<str>, Source),
    Registry(RegistryStatus),
    Screen(ScreenFacts),
    ScreenSame,
    Compacting(bool),
    AuthFailed(bool),
    UsageLimit(Option<Option<i64>>),
    OtherStopHooks,
    Background(BTreeMap<Arc<str>, Arc<str>>),
    BackgroundStarted(Arc<str>, Arc<str>),
    BackgroundEnded(Arc<str>),
    Dirty(bool),
    /// An Escape was pressed for a turn that had ended by itself: it may have met an idle composer.
    LateEscape,
    BlockOwed,
    BlockPaid,
    TxTurn(TurnKey),
    Closing(Closing),
    EndReason(Arc<str>),
    Exit(ExitView),
    Alerted(Option<Surface>),
    /// What Claude left on the screen when it ended.
    LastScreen(Arc<str>),
    ShownStatus(AgentStatus),
    ShownQuiescent(bool),
    ShownCadence(Cadence),
    Diagnosed,
}

/// A change of a turn.
#[derive(Debug, Clone)]
pub(crate) enum TurnChange {
    Advance(TurnStatus, Source),
    PromptId(Arc<str>),
    Prompt(Arc<str>),
    Origin(Origin),
    Submitted,
    Output,
    Requested,
    Stopped(Arc<str>),
    TxText(Arc<str>),
    TxError(ApiError),
    TxDone,
    Host(TurnKey),
    Absorbed,
    /// A transcript block was taken in; not legal twice.
    Block(Arc<str>, u32),
    /// Usage of a message; not legal twice.
    Usage(Arc<str>, Usage),
    Model(Arc<str>),
    Text(Arc<str>),
    End {
        status: TurnStatus,
        source: Source,
        outcome: Outcome,
        text: Arc<str>,
        returned: Option<Arc<str>>,
    },
    Settled,
}

/// A change of a tool run.
#[derive(Debug, Clone)]
pub(crate) enum ToolChange {
    Advance(ToolStatus, Source),
    Started,
    Permission(Option<PermissionKey>),
    Launched(Arc<str>),
    Result(Arc<str>, Option<u64>),
}

/// A change of a permission request.
#[derive(Debug, Clone)]
pub(crate) enum PermissionChange {
    Advance(PermissionStatus, Source),
    Bind(ToolKey),
    Decide(Decision, DecidedBy),
}

/// A change of a subagent.
#[derive(Debug, Clone)]
pub(crate) enum AgentChange {
    Advance(AgentRunStatus, Source),
}

/// A change of a model call.
#[derive(Debug, Clone)]
pub(crate) enum CallChange {
    Advance(CallStatus, Source),
    /// Another attempt left, under this request id.
    Attempt(Arc<str>),
    /// A retry banner announced an attempt.
    Retry(u32, u32, Arc<str>),
}

/// A change of a message.
#[derive(Debug, Clone)]
pub(crate) enum MessageChange {
    /// The delta that is due.
    Delta(Arc<str>, bool),
    /// A delta that came too early.
    Early(u32, Arc<str>, bool),
    /// The text as the transcript has it.
    Text(Arc<str>),
    Finalized,
}
