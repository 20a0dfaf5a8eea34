//! How often to look at what: one table, first match wins.

use ccd_model::{intent::Cadence, screen::Surface, status::Lifecycle};

use crate::{deadlines::Row, state::Domain};

/// One row of the cadence table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CadenceRow {
    /// Row id, as tests name it.
    pub id: &'static str,
    /// How often to look.
    pub cadence: Cadence,
}

const fn row(id: &'static str, screen_ms: u32, tail_ms: u32, registry_ms: u32) -> CadenceRow {
    CadenceRow {
        id,
        cadence: Cadence {
            screen_ms,
            tail_ms,
            registry_ms,
        },
    }
}

const OVER: CadenceRow = row("K-OVER", 0, 0, 0);
const INTERRUPT: CadenceRow = row("K-INTERRUPT", 15, 50, 15);
const DELIVERY: CadenceRow = row("K-DELIVERY", 15, 50, 100);
const START: CadenceRow = row("K-START", 30, 250, 100);
const CLOSE: CadenceRow = row("K-CLOSE", 100, 250, 250);
const PERMISSION: CadenceRow = row("K-PERMISSION", 250, 100, 100);
const TURN: CadenceRow = row("K-TURN", 250, 50, 100);
const SETTLE: CadenceRow = row("K-SETTLE", 1_000, 50, 250);
const MENU: CadenceRow = row("K-MENU", 50, 50, 250);
const IDLE: CadenceRow = row("K-IDLE", 1_000, 250, 250);

/// The cadence table: screen, transcript, registry, in milliseconds.
pub const CADENCES: &[CadenceRow] = &[
    OVER, INTERRUPT, DELIVERY, START, CLOSE, PERMISSION, TURN, MENU, SETTLE, IDLE,
];

/// The row in force.
pub(crate) fn wanted(d: &Domain) -> Cadence {
    let settling = d
        .last_ended
        .and_then(|key| d.turn(key))
        .is_some_and(|turn| !turn.settled);
    let row = if d.life() == Lifecycle::Exited {
        OVER
    } else if d.interrupt.is_some() {
        INTERRUPT
    } else if d.job.is_some() {
        DELIVERY
    } else if d.life() == Lifecycle::Starting {
        START
    } else if d.life() == Lifecycle::Closing {
        CLOSE
    } else if !d.open_permissions.is_empty() {
        PERMISSION
    } else if d.current().is_some() || d.submitting().is_some() {
        TURN
    } else if d.deadlines.armed(Row::Menu, 0) || d.surface() == Some(&Surface::UsageLimitMenu) {
        MENU
    } else if settling {
        SETTLE
    } else {
        IDLE
    };
    row.cadence
}
