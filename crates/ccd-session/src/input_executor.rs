//! The input executor: carries out the core's intents on the adapters. Every I/O operation ends as a raw record of its adapter.
//!
//! Here lives the mapping from intents to ports. Waiting for an end and deciding what follows never do.

use std::{collections::BTreeMap, sync::Arc};

use ccd_channels::Profile;
use ccd_model::{
    ids::{HoldId, OpId},
    intent::{IoOp, PromptGuard},
    json::RawJson,
    observation::Observation,
    permission::Decision,
};
use ccd_ports::session::{Editor, Hooks, Pane, Process, RegistryFile};

use crate::scheduler::SessionClock;

/// The adapters of one launch that intents reach.
pub(crate) struct Executor {
    /// Tables for answers.
    pub(crate) profile: &'static Profile,
    /// The hook server.
    pub(crate) hooks: Box<dyn Hooks>,
    /// The editor injection.
    pub(crate) editor: Box<dyn Editor>,
    /// The pane.
    pub(crate) pane: Box<dyn Pane>,
    /// The process.
    pub(crate) process: Box<dyn Process>,
    /// Claude's registry file.
    pub(crate) registry: Box<dyn RegistryFile>,
    /// Tool name and input of each held request: an answer may need them.
    pub(crate) held: BTreeMap<HoldId, (Arc<str>, RawJson)>,
}

impl Executor {
    /// Remembers what a held request is about, and forgets it when it is over.
    pub(crate) fn saw(&mut self, observation: &Observation) {
        match observation {
            Observation::PermissionAsked {
                hold, name, input, ..
            } => {
                self.held.insert(*hold, (Arc::clone(name), input.clone()));
            }
            Observation::PermissionGone { hold } | Observation::PermissionExpired { hold } => {
                self.held.remove(hold);
            }
            // Every other observation is about something else: no list of them could be complete here.
            _ => {}
        }
    }

    /// Starts one operation.
    pub(crate) fn io(&mut self, clock: &SessionClock, op: OpId, what: &IoOp) {
        match what {
            IoOp::Stage { text } => self.editor.stage(op, Arc::clone(text)),
            IoOp::Unstage { op: staged } => self.editor.unstage(op, *staged),
            IoOp::Key {
                key,
                guard,
                within_ms,
            } => {
                let until = clock.now().after(u64::from(*within_ms));
                self.pane.key(op, *key, *guard, clock.platform(until));
            }
            IoOp::Capture => self.pane.capture(Some(op)),
            IoOp::Signal { signal } => self.process.signal(op, *signal),
        }
    }

    /// Arms the prompt guard.
    pub(crate) fn arm(&mut self, guard: &PromptGuard) {
        self.hooks.arm(guard.clone());
    }

    /// Disarms the prompt guard.
    pub(crate) fn disarm(&mut self) {
        self.hooks.disarm();
    }

    /// Answers a held request. One that is not held any more was answered by somebody else.
    pub(crate) fn answer(&mut self, hold: HoldId, decision: &Decision) {
        if let Some((name, input)) = self.held.remove(&hold) {
            let reply = self.profile.permission_reply(decision, &name, &input);
            self.hooks.answer(hold, reply);
        }
    }

    /// Claude's own pid is known.
    pub(crate) fn watch(&mut self, pid: u32) {
        self.process.watch(pid);
        self.registry.pid(pid);
    }
}
