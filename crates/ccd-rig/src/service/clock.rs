//! One reading of the two clocks a latency is computed from.
//!
//! What lives here: stamps. What never does: waiting.

use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A moment, in both clocks of the machine.
///
/// `wall_ns` compares with the time another process or a transcript wrote down; `mono_ns` is for durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Stamp {
    /// `CLOCK_REALTIME`, nanoseconds since the Unix epoch.
    pub wall_ns: u64,
    /// `CLOCK_MONOTONIC`, nanoseconds since an unspecified start (the same for every process of the machine).
    pub mono_ns: u64,
}

impl Stamp {
    /// Reads both clocks now.
    #[must_use]
    pub fn now() -> Self {
        Self {
            wall_ns: nanos(clock_gettime(ClockId::Realtime)),
            mono_ns: nanos(clock_gettime(ClockId::Monotonic)),
        }
    }

    /// The time from `earlier` to this stamp, by the monotonic clock; zero if `earlier` is later.
    #[must_use]
    pub fn since(&self, earlier: Self) -> Duration {
        Duration::from_nanos(self.mono_ns.saturating_sub(earlier.mono_ns))
    }

    /// Whole seconds of the wall clock.
    #[must_use]
    pub fn unix_seconds(&self) -> i64 {
        i64::try_from(self.wall_ns / 1_000_000_000).unwrap_or(i64::MAX)
    }
}

fn nanos(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_stamp_is_after_an_earlier_one_in_both_clocks() {
        let first = Stamp::now();
        let second = Stamp::now();
        assert!(second.mono_ns >= first.mono_ns);
        assert_eq!(first.since(second), Duration::ZERO);
        assert!(first.unix_seconds() > 1_700_000_000);
    }
}
