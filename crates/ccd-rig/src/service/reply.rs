//! What a scripted reply is made of: blocks, steps placed at points, errors.
//!
//! What lives here: the vocabulary of replies, as data that can be written to a file. What never does: the wire form,
//! and the short ways to write a reply in code (see `build`).

use super::limits::RateLimits;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One answer to one `/v1/messages` request.
///
/// Steps (delays, gates, stalls, resets, …) are placed at points of the answer; steps at the same point run in the
/// order in which they were placed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// What is sent.
    pub body: ReplyBody,
    /// What happens on the way.
    #[serde(default)]
    pub steps: Vec<Placed>,
    /// The rate-limit headers of this reply; `None` = those of the scenario.
    #[serde(default)]
    pub limits: Option<RateLimits>,
    /// More response headers, sent as written.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Sends `connection: close` and closes the connection after the reply.
    #[serde(default)]
    pub close: bool,
}

/// The three kinds of answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReplyBody {
    /// A message: server-sent events, or one JSON body where the request did not ask for a stream.
    Message(Message),
    /// An API error with the API's own body.
    Error(HttpError),
    /// Anything else, byte for byte (a gateway's HTML page, broken JSON).
    Raw(RawResponse),
}

/// A model message.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Message {
    /// The message id; `None` = a new one.
    pub id: Option<String>,
    /// The model that is named in the answer; `None` = the one that was asked for.
    pub model: Option<String>,
    /// The content blocks, in order. May be empty.
    pub blocks: Vec<Block>,
    /// `None` = `tool_use` where a tool call is among the blocks, else `end_turn`.
    pub stop_reason: Option<StopReason>,
    /// `stop_sequence` of the answer; only with [`StopReason::StopSequence`].
    pub stop_sequence: Option<String>,
    /// Token counts; `None` = those of the scenario.
    pub usage: Option<Usage>,
    /// The auto-mode verdict in `message_delta`.
    pub verdicts: Verdicts,
    /// Writes the whole event stream in small pieces, across event boundaries.
    pub drip: Option<Drip>,
}

/// One content block with the pace of its deltas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// What the block holds.
    pub content: Content,
    /// Milliseconds before each delta.
    #[serde(default)]
    pub gap_ms: u64,
}

/// The kinds of content block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Text; each entry is one `text_delta`.
    Text {
        /// The deltas.
        deltas: Vec<String>,
    },
    /// Thinking; each entry is one `thinking_delta`, followed by one `signature_delta`.
    Thinking {
        /// The deltas.
        deltas: Vec<String>,
        /// The signature (base64 in real life; the client does not check it).
        signature: String,
    },
    /// A tool call; its input is streamed as `input_json_delta` pieces.
    ToolUse(ToolCall),
    /// A call of a server-side tool (`server_tool_use`), streamed the same way.
    ServerToolUse(ToolCall),
    /// A block that is complete in its start event (`web_search_tool_result`, or anything new).
    Whole {
        /// The block, as it stands in `content_block`.
        block: Value,
    },
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The call's id; `None` = a new one.
    #[serde(default)]
    pub id: Option<String>,
    /// The tool's name.
    pub name: String,
    /// The tool's input.
    #[serde(default)]
    pub input: Value,
    /// Characters of input JSON per delta; 0 = all in one.
    #[serde(default = "default_input_chunk")]
    pub chunk: usize,
}

pub(super) fn default_input_chunk() -> usize {
    16
}

/// Why a message ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model was done.
    EndTurn,
    /// The model waits for tool results.
    ToolUse,
    /// The output limit was hit.
    MaxTokens,
    /// A stop sequence was hit.
    StopSequence,
    /// The safeguards stopped the message.
    Refusal,
    /// A long turn was paused.
    PauseTurn,
    /// The context window is full.
    ModelContextWindowExceeded,
}

/// Token counts of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Uncached input tokens.
    pub input_tokens: u64,
    /// Tokens written to the cache.
    pub cache_creation_input_tokens: u64,
    /// Tokens read from the cache.
    pub cache_read_input_tokens: u64,
    /// Output tokens, reported in `message_delta`.
    pub output_tokens: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            input_tokens: 10,
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: 0,
            output_tokens: 20,
        }
    }
}

/// The server's verdict on the tool calls of a message (auto mode).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Verdicts {
    /// `not_flagged` for each call where the request asks for verdicts (`safeguards` in its body), else nothing.
    #[default]
    AsAsked,
    /// `not_flagged` for each call, asked for or not.
    NotFlagged,
    /// `flagged` for each call.
    Flagged {
        /// Why; may be empty.
        explanation: String,
    },
    /// `skipped` for each call.
    Skipped,
    /// The check as a whole had no answer. Reached by base URL, the client then asks its local classifier.
    Unavailable {
        /// Why: `error`, `disabled`.
        reason: String,
    },
    /// The check had no answer for each call. Reached by base URL, the client then asks its local classifier.
    CallsUnavailable {
        /// Why: `timeout`, `error`, `refused`, `input_too_long`, `truncated`.
        reason: String,
    },
    /// The check does not exist for this model.
    Unsupported,
    /// No `safeguard_results` at all.
    Absent,
    /// `safeguard_results` as given.
    Given {
        /// The array.
        results: Value,
    },
}

/// A stream written in small pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drip {
    /// Bytes of event stream per piece; 0 counts as 1.
    pub bytes: usize,
    /// Milliseconds before each piece.
    pub gap_ms: u64,
}

/// An API error before any stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpError {
    /// The HTTP status.
    pub status: u16,
    /// `error.type` of the body.
    pub kind: String,
    /// `error.message` of the body.
    pub message: String,
}

/// A response that is not the API's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawResponse {
    /// The HTTP status.
    pub status: u16,
    /// Its `content-type`.
    pub content_type: String,
    /// Its body.
    pub body: String,
}

/// A step at a point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placed {
    /// Where.
    pub at: Point,
    /// What.
    pub step: Step,
}

/// A point of a reply.
///
/// Errors and raw responses know only `before_headers` and `after_headers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "point", rename_all = "snake_case")]
pub enum Point {
    /// The request is read, nothing is written.
    BeforeHeaders,
    /// Status line and headers are written, no body.
    AfterHeaders,
    /// `message_start` and the first ping are written.
    AfterStart,
    /// Before `content_block_start` of a block.
    BeforeBlock {
        /// The block's index.
        block: usize,
    },
    /// Inside a block, after its first `deltas` deltas (0 = right after `content_block_start`).
    InBlock {
        /// The block's index.
        block: usize,
        /// How many of its deltas are written.
        deltas: usize,
    },
    /// After `content_block_stop` of a block.
    AfterBlock {
        /// The block's index.
        block: usize,
    },
    /// All blocks are written, `message_delta` is not.
    BeforeEnd,
    /// `message_delta` is written, `message_stop` is not.
    BeforeStop,
}

/// Something that happens at a point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// Waits.
    Delay {
        /// Milliseconds.
        ms: u64,
    },
    /// Waits until the test releases the name. Its arrival is marked under the same name.
    Gate {
        /// The gate's name.
        name: String,
    },
    /// Writes a mark into the log, so that a test can wait for this point.
    Mark {
        /// The mark's name.
        name: String,
    },
    /// Sends pings (nothing in a reply that is not a stream).
    Pings {
        /// How many; `None` = until the client goes.
        count: Option<u32>,
        /// Milliseconds before each.
        gap_ms: u64,
    },
    /// Says nothing more until the client goes.
    Stall,
    /// Closes the connection with a TCP reset.
    Reset,
    /// Ends the response as HTTP demands (last chunk) and closes the connection: the body is complete, the message is
    /// not. Before the headers it is the same as [`Step::Cut`].
    Eof,
    /// Closes the connection with a FIN in the middle of the HTTP body.
    Cut,
    /// Sends an `error` event and ends the response.
    SseError {
        /// `error.type`.
        kind: String,
        /// `error.message`.
        message: String,
    },
}
