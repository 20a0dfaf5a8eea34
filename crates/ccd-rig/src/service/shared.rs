//! The state that connections and tests share: the log, the script's progress, the gates.
//!
//! What lives here: one lock and two ways to hear of a change (blocking and async). What never does: I/O.

use super::log::{Exchange, Log, Request};
use super::picker::Script;
use super::reply::Reply;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::watch;

/// A test's own picker; asked before the queues. `None` = the queues decide.
pub(super) type Handler = Box<dyn Fn(&Request) -> Option<Reply> + Send + Sync>;

pub(super) struct State {
    pub(super) log: Log,
    pub(super) script: Script,
    pub(super) released: BTreeSet<String>,
}

pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    version: watch::Sender<u64>,
    pub(super) handler: Option<Handler>,
    /// Makes the ids of two services differ.
    nonce: u64,
    counter: AtomicU64,
}

impl Shared {
    pub(super) fn new(script: Script, handler: Option<Handler>, nonce: u64) -> Self {
        Self {
            state: Mutex::new(State {
                log: Log::default(),
                script,
                released: BTreeSet::new(),
            }),
            changed: Condvar::new(),
            version: watch::Sender::new(0),
            handler,
            nonce,
            counter: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the state.
    pub(super) fn read<R>(&self, read: impl FnOnce(&State) -> R) -> R {
        read(&self.lock())
    }

    /// Changes the state and wakes everybody who waits for a change.
    pub(super) fn update<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.lock());
        self.version
            .send_modify(|version| *version = version.wrapping_add(1));
        self.changed.notify_all();
        result
    }

    /// Changes the exchange of a request.
    pub(super) fn exchange(&self, position: usize, change: impl FnOnce(&mut Exchange)) {
        self.update(|state| {
            if let Some(exchange) = state.log.exchanges.get_mut(position) {
                change(exchange);
            }
        });
    }

    /// Hears of changes from now on.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Waits until the gate is released.
    pub(super) async fn gate(&self, name: &str) {
        let mut changes = self.changes();
        while !self.read(|state| state.released.contains(name)) {
            if changes.changed().await.is_err() {
                // The sender lives in `self`; this cannot happen while we are here.
                return;
            }
        }
    }

    /// Blocks the thread until `found` gives something or the deadline passes.
    pub(super) fn wait<R>(
        &self,
        deadline: Instant,
        mut found: impl FnMut(&Log) -> Option<R>,
    ) -> Option<R> {
        let mut state = self.lock();
        loop {
            if let Some(result) = found(&state.log) {
                return Some(result);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// A new id with the API's look.
    pub(super) fn new_id(&self, prefix: &str) -> String {
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        format!("{prefix}01{:016x}{number:06}", self.nonce)
    }
}
