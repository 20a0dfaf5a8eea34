//! Processes that exist only in a test.
//!
//! What lives here: the [`Process`] port on a table in memory. What never does: process ids of this machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ccd_model::{
    ids::{Launch, OpId},
    intent::Signal,
    observation::OpEnd,
};
use ccd_ports::{clock::Clock, inbox::Inbox, raw::Raw, session::Process};

/// How a process ended: exit code and signal, where known.
pub type Ended = (Option<i32>, Option<i32>);

struct State {
    launch: Launch,
    inbox: Arc<dyn Inbox>,
    clock: Arc<dyn Clock>,
    pane_pid: u32,
    claude: Option<u32>,
    watched: BTreeSet<u32>,
    ended: BTreeMap<u32, Ended>,
    signals: Vec<Signal>,
    deaf: bool,
}

/// The port side; give it to the session.
pub struct FakeProcess(Arc<Mutex<State>>);

/// The test side.
#[derive(Clone)]
pub struct FakeProcessControl(Arc<Mutex<State>>);

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn push(&self, raw: Raw) {
        self.inbox.push(self.launch, self.clock.now(), raw);
    }

    fn tell(&self, pid: u32, (code, signal): Ended) {
        self.push(Raw::Exited { pid, code, signal });
    }

    fn end(&mut self, pid: u32, how: Ended) {
        if self.ended.insert(pid, how).is_none() && self.watched.contains(&pid) {
            self.tell(pid, how);
        }
    }
}

impl FakeProcess {
    /// A living pane process `pane_pid` and the control over it.
    #[must_use]
    pub fn new(
        launch: Launch,
        inbox: Arc<dyn Inbox>,
        clock: Arc<dyn Clock>,
        pane_pid: u32,
    ) -> (Self, FakeProcessControl) {
        let state = Arc::new(Mutex::new(State {
            launch,
            inbox,
            clock,
            pane_pid,
            claude: None,
            watched: BTreeSet::from([pane_pid]),
            ended: BTreeMap::new(),
            signals: Vec::new(),
            deaf: false,
        }));
        (Self(Arc::clone(&state)), FakeProcessControl(state))
    }
}

impl Process for FakeProcess {
    fn watch(&mut self, pid: u32) {
        let mut state = lock(&self.0);
        let new = state.watched.insert(pid);
        match state.ended.get(&pid).copied() {
            Some(how) if new => state.tell(pid, how),
            Some(_) => {}
            None => state.claude = Some(pid),
        }
    }

    fn signal(&mut self, op: OpId, signal: Signal) {
        let mut state = lock(&self.0);
        let target = state.claude.unwrap_or(state.pane_pid);
        if state.ended.contains_key(&target) {
            let reason = "the process has ended".into();
            state.push(Raw::OpEnded {
                op,
                end: OpEnd::Refused { reason },
            });
            return;
        }
        state.signals.push(signal);
        state.push(Raw::OpEnded {
            op,
            end: OpEnd::Done,
        });
        match signal {
            Signal::Term if state.deaf => {}
            Signal::Term => state.end(target, (None, Some(15))),
            Signal::Kill => state.end(target, (None, Some(9))),
        }
    }
}

impl FakeProcessControl {
    /// The process ends, with exit code and signal as far as they are known.
    pub fn exit(&self, pid: u32, code: Option<i32>, signal: Option<i32>) {
        lock(&self.0).end(pid, (code, signal));
    }

    /// From now on nothing ends at a request to end.
    pub fn ignore_term(&self) {
        lock(&self.0).deaf = true;
    }

    /// The signals that were sent.
    #[must_use]
    pub fn signals(&self) -> Vec<Signal> {
        lock(&self.0).signals.clone()
    }
}
