//! The one public error type: 18 frozen codes, each with a category and a retry hint.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Frozen error codes. New causes get a new `details.reason`, never a new code without a major version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// Options contradict each other or are malformed.
    #[serde(rename = "E_CONFIG")]
    Config,
    /// tmux, a directory or another part of the machine is missing or unusable.
    #[serde(rename = "E_ENVIRONMENT")]
    Environment,
    /// Claude Code is missing or does not run.
    #[serde(rename = "E_CLAUDE_MISSING")]
    ClaudeMissing,
    /// Another version of Claude Code than expected.
    #[serde(rename = "E_VERSION")]
    Version,
    /// Nobody is logged in, or the account is refused.
    #[serde(rename = "E_ACCOUNT")]
    Account,
    /// The workspace is not trusted.
    #[serde(rename = "E_TRUST_REQUIRED")]
    TrustRequired,
    /// The user's settings make driving impossible.
    #[serde(rename = "E_SETTINGS_CONFLICT")]
    SettingsConflict,
    /// The conversation is held by another Claude process.
    #[serde(rename = "E_SESSION_BUSY")]
    SessionBusy,
    /// Claude started but never became ready.
    #[serde(rename = "E_START_FAILED")]
    StartFailed,
    /// The prompt was refused before anything was done.
    #[serde(rename = "E_PROMPT_REFUSED")]
    PromptRefused,
    /// The prompt did not reach the model.
    #[serde(rename = "E_NOT_SUBMITTED")]
    NotSubmitted,
    /// The turn ended by an API error.
    #[serde(rename = "E_TURN_FAILED")]
    TurnFailed,
    /// The turn was interrupted or withdrawn.
    #[serde(rename = "E_TURN_INTERRUPTED")]
    TurnInterrupted,
    /// How the turn ended is not known.
    #[serde(rename = "E_TURN_UNKNOWN")]
    TurnUnknown,
    /// The usage limit was reached.
    #[serde(rename = "E_USAGE_LIMIT")]
    UsageLimit,
    /// The session is over.
    #[serde(rename = "E_SESSION_EXITED")]
    SessionExited,
    /// Not available on this platform or in this version.
    #[serde(rename = "E_UNSUPPORTED")]
    Unsupported,
    /// A defect or an unexpected state of this library.
    #[serde(rename = "E_INTERNAL")]
    Internal,
}

/// Where the cause lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// In what the caller asked.
    Usage,
    /// In the machine.
    Environment,
    /// In the account or the workspace's trust.
    Account,
    /// In the start of a session.
    Start,
    /// In a turn.
    Turn,
    /// In the session's life.
    Session,
    /// In this library.
    Internal,
}

impl ErrorCode {
    /// Every code with its text form, category and whether trying again unchanged can help.
    pub const TABLE: &'static [(Self, &'static str, Category, bool)] = &[
        (Self::Config, "E_CONFIG", Category::Usage, false),
        (
            Self::Environment,
            "E_ENVIRONMENT",
            Category::Environment,
            false,
        ),
        (
            Self::ClaudeMissing,
            "E_CLAUDE_MISSING",
            Category::Environment,
            false,
        ),
        (Self::Version, "E_VERSION", Category::Environment, false),
        (Self::Account, "E_ACCOUNT", Category::Account, false),
        (
            Self::TrustRequired,
            "E_TRUST_REQUIRED",
            Category::Account,
            false,
        ),
        (
            Self::SettingsConflict,
            "E_SETTINGS_CONFLICT",
            Category::Environment,
            false,
        ),
        (Self::SessionBusy, "E_SESSION_BUSY", Category::Session, true),
        (Self::StartFailed, "E_START_FAILED", Category::Start, true),
        (
            Self::PromptRefused,
            "E_PROMPT_REFUSED",
            Category::Usage,
            false,
        ),
        (Self::NotSubmitted, "E_NOT_SUBMITTED", Category::Turn, true),
        (Self::TurnFailed, "E_TURN_FAILED", Category::Turn, true),
        (
            Self::TurnInterrupted,
            "E_TURN_INTERRUPTED",
            Category::Turn,
            false,
        ),
        (Self::TurnUnknown, "E_TURN_UNKNOWN", Category::Turn, false),
        (Self::UsageLimit, "E_USAGE_LIMIT", Category::Account, true),
        (
            Self::SessionExited,
            "E_SESSION_EXITED",
            Category::Session,
            false,
        ),
        (Self::Unsupported, "E_UNSUPPORTED", Category::Usage, false),
        (Self::Internal, "E_INTERNAL", Category::Internal, false),
    ];

    fn row(self) -> Option<&'static (Self, &'static str, Category, bool)> {
        Self::TABLE.iter().find(|(code, ..)| *code == self)
    }

    /// Text form, `E_CONFIG`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().map_or("E_INTERNAL", |row| row.1)
    }

    /// Category.
    #[must_use]
    pub fn category(self) -> Category {
        self.row().map_or(Category::Internal, |row| row.2)
    }

    /// Whether trying again unchanged can help.
    #[must_use]
    pub fn retryable(self) -> bool {
        self.row().is_some_and(|row| row.3)
    }
}

/// The fine print of an error.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorDetails {
    /// Stable internal reason, `snake_case`.
    pub reason: String,
    /// What a person can do about it.
    pub fix: Option<String>,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Error {
    /// Frozen code.
    pub code: ErrorCode,
    /// One sentence for a person, without secrets.
    pub message: String,
    /// Whether trying again unchanged can help.
    pub retryable: bool,
    /// Fine print.
    pub details: ErrorDetails,
}

impl Error {
    /// An error of `code` for the internal `reason`.
    pub fn new(code: ErrorCode, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retryable: code.retryable(),
            details: ErrorDetails {
                reason: reason.into(),
                fix: None,
            },
        }
    }

    /// Adds what a person can do about it.
    #[must_use]
    pub fn with_fix(mut self, fix: Option<String>) -> Self {
        self.details.fix = fix;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)?;
        if let Some(fix) = &self.details.fix {
            write!(f, " ({fix})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_18_codes_serialize_as_the_table_spells_them() {
        assert_eq!(ErrorCode::TABLE.len(), 18);
        for (code, text, ..) in ErrorCode::TABLE {
            assert_eq!(
                serde_json::to_string(code).ok(),
                Some(format!("\"{text}\""))
            );
        }
    }
}
