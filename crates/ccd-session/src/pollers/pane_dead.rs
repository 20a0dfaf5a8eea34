//! Timer A-3: the backup for a process exit that the watcher did not report: a dead pane on a capture, and a little patience.
//!
//! Here lives that wait. What an exit means never does.

use ccd_model::time::Mono;
use ccd_ports::raw::Raw;

use crate::scheduler::{Alarm, SessionClock};

/// The watcher knows exit code and signal: it has this long to be first, milliseconds.
const PATIENCE_MS: u64 = 1_000;

/// The backup A-3.
pub(crate) struct PaneDead {
    pane_pid: u32,
    due: Option<Mono>,
    told: bool,
    alarm: Alarm,
}

impl PaneDead {
    /// Watches over the process in the pane.
    pub(crate) fn new(pane_pid: u32) -> Self {
        Self {
            pane_pid,
            due: None,
            told: false,
            alarm: Alarm::default(),
        }
    }

    /// A raw record came by at `now`.
    pub(crate) fn saw(&mut self, now: Mono, raw: &Raw) {
        match raw {
            Raw::Frame { meta, .. } if meta.dead && !self.told => {
                self.due.get_or_insert(now.after(PATIENCE_MS));
            }
            Raw::Exited { pid, .. } if *pid == self.pane_pid => {
                self.told = true;
                self.due = None;
            }
            // Nothing else says that the pane's process has ended.
            _ => {}
        }
    }

    /// The record of an exit whose code nobody knows, once the patience is over at `now`.
    pub(crate) fn exit(&mut self, now: Mono) -> Option<Raw> {
        self.due.take_if(|due| *due <= now).map(|_| Raw::Exited {
            pid: self.pane_pid,
            code: None,
            signal: None,
        })
    }

    /// Resolves when the patience is over.
    pub(crate) fn wait(&mut self, clock: &SessionClock) -> &mut Alarm {
        self.alarm.set(clock, self.due);
        &mut self.alarm
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use ccd_ports::raw::PaneMeta;

    use super::*;

    fn frame(dead: bool) -> Raw {
        Raw::Frame {
            op: None,
            meta: PaneMeta {
                dead,
                ..PaneMeta::default()
            },
            text: "".into(),
        }
    }

    fn exited(pid: u32) -> Raw {
        Raw::Exited {
            pid,
            code: Some(0),
            signal: None,
        }
    }

    #[test]
    fn a3_tells_of_a_dead_pane_once_when_the_watcher_does_not() {
        let mut backup = PaneDead::new(7);
        backup.saw(Mono(0), &frame(false));
        assert_eq!(backup.exit(Mono(9_000)), None);
        backup.saw(Mono(100), &frame(true));
        backup.saw(Mono(200), &frame(true));
        backup.saw(Mono(300), &exited(8));
        assert_eq!(backup.exit(Mono(1_099)), None);
        let told = backup.exit(Mono(1_100)).unwrap();
        assert!(matches!(
            told,
            Raw::Exited {
                pid: 7,
                code: None,
                signal: None
            }
        ));
        backup.saw(Mono(1_100), &told);
        backup.saw(Mono(1_200), &frame(true));
        assert_eq!(backup.exit(Mono(9_000)), None);
    }

    #[test]
    fn a_reported_exit_needs_no_backup() {
        let mut backup = PaneDead::new(7);
        backup.saw(Mono(100), &frame(true));
        backup.saw(Mono(150), &exited(7));
        assert_eq!(backup.exit(Mono(9_000)), None);
    }
}
