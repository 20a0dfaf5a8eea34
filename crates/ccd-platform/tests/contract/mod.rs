//! What every adapter promises, as suites that run against the fake and the real thing alike.
//!
//! What lives here: rigs (what a suite needs besides the port), the inbox of a test, the suites. What never does: a
//! promise that only one of the two keeps.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "each test program uses a part of it"
)]

pub mod editor;
pub mod pane;
pub mod process;
pub mod real;

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use ccd_model::{
    ids::{Launch, OpId},
    observation::OpEnd,
    time::Mono,
};
use ccd_platform::clock::BootClock;
use ccd_ports::{clock::Clock, inbox::Inbox, raw::Raw};

pub const LAUNCH: Launch = Launch(1);

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(15);

/// Collects records.
#[derive(Default)]
pub struct Records(Mutex<Vec<(Mono, Raw)>>);

impl Inbox for Records {
    fn push(&self, launch: Launch, at: Mono, raw: Raw) {
        assert_eq!(launch, LAUNCH);
        self.0.lock().unwrap().push((at, raw));
    }
}

impl Records {
    pub fn all(&self) -> Vec<Raw> {
        self.0
            .lock()
            .unwrap()
            .iter()
            .map(|(_, raw)| raw.clone())
            .collect()
    }

    pub fn take(&self) -> Vec<Raw> {
        let records = std::mem::take(&mut *self.0.lock().unwrap());
        records.into_iter().map(|(_, raw)| raw).collect()
    }

    /// When an operation ended.
    pub fn ended_at(&self, op: OpId) -> Option<Mono> {
        let records = self.0.lock().unwrap();
        let found = records
            .iter()
            .find(|(_, raw)| matches!(raw, Raw::OpEnded { op: ended, .. } if *ended == op));
        found.map(|(at, _)| *at)
    }
}

pub fn clock() -> Arc<dyn Clock> {
    Arc::new(BootClock::new())
}

/// What both kinds of rig have.
pub trait Rig {
    fn records(&self) -> &Records;
    fn clock(&self) -> Arc<dyn Clock>;
    /// Lets a fake look again at what waits.
    fn settle(&mut self) {}

    /// Waits until the records fulfil `enough`; takes all of them.
    async fn until(&mut self, what: &str, enough: impl Fn(&[Raw]) -> bool) -> Vec<Raw> {
        let started = Instant::now();
        loop {
            self.settle();
            let records = self.records().all();
            if enough(&records) {
                return self.records().take();
            }
            assert!(
                started.elapsed() < PATIENCE,
                "no {what} in time: {records:?}"
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits for the end of an operation; takes all records.
    async fn ended(&mut self, op: OpId) -> (OpEnd, Vec<Raw>) {
        let records = self
            .until(&format!("end of {op}"), |records| {
                end(records, op).is_some()
            })
            .await;
        (end(&records, op).unwrap(), records)
    }
}

/// How an operation ended, which happens at most once.
pub fn end(records: &[Raw], op: OpId) -> Option<OpEnd> {
    let mut ends = records.iter().filter_map(|raw| match raw {
        Raw::OpEnded { op: ended, end } if *ended == op => Some(end.clone()),
        _ => None,
    });
    let first = ends.next();
    assert_eq!(ends.next(), None, "{op} ended twice");
    first
}

pub fn refused(reason: &str) -> OpEnd {
    OpEnd::Refused {
        reason: reason.into(),
    }
}

/// Waits for a condition of the outside world.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
