//! The rows of one capture and where its full-width rules stand.

use super::table::ScreenTable;

/// One capture.
pub(super) struct Grid<'t> {
    pub(super) rows: Vec<&'t str>,
    /// Row numbers of the full-width rules, ascending.
    pub(super) rules: Vec<usize>,
}

impl<'t> Grid<'t> {
    pub(super) fn new(table: &ScreenTable, text: &'t str) -> Self {
        let mut rows: Vec<&str> = text.lines().collect();
        while rows.last().is_some_and(|row| is_blank(row)) {
            rows.pop();
        }
        let rules = rows
            .iter()
            .enumerate()
            .filter(|(_, row)| is_full(row, table.rule, table.size.0))
            .map(|(at, _)| at)
            .collect();
        Self { rows, rules }
    }

    /// The row `at`, empty beyond the end.
    pub(super) fn row(&self, at: usize) -> &'t str {
        self.rows.get(at).copied().unwrap_or("")
    }

    /// The rows `from..to`.
    pub(super) fn between(&self, from: usize, to: usize) -> &[&'t str] {
        self.rows.get(from..to.min(self.rows.len())).unwrap_or(&[])
    }

    /// A rule with nothing below, or with the beginning of a composer that has no lower rule: caught while it was painted.
    pub(super) fn is_torn(&self, table: &ScreenTable) -> bool {
        let Some(last) = self.rules.last() else {
            return false;
        };
        let below = self.between(last + 1, self.rows.len());
        match below.iter().find(|row| !is_blank(row)) {
            None => true,
            Some(row) => row.starts_with(table.prompt_mark) || row.starts_with(table.shell_mark),
        }
    }
}

/// Whether a row shows nothing.
pub(super) fn is_blank(row: &str) -> bool {
    row.trim().is_empty()
}

/// Whether a row is `width` times `mark`.
pub(super) fn is_full(row: &str, mark: char, width: u16) -> bool {
    let row = row.trim_end_matches(' ');
    row.starts_with(mark)
        && row.chars().all(|c| c == mark)
        && row.chars().count() == usize::from(width)
}
