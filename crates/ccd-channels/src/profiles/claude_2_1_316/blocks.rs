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

/// The parts of a tool's own response object that a person would call its output.
#[derive(Deserialize)]
struct Output<'a> {
    #[serde(default, borrow)]
    stdout: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    stderr: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    file: Option<FileOutput<'a>>,
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct FileOutput<'a> {
    #[serde(default, borrow)]
    content: Option<Cow<'a, str>>,
}

/// The text of a tool's own response object, until the transcript tells what the model was given: the output of a shell, the content of a
/// file, the text of an agent; anything else as [`result_text`] has it.
pub(super) fn response_text(raw: &RawValue) -> Cow<'_, str> {
    if !raw.get().starts_with('{') {
        return result_text(raw);
    }
    let Ok(output) = serde_json::from_str::<Output<'_>>(raw.get()) else {
        return result_text(raw);
    };
    if output.stdout.is_some() || output.stderr.is_some() {
        let streams = [output.stdout, output.stderr];
        let texts: Vec<&str> = streams
            .iter()
            .flatten()
            .map(|stream| stream.trim_end_matches('\n'))
            .filter(|stream| !stream.is_empty())
            .collect();
        return Cow::Owned(texts.join("\n"));
    }
    if let Some(content) = output.file.and_then(|file| file.content) {
        return content;
    }
    output.content.map_or_else(|| result_text(raw), result_text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_text_of_a_response_is_what_a_person_would_call_its_output() {
        for (json, text) in [
            (r#"{"stdout":"a\n","stderr":"","interrupted":false}"#, "a"),
            (r#"{"stdout":"a\nb","stderr":"c\n"}"#, "a\nb\nc"),
            (
                r#"{"type":"text","file":{"filePath":"/x","content":"x\ny"}}"#,
                "x\ny",
            ),
            (
                r#"{"status":"completed","content":[{"type":"text","text":"said"}]}"#,
                "said",
            ),
            (
                r#"{"filePath":"/x","oldString":"a"}"#,
                r#"{"filePath":"/x","oldString":"a"}"#,
            ),
            (
                r#"{"type":"file_unchanged","file":{"filePath":"/x"}}"#,
                r#"{"type":"file_unchanged","file":{"filePath":"/x"}}"#,
            ),
            (
                r#"[{"type":"text","text":"one"},{"type":"text","text":"two"}]"#,
                "one\ntwo",
            ),
            (r#""plain""#, "plain"),
        ] {
            let raw = RawValue::from_string(json.to_owned()).unwrap();
            assert_eq!(response_text(&raw), text, "{json}");
        }
    }
}
