//! A reply as a flat list of actions, before anything is written.
//!
//! What lives here: the order of events and where steps fall. What never does: sockets and clocks.

use super::reply::{Message, Point, Reply, ReplyBody, Step};
use super::sse::{self, Identity};
use serde_json::Value;

/// One thing the player does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// Runs a scripted step.
    Step(Step),
    /// Writes status line and headers.
    Headers(Head),
    /// Writes one event of the stream.
    Event { name: &'static str, data: Value },
    /// Waits, unless the client goes.
    Gap { ms: u64 },
    /// Writes (a part of) a body that is not a stream.
    Body(Vec<u8>),
}

/// The head of a response.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) content_type: String,
    /// The body's length; `None` = a chunked stream.
    pub(super) length: Option<usize>,
}

/// The status of a reply that is no message.
pub(super) fn status(reply: &Reply) -> Option<u16> {
    match &reply.body {
        ReplyBody::Message(_) => None,
        ReplyBody::Error(error) => Some(error.status),
        ReplyBody::Raw(raw) => Some(raw.status),
    }
}

/// The index of the first step at a point that the reply never reaches.
pub(super) fn unreachable_step(reply: &Reply) -> Option<usize> {
    let reached = match &reply.body {
        ReplyBody::Message(message) => points(message),
        ReplyBody::Error(_) | ReplyBody::Raw(_) => {
            vec![Point::BeforeHeaders, Point::AfterHeaders]
        }
    };
    reply
        .steps
        .iter()
        .position(|placed| !reached.contains(&placed.at))
}

/// All points of a message, in order.
fn points(message: &Message) -> Vec<Point> {
    let mut points = vec![Point::BeforeHeaders, Point::AfterHeaders, Point::AfterStart];
    for (block, content) in message.blocks.iter().enumerate() {
        points.push(Point::BeforeBlock { block });
        for deltas in 0..=sse::deltas(&content.content).len() {
            points.push(Point::InBlock { block, deltas });
        }
        points.push(Point::AfterBlock { block });
    }
    points.extend([Point::BeforeEnd, Point::BeforeStop]);
    points
}

/// The actions of a reply to a request that asks for a stream.
pub(super) fn stream(reply: &Reply, message: &Message, identity: &Identity) -> Vec<Action> {
    let mut plan = Plan::new(reply);
    plan.at(Point::BeforeHeaders);
    plan.push(Action::Headers(Head {
        status: 200,
        content_type: "text/event-stream; charset=utf-8".to_owned(),
        length: None,
    }));
    plan.at(Point::AfterHeaders);
    plan.event("message_start", sse::message_start(message, identity));
    plan.event("ping", sse::ping());
    plan.at(Point::AfterStart);
    for (index, block) in message.blocks.iter().enumerate() {
        plan.at(Point::BeforeBlock { block: index });
        plan.event(
            "content_block_start",
            sse::block_start(index, &block.content, identity),
        );
        plan.at(Point::InBlock {
            block: index,
            deltas: 0,
        });
        for (before, delta) in sse::deltas(&block.content).iter().enumerate() {
            if block.gap_ms > 0 {
                plan.push(Action::Gap { ms: block.gap_ms });
            }
            plan.event("content_block_delta", sse::block_delta(index, delta));
            plan.at(Point::InBlock {
                block: index,
                deltas: before + 1,
            });
        }
        plan.event("content_block_stop", sse::block_stop(index));
        plan.at(Point::AfterBlock { block: index });
    }
    plan.at(Point::BeforeEnd);
    plan.event("message_delta", sse::message_delta(message, identity));
    plan.at(Point::BeforeStop);
    plan.event("message_stop", sse::message_stop());
    plan.actions
}

/// The actions of a reply to a request that asks for one JSON body.
///
/// Steps inside the message run after the first half of the body. An `error` event becomes the HTTP error it stands
/// for, since there is no stream to carry it.
pub(super) fn single(
    reply: &Reply,
    message: &Message,
    identity: &Identity,
    request_id: &str,
) -> Vec<Action> {
    let inner: Vec<Point> = points(message)
        .into_iter()
        .filter(|point| !matches!(point, Point::BeforeHeaders | Point::AfterHeaders))
        .collect();
    let error = reply.steps.iter().find_map(|placed| match &placed.step {
        Step::SseError { kind, message } => Some((kind, message)),
        _ => None,
    });
    if let Some((kind, text)) = error {
        let status = if kind == "overloaded_error" { 529 } else { 500 };
        let body = sse::error_body(kind, text, request_id).to_string();
        return with_body(reply, status, "application/json", body.as_bytes(), &[]);
    }
    let body = sse::whole_message(message, identity).to_string();
    with_body(reply, 200, "application/json", body.as_bytes(), &inner)
}

/// The actions of an error or a raw response.
pub(super) fn with_body(
    reply: &Reply,
    status: u16,
    content_type: &str,
    body: &[u8],
    inner: &[Point],
) -> Vec<Action> {
    let mut plan = Plan::new(reply);
    plan.at(Point::BeforeHeaders);
    plan.push(Action::Headers(Head {
        status,
        content_type: content_type.to_owned(),
        length: Some(body.len()),
    }));
    plan.at(Point::AfterHeaders);
    let (first, second) = body.split_at(body.len() / 2);
    plan.push(Action::Body(first.to_vec()));
    for point in inner {
        plan.at(*point);
    }
    plan.push(Action::Body(second.to_vec()));
    plan.actions
}

struct Plan<'a> {
    reply: &'a Reply,
    actions: Vec<Action>,
}

impl<'a> Plan<'a> {
    fn new(reply: &'a Reply) -> Self {
        Self {
            reply,
            actions: Vec::new(),
        }
    }

    fn at(&mut self, point: Point) {
        let steps = self
            .reply
            .steps
            .iter()
            .filter(|placed| placed.at == point)
            .map(|placed| Action::Step(placed.step.clone()));
        self.actions.extend(steps);
    }

    fn push(&mut self, action: Action) {
        self.actions.push(action);
    }

    fn event(&mut self, name: &'static str, data: Value) {
        self.push(Action::Event { name, data });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::reply::{Block, Usage};
    use serde_json::json;

    fn identity() -> Identity {
        Identity {
            message_id: "msg_1".to_owned(),
            model: "claude-opus-5-5".to_owned(),
            usage: Usage::default(),
            verdicts_asked: true,
            tool_ids: vec!["toolu_0".to_owned(), "toolu_1".to_owned()],
        }
    }

    fn stream_of(reply: &Reply) -> Vec<Action> {
        match &reply.body {
            ReplyBody::Message(message) => stream(reply, message, &identity()),
            ReplyBody::Error(_) | ReplyBody::Raw(_) => Vec::new(),
        }
    }

    #[test]
    fn a_text_and_a_tool_call_come_in_the_order_of_the_api() {
        let reply = Reply::blocks([
            Block::text("Using it."),
            Block::tool("Bash", json!({"a":1})),
        ]);
        let names: Vec<&str> = stream_of(&reply)
            .iter()
            .filter_map(|action| match action {
                Action::Event { name, .. } => Some(*name),
                _ => None,
            })
            .collect();
        assert_eq!(
            names,
            [
                "message_start",
                "ping",
                "content_block_start",
                "content_block_delta",
                "content_block_delta",
                "content_block_stop",
                "content_block_start",
                "content_block_delta",
                "content_block_stop",
                "message_delta",
                "message_stop"
            ]
        );
        let end = stream_of(&reply)
            .into_iter()
            .find_map(|action| match action {
                Action::Event {
                    name: "message_delta",
                    data,
                } => Some(data),
                _ => None,
            });
        assert_eq!(
            end,
            Some(json!({
                "type": "message_delta",
                "delta": {
                    "stop_reason": "tool_use",
                    "stop_sequence": null,
                    "safeguard_results": [{
                        "type": "dangerous_tool_use",
                        "status": { "type": "available", "tool_uses": {
                            "toolu_1": { "type": "evaluated", "outcome": "not_flagged" } } }
                    }]
                },
                "usage": { "output_tokens": 20 }
            }))
        );
    }

    #[test]
    fn a_step_falls_exactly_after_the_delta_it_names() {
        let reply = Reply::text("one two three").at(
            Point::InBlock {
                block: 0,
                deltas: 2,
            },
            Step::Reset,
        );
        let actions = stream_of(&reply);
        let at = actions
            .iter()
            .position(|action| *action == Action::Step(Step::Reset));
        let before = actions
            .iter()
            .take(at.unwrap_or(0))
            .filter(|action| {
                matches!(action, Action::Event { name, .. } if *name == "content_block_delta")
            })
            .count();
        assert_eq!(before, 2);
    }

    #[test]
    fn a_single_body_holds_what_the_stream_would_have_said() {
        let reply = Reply::blocks([
            Block::thinking("hm hm"),
            Block::tool("Bash", json!({"a":1})),
        ]);
        let ReplyBody::Message(message) = &reply.body else {
            unreachable!("blocks make a message")
        };
        let mut body = Vec::new();
        for action in single(&reply, message, &identity(), "req_1") {
            if let Action::Body(part) = action {
                body.extend(part);
            }
        }
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        assert_eq!(
            body["content"],
            json!([
                { "type": "thinking", "thinking": "hm hm", "signature": "c2lnbmF0dXJl" },
                { "type": "tool_use", "id": "toolu_1", "name": "Bash", "input": { "a": 1 } }
            ])
        );
        assert_eq!(body["stop_reason"], "tool_use");
    }
}
