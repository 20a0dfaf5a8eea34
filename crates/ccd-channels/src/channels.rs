//! The entry of the crate: one `Channels` per session turns raw records into observations. It dispatches and keeps what the
//! normalizers must remember; the meaning of each record lives in their modules and in the profile.

use std::{collections::BTreeMap, sync::Arc};

use ccd_model::{
    fact::Source,
    ids::FileKey,
    observation::{Observation, Observed},
};
use ccd_ports::raw::{Raw, TailNote};

use crate::{
    hooks,
    profile::Profile,
    registry,
    screen::ScreenReader,
    statusline::StatusReader,
    text::{SeenKinds, shortened, unrecognized},
    transcript::TranscriptReader,
};

/// How tmux tells on the screen that a pane's program ended.
const TMUX_DEAD: &str = "Pane is dead";
/// Most lines and bytes that are kept of a last screen.
const LAST_LINES: usize = 8;
const LAST_BYTES: usize = 2048;

/// What a followed transcript file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileRole {
    /// The conversation of one Claude session.
    Main {
        /// Claude's session id.
        session_id: Arc<str>,
    },
    /// The conversation of a subagent.
    Agent {
        /// Claude's agent id.
        agent_id: Arc<str>,
    },
}

/// The normalizers of one session. Deterministic: the same records in the same order give the same observations.
pub struct Channels {
    profile: &'static Profile,
    roles: BTreeMap<FileKey, FileRole>,
    transcript: TranscriptReader,
    screen: ScreenReader,
    status: StatusReader,
    seen: SeenKinds,
}

impl Channels {
    /// Normalizers for the version of `profile`.
    #[must_use]
    pub fn new(profile: &'static Profile) -> Self {
        Self {
            profile,
            roles: BTreeMap::new(),
            transcript: TranscriptReader::default(),
            screen: ScreenReader::default(),
            status: StatusReader::default(),
            seen: SeenKinds::default(),
        }
    }

    /// Says which transcript `file` is. Lines of an unregistered file are read as a main conversation without a known session.
    pub fn register_file(&mut self, file: FileKey, role: FileRole) {
        self.transcript.forget(file);
        self.roles.insert(file, role);
    }

    /// Appends what `raw` means to `out`. Never fails and never panics: what cannot be read becomes
    /// [`Observation::Unrecognized`] with a bounded text.
    pub fn normalize(&mut self, raw: &Raw, out: &mut Vec<Observed>) {
        match raw {
            Raw::Hook(record) => {
                out.extend(hooks::normalize(
                    &self.profile.hooks,
                    record,
                    &mut self.seen,
                ));
            }
            Raw::HookGone { hold } => out.push(own(
                Source::Hook,
                Observation::PermissionGone { hold: *hold },
            )),
            Raw::HookExpired { hold } => out.push(own(
                Source::Hook,
                Observation::PermissionExpired { hold: *hold },
            )),
            Raw::Line { file, text, .. } => self.transcript.line(
                &self.profile.transcript,
                *file,
                self.roles.get(file),
                text,
                &mut self.seen,
                out,
            ),
            Raw::Tail { file, note } => {
                if let Some(reason) = gap(*note) {
                    out.push(Observed {
                        source: Source::Transcript,
                        session: self.session_of(*file),
                        what: Observation::TxGap {
                            file: *file,
                            reason: reason.into(),
                        },
                    });
                }
            }
            Raw::Frame { meta, text, .. } => {
                if let Some(what) = self.screen.frame(self.profile.screen, meta, text) {
                    out.push(own(Source::Screen, what));
                }
            }
            Raw::FrameSame { .. } => {
                if let Some(what) = self.screen.same() {
                    out.push(own(Source::Screen, what));
                }
            }
            Raw::OpEnded { op, end } => out.push(own(
                Source::Own,
                Observation::OpEnded {
                    op: *op,
                    end: end.clone(),
                },
            )),
            Raw::Registry { body } => out.push(registry::normalize(&self.profile.registry, body)),
            Raw::RegistryGone => out.push(own(Source::Registry, Observation::RegistryGone)),
            Raw::AgentMeta { agent_id, body } => out.push(own(
                Source::Transcript,
                (self.profile.transcript.agent_meta)(agent_id, body.get())
                    .unwrap_or_else(|error| unrecognized("agent meta", &error.to_string())),
            )),
            Raw::Statusline { body } => {
                out.extend(self.status.normalize(&self.profile.statusline, body));
            }
            Raw::Tunnel { tunnel, what } => out.push(own(
                Source::Network,
                Observation::Tunnel {
                    tunnel: *tunnel,
                    what: what.clone(),
                },
            )),
            Raw::LastScreen { text } => out.push(own(
                Source::Screen,
                Observation::LastScreen {
                    text: last_lines(text).into(),
                },
            )),
            Raw::Exited { pid, code, signal } => out.push(own(
                Source::Process,
                Observation::Exited {
                    pid: *pid,
                    code: *code,
                    signal: *signal,
                },
            )),
            Raw::Lost { part } => out.push(own(Source::Own, Observation::Lost { part: *part })),
            Raw::Tick => out.push(own(Source::Own, Observation::Tick)),
            Raw::Launched(launched) => {
                self.screen = ScreenReader::default();
                out.push(Observed {
                    source: Source::Process,
                    session: Some(Arc::clone(&launched.session_id)),
                    what: Observation::Launched(launched.clone()),
                });
            }
        }
    }

    fn session_of(&self, file: FileKey) -> Option<Arc<str>> {
        match self.roles.get(&file) {
            Some(FileRole::Main { session_id }) => Some(Arc::clone(session_id)),
            Some(FileRole::Agent { .. }) | None => None,
        }
    }
}

/// An observation that names no Claude session.
fn own(source: Source, what: Observation) -> Observed {
    Observed {
        source,
        session: None,
        what,
    }
}

/// The last lines with text, without the one that tmux itself adds under a program that ended.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(TMUX_DEAD))
        .collect();
    let from = lines.len().saturating_sub(LAST_LINES);
    let kept = lines.get(from..).unwrap_or_default().join("\n");
    shortened(&kept, LAST_BYTES).to_owned()
}

/// What a tail note says about missing content; `None` when nothing is missing.
fn gap(note: TailNote) -> Option<String> {
    match note {
        TailNote::Appeared | TailNote::Repaired => None,
        TailNote::Shrank => Some("the file became shorter".to_owned()),
        TailNote::Replaced => Some("the file was replaced".to_owned()),
        TailNote::Oversize { bytes } => Some(format!("a line of {bytes} bytes was discarded")),
    }
}
