//! The replay: a trace's raw records and commands through the same channels and the same core, compared with what was recorded.
//!
//! Here lives the reader. Writing traces never does.

use std::{io::BufRead, sync::Arc};

use ccd_channels::profiles;
use ccd_model::{event::Published, view::View};
use thiserror::Error;

use crate::{
    engine::{Arrival, Engine},
    trace::{FORMAT, TraceLine, VERSION},
};

/// Differences that are described; further ones are counted.
const DESCRIBED: usize = 20;

/// Why a trace cannot be replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// It cannot be read.
    #[error("the trace cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// A line is not what it should be.
    #[error("line {line}: {why}")]
    Malformed {
        /// Line number, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// It has no header.
    #[error("not a trace: the first line is no header")]
    NoHeader,
    /// It has another format or version.
    #[error("a trace of format {format} version {version} cannot be replayed")]
    Format {
        /// Format.
        format: String,
        /// Version.
        version: u32,
    },
    /// No profile of that version.
    #[error("no profile for Claude {0}")]
    Profile(String),
}

/// What a replay gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// The replayed events.
    pub events: Vec<Arc<Published>>,
    /// The replayed final view.
    pub view: View,
    /// Each difference to the recording in one sentence; empty when the replay is exact.
    pub differences: Vec<String>,
    /// The recording has its end. Without one (its owner was killed) the final view was not compared, and a torn last line was dropped.
    pub complete: bool,
}

/// Replays a trace.
///
/// # Errors
/// [`ReplayError`] when the trace cannot be read; differences are no error.
pub fn replay(reader: impl BufRead) -> Result<Replayed, ReplayError> {
    let mut lines = reader.lines().enumerate().peekable();
    let first = match lines.next() {
        Some((_, line)) => line?,
        None => return Err(ReplayError::NoHeader),
    };
    let Ok(TraceLine::Header(header)) = serde_json::from_str(&first) else {
        return Err(ReplayError::NoHeader);
    };
    if header.format != FORMAT || header.version != VERSION {
        return Err(ReplayError::Format {
            format: header.format,
            version: header.version,
        });
    }
    let profile = profiles::get(&header.profile)
        .ok_or_else(|| ReplayError::Profile(header.profile.clone()))?;
    let mut engine = Engine::new(profile, header.config.core);
    let mut replayed: Vec<Arc<Published>> = Vec::new();
    let mut recorded: Vec<Arc<Published>> = Vec::new();
    let mut recorded_view = None;
    while let Some((index, line)) = lines.next() {
        let line = match serde_json::from_str(&line?) {
            Ok(line) => line,
            Err(_) if lines.peek().is_none() => break,
            Err(error) => {
                return Err(ReplayError::Malformed {
                    line: index.saturating_add(1),
                    why: error.to_string(),
                });
            }
        };
        match line {
            TraceLine::Raw {
                at,
                wall,
                launch,
                raw,
            } => engine.raw(Arrival { at, wall, launch }, &raw, |stepped| {
                replayed.extend(stepped.events);
            }),
            TraceLine::Cmd {
                at,
                wall,
                launch,
                ticket,
                command,
            } => engine.command(Arrival { at, wall, launch }, ticket, command, |stepped| {
                replayed.extend(stepped.events);
            }),
            TraceLine::File { file, role } => engine.register_file(file, role.into()),
            TraceLine::Event(event) => recorded.push(Arc::new(event)),
            TraceLine::Own(event) => {
                let arrival = Arrival {
                    at: event.at,
                    wall: event.wall,
                    launch: ccd_model::ids::Launch(0),
                };
                replayed.push(engine.own_event(arrival, event.event.clone()));
                recorded.push(Arc::new(event));
            }
            TraceLine::End { view } => recorded_view = Some(*view),
            TraceLine::Header(_) => {
                return Err(ReplayError::Malformed {
                    line: index.saturating_add(1),
                    why: "a second header".to_owned(),
                });
            }
            TraceLine::Step { .. } | TraceLine::Obs { .. } | TraceLine::Diag(_) => {}
        }
    }
    let view = engine.view();
    let mut differences = Differences::default();
    for index in 0..recorded.len().max(replayed.len()) {
        let (was, is) = (recorded.get(index), replayed.get(index));
        if was != is {
            differences.add(|| {
                format!(
                    "event {}: recorded {was:?}, replayed {is:?}",
                    index.saturating_add(1)
                )
            });
        }
    }
    let complete = recorded_view.is_some();
    if let Some(was) = recorded_view
        && was != view
    {
        differences.add(|| format!("final view: recorded {was:?}, replayed {view:?}"));
    }
    Ok(Replayed {
        events: replayed,
        view,
        differences: differences.finish(),
        complete,
    })
}

#[derive(Default)]
struct Differences {
    described: Vec<String>,
    further: usize,
}

impl Differences {
    fn add(&mut self, describe: impl FnOnce() -> String) {
        if self.described.len() < DESCRIBED {
            self.described.push(describe());
        } else {
            self.further = self.further.saturating_add(1);
        }
    }

    fn finish(mut self) -> Vec<String> {
        if self.further > 0 {
            self.described.push(format!("and {} more", self.further));
        }
        self.described
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use ccd_channels::FileRole;
    use ccd_model::{
        command::Command,
        event::DomainEvent,
        ids::{FileKey, Launch, Seq, Ticket},
        time::{Mono, Wall},
    };
    use ccd_ports::raw::Raw;

    use super::*;
    use crate::{
        core_config::core_config,
        error::LaunchStep,
        testing::spec,
        trace::{Header, TraceConfig},
    };

    fn header() -> Header {
        Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            claude_version: "2.1.316".to_owned(),
            profile: profiles::pinned().version.to_owned(),
            ccd_version: "0".to_owned(),
            session: "s".to_owned(),
            config: TraceConfig {
                spec: spec(),
                core: core_config(profiles::pinned(), &spec(), "/w"),
            },
        }
    }

    fn text(lines: &[TraceLine]) -> String {
        lines
            .iter()
            .map(|line| serde_json::to_string(line).unwrap() + "\n")
            .collect()
    }

    fn event(seq: u64) -> Published {
        Published {
            seq: Seq(seq),
            at: Mono(5),
            wall: Wall(6),
            event: DomainEvent::CompactionEnded,
        }
    }

    fn lines() -> Vec<TraceLine> {
        let (at, wall, launch) = (Mono(1), Wall(2), Launch(1));
        vec![
            TraceLine::Header(Box::new(header())),
            TraceLine::Step {
                step: LaunchStep::Spawn,
                ms: 3,
            },
            TraceLine::File {
                file: FileKey(1),
                role: (&FileRole::Main {
                    session_id: "c".into(),
                })
                    .into(),
            },
            TraceLine::Own(event(1)),
            TraceLine::Raw {
                at,
                wall,
                launch,
                raw: Raw::Tick,
            },
            TraceLine::Cmd {
                at,
                wall,
                launch,
                ticket: Ticket(1),
                command: Command::Interrupt,
            },
        ]
    }

    #[test]
    fn every_line_reads_back_as_it_was_written() {
        let mut lines = lines();
        lines.push(TraceLine::Event(event(2)));
        for line in lines {
            let text = serde_json::to_string(&line).unwrap();
            assert_eq!(
                serde_json::from_str::<TraceLine>(&text).unwrap(),
                line,
                "{text}"
            );
        }
        let first = serde_json::to_string(&TraceLine::Event(event(2))).unwrap();
        assert_eq!(
            first,
            r#"{"k":"event","seq":2,"at":5,"wall":6,"event":{"e":"compaction_ended"}}"#
        );
    }

    #[test]
    fn an_event_that_is_not_replayed_is_a_difference() {
        let events = replay(text(&lines()).as_bytes()).unwrap().events;
        let mut recorded = lines();
        // The first one is the session layer's own and stands there already.
        recorded.extend(
            events
                .iter()
                .skip(1)
                .map(|e| TraceLine::Event(Published::clone(e))),
        );
        let exact = replay(text(&recorded).as_bytes()).unwrap();
        assert_eq!(exact.differences, Vec::<String>::new());
        assert!(!exact.complete);
        recorded.push(TraceLine::Event(event(events.len() as u64 + 1)));
        let more = replay(text(&recorded).as_bytes()).unwrap();
        assert_eq!(more.differences.len(), 1, "{:?}", more.differences);
    }

    #[test]
    fn a_torn_last_line_is_dropped_and_any_other_is_an_error() {
        let whole = text(&lines());
        let torn = format!("{whole}{{\"k\":\"raw\",\"at");
        let events = replay(whole.as_bytes()).unwrap().events;
        assert_eq!(replay(torn.as_bytes()).unwrap().events, events);
        let broken = format!("{torn}\n{{\"k\":\"step\",\"step\":\"spawn\",\"ms\":1}}\n");
        let error = replay(broken.as_bytes()).unwrap_err();
        assert!(
            matches!(error, ReplayError::Malformed { line: 7, .. }),
            "{error}"
        );
    }

    #[test]
    fn what_is_no_trace_of_ours_is_refused() {
        let with = |change: fn(&mut Header)| {
            let mut header = header();
            change(&mut header);
            replay(text(&[TraceLine::Header(Box::new(header))]).as_bytes()).unwrap_err()
        };
        assert!(matches!(
            replay(&b""[..]).unwrap_err(),
            ReplayError::NoHeader
        ));
        assert!(matches!(
            replay(&b"{}\n"[..]).unwrap_err(),
            ReplayError::NoHeader
        ));
        assert!(matches!(
            with(|h| h.version = 9),
            ReplayError::Format { version: 9, .. }
        ));
        assert!(matches!(
            with(|h| h.format = "x".into()),
            ReplayError::Format { .. }
        ));
        assert!(matches!(
            with(|h| h.profile = "0.0.0".into()),
            ReplayError::Profile(_)
        ));
    }
}
