//! Raw JSON bodies that nobody inspects: kept as text, compared as text, never re-encoded.

use alloc::{string::String, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One JSON document as its exact text. `serde_json::RawValue` has no equality and cannot sit in tagged enums, hence this type.
///
/// Serialized as a JSON string, so that a trace keeps the bytes exactly.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RawJson(Arc<str>);

impl RawJson {
    /// Wraps `text`. The caller vouches that it is one JSON document; readers treat a parse failure as a diagnostic.
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The JSON text.
    #[must_use]
    pub fn get(&self) -> &str {
        &self.0
    }

    /// Parses the text, `None` when it is not valid JSON.
    #[must_use]
    pub fn value(&self) -> Option<serde_json::Value> {
        serde_json::from_str(&self.0).ok()
    }
}

impl From<&serde_json::Value> for RawJson {
    fn from(value: &serde_json::Value) -> Self {
        Self(alloc::string::ToString::to_string(value).into())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Self(String::deserialize(d)?.into()))
    }
}

/// Structural equality as JavaScript sees it: object keys in any order, numbers compared as doubles, `-0` equal to `0`.
///
/// Both sides of the permission binding come from the same JavaScript serializer; this removes what is left of spelling differences.
#[must_use]
pub fn canonical_eq(a: &serde_json::Value, b: &serde_json::Value) -> bool {
    use serde_json::Value as V;
    match (a, b) {
        (V::Number(x), V::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (V::Array(x), V::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(p, q)| canonical_eq(p, q))
        }
        (V::Object(x), V::Object(y)) => {
            x.len() == y.len()
                && x.iter()
                    .all(|(k, p)| y.get(k).is_some_and(|q| canonical_eq(p, q)))
        }
        (V::Null, V::Null) => true,
        (V::Bool(x), V::Bool(y)) => x == y,
        (V::String(x), V::String(y)) => x == y,
        (V::Null | V::Bool(_) | V::Number(_) | V::String(_) | V::Array(_) | V::Object(_), _) => {
            false
        }
    }
}
