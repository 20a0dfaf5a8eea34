//! The short ways to write replies, blocks and steps in code.
//!
//! What lives here: constructors and chainable setters of the reply vocabulary. What never does: new vocabulary.

use super::limits::RateLimits;
use super::reply::{
    Block, Content, Drip, HttpError, Message, Placed, Point, Reply, ReplyBody, Step, StopReason,
    ToolCall, Usage, Verdicts, default_input_chunk,
};
use serde_json::Value;

impl Reply {
    /// A reply of the given body and nothing else.
    #[must_use]
    pub fn of(body: ReplyBody) -> Self {
        Self {
            body,
            steps: Vec::new(),
            limits: None,
            headers: Vec::new(),
            close: false,
        }
    }

    /// A message of the given blocks.
    #[must_use]
    pub fn blocks(blocks: impl IntoIterator<Item = Block>) -> Self {
        Self::of(ReplyBody::Message(Message {
            blocks: blocks.into_iter().collect(),
            ..Message::default()
        }))
    }

    /// A message of one text block, a delta per word.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::blocks([Block::text(text)])
    }

    /// A message of one tool call.
    #[must_use]
    pub fn tool(name: &str, input: Value) -> Self {
        Self::blocks([Block::tool(name, input)])
    }

    /// An API error.
    #[must_use]
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        Self::of(ReplyBody::Error(HttpError {
            status,
            kind: kind.to_owned(),
            message: message.to_owned(),
        }))
    }

    /// HTTP 529 `overloaded_error`.
    #[must_use]
    pub fn overloaded() -> Self {
        Self::error(529, "overloaded_error", "Overloaded")
    }

    /// HTTP 500 `api_error`.
    #[must_use]
    pub fn server_error() -> Self {
        Self::error(500, "api_error", "Internal server error")
    }

    /// HTTP 429 with the headers of a usage limit (not retried by the client).
    #[must_use]
    pub fn usage_limit(limits: RateLimits) -> Self {
        Self::error(
            429,
            "rate_limit_error",
            "This request would exceed your account's rate limit. Please try again later.",
        )
        .limits(limits)
    }

    /// HTTP 429 without those headers (retried by the client like a 500).
    #[must_use]
    pub fn rate_limited() -> Self {
        Self::error(429, "rate_limit_error", "Rate limited").limits(RateLimits::none())
    }

    /// HTTP 401 `authentication_error`.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::error(401, "authentication_error", "Invalid bearer token")
    }

    /// Places a step.
    #[must_use]
    pub fn at(mut self, at: Point, step: Step) -> Self {
        self.steps.push(Placed { at, step });
        self
    }

    /// Waits before the headers.
    #[must_use]
    pub fn delay(self, ms: u64) -> Self {
        self.at(Point::BeforeHeaders, Step::Delay { ms })
    }

    /// Waits for a gate before the headers.
    #[must_use]
    pub fn gate(self, name: &str) -> Self {
        self.at(Point::BeforeHeaders, Step::gate(name))
    }

    /// Adds a response header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the rate-limit headers of this reply.
    #[must_use]
    pub fn limits(mut self, limits: RateLimits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Closes the connection after this reply.
    #[must_use]
    pub fn closing(mut self) -> Self {
        self.close = true;
        self
    }

    /// Changes the message; nothing happens to an error or a raw response.
    #[must_use]
    pub fn message(mut self, change: impl FnOnce(&mut Message)) -> Self {
        if let ReplyBody::Message(message) = &mut self.body {
            change(message);
        }
        self
    }

    /// Sets the pace of every block.
    #[must_use]
    pub fn gap(self, ms: u64) -> Self {
        self.message(|message| {
            for block in &mut message.blocks {
                block.gap_ms = ms;
            }
        })
    }

    /// Sets the stop reason.
    #[must_use]
    pub fn stop(self, reason: StopReason) -> Self {
        self.message(|message| message.stop_reason = Some(reason))
    }

    /// Sets the token counts.
    #[must_use]
    pub fn usage(self, usage: Usage) -> Self {
        self.message(|message| message.usage = Some(usage))
    }

    /// Sets the auto-mode verdict.
    #[must_use]
    pub fn verdicts(self, verdicts: Verdicts) -> Self {
        self.message(|message| message.verdicts = verdicts)
    }

    /// Writes the stream in small pieces.
    #[must_use]
    pub fn drip(self, bytes: usize, gap_ms: u64) -> Self {
        self.message(|message| message.drip = Some(Drip { bytes, gap_ms }))
    }
}

impl Step {
    /// A gate of the given name.
    #[must_use]
    pub fn gate(name: &str) -> Self {
        Self::Gate {
            name: name.to_owned(),
        }
    }

    /// A mark of the given name.
    #[must_use]
    pub fn mark(name: &str) -> Self {
        Self::Mark {
            name: name.to_owned(),
        }
    }

    /// An `error` event.
    #[must_use]
    pub fn sse_error(kind: &str, message: &str) -> Self {
        Self::SseError {
            kind: kind.to_owned(),
            message: message.to_owned(),
        }
    }
}

impl Block {
    fn of(content: Content) -> Self {
        Self { content, gap_ms: 0 }
    }

    /// A text block, a delta per word.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::of(Content::Text {
            deltas: words(text),
        })
    }

    /// A text block with the given deltas.
    #[must_use]
    pub fn text_deltas<S: Into<String>>(deltas: impl IntoIterator<Item = S>) -> Self {
        Self::of(Content::Text {
            deltas: deltas.into_iter().map(Into::into).collect(),
        })
    }

    /// A thinking block, a delta per word, with a signature.
    #[must_use]
    pub fn thinking(text: &str) -> Self {
        Self::of(Content::Thinking {
            deltas: words(text),
            signature: "c2lnbmF0dXJl".to_owned(),
        })
    }

    /// A tool call with a new id.
    #[must_use]
    pub fn tool(name: &str, input: Value) -> Self {
        Self::of(Content::ToolUse(ToolCall {
            id: None,
            name: name.to_owned(),
            input,
            chunk: default_input_chunk(),
        }))
    }

    /// A tool call with the given id.
    #[must_use]
    pub fn tool_with_id(id: &str, name: &str, input: Value) -> Self {
        Self::of(Content::ToolUse(ToolCall {
            id: Some(id.to_owned()),
            name: name.to_owned(),
            input,
            chunk: default_input_chunk(),
        }))
    }

    /// A `Bash` call.
    #[must_use]
    pub fn bash(command: &str) -> Self {
        Self::tool(
            "Bash",
            serde_json::json!({ "command": command, "description": "Run a command" }),
        )
    }

    /// Sets the pace.
    #[must_use]
    pub fn gap(mut self, ms: u64) -> Self {
        self.gap_ms = ms;
        self
    }
}

/// Splits a text after each run of white space; the pieces put together are the text.
fn words(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let mut in_space = false;
    for character in text.chars() {
        if in_space && !character.is_whitespace() {
            pieces.push(std::mem::take(&mut piece));
        }
        in_space = character.is_whitespace();
        piece.push(character);
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_words_of_a_text_put_together_are_the_text() {
        for text in ["", "one", " lead", "two  words\n\nand more ", "é\u{3000}ü"] {
            assert_eq!(words(text).concat(), text);
        }
        assert_eq!(words("a b c"), ["a ", "b ", "c"]);
    }

    #[test]
    fn a_reply_survives_the_way_through_a_file() {
        let reply = Reply::blocks([
            Block::thinking("let me see"),
            Block::bash("true").gap(5),
            Block::tool_with_id("toolu_1", "Read", serde_json::json!({"file_path": "/x"})),
        ])
        .at(
            Point::InBlock {
                block: 1,
                deltas: 2,
            },
            Step::gate("g"),
        )
        .at(Point::BeforeHeaders, Step::Reset)
        .limits(RateLimits::allowed())
        .verdicts(Verdicts::Flagged {
            explanation: "no".to_owned(),
        })
        .drip(40, 1);
        let text = serde_json::to_string(&reply).unwrap();
        assert_eq!(serde_json::from_str::<Reply>(&text).unwrap(), reply);
    }
}
