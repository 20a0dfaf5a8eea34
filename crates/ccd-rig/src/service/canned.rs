//! The reply each kind of side request wants when the script says nothing.
//!
//! What lives here: a table of contents. What never does: main and subagent replies.

use super::classify::SideKind;
use super::reply::{Block, Content, Reply, StopReason, ToolCall};
use serde_json::{Value, json};

pub(super) fn reply(kind: SideKind, body: &Value) -> Reply {
    match kind {
        SideKind::Quota | SideKind::Other => Reply::text("ok"),
        SideKind::Title => Reply::text(&json!({ "title": "Scripted session" }).to_string()),
        SideKind::Rename => Reply::text(&json!({ "name": "scripted-session" }).to_string()),
        SideKind::WebFetch => Reply::text("The page says what the script says."),
        SideKind::WebSearch => web_search(body),
        SideKind::Classifier => classifier(body),
        SideKind::Compaction => Reply::text(COMPACTION),
        SideKind::Btw => Reply::text("A side answer."),
        SideKind::Recap => Reply::text("The session follows a script."),
    }
}

const COMPACTION: &str = "<analysis>\nThe conversation was short.\n</analysis>\n\n\
    <summary>\n1. Primary Request and Intent:\n   As scripted.\n</summary>";

/// The classifier reads up to a stop sequence of its own choice: the answer ends there.
fn classifier(body: &Value) -> Reply {
    let sequence = body["stop_sequences"][0].as_str().unwrap_or("</severity>");
    let text = if sequence == "</block>" {
        "<block>no"
    } else {
        "<severity>5"
    };
    Reply::text(text)
        .stop(StopReason::StopSequence)
        .message(|message| message.stop_sequence = Some(sequence.to_owned()))
}

fn web_search(body: &Value) -> Reply {
    let query = body["messages"]
        .as_array()
        .and_then(|messages| messages.last())
        .map(|message| match &message["content"] {
            Value::String(text) => text.clone(),
            blocks => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
        })
        .unwrap_or_default();
    let query = query
        .rsplit_once("query: ")
        .map_or(query.as_str(), |(_, query)| query)
        .to_owned();
    let id = "srvtoolu_01scripted";
    let call = Content::ServerToolUse(ToolCall {
        id: Some(id.to_owned()),
        name: "web_search".to_owned(),
        input: json!({ "query": query }),
        chunk: 16,
    });
    let result = Content::Whole {
        block: json!({
            "type": "web_search_tool_result",
            "tool_use_id": id,
            "content": [{
                "type": "web_search_result",
                "title": "A page",
                "url": "https://www.example.com/a",
                "encrypted_content": "eA==",
                "page_age": null
            }]
        }),
    };
    let of = |content| Block { content, gap_ms: 0 };
    Reply::blocks([
        Block::text("I will search."),
        of(call),
        of(result),
        Block::text("One page was found."),
    ])
}
