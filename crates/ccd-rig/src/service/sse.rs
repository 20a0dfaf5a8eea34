//! The wire shapes of a message: event payloads and the JSON body.
//!
//! What lives here: JSON of the Messages API. What never does: time, order of steps, sockets.

use super::reply::{Content, Message, StopReason, ToolCall, Usage, Verdicts};
use serde_json::{Map, Value, json};

/// The facts of one answer that are not in the script.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) message_id: String,
    pub(super) model: String,
    pub(super) usage: Usage,
    /// The request asks for verdicts on tool calls.
    pub(super) verdicts_asked: bool,
    /// One id per block; used where the script gives none.
    pub(super) tool_ids: Vec<String>,
}

impl Identity {
    pub(super) fn tool_id(&self, block: usize, call: &ToolCall) -> String {
        call.id
            .clone()
            .or_else(|| self.tool_ids.get(block).cloned())
            .unwrap_or_else(|| format!("toolu_block_{block}"))
    }
}

pub(super) fn stop_reason(message: &Message) -> StopReason {
    let calls_a_tool = message
        .blocks
        .iter()
        .any(|block| matches!(block.content, Content::ToolUse(_)));
    message.stop_reason.unwrap_or(if calls_a_tool {
        StopReason::ToolUse
    } else {
        StopReason::EndTurn
    })
}

pub(super) fn message_start(message: &Message, identity: &Identity) -> Value {
    let mut usage = usage_json(identity.usage);
    usage.insert("output_tokens".to_owned(), json!(1));
    add_server_tools(&mut usage, message);
    json!({
        "type": "message_start",
        "message": {
            "id": identity.message_id,
            "type": "message",
            "role": "assistant",
            "model": identity.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": usage,
        }
    })
}

pub(super) fn ping() -> Value {
    json!({ "type": "ping" })
}

pub(super) fn block_start(index: usize, content: &Content, identity: &Identity) -> Value {
    let block = match content {
        Content::Text { .. } => json!({ "type": "text", "text": "" }),
        Content::Thinking { .. } => {
            json!({ "type": "thinking", "thinking": "", "signature": "" })
        }
        Content::ToolUse(call) => tool_block("tool_use", index, call, &json!({}), identity),
        Content::ServerToolUse(call) => {
            tool_block("server_tool_use", index, call, &json!({}), identity)
        }
        Content::Whole { block } => block.clone(),
    };
    json!({ "type": "content_block_start", "index": index, "content_block": block })
}

fn tool_block(
    kind: &str,
    index: usize,
    call: &ToolCall,
    input: &Value,
    identity: &Identity,
) -> Value {
    json!({ "type": kind, "id": identity.tool_id(index, call), "name": call.name, "input": input })
}

/// The deltas of a block, in order.
pub(super) fn deltas(content: &Content) -> Vec<Value> {
    match content {
        Content::Text { deltas } => deltas
            .iter()
            .map(|text| json!({ "type": "text_delta", "text": text }))
            .collect(),
        Content::Thinking { deltas, signature } => deltas
            .iter()
            .map(|text| json!({ "type": "thinking_delta", "thinking": text }))
            .chain([json!({ "type": "signature_delta", "signature": signature })])
            .collect(),
        Content::ToolUse(call) | Content::ServerToolUse(call) => input_pieces(call)
            .into_iter()
            .map(|piece| json!({ "type": "input_json_delta", "partial_json": piece }))
            .collect(),
        Content::Whole { .. } => Vec::new(),
    }
}

fn input_pieces(call: &ToolCall) -> Vec<String> {
    let text = object_or_empty(&call.input).to_string();
    if call.chunk == 0 {
        return vec![text];
    }
    let characters: Vec<char> = text.chars().collect();
    characters
        .chunks(call.chunk)
        .map(|piece| piece.iter().collect())
        .collect()
}

fn object_or_empty(input: &Value) -> Value {
    if input.is_null() {
        json!({})
    } else {
        input.clone()
    }
}

pub(super) fn block_delta(index: usize, delta: &Value) -> Value {
    json!({ "type": "content_block_delta", "index": index, "delta": delta })
}

pub(super) fn block_stop(index: usize) -> Value {
    json!({ "type": "content_block_stop", "index": index })
}

pub(super) fn message_delta(message: &Message, identity: &Identity) -> Value {
    let mut delta = json!({
        "stop_reason": stop_reason(message),
        "stop_sequence": message.stop_sequence,
    });
    if let (Some(results), Some(delta)) = (verdicts(message, identity), delta.as_object_mut()) {
        delta.insert("safeguard_results".to_owned(), results);
    }
    json!({
        "type": "message_delta",
        "delta": delta,
        "usage": { "output_tokens": identity.usage.output_tokens },
    })
}

pub(super) fn message_stop() -> Value {
    json!({ "type": "message_stop" })
}

pub(super) fn error(kind: &str, message: &str) -> Value {
    json!({ "type": "error", "error": { "type": kind, "message": message } })
}

pub(super) fn error_body(kind: &str, message: &str, request_id: &str) -> Value {
    json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": request_id })
}

/// The whole message in one JSON body, for a request that asks for no stream.
pub(super) fn whole_message(message: &Message, identity: &Identity) -> Value {
    let content: Vec<Value> = message
        .blocks
        .iter()
        .enumerate()
        .map(|(index, block)| match &block.content {
            Content::Text { deltas } => json!({ "type": "text", "text": deltas.concat() }),
            Content::Thinking { deltas, signature } => {
                json!({ "type": "thinking", "thinking": deltas.concat(), "signature": signature })
            }
            Content::ToolUse(call) => {
                let input = object_or_empty(&call.input);
                tool_block("tool_use", index, call, &input, identity)
            }
            Content::ServerToolUse(call) => {
                let input = object_or_empty(&call.input);
                tool_block("server_tool_use", index, call, &input, identity)
            }
            Content::Whole { block } => block.clone(),
        })
        .collect();
    let mut usage = usage_json(identity.usage);
    add_server_tools(&mut usage, message);
    let mut body = json!({
        "id": identity.message_id,
        "type": "message",
        "role": "assistant",
        "model": identity.model,
        "content": content,
        "stop_reason": stop_reason(message),
        "stop_sequence": message.stop_sequence,
        "usage": usage,
    });
    if let (Some(results), Some(body)) = (verdicts(message, identity), body.as_object_mut()) {
        body.insert("safeguard_results".to_owned(), results);
    }
    body
}

fn usage_json(usage: Usage) -> Map<String, Value> {
    let Usage {
        input_tokens,
        cache_creation_input_tokens,
        cache_read_input_tokens,
        output_tokens,
    } = usage;
    Map::from_iter([
        ("input_tokens".to_owned(), json!(input_tokens)),
        (
            "cache_creation_input_tokens".to_owned(),
            json!(cache_creation_input_tokens),
        ),
        (
            "cache_read_input_tokens".to_owned(),
            json!(cache_read_input_tokens),
        ),
        ("output_tokens".to_owned(), json!(output_tokens)),
    ])
}

fn add_server_tools(usage: &mut Map<String, Value>, message: &Message) {
    let searches = message
        .blocks
        .iter()
        .filter(|block| {
            matches!(&block.content, Content::ServerToolUse(call) if call.name == "web_search")
        })
        .count();
    if searches > 0 {
        usage.insert(
            "server_tool_use".to_owned(),
            json!({ "web_search_requests": searches }),
        );
    }
}

fn verdicts(message: &Message, identity: &Identity) -> Option<Value> {
    let per_call = |verdict: Value| {
        let calls: Map<String, Value> = message
            .blocks
            .iter()
            .enumerate()
            .filter_map(|(index, block)| match &block.content {
                Content::ToolUse(call) => Some((identity.tool_id(index, call), verdict.clone())),
                Content::Text { .. }
                | Content::Thinking { .. }
                | Content::ServerToolUse(_)
                | Content::Whole { .. } => None,
            })
            .collect();
        json!({ "type": "available", "tool_uses": calls })
    };
    let not_flagged = json!({ "type": "evaluated", "outcome": "not_flagged" });
    let status = match &message.verdicts {
        Verdicts::AsAsked if !identity.verdicts_asked => return None,
        Verdicts::AsAsked | Verdicts::NotFlagged => per_call(not_flagged),
        Verdicts::Flagged { explanation } => per_call(
            json!({ "type": "evaluated", "outcome": "flagged", "explanation": explanation }),
        ),
        Verdicts::Skipped => per_call(json!({ "type": "skipped" })),
        Verdicts::Unavailable { reason } => json!({ "type": "unavailable", "reason": reason }),
        Verdicts::CallsUnavailable { reason } => {
            per_call(json!({ "type": "unavailable", "reason": reason }))
        }
        Verdicts::Unsupported => json!({ "type": "unsupported" }),
        Verdicts::Absent => return None,
        Verdicts::Given { results } => return Some(results.clone()),
    };
    Some(json!([{ "type": "dangerous_tool_use", "status": status }]))
}
