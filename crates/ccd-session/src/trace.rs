//! The trace of a session, `.ccd.jsonl` version 1: everything the replay needs, line by line, redacted.
//!
//! Here live the line types and the writer. Where the lines go is a port's business, and reading them back lives in `replay`.

use std::sync::Arc;

use ccd_channels::FileRole;
use ccd_core::{CoreConfig, Diagnostic};
use ccd_model::{
    command::Command,
    event::Published,
    ids::{FileKey, Launch, Seq, Ticket},
    observation::Observed,
    spec::SessionSpec,
    time::{Mono, Stamp, Wall},
    view::View,
};
use ccd_ports::{error::PortError, raw::Raw, trace::TraceSink};
use serde::{Deserialize, Serialize};

use crate::{error::LaunchStep, redact::Redactor};

/// Value of [`Header::format`].
pub(crate) const FORMAT: &str = "ccd-trace";
/// Value of [`Header::version`].
pub(crate) const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Always `ccd-trace`.
    pub format: String,
    /// Format version.
    pub version: u32,
    /// Version of the Claude binary that ran.
    pub claude_version: String,
    /// Version of the profile that read it.
    pub profile: String,
    /// Version of this library.
    pub ccd_version: String,
    /// Our session id.
    pub session: String,
    /// What the session and the core were configured with.
    pub config: TraceConfig,
}

/// The configuration of a traced session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceConfig {
    /// The specification, redacted like everything else.
    pub spec: SessionSpec,
    /// The core's configuration: a replay starts from it.
    pub core: CoreConfig,
}

/// What a followed file is, in the trace's own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "role")]
pub enum TraceRole {
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

impl From<&FileRole> for TraceRole {
    fn from(role: &FileRole) -> Self {
        match role {
            FileRole::Main { session_id } => Self::Main {
                session_id: Arc::clone(session_id),
            },
            FileRole::Agent { agent_id } => Self::Agent {
                agent_id: Arc::clone(agent_id),
            },
        }
    }
}

impl From<TraceRole> for FileRole {
    fn from(role: TraceRole) -> Self {
        match role {
            TraceRole::Main { session_id } => Self::Main { session_id },
            TraceRole::Agent { agent_id } => Self::Agent { agent_id },
        }
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "k")]
pub enum TraceLine {
    /// The first line.
    Header(Box<Header>),
    /// A step of the start is done.
    Step {
        /// Which.
        step: LaunchStep,
        /// How long it took, milliseconds.
        ms: u64,
    },
    /// A followed file was registered with the channels.
    File {
        /// Its key.
        file: FileKey,
        /// What it is.
        role: TraceRole,
    },
    /// A raw record entered the loop.
    Raw {
        /// Session time.
        at: Mono,
        /// Wall time.
        wall: Wall,
        /// Process start.
        launch: Launch,
        /// The record.
        raw: Raw,
    },
    /// A command entered the loop.
    Cmd {
        /// Session time.
        at: Mono,
        /// Wall time.
        wall: Wall,
        /// Process start.
        launch: Launch,
        /// Its ticket.
        ticket: Ticket,
        /// The command.
        command: Command,
    },
    /// What the channels made of the raw record before.
    Obs {
        /// Position in the input order.
        seq: Seq,
        /// The observation.
        observed: Observed,
    },
    /// The core published an event.
    Event(Published),
    /// The session layer itself published an event.
    Own(Published),
    /// Something did not fit.
    Diag(Diagnostic),
    /// The last line: the final view.
    End {
        /// The view.
        view: Box<View>,
    },
}

/// Writes a trace. Without a sink every call is free of cost.
pub(crate) struct Trace {
    sink: Option<Box<dyn TraceSink>>,
    redactor: Redactor,
}

impl Trace {
    /// A trace into `sink`, redacted by `redactor`.
    #[must_use]
    pub(crate) fn new(sink: Box<dyn TraceSink>, redactor: Redactor) -> Self {
        Self {
            sink: Some(sink),
            redactor,
        }
    }

    /// No trace.
    #[must_use]
    pub(crate) fn none() -> Self {
        Self {
            sink: None,
            redactor: Redactor::off(),
        }
    }

    /// Whether anybody reads it.
    #[must_use]
    pub(crate) fn is_open(&self) -> bool {
        self.sink.is_some()
    }

    /// Writes the line that `make` builds, if anybody reads it.
    pub(crate) fn line(&mut self, make: impl FnOnce() -> TraceLine) {
        let Some(sink) = &mut self.sink else { return };
        match serde_json::to_string(&make()) {
            Ok(line) => sink.line(self.redactor.apply(&line).into_owned()),
            Err(error) => tracing::warn!(%error, "a trace line could not be written"),
        }
    }

    pub(crate) fn raw(&mut self, at: Mono, wall: Wall, launch: Launch, raw: &Raw) {
        self.line(|| TraceLine::Raw {
            at,
            wall,
            launch,
            raw: raw.clone(),
        });
    }

    pub(crate) fn command(&mut self, stamp: Stamp, ticket: Ticket, command: &Command) {
        self.line(|| TraceLine::Cmd {
            at: stamp.at,
            wall: stamp.wall,
            launch: stamp.launch,
            ticket,
            command: command.clone(),
        });
    }

    pub(crate) fn file(&mut self, file: FileKey, role: &FileRole) {
        self.line(|| TraceLine::File {
            file,
            role: role.into(),
        });
    }

    /// Takes the sink out, so that the caller can finish it away from the kernel thread.
    pub(crate) fn take_sink(&mut self) -> Option<Box<dyn TraceSink>> {
        self.sink.take()
    }
}

/// Writes out and closes a sink. Blocks; never called on the kernel thread.
///
/// # Errors
/// The first write error.
pub(crate) fn finish(mut sink: Box<dyn TraceSink>) -> Result<(), PortError> {
    sink.finish()
}
