//! notices when records wait too long for the loop, so that a stalled kernel thread does not stay a riddle.
//!
//! Here lives the measurement. Nothing is decided by it.

use ccd_model::time::Mono;

/// A record that waited this long was held up by the loop, milliseconds.
const LAG_MS: u64 = 250;
/// Between two warnings, milliseconds.
const QUIET_MS: u64 = 10_000;

/// The measurement.
#[derive(Debug, Default)]
pub(crate) struct LoopLag {
    warned: Option<Mono>,
}

impl LoopLag {
    /// A record that was seen at `seen` is stepped at `now`. Returns the lag when it is worth a warning.
    pub(crate) fn saw(&mut self, seen: Mono, now: Mono) -> Option<u64> {
        let lag = now.since(seen);
        let quiet = self
            .warned
            .is_some_and(|warned| now.since(warned) < QUIET_MS);
        if lag < LAG_MS || quiet {
            return None;
        }
        self.warned = Some(now);
        Some(lag)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn a7_warns_about_a_stalled_loop_and_not_too_often() {
        let mut lag = LoopLag::default();
        assert_eq!(lag.saw(Mono(100), Mono(349)), None);
        assert_eq!(lag.saw(Mono(100), Mono(350)), Some(250));
        assert_eq!(lag.saw(Mono(100), Mono(9_000)), None);
        assert_eq!(lag.saw(Mono(100), Mono(10_350)), Some(10_250));
    }
}
