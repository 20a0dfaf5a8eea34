//! Exit codes of the command: a total function of outcome and error code.

use crate::{ErrorCode, TurnStatus};

/// Exit code of `ccd run` and `ccd ask`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExitCode(pub u8);

impl ExitCode {
    /// Completed.
    pub const COMPLETED: Self = Self(0);
    /// Defect of ours.
    pub const INTERNAL: Self = Self(1);
    /// Usage or configuration.
    pub const USAGE: Self = Self(2);
    /// tmux, Claude or its version.
    pub const ENVIRONMENT: Self = Self(3);
    /// Account or trust.
    pub const ACCOUNT: Self = Self(4);
    /// Turn failed.
    pub const FAILED: Self = Self(5);
    /// Interrupted or withdrawn.
    pub const INTERRUPTED: Self = Self(6);
    /// Usage limit.
    pub const USAGE_LIMIT: Self = Self(7);
    /// Session exited or turn aborted.
    pub const EXITED: Self = Self(8);
    /// Not submitted.
    pub const NOT_SUBMITTED: Self = Self(9);
    /// Unknown.
    pub const UNKNOWN: Self = Self(10);
    /// Time-out, after an interrupt.
    pub const TIMED_OUT: Self = Self(124);
    /// Ended by SIGINT.
    pub const SIGINT: Self = Self(130);
    /// Ended by SIGTERM.
    pub const SIGTERM: Self = Self(143);

    /// The code for an error that kept a turn from ending.
    #[must_use]
    pub const fn of_error(code: ErrorCode) -> Self {
        match code {
            ErrorCode::Config | ErrorCode::PromptRefused | ErrorCode::Unsupported => Self::USAGE,
            ErrorCode::Environment
            | ErrorCode::ClaudeMissing
            | ErrorCode::Version
            | ErrorCode::SettingsConflict
            | ErrorCode::StartFailed => Self::ENVIRONMENT,
            ErrorCode::Account | ErrorCode::TrustRequired => Self::ACCOUNT,
            ErrorCode::TurnFailed => Self::FAILED,
            ErrorCode::TurnInterrupted => Self::INTERRUPTED,
            ErrorCode::UsageLimit => Self::USAGE_LIMIT,
            ErrorCode::SessionExited | ErrorCode::SessionBusy => Self::EXITED,
            ErrorCode::NotSubmitted => Self::NOT_SUBMITTED,
            ErrorCode::TurnUnknown => Self::UNKNOWN,
            ErrorCode::Internal => Self::INTERNAL,
        }
    }

    /// The code for an ended turn. A turn that has not ended is unknown.
    #[must_use]
    pub const fn of_turn(status: TurnStatus, error: Option<ErrorCode>) -> Self {
        match status {
            TurnStatus::Completed => Self::COMPLETED,
            TurnStatus::Failed => match error {
                Some(ErrorCode::UsageLimit) => Self::USAGE_LIMIT,
                Some(ErrorCode::Account) => Self::ACCOUNT,
                _ => Self::FAILED,
            },
            TurnStatus::Interrupted | TurnStatus::Withdrawn => Self::INTERRUPTED,
            TurnStatus::NotSubmitted => Self::NOT_SUBMITTED,
            TurnStatus::Aborted => Self::EXITED,
            TurnStatus::Unknown
            | TurnStatus::Queued
            | TurnStatus::Submitting
            | TurnStatus::Running
            | TurnStatus::Stopping => Self::UNKNOWN,
        }
    }
}
