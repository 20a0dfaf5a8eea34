//! Timer A-4: the screen poll at the cadence that the core asks for, at most one capture outstanding.
//!
//! Here lives when to take the next capture. What a capture shows never does.

use ccd_model::time::Mono;
use ccd_ports::raw::Raw;

use crate::scheduler::{Alarm, SessionClock};

/// The adapter reports an unchanged frame this often and is silent from then on, until the frame changes.
const SAME_REPORTED: u8 = 2;

/// A poll that was expected to be answered and was not holds the next one back for this long, milliseconds.
const PATIENCE_MS: u64 = 1_000;

/// The poll A-4.
#[derive(Default)]
pub(crate) struct ScreenPoll {
    every_ms: u64,
    next: Option<Mono>,
    /// Until when an answer is awaited.
    awaited: Option<Mono>,
    same: u8,
    alarm: Alarm,
}

impl ScreenPoll {
    /// Takes over a cadence at `now`; 0 turns the poll off. A faster cadence counts at once.
    pub(crate) fn cadence(&mut self, now: Mono, every_ms: u32) {
        self.every_ms = u64::from(every_ms);
        let soonest = now.after(self.every_ms);
        self.next = match (self.every_ms, self.next) {
            (0, _) => None,
            (_, Some(next)) => Some(next.min(soonest)),
            (_, None) => Some(now),
        };
    }

    /// A raw record came by: an answer to some capture, or its loss.
    pub(crate) fn saw(&mut self, raw: &Raw) {
        match raw {
            Raw::Frame { .. } => self.same = 0,
            Raw::FrameSame { .. } => self.same = self.same.saturating_add(1),
            Raw::Lost { .. } => self.same = 0,
            Raw::Hook(_)
            | Raw::HookGone { .. }
            | Raw::HookExpired { .. }
            | Raw::Line { .. }
            | Raw::Tail { .. }
            | Raw::OpEnded { .. }
            | Raw::Registry { .. }
            | Raw::RegistryGone
            | Raw::AgentMeta { .. }
            | Raw::Statusline { .. }
            | Raw::Tunnel { .. }
            | Raw::LastScreen { .. }
            | Raw::Exited { .. }
            | Raw::Tick
            | Raw::Launched(_) => return,
        }
        self.awaited = None;
    }

    /// Whether a capture must be taken at `now`; then the next one is planned.
    pub(crate) fn due(&mut self, now: Mono) -> bool {
        if self.at().is_none_or(|at| at > now) {
            return false;
        }
        self.next = Some(now.after(self.every_ms));
        self.awaited = (self.same < SAME_REPORTED).then(|| now.after(PATIENCE_MS));
        true
    }

    fn at(&self) -> Option<Mono> {
        self.next
            .map(|next| self.awaited.map_or(next, |awaited| next.max(awaited)))
    }

    /// Resolves when the next capture is due.
    pub(crate) fn wait(&mut self, clock: &SessionClock) -> &mut Alarm {
        self.alarm.set(clock, self.at());
        &mut self.alarm
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use ccd_model::observation::LostPart;
    use ccd_ports::raw::PaneMeta;

    use super::*;

    fn frame() -> Raw {
        Raw::Frame {
            op: None,
            meta: PaneMeta::default(),
            text: "".into(),
        }
    }

    #[test]
    fn a4_polls_at_the_cadence_and_not_at_all_when_off() {
        let mut poll = ScreenPoll::default();
        assert!(!poll.due(Mono(1_000)));
        poll.cadence(Mono(1_000), 100);
        assert!(poll.due(Mono(1_000)));
        poll.saw(&frame());
        assert!(!poll.due(Mono(1_099)));
        assert!(poll.due(Mono(1_100)));
        poll.cadence(Mono(1_110), 0);
        assert!(!poll.due(Mono(9_000)));
    }

    #[test]
    fn a_faster_cadence_counts_at_once_and_a_slower_one_later() {
        let mut poll = ScreenPoll::default();
        poll.cadence(Mono(0), 1_000);
        assert!(poll.due(Mono(0)));
        poll.saw(&frame());
        poll.cadence(Mono(10), 15);
        assert!(!poll.due(Mono(24)));
        assert!(poll.due(Mono(25)));
        poll.saw(&frame());
        poll.cadence(Mono(30), 500);
        assert!(poll.due(Mono(40)));
        poll.saw(&frame());
        assert!(!poll.due(Mono(539)));
        assert!(poll.due(Mono(540)));
    }

    #[test]
    fn only_one_capture_is_outstanding_until_patience_ends_or_the_part_is_lost() {
        let mut poll = ScreenPoll::default();
        poll.cadence(Mono(0), 10);
        assert!(poll.due(Mono(0)));
        assert!(!poll.due(Mono(500)));
        assert!(poll.due(Mono(1_000)));
        poll.saw(&Raw::Lost {
            part: LostPart::ControlClient,
        });
        assert!(poll.due(Mono(1_010)));
    }

    #[test]
    fn a_silent_unchanged_screen_is_polled_on() {
        let mut poll = ScreenPoll::default();
        poll.cadence(Mono(0), 10);
        for at in [0, 10] {
            assert!(poll.due(Mono(at)));
            poll.saw(&Raw::FrameSame { op: None });
        }
        for at in [20, 30, 40] {
            assert!(poll.due(Mono(at)), "{at}");
        }
        poll.saw(&frame());
        assert!(poll.due(Mono(50)));
        assert!(!poll.due(Mono(60)));
    }
}
