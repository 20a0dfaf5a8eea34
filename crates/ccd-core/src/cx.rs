//! The context of a decision: reads the state, hands changes to `evolve`, collects events, intents and diagnostics. No decisions.

use alloc::{boxed::Box, sync::Arc};

use ccd_model::{
    event::DomainEvent,
    fact::Source,
    ids::{AgentKey, CallKey, MessageKey, OpId, PermissionKey, ToolKey, TurnKey},
    intent::{Intent, IoOp},
    time::Mono,
};

use crate::{
    config::CoreConfig,
    deadlines::{Row, duration},
    evolve::{
        AgentChange, CallChange, Change, MessageChange, PermissionChange, SessionChange, Store,
        ToolChange, TurnChange,
    },
    input::{Diagnostic, DiagnosticKind, Step},
    state::{Domain, Job, OpFor, OpKind},
};

/// Everything a decision may touch.
pub(crate) struct Cx<'a> {
    store: &'a mut Store,
    out: &'a mut Step,
    /// The configuration.
    pub(crate) config: &'a CoreConfig,
    /// Who said what is being decided about; the clock and commands count as our own.
    pub(crate) source: Source,
}

impl<'a> Cx<'a> {
    /// A context for one step.
    pub(crate) fn new(store: &'a mut Store, config: &'a CoreConfig, out: &'a mut Step) -> Self {
        Self {
            store,
            out,
            config,
            source: Source::Own,
        }
    }

    /// The state.
    pub(crate) fn s(&self) -> &Domain {
        self.store
    }

    /// The present moment.
    pub(crate) fn now(&self) -> Mono {
        self.store.now
    }

    /// Applies a change.
    pub(crate) fn set(&mut self, change: Change) -> bool {
        self.store.apply(change)
    }

    /// Changes the session.
    pub(crate) fn session(&mut self, change: SessionChange) -> bool {
        self.set(Change::Session(change))
    }

    /// Changes a turn.
    pub(crate) fn turn(&mut self, key: TurnKey, change: TurnChange) -> bool {
        self.set(Change::Turn(key, change))
    }

    /// Changes a tool run.
    pub(crate) fn tool(&mut self, key: ToolKey, change: ToolChange) -> bool {
        self.set(Change::Tool(key, change))
    }

    /// Changes a permission request.
    pub(crate) fn permission(&mut self, key: PermissionKey, change: PermissionChange) -> bool {
        self.set(Change::Permission(key, change))
    }

    /// Changes a subagent.
    pub(crate) fn agent(&mut self, key: AgentKey, change: AgentChange) -> bool {
        self.set(Change::Agent(key, change))
    }

    /// Changes a model call.
    pub(crate) fn call(&mut self, key: CallKey, change: CallChange) -> bool {
        self.set(Change::Call(key, change))
    }

    /// Changes a message.
    pub(crate) fn message(&mut self, key: MessageKey, change: MessageChange) -> bool {
        self.set(Change::Message(key, change))
    }

    /// Replaces the input job.
    pub(crate) fn job(&mut self, job: Option<Job>) {
        self.set(Change::Job(job.map(Box::new)));
    }

    /// Publishes an event.
    pub(crate) fn event(&mut self, event: DomainEvent) {
        // The end of the session stays the last event, whatever follows from it.
        let end = self
            .out
            .events
            .pop_if(|last| matches!(last, DomainEvent::SessionExited { .. }));
        self.out.events.push(event);
        self.out.events.extend(end);
    }

    /// Gives an instruction.
    pub(crate) fn intent(&mut self, intent: Intent) {
        self.out.intents.push(intent);
    }

    /// Asks for an operation, on behalf of the present job where there is one.
    pub(crate) fn io(&mut self, kind: OpKind, what: IoOp) -> OpId {
        let op = self.s().counters.op();
        let job = match kind {
            OpKind::Stage | OpKind::Unstage | OpKind::Editor | OpKind::Enter | OpKind::Capture => {
                self.s().job.as_ref().map(|job| job.key)
            }
            OpKind::Escape | OpKind::Dismiss | OpKind::Signal => None,
        };
        self.set(Change::Op(op, OpFor { kind, job }));
        self.intent(Intent::Io { op, what });
        op
    }

    /// Notes something that did not fit.
    pub(crate) fn diag(&mut self, kind: DiagnosticKind, about: impl Into<Arc<str>>) {
        self.session(SessionChange::Diagnosed);
        self.out.diagnostics.push(Diagnostic {
            kind,
            about: about.into(),
        });
    }

    /// Arms a row for its own duration.
    pub(crate) fn arm(&mut self, row: Row, id: u32) {
        self.arm_for(row, id, duration(row));
    }

    /// Arms a row for `ms`.
    pub(crate) fn arm_for(&mut self, row: Row, id: u32, ms: u64) {
        let at = self.now().after(ms);
        self.set(Change::Arm(row, id, at));
    }

    /// Arms a row unless it is armed.
    pub(crate) fn arm_once(&mut self, row: Row, id: u32) {
        if !self.s().deadlines.armed(row, id) {
            self.arm(row, id);
        }
    }

    /// Takes a row back.
    pub(crate) fn disarm(&mut self, row: Row, id: u32) {
        if self.s().deadlines.armed(row, id) {
            self.set(Change::Disarm(row, id));
        }
    }
}
