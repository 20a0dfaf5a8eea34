//! The shape of a profile's screen table. No string of any version stands here.

use std::sync::OnceLock;

use ccd_model::screen::Gate;
use regex::{Captures, Regex};

/// A pattern, compiled at first use.
pub(crate) struct Pattern {
    text: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    pub(crate) const fn new(text: &'static str) -> Self {
        Self {
            text,
            compiled: OnceLock::new(),
        }
    }

    /// The compiled pattern; `None` when it is malformed, so that it never matches.
    pub(crate) fn regex(&self) -> Option<&Regex> {
        self.compiled
            .get_or_init(|| Regex::new(self.text).ok())
            .as_ref()
    }

    pub(crate) fn captures<'t>(&self, row: &'t str) -> Option<Captures<'t>> {
        self.regex()?.captures(row)
    }
}

/// What a row between conversation and composer means. Named groups of the pattern give the details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatusKind {
    Spinner,
    /// Groups `reason`, `minutes`, `seconds`, `attempt`, `max`.
    Retrying,
    /// The banner without its changing parts.
    Stalled(&'static str),
    Done,
    WaitingForAgents,
}

/// One kind of status row. Patterns are anchored at column 0.
pub(crate) struct StatusRow {
    pub(crate) pattern: Pattern,
    pub(crate) kind: StatusKind,
}

/// How a title row is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TitleMatch {
    /// The whole row.
    Exact,
    /// The row begins so and goes on with a space, or ends.
    Word,
    /// The row begins so and goes on with at least two spaces (a tab row), or ends.
    Tabs,
    /// The row begins so.
    Prefix,
    /// The text stands somewhere behind the indent.
    Contains,
}

/// What a dialog is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DialogKind {
    Permission,
    Question,
    Plan,
    Gate(Gate),
    /// A gate when nothing stands above it, else a modal.
    GateOrModal(Gate),
    UsageLimitMenu,
    Exit,
    Modal,
}

/// A title row right below a full-width rule.
pub(crate) struct Title {
    /// Blanks before the text.
    pub(crate) indent: usize,
    pub(crate) matching: TitleMatch,
    pub(crate) text: &'static str,
    pub(crate) kind: DialogKind,
}

/// The rows below the composer.
pub(crate) struct FooterTable {
    /// Group `mode` is the mode's name on screen.
    pub(crate) mode: Pattern,
    /// Name on screen and Claude's own value.
    pub(crate) modes: &'static [(&'static str, &'static str)],
    /// Rows that replace the whole footer, by their beginning.
    pub(crate) replacements: &'static [&'static str],
    /// Right-hand hint when nobody is logged in.
    pub(crate) logged_out: &'static str,
}

/// The screen table of a profile.
pub(crate) struct ScreenTable {
    /// Columns and rows of the pane.
    pub(crate) size: (u16, u16),
    /// The character of a full-width rule, and of the separators inside dialogs.
    pub(crate) rule: char,
    pub(crate) dash: char,
    /// First row of a composer in prompt mode and in shell mode begins so.
    pub(crate) prompt_mark: &'static str,
    pub(crate) shell_mark: &'static str,
    /// Continuation rows of composer and conversation begin so.
    pub(crate) continuation: &'static str,
    /// Composer texts that are not typed, and whether they say that prompts are queued.
    pub(crate) placeholders: &'static [(&'static str, bool)],
    /// A prompt in the conversation or in the queue begins so.
    pub(crate) prompt_row: &'static str,
    /// The row under the last queued prompt.
    pub(crate) queue_hint: &'static str,
    /// The interrupted notice.
    pub(crate) interrupted: &'static str,
    pub(crate) status: &'static [StatusRow],
    pub(crate) footer: FooterTable,
    pub(crate) titles: &'static [Title],
    /// An unknown title with this indent belongs to a permission dialog when one of these rows follows.
    pub(crate) permission_indent: usize,
    pub(crate) permission_questions: &'static [&'static str],
    /// Whole rows that tell a surface without any rule, the last one on screen first.
    pub(crate) onboarding: &'static [(&'static str, Gate)],
    /// A surface with a composer-like row: the beginning of the row below its lower rule, and its name.
    pub(crate) composer_like: &'static [(&'static str, &'static str)],
    /// First characters of the terminal title while a turn runs, and while none does.
    pub(crate) busy_titles: &'static [char],
    pub(crate) idle_titles: &'static [char],
}

impl ScreenTable {
    /// Whether the title shows activity; `None` when it says nothing.
    pub(crate) fn title_busy(&self, title: &str) -> Option<bool> {
        let first = title.chars().next()?;
        if self.busy_titles.contains(&first) {
            Some(true)
        } else if self.idle_titles.contains(&first) {
            Some(false)
        } else {
            None
        }
    }
}
