//! Content blocks of 2.1.316 as both hooks and transcript lines carry them: a string, or a list of typed blocks.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct TextBlock<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
}

/// The text of a result: a string as it is, the text blocks of a list joined by newlines, anything else as its JSON.
pub(super) fn result_text(raw: &RawValue) -> Cow<'_, str> {
    let json = raw.get();
    if json.starts_with('"') {
        if let Ok(text) = serde_json::from_str::<Cow<'_, str>>(json) {
            return text;
        }
        let repaired = crate::text::repair_surrogates(json);
        if let Ok(text) = serde_json::from_str::<String>(&repaired) {
            return Cow::Owned(text);
        }
    } else if json.starts_with('[')
        && let Ok(blocks) =
            serde_json::from_str::<Vec<TextBlock<'_>>>(&crate::text::repair_surrogates(json))
    {
        let texts: Vec<&str> = blocks
            .iter()
            .filter(|block| block.kind == "text")
            .filter_map(|block| block.text.as_deref())
            .collect();
        if !texts.is_empty() {
            return Cow::Owned(texts.join("\n"));
        }
    }
    Cow::Borrowed(json)
}
