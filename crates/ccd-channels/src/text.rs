//! Small text helpers: bounded excerpts, repair of lone surrogates in JSON, raw bodies. Nothing here knows a version.

use std::{borrow::Cow, collections::BTreeSet, fmt, sync::Arc};

use ccd_model::{json::RawJson, observation::Observation};
use serde_json::value::RawValue;

/// Longest excerpt in an `Unrecognized` observation, bytes.
const EXCERPT: usize = 200;
/// Most kinds that are remembered as already reported.
const KINDS: usize = 256;

/// Why a record could not be read; becomes the text of an `Unrecognized` observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable(String);

impl Unreadable {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<serde_json::Error> for Unreadable {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

/// The longest prefix of at most `limit` bytes that ends on a character boundary.
pub(crate) fn shortened(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let end = (0..=limit)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    text.get(..end).unwrap_or("")
}

/// An `Unrecognized` observation with a bounded text.
pub(crate) fn unrecognized(channel: &'static str, what: &str) -> Observation {
    Observation::Unrecognized {
        channel: channel.into(),
        what: shortened(what, EXCERPT).into(),
    }
}

/// Kinds of records that no table knows, so that each is reported once. Bounded: when full, nothing more is reported.
#[derive(Debug, Default)]
pub(crate) struct SeenKinds(BTreeSet<String>);

impl SeenKinds {
    /// Whether `kind` is new and has now been noted.
    pub(crate) fn first(&mut self, kind: &str) -> bool {
        let kind = shortened(kind, EXCERPT);
        if self.0.len() >= KINDS || self.0.contains(kind) {
            return false;
        }
        self.0.insert(kind.to_owned())
    }
}

/// Replaces every escaped lone surrogate of a JSON text (`\ud83d` without its partner) by `\ufffd`. Borrowed when there is none.
pub(crate) fn repair_surrogates(json: &str) -> Cow<'_, str> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return Cow::Borrowed(json);
    }
    let bytes = json.as_bytes();
    let mut lone = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if *byte != b'\\' {
            at += 1;
            continue;
        }
        match escaped_unit(bytes, at) {
            Some(0xD800..=0xDBFF) => {
                if matches!(escaped_unit(bytes, at + 6), Some(0xDC00..=0xDFFF)) {
                    at += 12;
                } else {
                    lone.push(at);
                    at += 6;
                }
            }
            Some(0xDC00..=0xDFFF) => {
                lone.push(at);
                at += 6;
            }
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    if lone.is_empty() {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    let mut from = 0;
    for at in lone {
        out.push_str(json.get(from..at).unwrap_or(""));
        out.push_str("\\ufffd");
        from = at + 6;
    }
    out.push_str(json.get(from..).unwrap_or(""));
    Cow::Owned(out)
}

/// The UTF-16 unit of a `\uXXXX` escape at `at`.
fn escaped_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    u16::from_str_radix(digits, 16).ok()
}

/// A body kept as its exact text, lone surrogates repaired so that it can be parsed later.
pub(crate) fn raw_json(raw: &RawValue) -> RawJson {
    RawJson::new(Arc::<str>::from(repair_surrogates(raw.get())))
}

/// A shared string from a borrowed one.
pub(crate) fn arc(text: &str) -> Arc<str> {
    Arc::from(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_kept() {
        for (input, expected) in [
            (r#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
            (r#"{"a":"\ud83d\ude00"}"#, r#"{"a":"\ud83d\ude00"}"#),
            (r#"{"a":"\ude00\uD83D x"}"#, r#"{"a":"\ufffd\ufffd x"}"#),
            (r#"{"a":"\\ud83d"}"#, r#"{"a":"\\ud83d"}"#),
            (r#"{"a":"\\\ud83d"}"#, r#"{"a":"\\\ufffd"}"#),
            (
                r#"{"a":"\ud83d\ud83d\ude00"}"#,
                r#"{"a":"\ufffd\ud83d\ude00"}"#,
            ),
            (r#"{"a":"\u00e9"}"#, r#"{"a":"\u00e9"}"#),
            (r#"{"a":"\ud8"#, r#"{"a":"\ud8"#),
        ] {
            assert_eq!(repair_surrogates(input), expected);
        }
        let repaired = repair_surrogates(r#""\ud83d""#).into_owned();
        assert_eq!(
            serde_json::from_str::<String>(&repaired).unwrap(),
            "\u{fffd}"
        );
    }

    #[test]
    fn shortening_ends_on_a_character_boundary() {
        assert_eq!(shortened("héllo", 2), "h");
        assert_eq!(shortened("héllo", 3), "hé");
        assert_eq!(shortened("abc", 3), "abc");
        assert_eq!(shortened("日", 1), "");
    }

    #[test]
    fn each_kind_is_reported_once_and_the_memory_is_bounded() {
        let mut seen = SeenKinds::default();
        assert!(seen.first("a"));
        assert!(!seen.first("a"));
        for n in 0..2 * KINDS {
            seen.first(&n.to_string());
        }
        assert_eq!(seen.0.len(), KINDS);
        assert!(!seen.first("one more"));
    }
}
