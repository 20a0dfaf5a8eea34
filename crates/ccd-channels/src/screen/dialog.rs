//! Which dialog stands between a full-width rule and the end. An unknown one stays unknown: nothing is guessed from its options.

use std::sync::Arc;

use ccd_model::screen::Surface;

use super::{
    grid::{Grid, is_blank, is_full},
    table::{DialogKind, ScreenTable, Title, TitleMatch},
};

/// The dialog that begins at the first rule and ends before row `end`.
pub(super) fn classify(table: &ScreenTable, grid: &Grid<'_>, end: usize) -> Surface {
    let Some(first) = grid.rules.first().copied() else {
        return Surface::Blank;
    };
    let text = text(table, grid.between(first + 1, end));
    // The upper rule of a dialog taller than the pane is not visible: a later rule may tell it.
    let known = grid
        .rules
        .iter()
        .take_while(|rule| **rule < end)
        .find_map(|rule| {
            let title = title_row(grid, *rule, end)?;
            let row = table.titles.iter().find(|row| row.fits(title))?;
            Some((row.kind, title, *rule))
        });
    match known {
        Some((kind, title, rule)) => {
            let above_is_blank = grid.between(0, rule).iter().all(|row| is_blank(row));
            // Behind two blanks stand the tabs.
            let name = title.trim().split("  ").next().unwrap_or("");
            surface(kind, name, text, above_is_blank)
        }
        None => composer_like(table, grid)
            .or_else(|| permission(table, grid, first, end, &text))
            .unwrap_or(Surface::UnknownModal { text }),
    }
}

/// A surface without any rule: first-run pages.
pub(super) fn without_rule(table: &ScreenTable, grid: &Grid<'_>) -> Option<Surface> {
    let (_, gate) = table
        .onboarding
        .iter()
        .find(|(line, _)| grid.rows.iter().any(|row| row.trim_end() == *line))?;
    Some(Surface::StartupGate {
        gate: *gate,
        text: text(table, &grid.rows),
    })
}

fn surface(kind: DialogKind, title: &str, text: Arc<str>, above_is_blank: bool) -> Surface {
    match kind {
        DialogKind::Permission => Surface::PermissionDialog {
            title: title.into(),
            text,
        },
        DialogKind::Question => Surface::QuestionDialog { text },
        DialogKind::Plan => Surface::PlanDialog { text },
        DialogKind::Gate(gate) => Surface::StartupGate { gate, text },
        DialogKind::GateOrModal(gate) if above_is_blank => Surface::StartupGate { gate, text },
        DialogKind::GateOrModal(_) | DialogKind::Modal => Surface::Modal {
            title: title.into(),
        },
        DialogKind::UsageLimitMenu => Surface::UsageLimitMenu,
        DialogKind::Exit => Surface::ExitDialog,
    }
}

/// The first row with text below a rule.
fn title_row<'t>(grid: &Grid<'t>, rule: usize, end: usize) -> Option<&'t str> {
    grid.between(rule + 1, end)
        .iter()
        .copied()
        .find(|row| !is_blank(row))
}

/// A permission dialog of a tool that has no title row of its own.
fn permission(
    table: &ScreenTable,
    grid: &Grid<'_>,
    rule: usize,
    end: usize,
    text: &Arc<str>,
) -> Option<Surface> {
    let title = title_row(grid, rule, end)?;
    if indent(title) != table.permission_indent {
        return None;
    }
    grid.between(rule + 1, end)
        .iter()
        .any(|row| {
            table
                .permission_questions
                .iter()
                .any(|question| row.starts_with(question))
        })
        .then(|| Surface::PermissionDialog {
            title: title.trim().into(),
            text: Arc::clone(text),
        })
}

/// A surface that only looks as if it had the composer.
fn composer_like(table: &ScreenTable, grid: &Grid<'_>) -> Option<Surface> {
    let below = grid.row(grid.rules.last()? + 1);
    table
        .composer_like
        .iter()
        .find(|(row, _)| below.starts_with(row))
        .map(|(_, name)| Surface::Modal {
            title: (*name).into(),
        })
}

/// Dialog rows without rules, separators and blank edges.
fn text(table: &ScreenTable, rows: &[&str]) -> Arc<str> {
    let rows: Vec<&str> = rows
        .iter()
        .filter(|row| {
            !is_full(row, table.rule, table.size.0) && !is_full(row, table.dash, table.size.0)
        })
        .map(|row| row.trim_end())
        .collect();
    let from = rows.iter().position(|row| !row.is_empty()).unwrap_or(0);
    let to = rows
        .iter()
        .rposition(|row| !row.is_empty())
        .map_or(0, |at| at + 1);
    rows.get(from..to).unwrap_or(&[]).join("\n").into()
}

fn indent(row: &str) -> usize {
    row.len() - row.trim_start_matches(' ').len()
}

impl Title {
    fn fits(&self, row: &str) -> bool {
        if indent(row) != self.indent {
            return false;
        }
        let row = row.trim();
        match self.matching {
            TitleMatch::Exact => row == self.text,
            TitleMatch::Prefix => row.starts_with(self.text),
            TitleMatch::Contains => row.contains(self.text),
            TitleMatch::Word => self.rest(row).is_some_and(|rest| rest.starts_with(' ')),
            TitleMatch::Tabs => self.rest(row).is_some_and(|rest| rest.starts_with("  ")),
        }
    }

    /// What follows the title text in `row`; two blanks when nothing does.
    fn rest<'r>(&self, row: &'r str) -> Option<&'r str> {
        row.strip_prefix(self.text)
            .map(|rest| if rest.is_empty() { "  " } else { rest })
    }
}
