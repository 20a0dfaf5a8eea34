//! Claude's session registry, only in memory.
//!
//! What lives here: the [`RegistryFile`] port on entries that a test writes. What never does: a file or a process of
//! this machine, or looking by itself: a look happens when the pid becomes known, and when the test says that a cadence
//! has passed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ccd_model::{ids::Launch, json::RawJson};
use ccd_ports::{clock::Clock, inbox::Inbox, raw::Raw, session::RegistryFile};
use serde_json::Value;

struct State {
    launch: Launch,
    inbox: Arc<dyn Inbox>,
    clock: Arc<dyn Clock>,
    session_id: String,
    entries: BTreeMap<u32, String>,
    pid: Option<u32>,
    last: Option<RawJson>,
    cadence_ms: u32,
}

/// The port side; give it to the session.
pub struct FakeRegistry(Arc<Mutex<State>>);

/// The test side: the entries.
#[derive(Clone)]
pub struct FakeRegistryControl(Arc<Mutex<State>>);

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first object of a text, as text; `None` where it is torn.
fn first_object(text: &str) -> Option<RawJson> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    let first = text.get(..values.byte_offset())?.trim();
    value.is_object().then(|| RawJson::new(first))
}

impl State {
    fn look(&mut self) {
        let ours = |text: &String| {
            let value = first_object(text).and_then(|body| body.value());
            value.is_some_and(|value| value["sessionId"] == self.session_id.as_str())
        };
        if self.pid.is_none() {
            self.pid = self
                .entries
                .iter()
                .find(|(_, text)| ours(text))
                .map(|(pid, _)| *pid);
        }
        let Some(pid) = self.pid else { return };
        match self.entries.get(&pid).map(|text| first_object(text)) {
            Some(Some(body)) if self.last.as_ref() != Some(&body) => {
                self.last = Some(body.clone());
                self.push(Raw::Registry { body });
            }
            Some(_) => {}
            None if self.last.take().is_some() => self.push(Raw::RegistryGone),
            None => {}
        }
    }

    fn push(&self, raw: Raw) {
        self.inbox.push(self.launch, self.clock.now(), raw);
    }
}

impl FakeRegistry {
    /// A follower of an empty registry, and the control over the registry.
    #[must_use]
    pub fn new(
        session_id: &str,
        launch: Launch,
        inbox: Arc<dyn Inbox>,
        clock: Arc<dyn Clock>,
    ) -> (Self, FakeRegistryControl) {
        let state = Arc::new(Mutex::new(State {
            launch,
            inbox,
            clock,
            session_id: session_id.to_owned(),
            entries: BTreeMap::new(),
            pid: None,
            last: None,
            cadence_ms: 250,
        }));
        (Self(Arc::clone(&state)), FakeRegistryControl(state))
    }
}

impl RegistryFile for FakeRegistry {
    fn pid(&mut self, pid: u32) {
        let mut state = lock(&self.0);
        state.pid = Some(pid);
        state.look();
    }

    fn cadence(&mut self, ms: u32) {
        lock(&self.0).cadence_ms = ms;
    }
}

impl FakeRegistryControl {
    /// Writes the entry of a process.
    pub fn write(&self, pid: u32, text: &str) {
        lock(&self.0).entries.insert(pid, text.to_owned());
    }

    /// Removes the entry of a process.
    pub fn remove(&self, pid: u32) {
        lock(&self.0).entries.remove(&pid);
    }

    /// A cadence passes: the registry is looked at, unless the cadence is off.
    pub fn look(&self) {
        let mut state = lock(&self.0);
        if state.cadence_ms > 0 {
            state.look();
        }
    }

    /// The cadence asked for last, milliseconds.
    #[must_use]
    pub fn cadence_ms(&self) -> u32 {
        lock(&self.0).cadence_ms
    }
}
