//! Claude's session registry file: its live status. The field names and status words live in the profile.

use std::sync::Arc;

use ccd_model::{
    fact::Source,
    json::RawJson,
    observation::{Observation, Observed},
};

use crate::text::{Unreadable, unrecognized};

/// Claude's session id and what the file says.
pub(crate) type Read = Result<(Option<Arc<str>>, Observation), Unreadable>;

/// The registry tables of a profile.
pub(crate) struct RegistryTable {
    /// Reads one body.
    pub(crate) read: fn(&str) -> Read,
}

/// What the registry file says.
pub(crate) fn normalize(table: &RegistryTable, body: &RawJson) -> Observed {
    let (session, what) = (table.read)(body.get())
        .unwrap_or_else(|error| (None, unrecognized("registry", &error.to_string())));
    Observed {
        source: Source::Registry,
        session,
        what,
    }
}
