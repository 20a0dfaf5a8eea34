//! What a `/v1/messages` request is for, and what it says.
//!
//! What lives here: reading of request bodies. What never does: replies.
//!
//! The client names the class in a header only when it believes it talks to the first party; otherwise the body tells.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestClass {
    /// The conversation itself.
    Main,
    /// An agent's conversation.
    Subagent,
    /// A side request.
    Side(SideKind),
    /// `/v1/messages/count_tokens`.
    CountTokens,
    /// Any other endpoint.
    Endpoint,
}

/// The kinds of side request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideKind {
    /// The start-up request that only looks at rate-limit headers.
    Quota,
    /// The session's title.
    Title,
    /// `/rename`.
    Rename,
    /// The summary of a fetched page.
    WebFetch,
    /// A web search.
    WebSearch,
    /// The local auto-mode classifier.
    Classifier,
    /// Compaction of the conversation.
    Compaction,
    /// A `/btw` question.
    Btw,
    /// The recap after an absence.
    Recap,
    /// A request the client calls auxiliary and that is none of the above.
    Other,
}

impl SideKind {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::Quota,
        Self::Title,
        Self::Rename,
        Self::WebFetch,
        Self::WebSearch,
        Self::Classifier,
        Self::Compaction,
        Self::Btw,
        Self::Recap,
        Self::Other,
    ];
}

/// A tool's result, as the client sent it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The call it answers.
    pub tool_use_id: String,
    /// Its text blocks, joined by newlines.
    pub text: String,
    /// The client calls it an error.
    pub is_error: bool,
}

/// The class of a Messages request; `header` looks up a header by its lower-case name.
pub(super) fn classify<'a>(body: &Value, header: impl Fn(&str) -> Option<&'a str>) -> RequestClass {
    let named = header("x-claude-code-request-class");
    if named == Some("subagent")
        || header("x-claude-code-agent-id").is_some()
        || system_texts(body).any(|text| text.contains("cc_is_subagent=true"))
        || tool_names(body).any(|name| name == "SubagentHandback")
    {
        return RequestClass::Subagent;
    }
    if let Some(kind) = side_kind(body) {
        return RequestClass::Side(kind);
    }
    match named {
        Some("compaction") => RequestClass::Side(SideKind::Compaction),
        Some("auxiliary" | "side_reply") => RequestClass::Side(SideKind::Other),
        _ => RequestClass::Main,
    }
}

fn side_kind(body: &Value) -> Option<SideKind> {
    if body["max_tokens"] == 1 && body["messages"][0]["content"] == "quota" {
        return Some(SideKind::Quota);
    }
    let schema = &body["output_config"]["format"]["schema"]["properties"];
    if schema.get("title").is_some() {
        return Some(SideKind::Title);
    }
    if schema.get("name").is_some() {
        return Some(SideKind::Rename);
    }
    if system_texts(body).any(|text| text.contains("You are a security monitor")) {
        return Some(SideKind::Classifier);
    }
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    if !tools.is_empty()
        && tools.iter().all(|tool| {
            tool["type"]
                .as_str()
                .is_some_and(|kind| kind.starts_with("web_search_"))
        })
    {
        return Some(SideKind::WebSearch);
    }
    let last = last_texts(body);
    for (begin, kind) in [
        (
            "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.",
            SideKind::Compaction,
        ),
        (
            "<system-reminder>This is a side question from the user.",
            SideKind::Btw,
        ),
        (
            "The user stepped away and is coming back. Recap in under",
            SideKind::Recap,
        ),
        ("\nWeb page content:\n---", SideKind::WebFetch),
    ] {
        if last.iter().any(|text| text.starts_with(begin)) {
            return Some(kind);
        }
    }
    None
}

fn system_texts(body: &Value) -> impl Iterator<Item = &str> {
    let blocks = body["system"].as_array().map_or(&[][..], Vec::as_slice);
    blocks
        .iter()
        .filter_map(|block| block["text"].as_str())
        .chain(body["system"].as_str())
}

fn tool_names(body: &Value) -> impl Iterator<Item = &str> {
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    tools.iter().filter_map(|tool| tool["name"].as_str())
}

/// The texts of a `content`, which is a string or a list of blocks.
fn texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(blocks) => blocks
            .iter()
            .filter(|block| block["type"] == "text")
            .filter_map(|block| block["text"].as_str())
            .collect(),
        _ => Vec::new(),
    }
}

fn last_texts(body: &Value) -> Vec<&str> {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    messages
        .iter()
        .rfind(|message| message["role"] == "user")
        .map_or_else(Vec::new, |message| texts(&message["content"]))
}

/// All text of the last user message, as sent.
pub(super) fn last_message(body: &Value) -> String {
    last_texts(body).join("\n")
}

/// What a human (or an agent's caller) wrote, one entry per user message that has any such text, oldest first.
///
/// Messages of role `system`, reminders and the traces of local commands are not human.
pub(super) fn human_texts(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    messages
        .iter()
        .filter(|message| message["role"] == "user")
        .filter_map(|message| {
            let parts: Vec<String> = texts(&message["content"])
                .into_iter()
                .map(human_part)
                .filter(|text| !text.trim().is_empty())
                .collect();
            (!parts.is_empty()).then(|| parts.join("\n"))
        })
        .collect()
}

/// What the client puts into user messages by itself.
const CLIENT_TAGS: [&str; 10] = [
    "system-reminder",
    "command-name",
    "command-message",
    "command-args",
    "local-command-caveat",
    "local-command-stdout",
    "local-command-stderr",
    "bash-input",
    "bash-stdout",
    "bash-stderr",
];

fn human_part(text: &str) -> String {
    let mut kept = text.to_owned();
    for tag in CLIENT_TAGS {
        if let Some(without) = without_spans(&kept, tag) {
            // The line ends that stood between two spans are the client's, too.
            kept = without.trim_end().to_owned();
        }
    }
    kept
}

/// The text without the spans of a tag; `None` = it has none.
fn without_spans(text: &str, tag: &str) -> Option<String> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let mut out = String::new();
    let (mut before, mut rest) = text.split_once(open.as_str())?;
    loop {
        out.push_str(before);
        rest = rest
            .split_once(close.as_str())
            .map_or("", |(_, after)| after);
        let Some(next) = rest.split_once(open.as_str()) else {
            out.push_str(rest);
            return Some(out);
        };
        (before, rest) = next;
    }
}

/// The tool results after the last assistant message.
pub(super) fn tool_results(body: &Value) -> Vec<ToolResult> {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let mut found: Vec<ToolResult> = messages
        .iter()
        .rev()
        .take_while(|message| message["role"] != "assistant")
        .filter(|message| message["role"] == "user")
        .flat_map(|message| {
            let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
            blocks.iter().rev()
        })
        .filter(|block| block["type"] == "tool_result")
        .map(|block| ToolResult {
            tool_use_id: block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
            text: texts(&block["content"]).join("\n"),
            is_error: block["is_error"] == true,
        })
        .collect();
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn class_of(body: &Value) -> RequestClass {
        classify(body, |_| None)
    }

    #[test]
    fn each_kind_of_request_is_known_by_its_body() {
        let user = |text: &str| json!([{"role":"user","content":[{"type":"text","text":text}]}]);
        for (body, class) in [
            (
                json!({"max_tokens":1,"messages":[{"role":"user","content":"quota"}]}),
                RequestClass::Side(SideKind::Quota),
            ),
            (
                json!({"output_config":{"format":{"schema":{"properties":{"title":{}}}}},"messages":user("<session>")}),
                RequestClass::Side(SideKind::Title),
            ),
            (
                json!({"output_config":{"format":{"schema":{"properties":{"name":{}}}}},"messages":user("<conversation>")}),
                RequestClass::Side(SideKind::Rename),
            ),
            (
                json!({"system":[{"type":"text","text":"You are a security monitor for"}],"messages":user("x")}),
                RequestClass::Side(SideKind::Classifier),
            ),
            (
                json!({"tools":[{"type":"web_search_20250305","name":"web_search"}],"messages":user("x")}),
                RequestClass::Side(SideKind::WebSearch),
            ),
            (
                json!({"messages":user("\nWeb page content:\n---\nx")}),
                RequestClass::Side(SideKind::WebFetch),
            ),
            (
                json!({"messages":[{"role":"user","content":[{"type":"text","text":"a\n"},
                    {"type":"text","text":"CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n"}]}]}),
                RequestClass::Side(SideKind::Compaction),
            ),
            (
                json!({"messages":user("<system-reminder>This is a side question from the user. You")}),
                RequestClass::Side(SideKind::Btw),
            ),
            (
                json!({"messages":[{"role":"user","content":"The user stepped away and is coming back. Recap in under 40 words"}]}),
                RequestClass::Side(SideKind::Recap),
            ),
            (
                json!({"system":[{"type":"text","text":"x-anthropic-billing-header: cc_is_subagent=true;"}],"messages":user("x")}),
                RequestClass::Subagent,
            ),
            (
                json!({"tools":[{"name":"SubagentHandback"}],"messages":user("x")}),
                RequestClass::Subagent,
            ),
            (
                json!({"system":[{"type":"text","text":"You are a Claude agent, built on Anthropic's Claude Agent SDK."}],
                    "tools":[{"name":"Bash"}],"messages":user("CRITICALly x")}),
                RequestClass::Main,
            ),
        ] {
            assert_eq!(class_of(&body), class, "{body}");
        }
    }

    #[test]
    fn the_class_named_in_the_header_is_used_where_the_body_says_nothing() {
        let body = json!({"messages":[{"role":"user","content":"x"}]});
        for (name, class) in [
            ("main", RequestClass::Main),
            ("subagent", RequestClass::Subagent),
            ("compaction", RequestClass::Side(SideKind::Compaction)),
            ("auxiliary", RequestClass::Side(SideKind::Other)),
        ] {
            let found = classify(&body, |header| {
                (header == "x-claude-code-request-class").then_some(name)
            });
            assert_eq!(found, class);
        }
    }

    #[test]
    fn the_last_human_text_is_found_behind_system_messages_reminders_and_tool_results() {
        let body = json!({"messages":[
            {"role":"user","content":[
                {"type":"text","text":"<system-reminder>\ncontext\n</system-reminder>"},
                {"type":"text","text":"do it<system-reminder>x</system-reminder>"}]},
            {"role":"system","content":"# Environment"},
            {"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}},
                {"type":"tool_use","id":"toolu_2","name":"Bash","input":{}}]},
            {"role":"user","content":[
                {"type":"tool_result","tool_use_id":"toolu_1","content":"out","is_error":false},
                {"type":"tool_result","tool_use_id":"toolu_2","content":[{"type":"text","text":"bad"}],"is_error":true},
                {"type":"text","text":"<system-reminder>more</system-reminder>"}]},
            {"role":"system","content":[{"type":"text","text":"tools"}]}
        ]});
        assert_eq!(human_texts(&body), ["do it"]);
        let after_a_command = json!({"messages":[{"role":"user","content":[
            {"type":"text","text":"<command-name>/rename</command-name>\n  <command-args></command-args>\n"},
            {"type":"text","text":"<local-command-stdout>Renamed</local-command-stdout>\n"},
            {"type":"text","text":"second <message>\n"}]}]});
        assert_eq!(human_texts(&after_a_command), ["second <message>\n"]);
        let results = tool_results(&body);
        assert_eq!(results.len(), 2);
        assert_eq!(results[0].tool_use_id, "toolu_1");
        assert_eq!(
            results[1],
            ToolResult {
                tool_use_id: "toolu_2".to_owned(),
                text: "bad".to_owned(),
                is_error: true
            }
        );
    }
}
