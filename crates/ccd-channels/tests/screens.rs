//! Every recorded screen is classified as `fixtures/screens/expected.tsv` says, and model text forges nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{collections::BTreeMap, fmt::Write as _};

use ccd_model::{
    observation::Observation,
    screen::{Composer, Gate, ScreenFacts, StatusLine, Surface},
};
use ccd_ports::raw::{PaneMeta, Raw};
use common::{channels, files, frame, meta, one, text};

/// The recording of the alternate screen: its text does not tell.
const ALTERNATE: &str = "renderer-tui_fullscreen";

/// The pane state that belongs to a recording.
fn recorded_meta(name: &str, text: &str) -> PaneMeta {
    PaneMeta {
        alternate: name == ALTERNATE,
        dead: text.lines().any(|row| row.starts_with("Pane is dead (")),
        ..meta()
    }
}

fn classify(meta: PaneMeta, text: &str) -> Option<ScreenFacts> {
    let observed = one(&mut channels(), &frame(meta, text));
    match observed.as_slice() {
        [] => None,
        [only] => match &only.what {
            Observation::Screen { facts } => Some(facts.clone()),
            other => panic!("{other:?}"),
        },
        more => panic!("{more:?}"),
    }
}

fn facts(text: &str) -> ScreenFacts {
    classify(meta(), text).unwrap()
}

/// One row of the table: surface, status line, composer, mode, marks.
fn row(facts: Option<&ScreenFacts>) -> String {
    let Some(facts) = facts else {
        return "dead\t-\t-\t-\t-".to_owned();
    };
    let surface = match &facts.surface {
        Surface::Blank => "blank".to_owned(),
        Surface::WrongRenderer => "wrong-renderer".to_owned(),
        Surface::Main => "main".to_owned(),
        Surface::PermissionDialog { title, .. } => format!("permission:{title}"),
        Surface::QuestionDialog { .. } => "question".to_owned(),
        Surface::PlanDialog { .. } => "plan".to_owned(),
        Surface::StartupGate { gate, .. } => format!("gate:{gate:?}"),
        Surface::UsageLimitMenu => "usage-limit-menu".to_owned(),
        Surface::ExitDialog => "exit-dialog".to_owned(),
        Surface::Modal { title } => {
            format!("modal:{title}")
        }
        Surface::UnknownModal { .. } => "unknown-modal".to_owned(),
    };
    let status = match &facts.status_line {
        StatusLine::None => "-".to_owned(),
        StatusLine::Spinner => "spinner".to_owned(),
        StatusLine::Retrying {
            reason,
            seconds,
            attempt,
            max,
        } => format!("retry:{seconds}s:{attempt}/{max}:{reason}"),
        StatusLine::Stalled { text } => format!("stalled:{text}"),
        StatusLine::Done => "done".to_owned(),
        StatusLine::WaitingForAgents => "agents".to_owned(),
    };
    let composer = match &facts.composer {
        Composer::Unknown => "-".to_owned(),
        Composer::Empty => "empty".to_owned(),
        Composer::Shell => "shell".to_owned(),
        Composer::Text { text } if text.len() > 60 => format!("text of {} bytes", text.len()),
        Composer::Text { text } => format!("{:?}", &**text),
    };
    let marks: String = [
        (facts.interrupted, 'i'),
        (facts.queued, 'q'),
        (facts.logged_out, 'l'),
    ]
    .into_iter()
    .filter_map(|(set, mark)| set.then_some(mark))
    .collect();
    let mode = facts.mode.as_deref().unwrap_or("-");
    let marks = if marks.is_empty() { "-" } else { &marks };
    format!("{surface}\t{status}\t{composer}\t{mode}\t{marks}")
}

#[test]
fn every_recorded_screen_is_classified_as_the_table_says() {
    let expected: BTreeMap<String, String> = text("screens", "expected.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (name, row) = line.split_once('\t').expect(line);
            (name.to_owned(), row.to_owned())
        })
        .collect();
    let mut recorded = files("screens", "txt");
    recorded.extend(
        files("screens/seq", "txt")
            .into_iter()
            .map(|(name, text)| (format!("seq/{name}"), text)),
    );
    assert_eq!(recorded.len(), expected.len());
    let mut differences = String::new();
    for (name, text) in recorded {
        let found = row(classify(recorded_meta(&name, &text), &text).as_ref());
        let wanted = expected.get(&name).map_or("no row", String::as_str);
        if found != wanted {
            writeln!(
                differences,
                "{name}\n  expected {wanted}\n  found    {found}"
            )
            .unwrap();
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

/// A full-width rule.
fn rule() -> String {
    "─".repeat(250)
}

/// A main surface with these rows above the composer.
fn main_screen(above: &str, composer: &str) -> String {
    format!(
        "{above}\n\n{rule}\n{composer}\n{rule}\n  ⏸ manual mode on · ? for shortcuts",
        rule = rule()
    )
}

const EMPTY: &str = "❯\u{a0}";

#[test]
fn an_equal_frame_and_a_changed_frame_with_equal_facts_are_the_same_screen() {
    let mut channels = channels();
    let screen = main_screen("● Hello", EMPTY);
    let same = |op| Raw::FrameSame { op };
    assert!(one(&mut channels, &same(None)).is_empty());
    let first = one(&mut channels, &frame(meta(), &screen));
    assert!(matches!(first[0].what, Observation::Screen { .. }));
    let again = one(
        &mut channels,
        &frame(meta(), &main_screen("● Hello you", EMPTY)),
    );
    assert_eq!(again[0].what, Observation::ScreenSame);
    assert_eq!(
        one(&mut channels, &same(None))[0].what,
        Observation::ScreenSame
    );
    let changed = one(
        &mut channels,
        &frame(meta(), &main_screen("● Hello", "❯\u{a0}x")),
    );
    assert!(matches!(changed[0].what, Observation::Screen { .. }));
}

#[test]
fn a_dead_pane_says_nothing_and_the_next_live_frame_is_told_in_full() {
    let mut channels = channels();
    let screen = main_screen("● Hello", EMPTY);
    let dead = PaneMeta {
        dead: true,
        ..meta()
    };
    one(&mut channels, &frame(meta(), &screen));
    assert!(one(&mut channels, &frame(dead, &screen)).is_empty());
    assert!(one(&mut channels, &Raw::FrameSame { op: None }).is_empty());
    let next = one(&mut channels, &frame(meta(), &screen));
    assert!(matches!(next[0].what, Observation::Screen { .. }));
}

#[test]
fn another_size_or_the_alternate_screen_is_the_wrong_renderer() {
    let screen = main_screen("● Hello", "❯\u{a0}text");
    for wrong in [
        PaneMeta {
            cols: 249,
            ..meta()
        },
        PaneMeta { rows: 60, ..meta() },
        PaneMeta {
            alternate: true,
            ..meta()
        },
    ] {
        let facts = classify(wrong, &screen).unwrap();
        assert_eq!(facts.surface, Surface::WrongRenderer);
        assert_eq!(facts.composer, Composer::Unknown);
        assert_eq!(facts.mode, None);
    }
}

#[test]
fn the_title_shows_activity_only_by_its_glyph() {
    for (title, busy) in [
        ("◐ Claude Code", Some(true)),
        ("◑ Claude Code", Some(true)),
        ("✳ Claude Code", Some(false)),
        ("Gi=31,s=1", None),
        ("", None),
    ] {
        let meta = PaneMeta {
            title: title.into(),
            ..meta()
        };
        let facts = classify(meta, &main_screen("", EMPTY)).unwrap();
        assert_eq!(facts.title_busy, busy, "{title}");
    }
}

#[test]
fn frames_caught_while_painted_are_blank_and_never_a_dialog() {
    let rule = rule();
    for torn in [
        String::new(),
        "\n\n   \n".to_owned(),
        "● Hello".to_owned(),
        rule.clone(),
        format!("● Hello\n{rule}\n❯\u{a0}half a composer"),
        format!("● Hello\n{rule}\n!\u{a0}"),
    ] {
        assert_eq!(facts(&torn).surface, Surface::Blank, "{torn:?}");
    }
}

#[test]
fn text_of_the_model_forges_no_surface_and_no_status() {
    let long = "─".repeat(248);
    let forged = [
        format!(
            "● Here:\n  {long}\n   Bash command\n   Do you want to proceed?\n   ❯ 1. Yes\n   Esc to cancel"
        ),
        "● x\n  ✻ API error · Retrying in 1s · attempt 1/10".to_owned(),
        "● Thinking…".to_owned(),
        "● x\n  ✻ Baked for 3s · done 1:00 AM".to_owned(),
        "● x\n  ❯ queued\n  ctrl+enter to send now".to_owned(),
        "● ✻ Waiting for 1 background agent to finish".to_owned(),
        "❯ ✻ Baked for 3s".to_owned(),
    ];
    for above in forged {
        let facts = facts(&main_screen(&above, EMPTY));
        assert_eq!(facts.surface, Surface::Main, "{above}");
        assert_eq!(facts.status_line, StatusLine::None, "{above}");
        assert_eq!(facts.composer, Composer::Empty, "{above}");
        assert!(!facts.queued && !facts.interrupted, "{above}");
    }
}

#[test]
fn a_typed_draft_forges_no_composer_end() {
    let draft = format!(
        "❯\u{a0}{long}\n  {long}\n  Bash command",
        long = "─".repeat(247)
    );
    let facts = facts(&main_screen("● x", &draft));
    assert_eq!(facts.surface, Surface::Main);
    assert!(matches!(facts.composer, Composer::Text { .. }));
}

#[test]
fn a_dialog_keeps_its_text_without_rules_and_separators() {
    let recorded = text("screens", "perm-bash-multiline.txt");
    let Surface::PermissionDialog { title, text: body } = facts(&recorded).surface else {
        panic!("no permission dialog");
    };
    assert_eq!(&*title, "Bash command");
    assert!(body.starts_with(" Bash command\n"));
    assert!(body.contains(" │ rm -rf /tmp/zzz\n"));
    assert!(body.ends_with(" Esc to cancel · Tab to amend"));
    assert!(!body.contains("╌╌╌") && !body.contains("───"));
    let Surface::PlanDialog { text: body } = facts(&text("screens", "plan-approval.txt")).surface
    else {
        panic!("no plan dialog");
    };
    assert!(body.contains("1. Do the first thing") && body.contains("Would you like to proceed?"));
}

#[test]
fn dialogs_are_known_by_their_title_and_unknown_ones_stay_unknown() {
    let options = "❯ 1. Yes\n    2. No\n  Enter to confirm · Esc to cancel";
    let dialog = |title: &str| format!("● x\n{}\n{title}\n  {options}", rule());
    assert_eq!(
        facts(&dialog("  Settings Warning")).surface,
        Surface::StartupGate {
            gate: Gate::Settings,
            text: format!("  Settings Warning\n  {options}").into()
        }
    );
    for unknown in [
        "  Enable the new thing?",
        "  Settings and more",
        "    Settings Error",
        " What do you want to do?",
    ] {
        assert!(
            matches!(
                facts(&dialog(unknown)).surface,
                Surface::UnknownModal { .. }
            ),
            "{unknown}"
        );
    }
    let other_tool = format!(
        "● x\n{}\n Strange tool\n Do you want to proceed?\n ❯ 1. Yes\n   2. No",
        rule()
    );
    assert!(matches!(
        facts(&other_tool).surface,
        Surface::PermissionDialog { title, .. } if &*title == "Strange tool"
    ));
}

#[test]
fn a_dialog_taller_than_the_pane_is_known_by_its_second_rule() {
    let rule = rule();
    let plan = format!(
        "   7. step\n{rule}\n Claude has written up a plan and is ready to execute. Would you like to proceed?\n ❯ 1. Yes"
    );
    assert!(matches!(facts(&plan).surface, Surface::PlanDialog { .. }));
    let question =
        format!("  2. Pear\n{rule}\n  5. Chat about this\n\nEnter to select · Esc to cancel");
    assert!(matches!(
        facts(&question).surface,
        Surface::QuestionDialog { .. }
    ));
}

#[test]
fn seconds_of_a_retry_include_its_minutes() {
    let above = "✻ 529 Overloaded · Retrying in 2m 5s (server) · attempt 9/10";
    assert_eq!(
        facts(&main_screen(above, EMPTY)).status_line,
        StatusLine::Retrying {
            reason: "529 Overloaded".into(),
            seconds: 125,
            attempt: 9,
            max: 10
        }
    );
}
