//! Hook calls: the record is looked up in the profile's event table and read by the row's reader. The bodies' field names and
//! the table live in the profile.

use std::sync::Arc;

use ccd_model::{
    fact::Source,
    observation::{Observation, Observed},
};
use ccd_ports::raw::HookRecord;

use crate::text::{SeenKinds, Unreadable, repair_surrogates, unrecognized};

/// Channel name in `Unrecognized`.
const CHANNEL: &str = "hook";

/// Reads one body: Claude's session id and the observation.
pub(crate) type HookReader =
    fn(&HookRecord, &str) -> Result<(Option<Arc<str>>, Observation), Unreadable>;

/// How Claude reaches us for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// A POST to the hook server.
    Http,
    /// A start of the forwarder.
    Command,
}

/// How long Claude waits for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookTimeout {
    /// This many seconds.
    Seconds(u64),
    /// The permission deadline and this many seconds.
    DeadlineAnd(u64),
}

/// How an event is registered in the session's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Registration {
    pub(crate) transport: Transport,
    pub(crate) timeout: HookTimeout,
    /// A failed call blocks instead of letting things pass.
    pub(crate) fails_closed: bool,
}

/// One event that this version knows.
pub(crate) struct HookRow {
    pub(crate) event: &'static str,
    /// `None`: known, and of no interest.
    pub(crate) reader: Option<HookReader>,
    /// `None`: not asked for.
    pub(crate) registration: Option<Registration>,
}

/// The hook tables of a profile.
pub(crate) struct HookTable {
    pub(crate) rows: &'static [HookRow],
}

/// What a hook call means; `None` for a known event of no interest.
pub(crate) fn normalize(
    table: &HookTable,
    record: &HookRecord,
    seen: &mut SeenKinds,
) -> Option<Observed> {
    let Some(row) = table.rows.iter().find(|row| row.event == &*record.event) else {
        return seen.first(&format!("hook {}", record.event)).then(|| {
            observed(
                None,
                unrecognized(CHANNEL, &format!("event {}", record.event)),
            )
        });
    };
    let reader = row.reader?;
    let body = record.body.get();
    let read = reader(record, body).or_else(|error| {
        let repaired = repair_surrogates(body);
        if repaired == body {
            Err(error)
        } else {
            reader(record, &repaired)
        }
    });
    Some(match read {
        Ok((session, what)) => observed(session, what),
        Err(error) => observed(
            None,
            unrecognized(CHANNEL, &format!("{}: {error}", row.event)),
        ),
    })
}

fn observed(session: Option<Arc<str>>, what: Observation) -> Observed {
    Observed {
        source: Source::Hook,
        session,
        what,
    }
}
