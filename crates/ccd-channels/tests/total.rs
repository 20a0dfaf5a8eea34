//! No record makes the normalizers fail: arbitrary text, and recorded records with bytes changed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::OnceLock;

use ccd_channels::profiles;
use ccd_model::{json::RawJson, observation::Observation};
use ccd_ports::raw::{PaneMeta, Raw};
use common::{channels, files, frame, hook, line, meta, one};
use proptest::prelude::*;

const EVENTS: [&str; 6] = [
    "PreToolUse",
    "PostToolUse",
    "PostToolBatch",
    "PermissionRequest",
    "UserPromptSubmit",
    "Stop",
];

/// Recorded payloads, transcript lines and screens, the long ones left out.
fn recordings() -> &'static [String] {
    static FOUND: OnceLock<Vec<String>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let mut found = Vec::new();
        found.extend(
            files("hooks/payloads", "json")
                .into_iter()
                .map(|(_, text)| text),
        );
        for (_, text) in files("transcripts", "jsonl") {
            found.extend(
                text.lines()
                    .filter(|line| line.len() < 3000)
                    .map(str::to_owned),
            );
        }
        found.extend(files("screens", "txt").into_iter().map(|(_, text)| text));
        found.extend(files("registry", "json").into_iter().map(|(_, text)| text));
        found
    })
}

/// Feeds `text` to every channel and checks what must always hold.
fn feed(text: &str, meta: PaneMeta) {
    let mut channels = channels();
    let mut records: Vec<Raw> = EVENTS.iter().map(|event| hook(event, text)).collect();
    records.push(hook(text, "{}"));
    records.push(line(1, text));
    records.push(line(1, text));
    records.push(Raw::Registry {
        body: RawJson::new(text),
    });
    records.push(frame(meta, text));
    for record in &records {
        for observed in one(&mut channels, record) {
            if let Observation::Unrecognized { what, .. } = &observed.what {
                assert!(what.len() <= 200);
            }
        }
    }
    let _ = profiles::pinned()
        .parse_rule(text)
        .map(|rule| rule.to_deny());
    let _ = profiles::pinned().transcript_path("/c".as_ref(), text, "id");
}

fn any_meta() -> impl Strategy<Value = PaneMeta> {
    (any::<bool>(), any::<bool>(), any::<String>()).prop_map(|(alternate, dead, title)| PaneMeta {
        alternate,
        dead,
        title: title.into(),
        ..meta()
    })
}

/// A recording with some characters replaced and a piece cut out.
fn damaged() -> impl Strategy<Value = String> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<char>()), 0..6);
    let cut = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    (0..recordings().len(), edits, cut, any::<bool>()).prop_map(|(which, edits, cut, cuts)| {
        let mut chars: Vec<char> = recordings()[which].chars().collect();
        for (at, c) in edits {
            let at = at.index(chars.len());
            chars[at] = c;
        }
        if cuts {
            let (a, b) = (cut.0.index(chars.len()), cut.1.index(chars.len()));
            chars.drain(a.min(b)..a.max(b));
        }
        chars.into_iter().collect()
    })
}

/// Rows made of the pieces that the grammar of the screen is made of.
fn grammar() -> impl Strategy<Value = String> {
    let rule = "─".repeat(250);
    let piece = prop_oneof![
        Just(rule),
        Just("❯\u{a0}".to_owned()),
        Just("!\u{a0}x".to_owned()),
        Just("  text".to_owned()),
        Just("● text".to_owned()),
        Just("✻ Baked for 1s".to_owned()),
        Just(" Bash command".to_owned()),
        Just("  ctrl+enter to send now".to_owned()),
        Just("  ⏸ manual mode on".to_owned()),
        Just(String::new()),
        any::<String>(),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|rows| rows.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_is_survived(text in any::<String>(), meta in any_meta()) {
        feed(&text, meta);
    }

    #[test]
    fn damaged_recordings_are_survived(text in damaged(), meta in any_meta()) {
        feed(&text, meta);
    }

    #[test]
    fn any_order_of_screen_rows_is_survived(text in grammar()) {
        feed(&text, meta());
    }

    #[test]
    fn the_same_records_give_the_same_observations(text in damaged()) {
        let run = || {
            let mut channels = channels();
            let mut out = Vec::new();
            for raw in [line(1, &text), frame(meta(), &text), hook("Stop", &text)] {
                channels.normalize(&raw, &mut out);
            }
            out
        };
        prop_assert_eq!(run(), run());
    }
}
