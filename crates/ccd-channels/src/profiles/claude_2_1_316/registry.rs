//! The session registry file of 2.1.316 (`sessions/<pid>.json`): fields and status words.

use std::sync::Arc;

use ccd_model::observation::{Observation, RegistryStatus};
use serde::Deserialize;

use crate::{
    registry::Read,
    text::{Unreadable, arc},
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    pid: u32,
    session_id: Arc<str>,
    #[serde(default)]
    version: Option<Arc<str>>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    waiting_for: Option<Arc<str>>,
}

/// Status words without a detail.
const PLAIN: [(&str, RegistryStatus); 3] = [
    ("busy", RegistryStatus::Busy),
    ("idle", RegistryStatus::Idle),
    ("shell", RegistryStatus::Shell),
];
const WAITING: &str = "waiting";

pub(super) fn read(body: &str) -> Read {
    // The file is rewritten in place: what follows its first value is left over from a longer one.
    let first = serde_json::Deserializer::from_str(body)
        .into_iter::<Body>()
        .next();
    let body = first.ok_or_else(|| Unreadable::new("an empty file"))??;
    let status = body.status.map(|word| {
        if word == WAITING {
            return RegistryStatus::Waiting {
                waiting_for: body.waiting_for.unwrap_or_else(|| arc("")),
            };
        }
        PLAIN
            .into_iter()
            .find(|(known, _)| *known == word)
            .map_or_else(|| RegistryStatus::Other { word: word.into() }, |(_, s)| s)
    });
    Ok((
        Some(body.session_id),
        Observation::Registry {
            pid: body.pid,
            version: body.version.unwrap_or_else(|| arc("")),
            status,
        },
    ))
}
