//! Screen captures: from the visible rows of a pane to [`ScreenFacts`]. The grammar (where things stand) is here; every string
//! and pattern is in the profile. Rows are told apart by what stands in column 0, which the model's text never reaches.

mod dialog;
mod grid;
mod main_surface;
mod table;

use ccd_model::{
    observation::Observation,
    screen::{Composer, ScreenFacts, StatusLine, Surface},
};
use ccd_ports::raw::PaneMeta;

use grid::Grid;
pub(crate) use table::{
    DialogKind, FooterTable, Pattern, ScreenTable, StatusKind, StatusRow, Title, TitleMatch,
};

/// The screen normalizer: remembers the last facts, so that an equal capture is told as such.
#[derive(Debug, Default)]
pub(crate) struct ScreenReader {
    last: Option<ScreenFacts>,
}

impl ScreenReader {
    /// What a changed frame means; nothing when the pane is dead, whose last screen still stands.
    pub(crate) fn frame(
        &mut self,
        table: &ScreenTable,
        meta: &PaneMeta,
        text: &str,
    ) -> Option<Observation> {
        if meta.dead {
            self.last = None;
            return None;
        }
        let facts = classify(table, meta, text);
        if self.last.as_ref() == Some(&facts) {
            return Some(Observation::ScreenSame);
        }
        self.last = Some(facts.clone());
        Some(Observation::Screen { facts })
    }

    /// What an unchanged frame means; nothing as long as no frame was classified.
    pub(crate) fn same(&self) -> Option<Observation> {
        self.last.is_some().then_some(Observation::ScreenSame)
    }
}

/// Classifies one capture of a live pane.
fn classify(table: &ScreenTable, meta: &PaneMeta, text: &str) -> ScreenFacts {
    if meta.alternate || (meta.cols, meta.rows) != table.size {
        return bare(Surface::WrongRenderer, None);
    }
    let title_busy = table.title_busy(&meta.title);
    let grid = Grid::new(table, text);
    let Some(first) = grid.rules.first().copied() else {
        return bare(
            dialog::without_rule(table, &grid).unwrap_or(Surface::Blank),
            title_busy,
        );
    };
    let found = main_surface::composer(table, &grid);
    let surface = match &found {
        // Conversations hold no rule: one above the composer begins a dialog that was opened over it.
        Some(found) if found.upper > first => dialog::classify(table, &grid, found.upper),
        Some(_) => Surface::Main,
        None if main_surface::overflows(table, &grid) => Surface::Main,
        None if grid.is_torn(table) => return bare(Surface::Blank, title_busy),
        None => dialog::classify(table, &grid, grid.rows.len()),
    };
    let above = main_surface::above(table, &grid, first);
    let footer = main_surface::footer(table, &grid, &surface);
    let (composer, placeholder_queue) = match found {
        Some(found) => (found.composer, found.queued),
        None => (Composer::Unknown, false),
    };
    ScreenFacts {
        surface,
        status_line: above.status,
        composer,
        mode: footer.mode,
        interrupted: above.interrupted,
        title_busy,
        queued: above.queued || placeholder_queue,
        logged_out: footer.logged_out,
    }
}

/// Facts of a surface without conversation and composer.
fn bare(surface: Surface, title_busy: Option<bool>) -> ScreenFacts {
    ScreenFacts {
        surface,
        status_line: StatusLine::None,
        composer: Composer::Unknown,
        mode: None,
        interrupted: false,
        title_busy,
        queued: false,
        logged_out: false,
    }
}
