//! Internal reasons to the 18 public codes. Total: every internal reason has a row.

use ccd_runtime::{LaunchError, LaunchErrorKind, model};
use ccd_types::{Error, ErrorCode};
use model::{
    command::Refusal,
    outcome::{NotSubmitted, Outcome},
};

use crate::failure_codes;

/// The public code and the stable reason of a launch error.
const fn launch_code(kind: LaunchErrorKind) -> (ErrorCode, &'static str) {
    match kind {
        LaunchErrorKind::TmuxMissing => (ErrorCode::Environment, "tmux_missing"),
        LaunchErrorKind::TmuxTooOld => (ErrorCode::Environment, "tmux_too_old"),
        LaunchErrorKind::TmuxFailed => (ErrorCode::Environment, "tmux_failed"),
        LaunchErrorKind::ClaudeMissing => (ErrorCode::ClaudeMissing, "claude_missing"),
        LaunchErrorKind::ClaudeBroken => (ErrorCode::ClaudeMissing, "claude_broken"),
        LaunchErrorKind::ClaudeVersion => (ErrorCode::Version, "claude_version"),
        LaunchErrorKind::HelperMissing => (ErrorCode::Environment, "helper_missing"),
        LaunchErrorKind::HelperProtocol => (ErrorCode::Environment, "helper_protocol"),
        LaunchErrorKind::DirUnusable => (ErrorCode::Environment, "dir_unusable"),
        LaunchErrorKind::FileUnreadable => (ErrorCode::Environment, "file_unreadable"),
        LaunchErrorKind::FileMalformed => (ErrorCode::Environment, "file_malformed"),
        LaunchErrorKind::LoggedOut => (ErrorCode::Account, "logged_out"),
        LaunchErrorKind::AccountRefused => (ErrorCode::Account, "account_refused"),
        LaunchErrorKind::NotOnboarded => (ErrorCode::Account, "not_onboarded"),
        LaunchErrorKind::TrustRequired => (ErrorCode::TrustRequired, "trust_required"),
        LaunchErrorKind::SettingsConflict => (ErrorCode::SettingsConflict, "settings_conflict"),
        LaunchErrorKind::SessionBusy => (ErrorCode::SessionBusy, "session_busy"),
        LaunchErrorKind::Unsupported => (ErrorCode::Unsupported, "unsupported"),
        LaunchErrorKind::Config => (ErrorCode::Config, "config"),
        LaunchErrorKind::TimedOut => (ErrorCode::StartFailed, "timed_out"),
        LaunchErrorKind::StartFailed => (ErrorCode::StartFailed, "start_failed"),
        LaunchErrorKind::Internal => (ErrorCode::Internal, "internal"),
    }
}

pub(crate) fn launch(error: LaunchError) -> Error {
    let (code, reason) = launch_code(error.kind);
    Error::new(code, reason, error.message).with_fix(error.fix)
}

pub(crate) fn refusal(refusal: &Refusal) -> Error {
    let prompt =
        |reason: &str, message: String| Error::new(ErrorCode::PromptRefused, reason, message);
    match refusal {
        Refusal::EmptyPrompt => prompt("empty_prompt", "the prompt is empty".into()),
        Refusal::LooksLikeCommand { word } => prompt(
            "looks_like_command",
            format!("`{word}` would run as a slash command"),
        )
        .with_fix(Some(
            "send it with Prompt::as_text, or without the leading slash".into(),
        )),
        Refusal::ExitWord { word } => {
            prompt("exit_word", format!("`{word}` would end Claude Code"))
                .with_fix(Some("use close(), or say it in more words".into()))
        }
        Refusal::TooLarge { bytes, limit } => prompt(
            "too_large",
            format!("the prompt has {bytes} bytes; the limit is {limit}"),
        ),
        Refusal::NothingToInterrupt => prompt("nothing_to_interrupt", "no turn is running".into()),
        Refusal::NoSuchEntity => prompt("no_such_entity", "it is not open any more".into()),
        Refusal::NotHeld => prompt("not_held", "the prompt is being delivered already".into()),
        Refusal::SessionOver => Error::new(
            ErrorCode::SessionExited,
            "session_over",
            "the session is over",
        ),
        Refusal::AuthRequired => Error::new(
            ErrorCode::Account,
            "auth_required",
            "Claude is not logged in",
        ),
    }
}

fn not_submitted(why: &NotSubmitted) -> (&'static str, String) {
    match why {
        NotSubmitted::Mismatch => (
            "mismatch",
            "the composer received another text; it was blocked twice".into(),
        ),
        NotSubmitted::BlockedByHook { message } => (
            "blocked_by_hook",
            format!("a hook blocked the prompt: {message}"),
        ),
        NotSubmitted::EditorSilent => ("editor_silent", "Claude never opened the editor".into()),
        NotSubmitted::ComposerBusy { what } => (
            "composer_busy",
            format!("the composer was not free: {what}"),
        ),
        NotSubmitted::NoReceipt => ("no_receipt", "Enter had no effect".into()),
        NotSubmitted::Cancelled => (
            "cancelled",
            "the prompt was cancelled while it was held".into(),
        ),
        NotSubmitted::SessionClosed => (
            "session_closed",
            "the session closed while the prompt was held".into(),
        ),
    }
}

/// The error of an outcome; `None` when the turn completed. `limited`: the session is at its usage limit.
pub(crate) fn outcome(outcome: &Outcome, limited: bool) -> Option<Error> {
    match outcome {
        Outcome::Completed => None,
        Outcome::Failed { error, message } => {
            let code = failure_codes::code(error, limited);
            Some(Error::new(code, error.to_string(), message.to_string()))
        }
        Outcome::Interrupted => Some(Error::new(
            ErrorCode::TurnInterrupted,
            "interrupted",
            "the turn was interrupted",
        )),
        Outcome::Withdrawn => Some(Error::new(
            ErrorCode::TurnInterrupted,
            "withdrawn",
            "the turn was interrupted before any output; its text came back",
        )),
        Outcome::NotSubmitted(why) => {
            let (reason, message) = not_submitted(why);
            Some(Error::new(ErrorCode::NotSubmitted, reason, message))
        }
        Outcome::Aborted { reason } => Some(Error::new(
            ErrorCode::SessionExited,
            "aborted",
            reason.to_string(),
        )),
        Outcome::Unknown { reason } => Some(Error::new(
            ErrorCode::TurnUnknown,
            "unknown",
            reason.to_string(),
        )),
    }
}
