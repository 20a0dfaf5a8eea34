//! The main surface: the composer, the rows right above it (status line, queue, notices) and the footer below it.

use std::sync::Arc;

use ccd_model::screen::{Composer, StatusLine, Surface};
use regex::Captures;

use super::{
    grid::{Grid, is_blank},
    table::{ScreenTable, StatusKind},
};

/// Blanks between the footer and a right-hand hint.
const HINT_GAP: &str = "   ";

/// A composer on screen.
pub(super) struct Found {
    /// Row of its upper rule.
    pub(super) upper: usize,
    pub(super) composer: Composer,
    /// Its placeholder says that prompts are queued.
    pub(super) queued: bool,
}

/// The composer between the last two rules, if there is one.
pub(super) fn composer(table: &ScreenTable, grid: &Grid<'_>) -> Option<Found> {
    let [.., upper, lower] = grid.rules.as_slice() else {
        return None;
    };
    let (first, rest) = grid.between(upper + 1, *lower).split_first()?;
    let inside = rest
        .iter()
        .all(|row| is_blank(row) || row.starts_with(table.continuation));
    if !inside {
        return None;
    }
    let found = |composer, queued| {
        Some(Found {
            upper: *upper,
            composer,
            queued,
        })
    };
    if first.starts_with(table.shell_mark) {
        return found(Composer::Shell, false);
    }
    let first = first.strip_prefix(table.prompt_mark)?;
    let mut text = first.trim_end_matches(' ').to_owned();
    for row in rest {
        text.push('\n');
        text.push_str(
            row.strip_prefix(table.continuation)
                .unwrap_or("")
                .trim_end_matches(' '),
        );
    }
    if let Some((_, queued)) = table.placeholders.iter().find(|(known, _)| *known == text) {
        return found(Composer::Empty, *queued);
    }
    if text.trim().is_empty() {
        return found(Composer::Empty, false);
    }
    found(Composer::Text { text: text.into() }, false)
}

/// A composer taller than the pane: only its lower rule and the footer are visible.
pub(super) fn overflows(table: &ScreenTable, grid: &Grid<'_>) -> bool {
    let [rule] = grid.rules.as_slice() else {
        return false;
    };
    let above_is_text = grid
        .between(0, *rule)
        .iter()
        .all(|row| is_blank(row) || row.starts_with(table.continuation));
    let below = grid.row(rule + 1);
    above_is_text
        && *rule > 0
        && (table.footer.mode.captures(below).is_some()
            || table
                .footer
                .replacements
                .iter()
                .any(|row| below.starts_with(row)))
}

/// What stands right above the surface that owns the keyboard.
pub(super) struct Above {
    pub(super) status: StatusLine,
    pub(super) interrupted: bool,
    pub(super) queued: bool,
}

/// Reads upwards from row `end`.
pub(super) fn above(table: &ScreenTable, grid: &Grid<'_>, end: usize) -> Above {
    let mut end = end;
    let mut status = StatusLine::None;
    if let Some((at, found)) = status_line(table, grid, end) {
        status = found;
        end = at;
    }
    let last = grid.between(0, end).iter().rposition(|row| !is_blank(row));
    let row = last.map_or("", |at| grid.row(at)).trim_end();
    let queued = row == table.queue_hint
        && last.is_some_and(|at| {
            structure(grid, at).is_some_and(|row| row.starts_with(table.prompt_row))
        });
    Above {
        status,
        interrupted: row == table.interrupted,
        queued,
    }
}

/// The nearest row above `end` that begins in column 0.
fn structure<'t>(grid: &Grid<'t>, end: usize) -> Option<&'t str> {
    grid.between(0, end)
        .iter()
        .rev()
        .copied()
        .find(|row| !is_blank(row) && !row.starts_with(' '))
}

/// The status line above `end` and its row: the nearest row that begins in column 0, if it is one.
fn status_line(table: &ScreenTable, grid: &Grid<'_>, end: usize) -> Option<(usize, StatusLine)> {
    let at = grid
        .between(0, end)
        .iter()
        .rposition(|row| !is_blank(row) && !row.starts_with(' '))?;
    let row = grid.row(at).trim_end();
    table.status.iter().find_map(|status| {
        let captures = status.pattern.captures(row)?;
        Some((at, status_of(status.kind, &captures)))
    })
}

fn status_of(kind: StatusKind, captures: &Captures<'_>) -> StatusLine {
    let number = |name: &str| {
        captures
            .name(name)
            .and_then(|found| found.as_str().parse::<u32>().ok())
    };
    match kind {
        StatusKind::Spinner => StatusLine::Spinner,
        StatusKind::Done => StatusLine::Done,
        StatusKind::WaitingForAgents => StatusLine::WaitingForAgents,
        StatusKind::Stalled(text) => StatusLine::Stalled { text: text.into() },
        StatusKind::Retrying => StatusLine::Retrying {
            reason: captures
                .name("reason")
                .map_or("", |found| found.as_str())
                .into(),
            seconds: number("minutes")
                .unwrap_or(0)
                .saturating_mul(60)
                .saturating_add(number("seconds").unwrap_or(0)),
            attempt: number("attempt").unwrap_or(0),
            max: number("max").unwrap_or(0),
        },
    }
}

/// What the rows below the composer say.
pub(super) struct Footer {
    pub(super) mode: Option<Arc<str>>,
    pub(super) logged_out: bool,
}

/// Reads the footer; only a main surface has one.
pub(super) fn footer(table: &ScreenTable, grid: &Grid<'_>, surface: &Surface) -> Footer {
    let none = Footer {
        mode: None,
        logged_out: false,
    };
    let (Surface::Main, Some(last)) = (surface, grid.rules.last()) else {
        return none;
    };
    let rows = grid.between(last + 1, grid.rows.len());
    let mode = rows.iter().find_map(|row| {
        let captures = table.footer.mode.captures(row)?;
        let name = captures.name("mode")?.as_str();
        table
            .footer
            .modes
            .iter()
            .find(|(shown, _)| *shown == name)
            .map(|(_, value)| Arc::from(*value))
    });
    let logged_out = rows.iter().any(|row| {
        row.split(HINT_GAP)
            .skip(1)
            .any(|hint| hint.trim() == table.footer.logged_out)
    });
    Footer { mode, logged_out }
}
