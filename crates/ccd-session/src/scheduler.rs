//! Timer A-0: the one decision timer of a session, at the core's next deadline, and the detection of a sleeping host.
//!
//! Here live the session's view of the clock and the timer. No deadline is ever chosen here.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use ccd_model::time::{Mono, Wall};
use ccd_ports::{PortFut, clock::Clock};

/// A tick that comes this much later than asked for means that the machine slept, milliseconds.
const SLEPT_MS: u64 = 5_000;

/// The platform's clock with the session's own start as its origin.
#[derive(Clone)]
pub(crate) struct SessionClock {
    clock: Arc<dyn Clock>,
    origin: Mono,
}

impl SessionClock {
    /// A clock that starts now.
    pub(crate) fn start(clock: Arc<dyn Clock>) -> Self {
        let origin = clock.now();
        Self { clock, origin }
    }

    /// Now, since the session's start.
    pub(crate) fn now(&self) -> Mono {
        self.of(self.clock.now())
    }

    /// Wall-clock now.
    pub(crate) fn wall(&self) -> Wall {
        self.clock.wall()
    }

    /// A platform time as session time.
    pub(crate) fn of(&self, platform: Mono) -> Mono {
        Mono(platform.since(self.origin))
    }

    /// A session time as platform time.
    pub(crate) fn platform(&self, session: Mono) -> Mono {
        self.origin.after(session.0)
    }

    /// Waits until the session time `at`.
    pub(crate) fn sleep_until(&self, at: Mono) -> PortFut<'static, ()> {
        self.clock.sleep_until(self.platform(at))
    }
}

/// One armed moment. Pending while nothing is armed.
#[derive(Default)]
pub(crate) struct Alarm {
    armed: Option<(Mono, PortFut<'static, ()>)>,
}

impl Alarm {
    /// Arms for `at`, or disarms. Arming for the same moment again changes nothing.
    pub(crate) fn set(&mut self, clock: &SessionClock, at: Option<Mono>) {
        if self.at() != at {
            self.armed = at.map(|at| (at, clock.sleep_until(at)));
        }
    }

    /// The armed moment.
    pub(crate) fn at(&self) -> Option<Mono> {
        self.armed.as_ref().map(|(at, _)| *at)
    }
}

impl Future for Alarm {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.armed {
            None => Poll::Pending,
            Some((_, sleep)) => {
                let done = sleep.as_mut().poll(cx);
                if done.is_ready() {
                    self.armed = None;
                }
                done
            }
        }
    }
}

/// The decision timer A-0.
#[derive(Default)]
pub(crate) struct Scheduler {
    wake: Option<Mono>,
    last_tick: Option<Mono>,
    alarm: Alarm,
}

impl Scheduler {
    /// Takes over the core's next deadline after a step at `now`.
    pub(crate) fn next(&mut self, wake: Option<Mono>) {
        // A deadline that a tick did not move must not become a busy loop.
        self.wake = match (wake, self.last_tick) {
            (Some(at), Some(ticked)) if at <= ticked => Some(ticked.after(1)),
            (wake, _) => wake,
        };
    }

    /// Whether the deadline has passed at `now`; then the caller steps a tick.
    pub(crate) fn due(&self, now: Mono) -> bool {
        self.wake.is_some_and(|at| at <= now)
    }

    /// A tick is stepped at `now`.
    pub(crate) fn ticked(&mut self, now: Mono) {
        if let Some(at) = self.wake
            && now.since(at) > SLEPT_MS
        {
            tracing::warn!(
                late_ms = now.since(at),
                "the machine slept, or the loop stalled"
            );
        }
        self.wake = None;
        self.last_tick = Some(now);
    }

    /// Resolves when the deadline has come.
    pub(crate) fn wait(&mut self, clock: &SessionClock) -> &mut Alarm {
        self.alarm.set(clock, self.wake);
        &mut self.alarm
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    struct Fixed;
    impl Clock for Fixed {
        fn now(&self) -> Mono {
            Mono(1_000)
        }
        fn wall(&self) -> Wall {
            Wall(7)
        }
        fn sleep_until(&self, at: Mono) -> PortFut<'static, ()> {
            Box::pin(async move {
                if at > Mono(1_500) {
                    std::future::pending::<()>().await;
                }
            })
        }
    }

    fn poll(alarm: &mut Alarm) -> bool {
        Pin::new(alarm)
            .poll(&mut Context::from_waker(std::task::Waker::noop()))
            .is_ready()
    }

    #[test]
    fn session_time_starts_at_zero() {
        let clock = SessionClock::start(Arc::new(Fixed));
        assert_eq!(clock.now(), Mono(0));
        assert_eq!(clock.of(Mono(1_200)), Mono(200));
        assert_eq!(clock.platform(Mono(200)), Mono(1_200));
    }

    #[test]
    fn a0_fires_at_the_next_deadline_only() {
        let clock = SessionClock::start(Arc::new(Fixed));
        let mut scheduler = Scheduler::default();
        assert!(!poll(scheduler.wait(&clock)));
        scheduler.next(Some(Mono(900)));
        assert!(!poll(scheduler.wait(&clock)));
        scheduler.next(Some(Mono(400)));
        assert!(poll(scheduler.wait(&clock)));
        assert!(!scheduler.due(Mono(399)));
        assert!(scheduler.due(Mono(400)));
        scheduler.next(None);
        assert!(!poll(scheduler.wait(&clock)));
    }

    #[test]
    fn a_deadline_that_does_not_move_is_not_a_busy_loop() {
        let mut scheduler = Scheduler::default();
        scheduler.next(Some(Mono(400)));
        scheduler.ticked(Mono(410));
        scheduler.next(Some(Mono(400)));
        assert!(!scheduler.due(Mono(410)));
        assert!(scheduler.due(Mono(411)));
    }
}
