//! A JSON object whose order and values are kept as they stand in the text.
//!
//! What lives here: changing one field of a file that belongs to another program, without touching the rest. What
//! never does: files.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// An object as name-value pairs in file order, values as their exact texts.
#[derive(Debug)]
pub(super) struct JsonObject(Vec<(String, Box<RawValue>)>);

impl JsonObject {
    /// An object without fields.
    pub(super) fn empty() -> Self {
        Self(Vec::new())
    }

    /// The text of a field; of equal names the last counts.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .rev()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.get())
    }

    /// Sets a field to a JSON text; a new one goes to the end.
    pub(super) fn set(&mut self, name: &str, value: String) -> serde_json::Result<()> {
        let value = RawValue::from_string(value)?;
        match self.0.iter_mut().rev().find(|(known, _)| known == name) {
            Some((_, slot)) => *slot = value,
            None => self.0.push((name.to_owned(), value)),
        }
        Ok(())
    }

    /// The text, indented by two spaces for each level below `level`.
    pub(super) fn to_text(&self, level: usize) -> String {
        if self.0.is_empty() {
            return "{}".to_owned();
        }
        let indent = "  ".repeat(level);
        let fields: Vec<String> = self
            .0
            .iter()
            .map(|(name, value)| {
                format!(
                    "{indent}  {}: {}",
                    serde_json::Value::from(name.as_str()),
                    value.get()
                )
            })
            .collect();
        format!("{{\n{}\n{indent}}}", fields.join(",\n"))
    }
}

impl<'de> Deserialize<'de> for JsonObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = JsonObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonObject, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(JsonObject(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn only_the_field_that_is_set_changes() {
        let text = "{\n  \"z\": 1.50,\n  \"a\": {\n    \"x\": \"\\ud800\"\n  }\n}";
        let mut object: JsonObject = serde_json::from_str(text).unwrap();
        assert_eq!(object.to_text(0), text);
        object.set("z", "2".to_owned()).unwrap();
        object.set("n\"", "[]".to_owned()).unwrap();
        let expected =
            "{\n  \"z\": 2,\n  \"a\": {\n    \"x\": \"\\ud800\"\n  },\n  \"n\\\"\": []\n}";
        assert_eq!(object.to_text(0), expected);
        assert_eq!(object.get("z"), Some("2"));
        assert!(object.set("z", "{".to_owned()).is_err());
        assert_eq!(JsonObject::empty().to_text(3), "{}");
    }
}
