//! Session records in memory.
//!
//! What lives here: the [`StateStore`] port on a table, and which processes live. What never does: a process or a file
//! of this machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ccd_ports::{
    PortFut,
    error::{PortError, PortErrorKind},
    state::{ProcessId, Reaped, SessionRecord, StateStore},
};

/// The process that the fake says this one is.
const THIS: ProcessId = ProcessId {
    pid: 1000,
    start_time: 1,
};

struct State {
    records: BTreeMap<String, SessionRecord>,
    living: BTreeSet<(u32, u64)>,
    self_tests: BTreeSet<String>,
    runtime_base: Result<PathBuf, PortError>,
}

/// The store; clones share the table.
#[derive(Clone)]
pub struct FakeState(Arc<Mutex<State>>);

impl Default for FakeState {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State {
            records: BTreeMap::new(),
            living: BTreeSet::from([(THIS.pid, THIS.start_time)]),
            self_tests: BTreeSet::new(),
            runtime_base: Ok("/run/ccd".into()),
        })))
    }
}

impl FakeState {
    /// An empty store, in a world where only this process lives.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A process begins to live, or ends.
    pub fn set_alive(&self, process: ProcessId, alive: bool) {
        let id = (process.pid, process.start_time);
        let mut state = self.lock();
        if alive {
            state.living.insert(id);
        } else {
            state.living.remove(&id);
        }
    }

    /// What the question for the runtime base is answered with.
    pub fn set_runtime_base(&self, base: Result<PathBuf, PortError>) {
        self.lock().runtime_base = base;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn lives(&self, process: ProcessId) -> bool {
        self.living.contains(&(process.pid, process.start_time))
    }
}

impl StateStore for FakeState {
    fn write(&self, record: &SessionRecord) -> Result<(), PortError> {
        check(&record.session)?;
        self.lock()
            .records
            .insert(record.session.clone(), record.clone());
        Ok(())
    }

    fn remove(&self, session: &str) -> Result<(), PortError> {
        check(session)?;
        self.lock().records.remove(session);
        Ok(())
    }

    fn list(&self) -> Vec<SessionRecord> {
        let mut records: Vec<SessionRecord> = self.lock().records.values().cloned().collect();
        records.sort_by(|a, b| (a.started_ms, &a.session).cmp(&(b.started_ms, &b.session)));
        records
    }

    fn owner_alive(&self, record: &SessionRecord) -> bool {
        self.lock().lives(record.owner)
    }

    fn reap(&self) -> PortFut<'_, Vec<Reaped>> {
        Box::pin(async move {
            let orphans: Vec<SessionRecord> = self
                .list()
                .into_iter()
                .filter(|record| !self.owner_alive(record))
                .collect();
            let mut state = self.lock();
            orphans
                .into_iter()
                .map(|record| {
                    state.records.remove(&record.session);
                    let supervisor = record.supervisor.filter(|process| state.lives(*process));
                    if let Some(process) = supervisor {
                        state.living.remove(&(process.pid, process.start_time));
                    }
                    let killed = u32::from(supervisor.is_some());
                    Reaped {
                        record,
                        killed,
                        dir_removed: killed > 0,
                    }
                })
                .collect()
        })
    }

    fn this_process(&self) -> ProcessId {
        THIS
    }

    fn runtime_base(&self) -> Result<PathBuf, PortError> {
        self.lock().runtime_base.clone()
    }

    fn self_test_known(&self, key: &str) -> bool {
        self.lock().self_tests.contains(key)
    }

    fn remember_self_test(&self, key: &str) {
        if !key.is_empty() {
            self.lock().self_tests.insert(key.to_owned());
        }
    }
}

fn check(session: &str) -> Result<(), PortError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if session.is_empty() || session.len() > 64 || !session.bytes().all(plain) {
        let message = format!("{session:?} is no session id");
        return Err(PortError::new(PortErrorKind::Config, message));
    }
    Ok(())
}
