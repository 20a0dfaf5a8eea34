//! Shared by the tests: fixture files and records made of them.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    unreachable_pub
)]

use std::{
    fs,
    path::{Path, PathBuf},
};

use ccd_channels::{Channels, profiles};
use ccd_model::{
    ids::{FileKey, HoldId},
    json::RawJson,
    observation::{Observation, Observed},
};
use ccd_ports::raw::{HookRecord, PaneMeta, Raw};

pub fn fixtures(area: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(area)
}

/// Files of a folder with this extension, sorted by name: name without extension, and text.
pub fn files(area: &str, extension: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = fs::read_dir(fixtures(area))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .map(|path| {
            (
                path.file_stem().unwrap().to_string_lossy().into_owned(),
                fs::read_to_string(&path).unwrap(),
            )
        })
        .collect();
    assert!(!found.is_empty(), "no fixtures in {area}");
    found.sort();
    found
}

pub fn text(area: &str, name: &str) -> String {
    fs::read_to_string(fixtures(area).join(name)).unwrap()
}

pub fn channels() -> Channels {
    Channels::new(profiles::pinned())
}

pub fn one(channels: &mut Channels, raw: &Raw) -> Vec<Observed> {
    let mut out = Vec::new();
    channels.normalize(raw, &mut out);
    out
}

pub fn hook(event: &str, body: &str) -> Raw {
    Raw::Hook(HookRecord {
        event: event.into(),
        hold: (event == "PermissionRequest").then_some(HoldId(1)),
        verdict: None,
        denied_by: None,
        claude_pid: None,
        body: RawJson::new(body),
    })
}

pub fn line(file: u32, text: &str) -> Raw {
    Raw::Line {
        file: FileKey(file),
        offset: 0,
        text: text.into(),
    }
}

pub fn meta() -> PaneMeta {
    PaneMeta {
        cols: 250,
        rows: 80,
        ..PaneMeta::default()
    }
}

pub fn frame(meta: PaneMeta, text: &str) -> Raw {
    Raw::Frame {
        op: None,
        meta,
        text: text.into(),
    }
}

pub fn whats(observed: &[Observed]) -> Vec<&Observation> {
    observed.iter().map(|o| &o.what).collect()
}

pub fn unrecognized(observed: &[Observed]) -> Vec<&Observation> {
    whats(observed)
        .into_iter()
        .filter(|o| matches!(o, Observation::Unrecognized { .. }))
        .collect()
}
