//! Delivery: what is sent arrives byte for byte and once, or the caller is told why not.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use ccd_api::{
    AlertKind, ErrorCode, EventKind, NormalizationChange, Permissions, Prompt, TurnStatus,
};
use ccd_rig::{
    home::HomeOptions,
    rig::RigOptions,
    service::{Reply, Scenario},
};
use serde_json::json;

use crate::{live::reason, stage::Stage};

/// A prompt with this word is altered by the tampering helper.
const TAMPERED: &str = "TAMPER";

fn texts() -> Vec<String> {
    let short = [
        "plain ascii",
        "äöü ß – “quotes” … 漢字 かな 한국어 עברית العربية",
        "👩‍👩‍👧‍👦 👩🏽‍🚀 🏳️‍🌈 🇩🇪🇯🇵 ❤️ 👍🏿",
        "decomposed: e\u{301} a\u{308} n\u{303} and the same composed: é ä ñ",
        "private use \u{e000}\u{f8ff} and outside the plane 𝔘𝔫𝔦 𠜎",
        "tabs\tinside\t\tand\n\tindented\n\t\ttwice",
        "first\n\n\nafter two blank lines\n    four spaces",
        "   leading spaces",
        "\n\nleading newlines",
        "- a list item\n- another",
        "# a heading",
        "! not a shell command",
        "!ls",
        "@nobody is no file",
        "& in front",
        "?",
        "? a question",
        "/path/like/this is no command",
        "//comment",
        "* star\n1. one\n> quote\n```rust\nfn main() {}\n```",
        "\"quotes\" 'single' `ticks` $HOME $(id) \\n \\x1b[31m %s {{braces}}",
        "<tag>&amp;</tag> <!-- comment -->",
        "crlf\r\nline two\r\nline three",
        "exit now",
        "❯ looks like the composer\n────────",
        "a path that ends in C:\\Users\\",
        "two at the end \\\\",
        "a last line\n\\",
    ];
    let large: String = (0..)
        .map(|n: u32| format!("{n:07x} äß漢👍 "))
        .scan(0, |size, part| {
            *size += part.len();
            (*size <= 64 * 1024).then_some(part)
        })
        .collect();
    let mut all: Vec<String> = short.map(str::to_owned).into();
    all.push(format!("{large}end"));
    all
}

#[tokio::test]
async fn every_kind_of_text_arrives_byte_for_byte_with_one_request_each() {
    let stage = Stage::plain();
    let live = stage.start(Permissions::Deny).await;
    let texts = texts();
    for (index, text) in texts.iter().enumerate() {
        let turn = live.send_now(text).await;
        let outcome = live.done(&turn).await;
        live.is(&outcome, TurnStatus::Completed).await;
        live.check(turn.submitted().await, "the receipt").await;
        let received = stage.received();
        live.check(
            received.len() == index + 1,
            &format!("{} requests after {} prompts", received.len(), index + 1),
        )
        .await;
        assert_eq!(received.last(), Some(text), "prompt {index}");
    }
    let changed = live
        .seen()
        .await
        .into_iter()
        .filter(|event| matches!(event.kind, EventKind::PromptNormalized { .. }));
    assert_eq!(changed.count(), 0, "none of these texts needs a change");
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_text_of_any_height_arrives_even_where_the_composer_does_not_fit_the_screen() {
    let stage = Stage::plain();
    let live = stage.start(Permissions::Deny).await;
    let mut sent = Vec::new();
    for height in [40, 70, 76, 78, 80, 100, 200, 400, 2] {
        let lines: Vec<String> = (1..=height)
            .map(|n| format!("line {n} of {height}"))
            .collect();
        sent.push(lines.join("\n"));
        live.completes(sent.last().unwrap(), "ok").await;
        assert_eq!(stage.received(), sent, "{height} lines");
    }
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn what_claude_would_alter_is_altered_beforehand_and_told() {
    use NormalizationChange::{
        AsText, BidiMarks, ControlCharacters, InvisibleCharacters, LineEndings, TrailingSpace,
    };
    let table = [
        (Prompt::new("trailing  \t\n\n"), "trailing", TrailingSpace),
        (
            Prompt::new("bell\u{7} escape\u{1b}[31m delete\u{7f}"),
            "bell escape[31m delete",
            ControlCharacters,
        ),
        (
            Prompt::new("zero\u{200b}width\u{feff} soft\u{ad}hyphen"),
            "zerowidth softhyphen",
            InvisibleCharacters,
        ),
        (
            Prompt::new("bidi \u{202e}override\u{202c} \u{2066}isolate\u{2069}"),
            "bidi override isolate",
            BidiMarks,
        ),
        (
            Prompt::new("carriage\rreturn"),
            "carriage\nreturn",
            LineEndings,
        ),
        (Prompt::new("/help").as_text(), " /help", AsText),
        (Prompt::new("/exit now").as_text(), " /exit now", AsText),
    ];
    let stage = Stage::plain();
    let live = stage.start(Permissions::Deny).await;
    for (prompt, expected, change) in table {
        let turn = live.send_now(prompt).await;
        let id = turn.id();
        let outcome = live.done(&turn).await;
        live.is(&outcome, TurnStatus::Completed).await;
        let told = live.event("the change is told", |kind| match kind {
            EventKind::PromptNormalized {
                turn,
                text,
                changes,
            } if *turn == id => Some((text.clone(), changes.clone())),
            _ => None,
        });
        assert_eq!(told.await, (expected.to_owned(), vec![change]));
        assert_eq!(stage.received().last().map(String::as_str), Some(expected));
    }
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn what_would_not_be_a_prompt_is_refused_before_anything_is_done() {
    let stage = Stage::plain();
    let live = stage.start(Permissions::Deny).await;
    for (text, reason) in [
        ("", "empty_prompt"),
        (" \n\t ", "empty_prompt"),
        ("\u{200b}", "empty_prompt"),
        ("/help", "looks_like_command"),
        ("/compact and more", "looks_like_command"),
        ("/9 is taken for one", "looks_like_command"),
        ("/ help", "looks_like_command"),
        (" exit", "exit_word"),
        ("\u{200d}", "empty_prompt"),
        ("exit", "exit_word"),
        (":q!", "exit_word"),
    ] {
        let error = live
            .send(text)
            .await
            .err()
            .unwrap_or_else(|| panic!("{text:?} was accepted"));
        assert_eq!(
            (error.code, error.details.reason.as_str()),
            (ErrorCode::PromptRefused, reason),
            "{text:?}"
        );
    }
    // A leading space does not help here: Claude trims before it compares, and ends.
    for text in ["exit", " exit", "quit", ":wq!"] {
        let error = live
            .send(Prompt::new(text).as_text())
            .await
            .err()
            .unwrap_or_else(|| panic!("{text:?} was accepted"));
        assert_eq!(
            (error.code, error.details.reason.as_str()),
            (ErrorCode::PromptRefused, "exit_word"),
            "{text:?}"
        );
    }
    live.completes("after the refusals", "ok").await;
    assert_eq!(stage.received(), ["after the refusals"]);
    live.closes().await;
    stage.finish();
}

/// A helper that is the real one, but alters what the editor wrote where the prompt asks for it; once, or always.
fn tampering_helper(stage: &Stage, always: bool) -> PathBuf {
    let path = stage.rig().root().join("tampering-helper");
    let done = stage.rig().root().join("tampered");
    let real = stage.rig().helper().unwrap();
    let script = format!(
        r#"#!/bin/bash
if [ "${{0##*/}}" != ccd-editor ]; then exec {real:?} "$@"; fi
file="${{@: -1}}"
(exec -a "$0" {real:?} "$@") || exit
if grep -q {TAMPERED} "$file" && {{ {always} || [ ! -e {done:?} ]; }}; then
  touch {done:?}
  printf ' and something else' >> "$file"
fi
"#
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path
}

#[tokio::test]
async fn a_text_that_arrives_altered_once_is_blocked_and_delivered_again() {
    let stage = Stage::plain();
    let options = stage
        .options(Permissions::Deny)
        .helper(tampering_helper(&stage, false));
    let live = stage.start_with(options).await;
    let text = format!("please {TAMPERED} with this");
    live.completes(&text, "ok").await;
    assert_eq!(stage.received(), [text]);
    assert!(
        stage.rig().root().join("tampered").exists(),
        "nothing was altered: the test proved nothing"
    );
    live.completes("the next one", "ok").await;
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_text_that_always_arrives_altered_never_reaches_the_model() {
    let stage = Stage::plain();
    let options = stage
        .options(Permissions::Deny)
        .helper(tampering_helper(&stage, true));
    let live = stage.start_with(options).await;
    let outcome = live.prompt(format!("please {TAMPERED} with this")).await;
    live.is(&outcome, TurnStatus::NotSubmitted).await;
    assert_eq!(
        (outcome.error.as_ref().unwrap().code, reason(&outcome)),
        (ErrorCode::NotSubmitted, "mismatch")
    );
    live.event("the alert", |kind| {
        matches!(
            kind,
            EventKind::AlertRaised {
                alert: AlertKind::Mismatch,
                ..
            }
        )
        .then_some(())
    })
    .await;
    assert_eq!(stage.received(), Vec::<String>::new());
    live.completes("the next one", "ok").await;
    assert_eq!(stage.received(), ["the next one"]);
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn prompts_sent_while_a_turn_runs_are_held_and_get_one_turn_each_in_order() {
    let scenario = Scenario::of([
        Reply::text("one").gate("first"),
        Reply::text("two"),
        Reply::text("three"),
    ]);
    let stage = Stage::new(scenario);
    let live = stage.start(Permissions::Deny).await;
    let first = live.send_now("prompt one").await;
    stage.mark("first").await;
    let second = live.send_now("prompt two").await;
    let third = live.send_now("prompt three").await;
    for turn in [&second, &third] {
        let id = turn.id();
        live.event("the prompt is held", |kind| {
            matches!(kind, EventKind::TurnQueued { turn, .. } if *turn == id).then_some(())
        })
        .await;
    }
    assert_eq!(stage.received(), ["prompt one"]);
    stage.service().release("first");
    for (turn, answer) in [(&first, "one"), (&second, "two"), (&third, "three")] {
        let outcome = live.done(turn).await;
        live.is(&outcome, TurnStatus::Completed).await;
        assert_eq!(outcome.text, answer);
    }
    assert_eq!(
        stage.received(),
        ["prompt one", "prompt two", "prompt three"]
    );
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_held_prompt_can_be_taken_back() {
    let stage = Stage::new(Scenario::of([Reply::text("one").gate("first")]));
    let live = stage.start(Permissions::Deny).await;
    let first = live.send_now("prompt one").await;
    stage.mark("first").await;
    let second = live.send_now("prompt two").await;
    second.cancel().await.unwrap();
    let outcome = live.done(&second).await;
    live.is(&outcome, TurnStatus::NotSubmitted).await;
    assert_eq!(reason(&outcome), "cancelled");
    stage.service().release("first");
    let outcome = live.done(&first).await;
    live.is(&outcome, TurnStatus::Completed).await;
    assert_eq!(
        first.cancel().await.unwrap_err().code,
        ErrorCode::PromptRefused
    );
    assert_eq!(stage.received(), ["prompt one"]);
    live.closes().await;
    stage.finish();
}

#[tokio::test]
async fn a_prompt_that_the_users_own_hook_blocks_is_not_submitted_and_the_session_goes_on() {
    let hook = "grep -q FORBIDDEN && { echo 'not in this house' >&2; exit 2; }; exit 0";
    let settings =
        json!({"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": hook}]}]}});
    let home = HomeOptions::default().with_settings(settings);
    let stage = Stage::with(RigOptions {
        home,
        ..RigOptions::default()
    });
    let live = stage.start(Permissions::Deny).await;
    let outcome = live.prompt("a FORBIDDEN word").await;
    live.is(&outcome, TurnStatus::NotSubmitted).await;
    assert_eq!(
        (outcome.error.as_ref().unwrap().code, reason(&outcome)),
        (ErrorCode::NotSubmitted, "blocked_by_hook")
    );
    let message = &outcome.error.as_ref().unwrap().message;
    assert!(message.contains("not in this house"), "{message}");
    assert_eq!(stage.received(), Vec::<String>::new());
    live.completes("an innocent one", "ok").await;
    assert_eq!(stage.received(), ["an innocent one"]);
    live.closes().await;
    stage.finish();
}
