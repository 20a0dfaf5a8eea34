//! Everything that time alone decides: one table. A row that fires never invents an outcome; without evidence it leads to `Unknown`.

use alloc::collections::{BTreeMap, BTreeSet};

use ccd_model::time::Mono;

/// A kind of deadline. The order is the order in which deadlines of the same moment fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Row {
    /// From launch to ready.
    Start,
    /// Close: the first escalation.
    CloseTerm,
    /// Close: the second escalation.
    CloseKill,
    /// Nothing reported the end of a killed process.
    ExitEvidence,
    /// The editor did not take the staged text.
    Editor,
    /// The withdrawn staging did not end.
    Unstage,
    /// The Enter did not end.
    EnterEnd,
    /// No receipt after Enter.
    Receipt,
    /// The capture that decides about a missing receipt did not come.
    Judge,
    /// No late receipt either.
    LateReceipt,
    /// A blocked text did not come back to the composer.
    TextReturn,
    /// A cleared composer was not seen empty.
    ClearSeen,
    /// A held prompt waits for a composer that is not free.
    ComposerFree,
    /// The transcript did not catch up with an ended turn.
    Settle,
    /// Nothing runs any more and no end was reported.
    Quiet,
    /// Another prompt runs, and the turn before it has no end.
    Superseded,
    /// A prompt that Claude queued did not appear as a turn of its own.
    Hosted,
    /// No permission request followed a tool call.
    ToolStart,
    /// The answer to a permission request had no visible effect.
    Effect,
    /// A dialog stands that no hook reported.
    Unreported,
    /// No evidence for an interrupt.
    Interrupt,
    /// Nothing runs, but the end of a subagent was not reported.
    AgentGone,
    /// The usage limit's reset time. The only row that follows the wall clock.
    UsageWake,
    /// The usage-limit menu may open by itself.
    Menu,
    /// The time between an Escape that came too late and the next one.
    EscapeGap,
}

/// One row of the deadline table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadlineRow {
    /// Row id, as tests name it.
    pub id: &'static str,
    /// Which.
    pub row: Row,
    /// Milliseconds; 0 where the duration comes from the configuration or an observation.
    pub ms: u64,
    /// What happens when it fires.
    pub then: &'static str,
}

const fn row(id: &'static str, row: Row, ms: u64, then: &'static str) -> DeadlineRow {
    DeadlineRow { id, row, ms, then }
}

/// The deadline table.
#[rustfmt::skip]
pub const DEADLINES: &[DeadlineRow] = &[
    row("D-START", Row::Start, 0, "start failed, naming what is missing; the session closes"),
    row("D-TERM", Row::CloseTerm, 0, "terminate the process"),
    row("D-KILL", Row::CloseKill, 0, "kill the process"),
    row("D-EXIT", Row::ExitEvidence, 3_000, "the session is over with an unknown exit code"),
    row("D-EDITOR", Row::Editor, 1_300, "withdraw the staged text, inject again once, then editor_silent"),
    row("D-UNSTAGE", Row::Unstage, 1_000, "as if the staging was refused; the composer counts as dirty"),
    row("D-ENTER", Row::EnterEnd, 1_000, "as if the end of the key was lost: capture and judge (added to the time the key may try)"),
    row("D-RECEIPT", Row::Receipt, 1_500, "capture and judge"),
    row("D-JUDGE", Row::Judge, 1_000, "judge by what is known"),
    row("D-LATE", Row::LateReceipt, 5_000, "the turn is unknown; the guard stays armed"),
    row("D-RETURN", Row::TextReturn, 1_000, "clear the composer anyway"),
    row("D-CLEAR", Row::ClearSeen, 3_000, "give the clearing up"),
    row("D-FREE", Row::ComposerFree, 10_000, "the held prompt is not submitted: composer_busy"),
    row("D-SETTLE", Row::Settle, 1_500, "settled, incomplete"),
    row("D-QUIET", Row::Quiet, 10_000, "completed when a Stop was seen, else unknown; waits on while the screen is busy"),
    row("D-SUPERSEDED", Row::Superseded, 1_500, "unknown"),
    row("D-HOSTED", Row::Hosted, 3_000, "ends like its host when it was absorbed, else unknown"),
    row("D-TOOL", Row::ToolStart, 500, "the tool runs"),
    row("D-EFFECT", Row::Effect, 5_000, "dialog_only while the dialog stands, resolved when Claude is busy without a dialog, else unknown"),
    row("D-DIALOG", Row::Unreported, 2_000, "alert, no key"),
    row("D-INTERRUPT", Row::Interrupt, 5_000, "the interrupt is unconfirmed; the turn stays as it is"),
    row("D-AGENT", Row::AgentGone, 2_000, "the subagent is unknown"),
    row("D-MENU", Row::Menu, 4_000, "no menu came: held prompts may be delivered"),
    row("D-ESCAPE", Row::EscapeGap, 1_200, "the Escape of the interrupt in hand is pressed"),
    row("D-WAKE", Row::UsageWake, 0, "the usage limit is cleared"),
];

/// How long `row` waits, milliseconds.
pub(crate) fn duration(row: Row) -> u64 {
    DEADLINES.iter().find(|r| r.row == row).map_or(0, |r| r.ms)
}

/// The armed deadlines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Deadlines {
    by_time: BTreeSet<(Mono, Row, u32)>,
    by_key: BTreeMap<(Row, u32), Mono>,
}

impl Deadlines {
    /// Arms or moves a deadline.
    pub(crate) fn arm(&mut self, row: Row, id: u32, at: Mono) {
        self.disarm(row, id);
        self.by_key.insert((row, id), at);
        self.by_time.insert((at, row, id));
    }

    /// Takes a deadline back.
    pub(crate) fn disarm(&mut self, row: Row, id: u32) {
        if let Some(at) = self.by_key.remove(&(row, id)) {
            self.by_time.remove(&(at, row, id));
        }
    }

    /// Takes all deadlines back.
    pub(crate) fn disarm_all(&mut self) {
        self.by_time.clear();
        self.by_key.clear();
    }

    /// Whether a deadline is armed.
    pub(crate) fn armed(&self, row: Row, id: u32) -> bool {
        self.by_key.contains_key(&(row, id))
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<(Mono, Row, u32)> {
        self.by_time.first().copied()
    }
}
