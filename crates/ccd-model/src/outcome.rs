//! How a turn ended, with what is known about it.

use alloc::{sync::Arc, vec::Vec};

use serde::{Deserialize, Serialize};

/// Who asked for a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// This library's caller.
    Api,
    /// A person typing in an attached terminal.
    Attached,
    /// A finished background task.
    TaskNotification,
    /// Claude's own continuation after a usage limit.
    AutoContinue,
}

/// Why a prompt never reached the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum NotSubmitted {
    /// The composer received another text than the one sent, twice; the model never saw it.
    Mismatch,
    /// A hook of the user blocked it.
    BlockedByHook {
        /// What the hook said.
        message: Arc<str>,
    },
    /// The editor never took the text.
    EditorSilent,
    /// The composer was not free: a dialog, shell mode or foreign text.
    ComposerBusy {
        /// What was there.
        what: Arc<str>,
    },
    /// Enter had no effect within the limit.
    NoReceipt,
    /// Cancelled by the caller while it was held.
    Cancelled,
    /// The session closed while it was held.
    SessionClosed,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// Ended by itself.
    Completed,
    /// Ended by an API error.
    Failed {
        /// Claude's error class (`server_error`, `rate_limit`, …).
        error: Arc<str>,
        /// Message for a person.
        message: Arc<str>,
    },
    /// Interrupted, with evidence.
    Interrupted,
    /// Interrupted before any output; the text came back.
    Withdrawn,
    /// Never reached the model.
    NotSubmitted(NotSubmitted),
    /// The process or the session ended under it.
    Aborted {
        /// What ended.
        reason: Arc<str>,
    },
    /// Evidence ran out.
    Unknown {
        /// What was missing.
        reason: Arc<str>,
    },
}

/// Token counts of one turn, summed over its model calls; each message id is counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Tokens written to the prompt cache.
    pub cache_creation_input_tokens: u64,
    /// Tokens read from the prompt cache.
    pub cache_read_input_tokens: u64,
}

/// What a caller did not get exactly as given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Normalization {
    /// Trailing white space and newlines were removed.
    TrailingSpace,
    /// Line endings were made `\n`.
    LineEndings,
    /// Control characters were removed.
    ControlCharacters,
    /// Zero-width, tag or byte-order characters were removed.
    InvisibleCharacters,
    /// Bidirectional marks were removed.
    BidiMarks,
    /// A leading space was added so that the text is not taken as a command.
    AsText,
}

/// The text that is delivered, and how it differs from what was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Normalized {
    /// Text as Claude will echo it.
    pub text: Arc<str>,
    /// What was changed, sorted, without duplicates.
    pub changes: Vec<Normalization>,
}
