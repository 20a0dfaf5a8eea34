//! What may be sent, and what is changed on the way.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use ccd_core::{MAX_PROMPT_BYTES, normalize};
use ccd_model::{command::Refusal, outcome::Normalization as N};
use support::*;

fn clean(text: &str, as_text: bool) -> Result<(String, Vec<N>), Refusal> {
    let exit = config(ccd_model::permission::Policy::Deny)
        .vocabulary
        .exit_words;
    normalize(text, as_text, &exit).map(|n| (n.text.to_string(), n.changes))
}

#[test]
fn what_the_composer_keeps_is_kept_exactly() {
    for text in [
        "plain",
        "tab\tand  inner   spaces\n\n  indented",
        "日本語 e\u{301} 👨\u{200D}👩\u{200D}👧 🇩🇪 \u{E001} ❤\u{FE0F} 1\u{FE0F}\u{20E3} क\u{200D}ष",
        "crlf\r\nstays",
        "!ls",
        "#note",
        "&x",
        "?",
        "@file",
        " /help",
        "/etc/hosts is a file",
        "exit now",
    ] {
        assert_eq!(
            clean(text, false),
            Ok((text.to_string(), vec![])),
            "{text:?}"
        );
    }
}

#[test]
fn what_the_composer_alters_is_altered_first_and_told() {
    let rows: &[(&str, &str, &[N])] = &[
        ("end \t\n", "end", &[N::TrailingSpace]),
        ("a\rb", "a\nb", &[N::LineEndings]),
        (
            "a\u{b}b\u{c}c\u{2028}d\u{2029}e\u{85}f",
            "a\nb\nc\nd\ne\nf",
            &[N::LineEndings],
        ),
        (
            "a\0b\u{7}c\u{1b}[31md\u{7f}e\u{9b}f",
            "abc[31mdef",
            &[N::ControlCharacters],
        ),
        (
            "a\u{200b}b\u{ad}c\u{feff}d\u{e0041}e",
            "abcde",
            &[N::InvisibleCharacters],
        ),
        ("a\u{202e}b\u{2066}c\u{200f}d", "abcd", &[N::BidiMarks]),
        ("a\u{200e}b\u{61c}c", "abc", &[N::BidiMarks]),
        (
            "a\u{2060}b\u{180e}c\u{34f}d\u{3164}e\u{e0100}f",
            "abcdef",
            &[N::InvisibleCharacters],
        ),
        (
            "a\u{200d}b\u{200c}c\u{fe0f}d",
            "abcd",
            &[N::InvisibleCharacters],
        ),
        (
            "x\u{202e} \r",
            "x",
            &[N::TrailingSpace, N::LineEndings, N::BidiMarks],
        ),
    ];
    for (given, text, changes) in rows {
        assert_eq!(
            clean(given, false),
            Ok((text.to_string(), changes.to_vec())),
            "{given:?}"
        );
    }
}

#[test]
fn what_is_left_of_nothing_is_refused() {
    for text in ["", "  \n\t ", "\u{200b}\u{feff}", "\0\u{202e}", "\u{200d}"] {
        assert_eq!(clean(text, false), Err(Refusal::EmptyPrompt));
        assert_eq!(clean(text, true), Err(Refusal::EmptyPrompt));
    }
}

#[test]
fn commands_are_refused_or_sent_as_text_and_exit_words_are_always_refused() {
    for word in ["/help", "/mcp:server-x", "/a_b", "/", "/9", "/_foo"] {
        let text = format!("{word} me");
        assert_eq!(
            clean(&text, false),
            Err(Refusal::LooksLikeCommand { word: arc(word) })
        );
        assert_eq!(
            clean(&text, true),
            Ok((format!(" {text}"), vec![N::AsText]))
        );
    }
    for word in ["exit", "quit", ":q", ":q!", ":wq", ":wq!"] {
        assert_eq!(
            clean(&format!("{word}\n"), false),
            Err(Refusal::ExitWord { word: arc(word) })
        );
        for text in [word.to_string(), format!(" {word}"), format!("\n{word} ")] {
            for as_text in [false, true] {
                assert_eq!(
                    clean(&text, as_text),
                    Err(Refusal::ExitWord { word: arc(word) }),
                    "{text:?}"
                );
            }
        }
    }
    // A command hidden behind an invisible character is still one.
    assert!(clean("\u{200b}/help", false).is_err());
    assert!(
        clean("plain", true).is_ok_and(|(text, changes)| text == "plain" && changes.is_empty())
    );
}

#[test]
fn the_size_limit_counts_bytes_after_normalisation() {
    let limit = usize::try_from(MAX_PROMPT_BYTES).unwrap();
    assert!(clean(&format!("{}\n\n", "x".repeat(limit)), false).is_ok());
    assert_eq!(
        clean(&"x".repeat(limit + 1), false),
        Err(Refusal::TooLarge {
            bytes: MAX_PROMPT_BYTES + 1,
            limit: MAX_PROMPT_BYTES
        })
    );
}
