//! Why a session could not be started: one typed error with the step that failed.
//!
//! Here lives the error and its steps. Doing the steps never does.

use ccd_model::event::StartFailure;
use ccd_ports::error::{PortError, PortErrorKind};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The steps of a start, in order. The serialized names stand in traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchStep {
    /// Options checked against each other.
    Config,
    /// State directory opened, sessions of crashed owners cleaned.
    State,
    /// The child's environment and Claude's directories.
    Environment,
    /// Claude's binary and version.
    Claude,
    /// tmux.
    Tmux,
    /// The helper program.
    Helper,
    /// Login and onboarding.
    Account,
    /// Settings layers and key bindings.
    Settings,
    /// Workspace trust.
    Trust,
    /// Whether another Claude holds the conversation.
    Conversation,
    /// The session's record.
    Record,
    /// The supervisor.
    Supervise,
    /// The hook server.
    Hooks,
    /// The editor injection.
    Editor,
    /// The settings file.
    WriteSettings,
    /// Claude in its pane.
    Spawn,
    /// The control client.
    Pane,
    /// Process watcher, registry and transcript followers.
    Watch,
    /// Waiting for readiness, decided by the core.
    Ready,
}

/// What kind of thing went wrong. Stable; facades map it to public codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(
    missing_docs,
    reason = "the kinds of the ports, where they are documented, and one more"
)]
pub enum LaunchErrorKind {
    TmuxMissing,
    TmuxTooOld,
    TmuxFailed,
    ClaudeMissing,
    ClaudeBroken,
    ClaudeVersion,
    HelperMissing,
    HelperProtocol,
    DirUnusable,
    FileUnreadable,
    FileMalformed,
    LoggedOut,
    AccountRefused,
    NotOnboarded,
    TrustRequired,
    SettingsConflict,
    SessionBusy,
    Unsupported,
    Config,
    TimedOut,
    /// Claude was started and did not become ready.
    StartFailed,
    Internal,
}

impl From<PortErrorKind> for LaunchErrorKind {
    fn from(kind: PortErrorKind) -> Self {
        match kind {
            PortErrorKind::TmuxMissing => Self::TmuxMissing,
            PortErrorKind::TmuxTooOld => Self::TmuxTooOld,
            PortErrorKind::TmuxFailed => Self::TmuxFailed,
            PortErrorKind::ClaudeMissing => Self::ClaudeMissing,
            PortErrorKind::ClaudeBroken => Self::ClaudeBroken,
            PortErrorKind::ClaudeVersion => Self::ClaudeVersion,
            PortErrorKind::HelperMissing => Self::HelperMissing,
            PortErrorKind::HelperProtocol => Self::HelperProtocol,
            PortErrorKind::DirUnusable => Self::DirUnusable,
            PortErrorKind::FileUnreadable => Self::FileUnreadable,
            PortErrorKind::FileMalformed => Self::FileMalformed,
            PortErrorKind::LoggedOut => Self::LoggedOut,
            PortErrorKind::AccountRefused => Self::AccountRefused,
            PortErrorKind::NotOnboarded => Self::NotOnboarded,
            PortErrorKind::TrustRequired => Self::TrustRequired,
            PortErrorKind::SettingsConflict => Self::SettingsConflict,
            PortErrorKind::SessionBusy => Self::SessionBusy,
            PortErrorKind::Unsupported => Self::Unsupported,
            PortErrorKind::Config => Self::Config,
            PortErrorKind::TimedOut => Self::TimedOut,
            PortErrorKind::Internal => Self::Internal,
        }
    }
}

/// Kinds of the start-up gates, by the core's word for the gate; every other gate is a settings conflict.
const GATES: &[(&str, LaunchErrorKind)] = &[
    ("trust", LaunchErrorKind::TrustRequired),
    ("onboarding", LaunchErrorKind::NotOnboarded),
    ("api_key", LaunchErrorKind::AccountRefused),
    ("offline", LaunchErrorKind::StartFailed),
];

/// A start that failed. Everything that had been set up is gone when a caller sees this.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct LaunchError {
    /// Stable kind.
    pub kind: LaunchErrorKind,
    /// One sentence for a person, without secrets.
    pub message: String,
    /// What a person can do about it.
    pub fix: Option<String>,
    /// The step that failed.
    pub step: LaunchStep,
    /// The core's finding, when the step is [`LaunchStep::Ready`].
    pub failure: Option<StartFailure>,
}

impl LaunchError {
    /// An error of `step`.
    #[must_use]
    pub fn new(step: LaunchStep, error: PortError) -> Self {
        Self {
            kind: error.kind.into(),
            message: error.message,
            fix: error.fix,
            step,
            failure: None,
        }
    }

    /// The start was given up by its caller, or the kernel ended under it.
    #[must_use]
    pub fn abandoned(step: LaunchStep) -> Self {
        Self::new(
            step,
            PortError::new(PortErrorKind::Internal, "the start was given up"),
        )
    }

    /// What the core found out about a start.
    #[must_use]
    pub fn from_failure(failure: StartFailure) -> Self {
        let (kind, message, fix) = describe(&failure);
        Self {
            kind,
            message,
            fix: fix.map(ToOwned::to_owned),
            step: LaunchStep::Ready,
            failure: Some(failure),
        }
    }
}

fn describe(failure: &StartFailure) -> (LaunchErrorKind, String, Option<&'static str>) {
    use LaunchErrorKind as Kind;
    match failure {
        StartFailure::Gate { gate, text } => (
            GATES
                .iter()
                .find(|(name, _)| *name == gate.as_ref())
                .map_or(Kind::SettingsConflict, |(_, kind)| *kind),
            format!("Claude stopped at its {gate} dialog: {}", first_lines(text)),
            Some("Start Claude once by hand in this directory and settle the dialog."),
        ),
        StartFailure::LoggedOut => (
            Kind::LoggedOut,
            "nobody is logged in to Claude".to_owned(),
            Some("Run `claude` and log in with /login."),
        ),
        StartFailure::Exited {
            code,
            signal,
            screen,
        } => {
            let how = match (code, signal) {
                (Some(code), _) => format!("with exit code {code}"),
                (None, Some(signal)) => format!("by signal {signal}"),
                (None, None) => "in an unknown way".to_owned(),
            };
            let screen = first_lines(screen);
            let message = format!("Claude ended {how} before it was ready: {screen}");
            (Kind::StartFailed, message, None)
        }
        StartFailure::SelfTest { reason } => (
            Kind::StartFailed,
            format!("the self-test prompt did not come back through the hook: {reason}"),
            None,
        ),
        StartFailure::Timeout { missing } => (
            Kind::TimedOut,
            format!("Claude was not ready in time; missing: {missing}"),
            None,
        ),
        StartFailure::WrongRenderer => (
            Kind::StartFailed,
            "Claude does not use its classic renderer at the expected size".to_owned(),
            None,
        ),
        StartFailure::Lost { part } => (
            Kind::StartFailed,
            format!("a part of the driver was lost during the start: {part}"),
            None,
        ),
    }
}

/// The first few non-empty lines of a screen text, on one line.
fn first_lines(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .take(4)
        .collect();
    if lines.is_empty() {
        "(blank screen)".to_owned()
    } else {
        lines.join(" / ")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn each_start_failure_has_its_kind() {
        let gate = |gate: &str| StartFailure::Gate {
            gate: gate.into(),
            text: "Do you?\n\n 1. No".into(),
        };
        let table = [
            (gate("trust"), LaunchErrorKind::TrustRequired),
            (gate("onboarding"), LaunchErrorKind::NotOnboarded),
            (gate("api_key"), LaunchErrorKind::AccountRefused),
            (gate("mcp_server"), LaunchErrorKind::SettingsConflict),
            (StartFailure::LoggedOut, LaunchErrorKind::LoggedOut),
            (
                StartFailure::Exited {
                    code: Some(1),
                    signal: None,
                    screen: "".into(),
                },
                LaunchErrorKind::StartFailed,
            ),
            (
                StartFailure::SelfTest { reason: "x".into() },
                LaunchErrorKind::StartFailed,
            ),
            (
                StartFailure::Timeout {
                    missing: "x".into(),
                },
                LaunchErrorKind::TimedOut,
            ),
            (StartFailure::WrongRenderer, LaunchErrorKind::StartFailed),
            (
                StartFailure::Lost { part: "x".into() },
                LaunchErrorKind::StartFailed,
            ),
        ];
        for (failure, kind) in table {
            let error = LaunchError::from_failure(failure.clone());
            assert_eq!(
                (error.kind, error.step),
                (kind, LaunchStep::Ready),
                "{failure:?}"
            );
            assert_eq!(error.failure, Some(failure));
        }
        let shown = LaunchError::from_failure(gate("trust")).to_string();
        assert!(shown.contains("Do you? / 1. No"), "{shown}");
    }
}
