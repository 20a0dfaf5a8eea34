//! The types of the boundary: what the core eats and what a step gives back. No decisions.

use alloc::{sync::Arc, vec::Vec};

use ccd_model::{
    command::{Accepted, Command, Refusal},
    event::DomainEvent,
    ids::Ticket,
    intent::Intent,
    observation::Observed,
    time::{Mono, Stamp},
};
use serde::{Deserialize, Serialize};

/// One input of the serialized loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "in")]
pub enum Input {
    /// A channel reported something.
    Saw {
        /// Where and when it entered the loop.
        stamp: Stamp,
        /// What was reported, by whom.
        observed: Observed,
    },
    /// Somebody asks for something; answered exactly once, in the same step.
    Asked {
        /// Where and when it entered the loop.
        stamp: Stamp,
        /// Matches the reply.
        ticket: Ticket,
        /// What is asked.
        command: Command,
    },
}

impl Input {
    /// Where and when it entered the loop.
    #[must_use]
    pub const fn stamp(&self) -> Stamp {
        match self {
            Self::Saw { stamp, .. } | Self::Asked { stamp, .. } => *stamp,
        }
    }
}

/// What an input led to. Reused between steps; [`crate::step`] clears it first.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Events to publish, in order.
    pub events: Vec<DomainEvent>,
    /// Instructions to carry out, in order.
    pub intents: Vec<Intent>,
    /// What did not fit, in order. Never an error.
    pub diagnostics: Vec<Diagnostic>,
    /// Answers to commands.
    pub replies: Vec<(Ticket, Result<Accepted, Refusal>)>,
    /// The next moment at which a tick is due; `None` when nothing waits for time.
    pub wake: Option<Mono>,
}

impl Step {
    /// Empties all lists and keeps their memory.
    pub fn clear(&mut self) {
        self.events.clear();
        self.intents.clear();
        self.diagnostics.clear();
        self.replies.clear();
        self.wake = None;
    }
}

/// Kinds of things that did not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosticKind {
    /// It belongs to an earlier start of the process.
    OldLaunch,
    /// It belongs to an earlier conversation of the session.
    OldGeneration,
    /// It names an entity that has ended or was forgotten.
    Late,
    /// It was said before.
    Duplicate,
    /// It names nothing that is known.
    Unmatched,
    /// Two sources disagree.
    Conflict,
    /// No table of the channels knows it.
    Unrecognized,
    /// A part of the machinery was lost.
    Lost,
    /// An operation ended in a way that leaves something open.
    Operation,
}

/// Something that did not fit: counted, shown to developers, never published as an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Which kind.
    pub kind: DiagnosticKind,
    /// What it was about.
    pub about: Arc<str>,
}
