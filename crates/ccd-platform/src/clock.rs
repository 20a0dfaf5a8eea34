//! The real clock, on which the decision timer and every other wait of a session rest.
//!
//! What lives here: monotonic time that includes time asleep, wall time, and the one place where real time is waited
//! for. What never does: deciding when to wait.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ccd_model::time::{Mono, Wall};
use ccd_ports::{PortFut, clock::Clock};

/// Longest single wait. The runtime's timers stand still while the machine sleeps; after it wakes, a long wait is
/// noticed to be over within this time.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Monotonic time since its construction, time asleep included where the system can tell.
///
/// [`Clock::sleep_until`] must be polled inside a tokio runtime with time enabled.
#[derive(Debug, Clone)]
pub struct BootClock {
    origin: Arc<boot::Origin>,
}

impl BootClock {
    /// A clock whose zero is now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            origin: Arc::new(boot::Origin::now()),
        }
    }
}

impl Default for BootClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for BootClock {
    fn now(&self) -> Mono {
        Mono(u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn wall(&self) -> Wall {
        // A machine whose date is before 1970 counts backwards from there.
        let ms = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()),
            Err(before) => i64::try_from(before.duration().as_millis()).map(|ms| -ms),
        };
        Wall(ms.unwrap_or(i64::MAX))
    }

    fn sleep_until(&self, at: Mono) -> PortFut<'static, ()> {
        let clock = self.clone();
        Box::pin(async move {
            let target = Duration::from_millis(at.0);
            loop {
                let left = target.saturating_sub(clock.origin.elapsed());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(LONGEST_WAIT)).await;
            }
        })
    }
}

#[cfg(target_os = "linux")]
mod boot {
    //! `CLOCK_BOOTTIME`.

    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    #[derive(Debug)]
    pub(super) struct Origin(Duration);

    impl Origin {
        pub(super) fn now() -> Self {
            Self(read())
        }

        pub(super) fn elapsed(&self) -> Duration {
            read().saturating_sub(self.0)
        }
    }

    fn read() -> Duration {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
    }
}

#[cfg(not(target_os = "linux"))]
mod boot {
    //! The standard monotonic clock: it may stand still while the machine sleeps.

    use std::time::{Duration, Instant};

    #[derive(Debug)]
    pub(super) struct Origin(Instant);

    impl Origin {
        pub(super) fn now() -> Self {
            Self(Instant::now())
        }

        pub(super) fn elapsed(&self) -> Duration {
            self.0.elapsed()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn it_starts_at_zero_and_its_wall_time_is_of_this_age() {
        let clock = BootClock::new();
        assert!(clock.now() < Mono(60_000));
        assert!(clock.wall() > Wall(1_600_000_000_000));
    }

    #[tokio::test]
    async fn a_wait_ends_at_or_after_its_time_and_a_past_one_at_once() {
        let clock = BootClock::new();
        let until = clock.now().after(15);
        clock.sleep_until(until).await;
        assert!(clock.now() >= until);
        clock.sleep_until(Mono(0)).await;
    }
}
