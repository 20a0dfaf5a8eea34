//! Recorded sessions, run again: the records of the real Claude Code through the channels and the core give the events and
//! the final state that were once found right.
//!
//! What lives here: `fixtures/traces` against `fixtures/goldens`. What never does: a process. The traces are recordings of
//! the real suite (its `CCD_KEEP_TRACES` keeps them) without what the driver made of them, with neutral paths, and with
//! Claude's own long texts shortened. `CCD_UPDATE_GOLDENS=1` writes the goldens anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    path::{Path, PathBuf},
};

use ccd_session::{ReplayError, Replayed, replay};
use serde_json::Value;
use similar::TextDiff;

/// Writes the goldens instead of comparing with them.
const UPDATE: &str = "CCD_UPDATE_GOLDENS";

/// The recordings.
const NAMES: [&str; 9] = [
    "api_retry",
    "background_agent",
    "claude_killed",
    "interrupt_in_text",
    "mismatch_blocked",
    "parallel_tools",
    "text_turn",
    "two_permissions",
    "withdrawn",
];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

fn trace(name: &str) -> String {
    fs::read_to_string(fixtures().join(format!("traces/{name}.ccd.jsonl"))).unwrap()
}

fn run(name: &str, text: &str) -> Replayed {
    replay(text.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The events, one a line.
fn events(replayed: &Replayed) -> String {
    let lines = replayed.events.iter();
    lines
        .map(|event| serde_json::to_string(event).unwrap() + "\n")
        .collect()
}

fn state(replayed: &Replayed) -> String {
    serde_json::to_string_pretty(&replayed.view).unwrap() + "\n"
}

/// The trace with what its replay gave, as a session writes it.
fn complete(name: &str) -> Vec<String> {
    let text = trace(name);
    let replayed = run(name, &text);
    let own: Vec<Value> = lines_of_kind(&text, "own");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for event in &replayed.events {
        let mut line = serde_json::to_value(event).unwrap();
        // The session layer's own events stand in the trace already.
        if own.iter().all(|own| own["seq"] != line["seq"]) {
            line["k"] = "event".into();
            lines.push(line.to_string());
        }
    }
    let end = serde_json::json!({"k": "end", "view": replayed.view});
    lines.push(end.to_string());
    lines
}

fn lines_of_kind(text: &str, kind: &str) -> Vec<Value> {
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.filter(|line: &Value| line["k"] == kind).collect()
}

/// Compares with the golden of this file name; a difference comes back as a unified diff.
fn compare(file: &str, found: &str) -> Result<(), String> {
    let path = fixtures().join("goldens").join(file);
    if std::env::var_os(UPDATE).is_some_and(|value| value == "1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, found).unwrap();
        return Ok(());
    }
    let golden =
        fs::read_to_string(&path).map_err(|error| format!("{file}: {error} ({UPDATE}=1)"))?;
    if golden == found {
        return Ok(());
    }
    let diff = TextDiff::from_lines(&golden, found);
    Err(diff
        .unified_diff()
        .context_radius(1)
        .header(&format!("golden {file}"), "replayed")
        .to_string())
}

#[test]
fn every_recorded_session_gives_its_golden_events_and_state() {
    let mut differences = Vec::new();
    for name in NAMES {
        let replayed = run(name, &trace(name));
        differences.extend(compare(&format!("{name}.events.jsonl"), &events(&replayed)).err());
        differences.extend(compare(&format!("{name}.state.json"), &state(&replayed)).err());
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn every_recording_is_listed_and_no_golden_is_without_one() {
    let stems = |dir: &str| -> Vec<String> {
        let entries = fs::read_dir(fixtures().join(dir)).unwrap();
        let mut stems: Vec<String> = entries
            .map(|entry| {
                let name = entry.unwrap().file_name().into_string().unwrap();
                name.split('.').next().unwrap().to_owned()
            })
            .collect();
        stems.sort();
        stems.dedup();
        stems
    };
    assert_eq!(stems("traces"), NAMES);
    assert_eq!(stems("goldens"), NAMES);
}

#[test]
fn every_recorded_session_has_ended_and_left_no_turn_open() {
    for name in NAMES {
        let replayed = run(name, &trace(name));
        assert!(replayed.view.exit.is_some(), "{name}");
        let ended = |turn: &ccd_model::view::TurnView| turn.outcome.is_some();
        assert!(!replayed.view.turns.is_empty(), "{name}");
        assert!(replayed.view.turns.iter().all(ended), "{name}");
    }
}

#[test]
fn a_replay_gives_the_same_bytes_each_time() {
    for name in NAMES {
        let text = trace(name);
        let (first, second) = (run(name, &text), run(name, &text));
        assert_eq!(events(&first), events(&second), "{name}");
        assert_eq!(state(&first), state(&second), "{name}");
    }
}

#[test]
fn a_trace_cut_after_any_line_replays_the_events_up_to_there() {
    for name in NAMES {
        let text = trace(name);
        let whole = run(name, &text).events;
        let ends = text.match_indices('\n').map(|(index, _)| index + 1);
        let mut last = 0;
        for end in ends {
            let cut = run(name, &text[..end]).events;
            assert!(whole.starts_with(&cut), "{name}: cut at byte {end}");
            assert!(
                last <= cut.len(),
                "{name}: fewer events after byte {end} than before"
            );
            last = cut.len();
        }
        assert_eq!(last, whole.len(), "{name}");
    }
}

#[test]
fn nothing_is_no_trace() {
    assert!(matches!(replay(&b""[..]), Err(ReplayError::NoHeader)));
}

#[test]
fn an_altered_event_or_end_is_a_difference() {
    for name in NAMES {
        let lines = complete(name);
        let differences = |lines: &[String]| run(name, &lines.join("\n")).differences;
        assert_eq!(differences(&lines), Vec::<String>::new(), "{name}");

        let kind = |line: &str| serde_json::from_str::<Value>(line).unwrap()["k"].clone();
        let event = lines
            .iter()
            .rposition(|line| kind(line) == "event")
            .unwrap();
        let altered = |index: usize, change: fn(&mut Value)| {
            let mut altered = lines.clone();
            let mut line = serde_json::from_str(&lines[index]).unwrap();
            change(&mut line);
            altered[index] = line.to_string();
            differences(&altered)
        };
        let at = altered(event, |line| {
            line["at"] = (line["at"].as_u64().unwrap() + 1).into()
        });
        assert_eq!(at.len(), 1, "{name}: {at:?}");
        assert!(at[0].starts_with("event "), "{name}: {at:?}");

        let mut missing = lines.clone();
        missing.remove(event);
        assert_eq!(differences(&missing).len(), 1, "{name}");

        let end = altered(lines.len() - 1, |line| {
            let turns = line["view"]["turns"].as_array_mut().unwrap();
            turns.clear();
        });
        assert_eq!(end.len(), 1, "{name}: {end:?}");
        assert!(end[0].starts_with("final view"), "{name}: {end:?}");
    }
}
