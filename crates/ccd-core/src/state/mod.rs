//! The domain state as plain data. Everyone in this crate may read it; only `evolve` ever holds it mutably. No decisions.

mod entities;
mod jobs;
mod tombstones;

use alloc::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    vec::Vec,
};

use ccd_model::{
    fact::Fact,
    ids::{
        AgentKey, CallKey, GenerationKey, HoldId, Launch, MessageKey, OpId, PermissionKey, Seq,
        ToolKey, TurnKey,
    },
    intent::Cadence,
    lattice::Status,
    observation::{Launched, RegistryStatus},
    screen::{Composer, ScreenFacts, StatusLine, Surface},
    status::{AgentStatus, Lifecycle, TurnStatus},
    time::{Mono, Wall},
    view::ExitView,
};

use crate::{deadlines::Deadlines, keys::Counters};

pub(crate) use entities::{Agent, Call, Message, Permission, Tool, Turn};
pub(crate) use jobs::{Interrupt, Job, JobWhat, Means, OpFor, OpKind, Phase, Then};
pub(crate) use tombstones::Tombstones;

/// Everything the core knows.
#[derive(Debug, Clone)]
pub(crate) struct Domain {
    pub(crate) now: Mono,
    pub(crate) wall: Wall,
    pub(crate) seq: Seq,
    pub(crate) session: Session,
    pub(crate) screen: Option<Seen>,
    pub(crate) registry: Option<Registry>,
    /// Background tasks that run: Claude's id and kind.
    pub(crate) background: BTreeMap<Arc<str>, Arc<str>>,
    pub(crate) turns: BTreeMap<TurnKey, Turn>,
    /// Held prompts, oldest first.
    pub(crate) queue: VecDeque<TurnKey>,
    /// Turns that are being delivered, run or are stopping.
    pub(crate) open_turns: BTreeSet<TurnKey>,
    /// Ended turns that are still held in full, in the order of their ends.
    pub(crate) ended_turns: VecDeque<TurnKey>,
    pub(crate) last_ended: Option<TurnKey>,
    pub(crate) tools: BTreeMap<ToolKey, Tool>,
    pub(crate) open_tools: BTreeSet<ToolKey>,
    pub(crate) permissions: BTreeMap<PermissionKey, Permission>,
    pub(crate) open_permissions: BTreeSet<PermissionKey>,
    pub(crate) agents: BTreeMap<AgentKey, Agent>,
    pub(crate) open_agents: BTreeSet<AgentKey>,
    /// Open model calls only.
    pub(crate) calls: BTreeMap<CallKey, Call>,
    pub(crate) messages: BTreeMap<MessageKey, Message>,
    pub(crate) ids: Ids,
    pub(crate) tombs: Tombstones,
    pub(crate) job: Option<Job>,
    pub(crate) interrupt: Option<Interrupt>,
    /// Operations that have not ended, with what they are for.
    pub(crate) ops: BTreeMap<OpId, OpFor>,
    pub(crate) deadlines: Deadlines,
    pub(crate) counters: Counters,
    pub(crate) shown: Shown,
    pub(crate) diagnostics: u64,
}

/// What is known of the session as a whole.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) life: Status<Lifecycle>,
    pub(crate) launch: Option<Launch>,
    pub(crate) launched: Option<Launched>,
    pub(crate) hook_started: bool,
    pub(crate) self_tested: bool,
    pub(crate) generation: GenerationKey,
    pub(crate) id: Arc<str>,
    pub(crate) past_ids: VecDeque<Arc<str>>,
    pub(crate) transcript_path: Option<Arc<str>>,
    pub(crate) claude_pid: Option<u32>,
    pub(crate) claude_version: Option<Arc<str>>,
    pub(crate) model: Option<Fact<Arc<str>>>,
    pub(crate) mode: Fact<Arc<str>>,
    pub(crate) compacting: bool,
    /// An API error said that nobody is logged in; cleared by the next answer.
    pub(crate) auth_failed: bool,
    pub(crate) usage_limit: Option<Option<i64>>,
    /// Some other Stop hook exists, so that Stop may not be the end of a turn.
    pub(crate) other_stop_hooks: bool,
    /// Since when the composer may hold text that is ours to clear.
    pub(crate) dirty: Option<Mono>,
    /// When an Escape last came too late.
    pub(crate) late_escape: Option<Mono>,
    /// Prompts that our own hook blocked and whose transcript line is still to come.
    pub(crate) blocks_owed: u32,
    /// The turn whose prompt line the transcript showed last.
    pub(crate) tx_turn: Option<TurnKey>,
    pub(crate) closing: Option<Closing>,
    pub(crate) end_reason: Option<Arc<str>>,
    pub(crate) exit: Option<ExitView>,
    /// The unreported dialog that was told of last.
    pub(crate) alerted: Option<Surface>,
    /// What Claude left on the screen when it ended.
    pub(crate) last_screen: Option<Arc<str>>,
}

/// How far a close has gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Closing {
    /// Why, in words.
    pub(crate) reason: Arc<str>,
    /// Asked for by the caller, as against a failure.
    pub(crate) asked: bool,
    pub(crate) term_sent: bool,
    pub(crate) kill_sent: bool,
}

/// The last capture.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) facts: ScreenFacts,
    /// How many captures in a row were like this one, from 1.
    pub(crate) equal: u32,
    /// When the last of them was taken.
    pub(crate) at: Mono,
}

/// The last status of Claude's registry file.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    pub(crate) status: RegistryStatus,
    pub(crate) at: Mono,
}

/// A model request as the transcript names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) turn: Option<TurnKey>,
    pub(crate) call: Option<CallKey>,
}

/// Claude's ids of retained entities.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ids {
    pub(crate) prompts: BTreeMap<Arc<str>, TurnKey>,
    pub(crate) tools: BTreeMap<Arc<str>, ToolKey>,
    pub(crate) agents: BTreeMap<Arc<str>, AgentKey>,
    pub(crate) requests: BTreeMap<Arc<str>, Request>,
    pub(crate) messages: BTreeMap<Arc<str>, MessageKey>,
    pub(crate) holds: BTreeMap<HoldId, PermissionKey>,
}

/// What was published last, so that only changes are published.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shown {
    pub(crate) status: Option<AgentStatus>,
    pub(crate) quiescent: bool,
    pub(crate) cadence: Option<Cadence>,
}

impl Domain {
    /// The lifecycle.
    pub(crate) fn life(&self) -> Lifecycle {
        self.session.life.get()
    }

    /// Whether nothing more may begin.
    pub(crate) fn over(&self) -> bool {
        matches!(self.life(), Lifecycle::Closing | Lifecycle::Exited)
    }

    /// The turn that runs or is stopping; the newest when an older one still waits for its end.
    pub(crate) fn current(&self) -> Option<&Turn> {
        self.open_turns
            .iter()
            .rev()
            .filter_map(|key| self.turns.get(key))
            .find(|turn| {
                matches!(
                    turn.status.get(),
                    TurnStatus::Running | TurnStatus::Stopping
                )
            })
    }

    /// The turn that is being delivered or waits inside Claude's own queue.
    pub(crate) fn submitting(&self) -> Option<&Turn> {
        self.open_turns
            .iter()
            .filter_map(|key| self.turns.get(key))
            .find(|turn| turn.status.get() == TurnStatus::Submitting)
    }

    /// A retained turn.
    pub(crate) fn turn(&self, key: TurnKey) -> Option<&Turn> {
        self.turns.get(&key)
    }

    /// The surface on screen.
    pub(crate) fn surface(&self) -> Option<&Surface> {
        self.screen.as_ref().map(|seen| &seen.facts.surface)
    }

    /// Whether the last capture stood at least twice.
    pub(crate) fn screen_stable(&self) -> bool {
        self.screen.as_ref().is_some_and(|seen| seen.equal >= 2)
    }

    /// The composer of the main surface; `None` when another surface owns the keys.
    pub(crate) fn composer(&self) -> Option<&Composer> {
        self.screen
            .as_ref()
            .filter(|seen| seen.facts.surface == Surface::Main)
            .map(|seen| &seen.facts.composer)
    }

    /// Whether the screen shows no sign of work. `false` without a capture.
    pub(crate) fn screen_idle(&self) -> bool {
        self.screen.as_ref().is_some_and(|seen| {
            seen.facts.surface == Surface::Main
                && matches!(
                    seen.facts.status_line,
                    StatusLine::None | StatusLine::Done | StatusLine::WaitingForAgents
                )
                && seen.facts.title_busy != Some(true)
        })
    }

    /// The registry's status.
    pub(crate) fn registry_status(&self) -> Option<&RegistryStatus> {
        self.registry.as_ref().map(|registry| &registry.status)
    }

    /// Whether the registry says that no turn runs. `false` when it says nothing.
    pub(crate) fn registry_idle(&self) -> bool {
        matches!(
            self.registry_status(),
            Some(RegistryStatus::Idle | RegistryStatus::Shell)
        )
    }

    /// Open permission requests, oldest first.
    pub(crate) fn permissions_open(&self) -> impl Iterator<Item = &Permission> {
        self.open_permissions
            .iter()
            .filter_map(|key| self.permissions.get(key))
    }

    /// Keys of open tools that satisfy `pred`, oldest first.
    pub(crate) fn tools_where(&self, pred: impl Fn(&Tool) -> bool) -> Vec<ToolKey> {
        self.open_tools
            .iter()
            .filter(|key| self.tools.get(key).is_some_and(&pred))
            .copied()
            .collect()
    }
}
