//! The reaper: what crashed owners left behind, cleaned at each start and told as the session's first event.
//!
//! Here lives the wording of what was found. Killing and removing are the state store's work.

use std::sync::Arc;

use ccd_model::event::Alert;
use ccd_ports::state::Reaped;

/// The alert about `reaped`; nothing when nothing was found.
pub(crate) fn alert(reaped: &[Reaped]) -> Option<Alert> {
    (!reaped.is_empty()).then(|| Alert::OrphansFound {
        count: u32::try_from(reaped.len()).unwrap_or(u32::MAX),
        details: reaped.iter().map(detail).collect(),
    })
}

fn detail(reaped: &Reaped) -> Arc<str> {
    format!(
        "session {} in {}: owner {} is gone, {} processes killed, {}",
        reaped.record.session,
        reaped.record.cwd.display(),
        reaped.record.owner.pid,
        reaped.killed,
        if reaped.dir_removed {
            "its directory removed"
        } else {
            "no directory left"
        }
    )
    .into()
}
