//! Commands: what a facade or the session's own executors ask of the core.

use alloc::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    ids::{PermissionKey, TurnKey},
    permission::{Decision, HandlerFailure},
};

/// How to close.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseHow {
    /// Deny what is held, leave by `/exit` when idle, else terminate; escalate on deadlines.
    Graceful,
    /// Terminate at once.
    Kill,
}

/// A request to the core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "c")]
pub enum Command {
    /// Deliver a prompt. Accepted with a turn key, perhaps held until idle.
    Send {
        /// The text as given.
        text: Arc<str>,
        /// Deliver even what looks like a command, as text.
        as_text: bool,
    },
    /// Take back a prompt that is still held.
    Cancel {
        /// Which turn.
        turn: TurnKey,
    },
    /// Interrupt what runs.
    Interrupt,
    /// The permission handler's answer.
    Decide {
        /// Which request.
        permission: PermissionKey,
        /// The answer.
        decision: Decision,
    },
    /// The permission handler gave no answer: denied.
    HandlerFailed {
        /// Which request.
        permission: PermissionKey,
        /// What happened.
        failure: HandlerFailure,
    },
    /// End the session.
    Close {
        /// How.
        how: CloseHow,
    },
    /// The launcher failed after the core was told of the launch, or gave up: everything open ends.
    Abandon {
        /// Why.
        reason: Arc<str>,
    },
}

/// What acceptance of a command gives back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "accepted")]
pub enum Accepted {
    /// Nothing to name.
    Done,
    /// The turn that was created or hit.
    Turn {
        /// Its key.
        turn: TurnKey,
    },
}

/// Why a command was refused. Nothing was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "refused")]
pub enum Refusal {
    /// The prompt is empty after normalisation.
    EmptyPrompt,
    /// The text is a slash command; use a command call or `as_text`.
    LooksLikeCommand {
        /// The first word.
        word: Arc<str>,
    },
    /// The text is a word that ends the program; use close or `as_text`.
    ExitWord {
        /// The word.
        word: Arc<str>,
    },
    /// The prompt is larger than the limit.
    TooLarge {
        /// Bytes after normalisation.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// Nothing runs that could be interrupted.
    NothingToInterrupt,
    /// The key names nothing that is still open.
    NoSuchEntity,
    /// The turn is already being delivered.
    NotHeld,
    /// The session is closing or over.
    SessionOver,
    /// Claude is not logged in.
    AuthRequired,
}
