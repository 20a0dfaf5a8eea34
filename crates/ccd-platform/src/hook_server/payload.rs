//! The little that the hook thread reads of a payload before it answers.
//!
//! What lives here: the prompt text, a tool's name and its command, read without judging the rest. What never does:
//! field names of one version (the prompt's comes with the spec), or decisions.
//!
//! Claude's serializer may write lone surrogates; they are replaced by U+FFFD, never a reason to call a payload
//! unreadable.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, Visitor},
};
use serde_json::value::RawValue;

/// A payload's top-level fields, values unread. The last of two equal names counts, as in JavaScript.
pub(super) struct Fields<'a>(BTreeMap<Cow<'a, str>, &'a RawValue>);

impl<'a> Fields<'a> {
    /// Reads an object; `None` for anything else.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }

    /// A field that is a string.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let raw = self.0.get(name)?;
        serde_json::from_str::<Lossy>(raw.get())
            .ok()
            .map(|text| text.0)
    }

    /// A field that is an object.
    pub(super) fn object(&self, name: &str) -> Option<Fields<'a>> {
        Fields::parse(self.0.get(name)?.get())
    }
}

/// A JSON string in which lone surrogates are replaced.
struct Lossy(String);

impl<'de> Deserialize<'de> for Lossy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Lossy;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Lossy, E> {
                Ok(Lossy(String::from_utf8_lossy(bytes).into_owned()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn strings_and_objects_are_read_and_the_rest_is_not_judged() {
        let text = r#"{"a":"x\n\u00e9","b":{"c":"\ud83d\ude00","n":[1,{}]},"odd":"\ud800","n":1}"#;
        let fields = Fields::parse(text).unwrap();
        assert_eq!(fields.text("a").unwrap(), "x\né");
        assert_eq!(fields.object("b").unwrap().text("c").unwrap(), "😀");
        assert!(fields.text("odd").unwrap().contains('\u{fffd}'));
        for name in ["n", "b", "missing"] {
            assert_eq!(fields.text(name), None, "{name}");
        }
        assert!(fields.object("a").is_none());
    }

    #[test]
    fn what_is_no_object_is_nothing() {
        for text in ["", "{", "[]", "null", "{} x", "{\"a\":}"] {
            assert!(Fields::parse(text).is_none(), "{text:?}");
        }
    }
}
