//! What a screen capture means, free of any version-specific string. Produced by the channels, read by the core.

use alloc::sync::Arc;

use serde::{Deserialize, Serialize};

/// One classified capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenFacts {
    /// Which surface owns the keyboard.
    pub surface: Surface,
    /// The line between conversation and composer.
    pub status_line: StatusLine,
    /// The prompt composer.
    pub composer: Composer,
    /// Permission mode shown in the footer, as Claude's own value (`default`, `acceptEdits`, …).
    pub mode: Option<Arc<str>>,
    /// The last conversation line above the composer is the interrupted notice.
    pub interrupted: bool,
    /// The terminal title shows activity; `None` when the title says nothing.
    pub title_busy: Option<bool>,
    /// Prompts queued inside Claude are listed above the composer.
    pub queued: bool,
    /// A right-hand hint says that nobody is logged in.
    pub logged_out: bool,
}

/// The surface that owns the keyboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Surface {
    /// Nothing painted, or a frame that cannot be read.
    Blank,
    /// The alternate screen or a wrong pane size: never classified further.
    WrongRenderer,
    /// Conversation with the composer.
    Main,
    /// A tool permission dialog.
    PermissionDialog {
        /// First title line.
        title: Arc<str>,
        /// Dialog text without the frame.
        text: Arc<str>,
    },
    /// A question of the model.
    QuestionDialog {
        /// Dialog text.
        text: Arc<str>,
    },
    /// A plan to approve.
    PlanDialog {
        /// Dialog text.
        text: Arc<str>,
    },
    /// Something that must be answered before a session can begin.
    StartupGate {
        /// Which one.
        gate: Gate,
        /// Dialog text.
        text: Arc<str>,
    },
    /// The usage-limit menu.
    UsageLimitMenu,
    /// Exit was asked for while background work runs.
    ExitDialog,
    /// A known dialog that Escape closes.
    Modal {
        /// Title.
        title: Arc<str>,
    },
    /// A dialog that no table knows.
    UnknownModal {
        /// Dialog text.
        text: Arc<str>,
    },
}

/// Start-up gates. None is ever answered with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Workspace trust.
    Trust,
    /// Bypass-permissions warning.
    Bypass,
    /// First-run onboarding.
    Onboarding,
    /// Settings file error or warning.
    Settings,
    /// An API key in the environment.
    ApiKey,
    /// A project MCP server.
    McpServer,
    /// External CLAUDE.md imports.
    Imports,
    /// A resume picker or summary question.
    Resume,
    /// The start-up network check failed.
    Offline,
}

/// The line between conversation and composer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum StatusLine {
    /// No such line.
    None,
    /// Claude works.
    Spinner,
    /// Waiting before the next attempt.
    Retrying {
        /// Cause as shown.
        reason: Arc<str>,
        /// Seconds until the attempt.
        seconds: u32,
        /// Number of the coming attempt.
        attempt: u32,
        /// Highest attempt number.
        max: u32,
    },
    /// Claude's own stall banner.
    Stalled {
        /// Banner text without the countdown.
        text: Arc<str>,
    },
    /// A turn ended; the closing line stands.
    Done,
    /// Background agents keep the session busy.
    WaitingForAgents,
}

/// The prompt composer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Composer {
    /// Not on screen, or larger than the pane.
    Unknown,
    /// Empty, or a placeholder only.
    Empty,
    /// Holds text.
    Text {
        /// The text as painted; long text is folded by Claude.
        text: Arc<str>,
    },
    /// In shell mode: Enter would run a command.
    Shell,
}
