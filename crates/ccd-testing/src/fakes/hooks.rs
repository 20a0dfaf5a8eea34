//! Hook calls that exist only in a test.
//!
//! What lives here: the [`Hooks`] port, and calls that a test makes in Claude's place, ruled on as the real server
//! rules. What never does: the wire, or field names of one version (the test brings whole payloads).

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ccd_model::{
    ids::{HoldId, Launch},
    intent::PromptGuard,
    json::RawJson,
    observation::Verdict,
};
use ccd_ports::{
    clock::Clock,
    inbox::Inbox,
    raw::{HookRecord, Raw},
    session::Hooks,
};

struct State {
    launch: Launch,
    inbox: Arc<dyn Inbox>,
    clock: Arc<dyn Clock>,
    guard: Option<PromptGuard>,
    last_hold: u32,
    held: BTreeSet<HoldId>,
    answers: Vec<(HoldId, RawJson)>,
}

/// The port side; give it to the session.
pub struct FakeHooks(Arc<Mutex<State>>);

/// The test side: Claude's.
#[derive(Clone)]
pub struct FakeHooksControl(Arc<Mutex<State>>);

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn push(&self, raw: Raw) {
        self.inbox.push(self.launch, self.clock.now(), raw);
    }

    fn call(&self, event: &str, body: &str, hold: Option<HoldId>, verdict: Option<Verdict>) {
        self.push(Raw::Hook(HookRecord {
            event: event.into(),
            hold,
            verdict,
            denied_by: None,
            claude_pid: None,
            body: RawJson::new(body),
        }));
    }
}

impl FakeHooks {
    /// A hook server without listeners, and the control over its callers.
    #[must_use]
    pub fn new(
        launch: Launch,
        inbox: Arc<dyn Inbox>,
        clock: Arc<dyn Clock>,
    ) -> (Self, FakeHooksControl) {
        let state = Arc::new(Mutex::new(State {
            launch,
            inbox,
            clock,
            guard: None,
            last_hold: 0,
            held: BTreeSet::new(),
            answers: Vec::new(),
        }));
        (Self(Arc::clone(&state)), FakeHooksControl(state))
    }
}

impl Hooks for FakeHooks {
    fn arm(&mut self, guard: PromptGuard) {
        lock(&self.0).guard = Some(guard);
    }

    fn disarm(&mut self) {
        lock(&self.0).guard = None;
    }

    fn answer(&mut self, hold: HoldId, reply: RawJson) {
        let mut state = lock(&self.0);
        if state.held.remove(&hold) {
            state.answers.push((hold, reply));
        }
    }
}

impl FakeHooksControl {
    /// An observation hook.
    pub fn call(&self, event: &str, body: &str) {
        lock(&self.0).call(event, body, None, None);
    }

    /// A submitted prompt: `text` is what `body` holds. Uses the guard up and gives the verdict, as the real server does.
    pub fn submit(&self, event: &str, text: &str, body: &str) -> Verdict {
        let mut state = lock(&self.0);
        let verdict = match state.guard.take() {
            None => Verdict::Foreign,
            Some(guard) if *guard.text != *text => Verdict::MismatchBlocked,
            Some(guard) if guard.self_test => Verdict::SelfTest,
            Some(_) => Verdict::Exact,
        };
        state.call(event, body, None, Some(verdict));
        verdict
    }

    /// A request that is held open.
    pub fn hold(&self, event: &str, body: &str) -> HoldId {
        let mut state = lock(&self.0);
        state.last_hold = state.last_hold.saturating_add(1);
        let hold = HoldId(state.last_hold);
        state.held.insert(hold);
        state.call(event, body, Some(hold), None);
        hold
    }

    /// The caller of a held request goes away.
    pub fn go_away(&self, hold: HoldId) {
        let mut state = lock(&self.0);
        if state.held.remove(&hold) {
            state.push(Raw::HookGone { hold });
        }
    }

    /// The deadline of a held request passes.
    pub fn expire(&self, hold: HoldId) {
        let mut state = lock(&self.0);
        if state.held.remove(&hold) {
            state.push(Raw::HookExpired { hold });
        }
    }

    /// The armed guard.
    #[must_use]
    pub fn guard(&self) -> Option<PromptGuard> {
        lock(&self.0).guard.clone()
    }

    /// The answers given so far, in order.
    #[must_use]
    pub fn answers(&self) -> Vec<(HoldId, RawJson)> {
        lock(&self.0).answers.clone()
    }
}
