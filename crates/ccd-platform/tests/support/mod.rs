//! An inbox that a test waits on.
//!
//! What lives here: the records of one test, waited for by condition. What never does: knowledge of any adapter.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    reason = "each test program uses a part of it"
)]

use std::{
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use ccd_model::{ids::Launch, time::Mono};
use ccd_ports::{inbox::Inbox, raw::Raw};

pub const LAUNCH: Launch = Launch(3);

/// Longest wait for anything that is to happen.
pub const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
pub struct Records {
    all: Mutex<Vec<(Mono, Raw)>>,
    more: Condvar,
}

impl Inbox for Records {
    fn push(&self, launch: Launch, at: Mono, raw: Raw) {
        assert_eq!(launch, LAUNCH);
        self.all.lock().unwrap().push((at, raw));
        self.more.notify_all();
    }
}

impl Records {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Everything since the last take.
    pub fn take(&self) -> Vec<Raw> {
        let all = std::mem::take(&mut *self.all.lock().unwrap());
        all.into_iter().map(|(_, raw)| raw).collect()
    }

    /// Waits until there are at least `count` records since the last take, and takes all.
    pub fn wait(&self, count: usize) -> Vec<Raw> {
        self.wait_stamped(count)
            .into_iter()
            .map(|(_, raw)| raw)
            .collect()
    }

    /// The same with their times.
    pub fn wait_stamped(&self, count: usize) -> Vec<(Mono, Raw)> {
        let deadline = Instant::now() + PATIENCE;
        let mut all = self.all.lock().unwrap();
        while all.len() < count {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "{count} records were expected, not {all:?}"
            );
            all = self.more.wait_timeout(all, left).unwrap().0;
        }
        std::mem::take(&mut *all)
    }
}
