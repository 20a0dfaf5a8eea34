//! The only writer of the domain state. Decision code hands in changes; nothing else can hold the state mutably,
//! because the field of [`Store`] is private to this module.

mod change;
mod entities;
mod retention;
mod session;
mod turns;

use alloc::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};
use core::ops::Deref;

use ccd_model::{
    fact::{Fact, Source},
    ids::{GenerationKey, Seq},
    lattice::Status,
    permission::PermissionMode,
    status::Lifecycle,
    time::{Mono, Wall},
};

use crate::state::{Domain, Ids, Session, Shown, Tombstones};

pub(crate) use change::{
    AgentChange, CallChange, Change, MessageChange, PermissionChange, SessionChange, ToolChange,
    TurnChange,
};

/// Holds the state and applies changes to it.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    domain: Domain,
}

impl Deref for Store {
    type Target = Domain;

    fn deref(&self) -> &Domain {
        &self.domain
    }
}

impl Store {
    /// The state before the first input.
    pub(crate) fn new(mode: PermissionMode) -> Self {
        Self {
            domain: Domain {
                now: Mono(0),
                wall: Wall(0),
                seq: Seq(0),
                session: Session {
                    life: Status::new(Lifecycle::Starting, Source::Own),
                    launch: None,
                    launched: None,
                    hook_started: false,
                    self_tested: false,
                    generation: GenerationKey(1),
                    id: Arc::from(""),
                    past_ids: VecDeque::new(),
                    transcript_path: None,
                    claude_pid: None,
                    claude_version: None,
                    model: None,
                    mode: Fact::new(Arc::from(mode.as_str()), Source::Own, Seq(0)),
                    compacting: false,
                    auth_failed: false,
                    usage_limit: None,
                    other_stop_hooks: false,
                    dirty: None,
                    late_escape: None,
                    blocks_owed: 0,
                    tx_turn: None,
                    closing: None,
                    end_reason: None,
                    exit: None,
                    alerted: None,
                    last_screen: None,
                },
                screen: None,
                registry: None,
                background: BTreeMap::new(),
                turns: BTreeMap::new(),
                queue: VecDeque::new(),
                open_turns: BTreeSet::new(),
                ended_turns: VecDeque::new(),
                last_ended: None,
                tools: BTreeMap::new(),
                open_tools: BTreeSet::new(),
                permissions: BTreeMap::new(),
                open_permissions: BTreeSet::new(),
                agents: BTreeMap::new(),
                open_agents: BTreeSet::new(),
                calls: BTreeMap::new(),
                messages: BTreeMap::new(),
                ids: Ids::default(),
                tombs: Tombstones::default(),
                job: None,
                interrupt: None,
                ops: BTreeMap::new(),
                deadlines: crate::deadlines::Deadlines::default(),
                counters: crate::keys::Counters::default(),
                shown: Shown::default(),
                diagnostics: 0,
            },
        }
    }

    /// Applies a change. `false`: it was not a legal move, or names nothing; nothing changed.
    pub(crate) fn apply(&mut self, change: Change) -> bool {
        let d = &mut self.domain;
        match change {
            Change::Session(change) => session::apply(d, change),
            Change::OpenTurn(turn) => turns::open(d, *turn),
            Change::Turn(key, change) => turns::apply(d, key, change),
            Change::OpenTool(tool) => entities::open_tool(d, *tool),
            Change::Tool(key, change) => entities::tool(d, key, change),
            Change::OpenPermission(permission) => entities::open_permission(d, *permission),
            Change::Permission(key, change) => entities::permission(d, key, change),
            Change::OpenAgent(agent) => entities::open_agent(d, agent),
            Change::Agent(key, change) => entities::agent(d, key, change),
            Change::OpenCall(call, id) => entities::open_call(d, call, id),
            Change::Call(key, change) => entities::call(d, key, change),
            Change::OpenMessage(message) => entities::open_message(d, message),
            Change::Message(key, change) => entities::message(d, key, change),
            Change::Request(id, request) => entities::request(d, id, request),
            Change::Job(job) => {
                if let Some(job) = &job {
                    d.counters.spend(crate::keys::Spent::JobKey(job.key));
                }
                d.job = job.map(|job| *job);
                true
            }
            Change::Interrupt(interrupt) => {
                d.interrupt = interrupt;
                true
            }
            Change::Op(op, what) => {
                d.counters.spend(crate::keys::Spent::OpId(op));
                d.ops.insert(op, what);
                true
            }
            Change::OpEnded(op) => d.ops.remove(&op).is_some(),
            Change::Arm(row, id, at) => {
                d.deadlines.arm(row, id, at);
                true
            }
            Change::Disarm(row, id) => {
                d.deadlines.disarm(row, id);
                true
            }
            Change::DisarmAll => {
                d.deadlines.disarm_all();
                true
            }
        }
    }
}
