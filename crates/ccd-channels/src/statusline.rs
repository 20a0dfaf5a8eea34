//! What the status line command is told: parsed, and told on only when it changed. The field names live in the profile.

use std::sync::Arc;

use ccd_model::{
    fact::Source,
    json::RawJson,
    observation::{Observation, Observed, StatusReport},
};

use crate::text::{Unreadable, unrecognized};

/// Claude's session id and what the command was told.
pub(crate) type Read = Result<(Option<Arc<str>>, StatusReport), Unreadable>;

/// The status line tables of a profile.
pub(crate) struct StatusTable {
    /// Reads one body.
    pub(crate) read: fn(&str) -> Read,
}

/// The status line normalizer: remembers the last report.
#[derive(Debug, Default)]
pub(crate) struct StatusReader {
    last: Option<(Option<Arc<str>>, StatusReport)>,
}

impl StatusReader {
    /// What a call means; `None` when it says nothing new.
    pub(crate) fn normalize(&mut self, table: &StatusTable, body: &RawJson) -> Option<Observed> {
        let (session, what) = match (table.read)(body.get()) {
            Ok(read) => {
                if self.last.as_ref() == Some(&read) {
                    return None;
                }
                self.last = Some(read.clone());
                (read.0, Observation::StatusReport(read.1))
            }
            Err(error) => (None, unrecognized("statusline", &error.to_string())),
        };
        // The statusline ranks with the registry.
        Some(Observed {
            source: Source::Registry,
            session,
            what,
        })
    }
}
