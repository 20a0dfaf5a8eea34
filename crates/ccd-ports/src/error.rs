//! One error type for every port, with a stable code.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What kind of thing went wrong. Stable; facades map it to public codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortErrorKind {
    /// No tmux on PATH.
    TmuxMissing,
    /// tmux is older than 3.2.
    TmuxTooOld,
    /// tmux refused or failed.
    TmuxFailed,
    /// No Claude binary found.
    ClaudeMissing,
    /// The Claude binary does not run.
    ClaudeBroken,
    /// Another version than expected.
    ClaudeVersion,
    /// No helper program found.
    HelperMissing,
    /// The helper speaks another protocol version.
    HelperProtocol,
    /// A directory cannot be read or written.
    DirUnusable,
    /// A file cannot be read.
    FileUnreadable,
    /// A file is not what it should be.
    FileMalformed,
    /// Nobody is logged in.
    LoggedOut,
    /// The account is not a subscription.
    AccountRefused,
    /// First-run onboarding was never completed.
    NotOnboarded,
    /// The workspace is not trusted.
    TrustRequired,
    /// Settings of the user make driving impossible.
    SettingsConflict,
    /// The conversation is held by another Claude process.
    SessionBusy,
    /// Something was asked for that this platform cannot do.
    Unsupported,
    /// The option values contradict each other or are malformed.
    Config,
    /// A deadline passed.
    TimedOut,
    /// Anything else; the message says it.
    Internal,
}

/// A failed port operation.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct PortError {
    /// Stable kind.
    pub kind: PortErrorKind,
    /// One sentence for a person, without secrets.
    pub message: String,
    /// What a person can do about it.
    pub fix: Option<String>,
}

impl PortError {
    /// An error without a fix.
    pub fn new(kind: PortErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            fix: None,
        }
    }

    /// Adds what a person can do about it.
    #[must_use]
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}
