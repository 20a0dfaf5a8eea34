//! A clock that the test moves, and identifiers that count.
//!
//! What lives here: the [`Clock`] and [`Ids`] ports without time or chance. What never does: real waiting, but for the
//! test's own wait until somebody sleeps.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use ccd_model::time::{Mono, Wall};
use ccd_ports::{
    PortFut,
    clock::{Clock, Ids},
};

/// Longest real time that [`FakeClock::wait_for_sleeper`] waits.
const PATIENCE: Duration = Duration::from_secs(20);

/// Wall time at the clock's zero.
const WALL_AT_ZERO: i64 = 1_800_000_000_000;

#[derive(Default)]
struct State {
    now: u64,
    last_sleeper: u64,
    sleepers: BTreeMap<u64, (Mono, Waker)>,
}

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    changed: Condvar,
}

/// Time that stands still until [`FakeClock::advance`] moves it. Clones share it; any thread may sleep on it.
#[derive(Clone, Default)]
pub struct FakeClock(Arc<Inner>);

impl FakeClock {
    /// A clock at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same clock as the port.
    #[must_use]
    pub fn port(&self) -> Arc<dyn Clock> {
        Arc::new(self.clone())
    }

    /// Moves time on and wakes those whose time has come, in the order of their times.
    pub fn advance(&self, ms: u64) {
        let mut state = self.lock();
        state.now = state.now.saturating_add(ms);
        let now = Mono(state.now);
        let due = state.sleepers.iter().filter(|(_, (at, _))| *at <= now);
        let mut due: Vec<(Mono, u64, Waker)> = due
            .map(|(id, (at, waker))| (*at, *id, waker.clone()))
            .collect();
        drop(state);
        due.sort_by_key(|(at, id, _)| (*at, *id));
        for (_, _, waker) in due {
            waker.wake();
        }
    }

    /// Moves time to the next sleeper's; `None` if nobody sleeps.
    pub fn advance_to_next(&self) -> Option<Mono> {
        let next = self.next_wake()?;
        self.advance(next.since(self.now()));
        Some(next)
    }

    /// When the next sleeper wakes.
    #[must_use]
    pub fn next_wake(&self) -> Option<Mono> {
        let state = self.lock();
        let now = Mono(state.now);
        state
            .sleepers
            .values()
            .map(|(at, _)| *at)
            .filter(|at| *at > now)
            .min()
    }

    /// Waits in real time until somebody sleeps exactly until `at`; false if nobody does within 20 s.
    #[must_use]
    pub fn wait_for_sleeper(&self, at: Mono) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.lock();
        while !state.sleepers.values().any(|(until, _)| *until == at) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.0.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Mono {
        Mono(self.lock().now)
    }

    fn wall(&self) -> Wall {
        let now = i64::try_from(self.lock().now).unwrap_or(i64::MAX);
        Wall(WALL_AT_ZERO.saturating_add(now))
    }

    fn sleep_until(&self, at: Mono) -> PortFut<'static, ()> {
        let mut state = self.lock();
        state.last_sleeper = state.last_sleeper.saturating_add(1);
        Box::pin(Sleep {
            clock: self.clone(),
            id: state.last_sleeper,
            at,
        })
    }
}

struct Sleep {
    clock: FakeClock,
    id: u64,
    at: Mono,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.lock();
        if Mono(state.now) >= self.at {
            return Poll::Ready(());
        }
        state
            .sleepers
            .insert(self.id, (self.at, context.waker().clone()));
        self.clock.0.changed.notify_all();
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clock.lock().sleepers.remove(&self.id);
    }
}

/// Identifiers that count from 1.
#[derive(Clone, Default)]
pub struct FakeIds(Arc<Mutex<u64>>);

impl FakeIds {
    /// Identifiers from 1 on; clones go on counting together.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn next(&self) -> u64 {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *last = last.saturating_add(1);
        *last
    }
}

impl Ids for FakeIds {
    fn uuid(&self) -> String {
        format!("00000000-0000-4000-8000-{:012x}", self.next())
    }

    fn hex(&self, bytes: usize) -> String {
        let width = bytes.saturating_mul(2);
        let text = format!("{:0width$x}", self.next());
        text.get(text.len().saturating_sub(width)..)
            .unwrap_or_default()
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_dropped_sleeper_is_forgotten_and_the_next_one_is_found() {
        let clock = FakeClock::new();
        let mut context = Context::from_waker(Waker::noop());
        let mut sleeps = [30, 10, 20].map(|at| clock.sleep_until(Mono(at)));
        for sleep in &mut sleeps {
            assert!(sleep.as_mut().poll(&mut context).is_pending());
        }
        let [late, early, middle] = sleeps;
        assert_eq!(clock.next_wake(), Some(Mono(10)));
        drop(early);
        assert_eq!(clock.advance_to_next(), Some(Mono(20)));
        assert!(clock.wait_for_sleeper(Mono(30)));
        drop((late, middle));
        assert_eq!(clock.advance_to_next(), None);
    }

    #[test]
    fn identifiers_count_in_the_form_of_real_ones() {
        let ids = FakeIds::new();
        assert_eq!(ids.uuid(), "00000000-0000-4000-8000-000000000001");
        assert_eq!(ids.clone().hex(4), "00000002");
        assert_eq!(ids.hex(0), "");
    }
}
