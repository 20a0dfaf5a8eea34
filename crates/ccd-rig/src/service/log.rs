//! Everything a service saw and did, as data.
//!
//! What lives here: the records and the questions tests ask of them. What never does: the writing of replies.

use super::classify::{self, RequestClass, SideKind, ToolResult};
use super::clock::Stamp;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// A request, as read off the wire.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its place among all requests of the service, from 0.
    pub position: usize,
    /// The connection it came on.
    pub connection: u64,
    /// Its place on that connection, from 0.
    pub position_on_connection: usize,
    /// How many requests of the same class, session and messages came before it: 0 = a first attempt.
    pub attempt: usize,
    /// The moment its last body byte was read.
    pub received: Stamp,
    /// The method.
    pub method: String,
    /// The host it is for (header `host`, or the authority of an absolute target), without the port.
    pub host: String,
    /// The path with its query.
    pub path: String,
    /// The headers, names in lower case, in order.
    pub headers: Vec<(String, String)>,
    /// The parsed JSON body; `null` where there was none, it was not JSON, or it is older than the log keeps.
    pub body: Value,
    /// The body's length in bytes.
    pub body_bytes: usize,
    /// What it is for.
    pub class: RequestClass,
    /// What humans wrote in its conversation, oldest first; kept when the body is not.
    pub human_texts: Vec<String>,
    /// Identifies class, session and messages; equal for retries of one request.
    pub(super) sameness: u64,
}

impl Request {
    /// A header's value by its lower-case name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    /// The path without its query.
    #[must_use]
    pub fn route(&self) -> &str {
        self.path
            .split_once('?')
            .map_or(self.path.as_str(), |(route, _)| route)
    }

    /// Claude Code's session id.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.header("x-claude-code-session-id")
    }

    /// What a human wrote last.
    #[must_use]
    pub fn last_user_text(&self) -> Option<&str> {
        self.human_texts.last().map(String::as_str)
    }

    /// The tool results after the last assistant message.
    #[must_use]
    pub fn tool_results(&self) -> Vec<ToolResult> {
        classify::tool_results(&self.body)
    }

    /// The request asks for a stream.
    #[must_use]
    pub fn wants_stream(&self) -> bool {
        self.body["stream"] == true
    }
}

/// The queues of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Main replies.
    Main,
    /// Subagent replies.
    Subagent,
    /// Replies to side requests of a kind.
    Side(SideKind),
}

/// Where a reply came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picked {
    /// A scripted reply.
    Scripted {
        /// The queue.
        queue: Queue,
        /// Its index in the queue.
        index: usize,
    },
    /// The test's handler.
    Handler,
    /// The queue had nothing; the scenario's default.
    Otherwise,
    /// The canned reply of a side request's kind.
    Canned,
    /// The endpoint table.
    Endpoint,
}

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It goes on.
    Open,
    /// All was written.
    Complete,
    /// The script reset the connection.
    Reset,
    /// The script ended the body early.
    Eof,
    /// The script closed the connection in the middle of the body.
    Cut,
    /// The script sent an `error` event.
    SseError,
    /// The client went.
    ClientGone,
}

/// The answer to a request.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The request.
    pub request: Arc<Request>,
    /// Where the reply came from.
    pub picked: Picked,
    /// The HTTP status, once headers are written.
    pub status: Option<u16>,
    /// The `request-id` header.
    pub request_id: String,
    /// The message id, for messages.
    pub message_id: Option<String>,
    /// The moment just before the first byte was written.
    pub first_byte: Option<Stamp>,
    /// The moment just before the latest event (of a complete stream: `message_stop`) was written.
    pub last_event: Option<Stamp>,
    /// The moment after the last byte was written, or the connection ended.
    pub finished: Option<Stamp>,
    /// Events written.
    pub events: usize,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a client left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientEnd {
    /// It closed its side.
    Closed,
    /// It reset the connection.
    Reset,
    /// Writing to it failed.
    WriteFailed,
}

/// A client that left in the middle of an exchange.
#[derive(Debug, Clone)]
pub struct Disconnect {
    /// The position of the request.
    pub request: usize,
    /// The class of the request.
    pub class: RequestClass,
    /// The connection.
    pub connection: u64,
    /// When it was seen.
    pub at: Stamp,
    /// The time since the latest write, or since the request was read if nothing was written.
    pub after: Duration,
    /// Events written before.
    pub events: usize,
    /// How.
    pub how: ClientEnd,
}

/// A mark that a reply's step left, or the arrival at a gate.
#[derive(Debug, Clone)]
pub struct Mark {
    /// The name.
    pub name: String,
    /// The position of the request.
    pub request: usize,
    /// When.
    pub at: Stamp,
}

/// A connection.
#[derive(Debug, Clone)]
pub struct ConnectionRecord {
    /// Its number, from 1.
    pub id: u64,
    /// When it was accepted.
    pub opened: Stamp,
    /// When it ended; `None` while it is open.
    pub closed: Option<Stamp>,
    /// Requests read on it.
    pub requests: usize,
    /// A request on it could not be read (not HTTP, cut off, too large): why.
    pub fault: Option<String>,
}

/// The log of a service.
#[derive(Debug, Clone, Default)]
pub struct Log {
    /// Every request, in order of arrival.
    pub requests: Vec<Arc<Request>>,
    /// The answer to each request, same order and length.
    pub exchanges: Vec<Exchange>,
    /// Clients that left in mid-exchange.
    pub disconnects: Vec<Disconnect>,
    /// Marks and arrivals at gates.
    pub marks: Vec<Mark>,
    /// Connections.
    pub connections: Vec<ConnectionRecord>,
}

impl Log {
    /// The requests of a class, in order.
    #[must_use]
    pub fn of_class(&self, class: RequestClass) -> Vec<Arc<Request>> {
        self.requests
            .iter()
            .filter(|request| request.class == class)
            .cloned()
            .collect()
    }

    /// The main requests, in order.
    #[must_use]
    pub fn main_requests(&self) -> Vec<Arc<Request>> {
        self.of_class(RequestClass::Main)
    }

    /// The exchanges of a class, in order.
    #[must_use]
    pub fn exchanges_of(&self, class: RequestClass) -> Vec<Exchange> {
        self.exchanges
            .iter()
            .filter(|exchange| exchange.request.class == class)
            .cloned()
            .collect()
    }

    /// How often a mark was left.
    #[must_use]
    pub fn marked(&self, name: &str) -> usize {
        self.marks.iter().filter(|mark| mark.name == name).count()
    }

    /// Connections that are open.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.connections
            .iter()
            .filter(|connection| connection.closed.is_none())
            .count()
    }

    /// One line per request, for the message of a failed test.
    #[must_use]
    pub fn summary(&self) -> String {
        use std::fmt::Write;
        let mut out = String::new();
        let start = self.requests.first().map(|request| request.received);
        for exchange in &self.exchanges {
            let request = &exchange.request;
            let after = start.map_or(Duration::ZERO, |start| request.received.since(start));
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "#{} +{:?} conn {} {:?} {} {} attempt {} -> {:?} {:?} {:?} events {} text {:?}",
                request.position,
                after,
                request.connection,
                request.class,
                request.method,
                request.path,
                request.attempt,
                exchange.status,
                exchange.picked,
                exchange.outcome,
                exchange.events,
                request
                    .last_user_text()
                    .map(|text| text.chars().take(60).collect::<String>()),
            );
        }
        for mark in &self.marks {
            let _ = writeln!(out, "mark {} at #{}", mark.name, mark.request);
        }
        for gone in &self.disconnects {
            let _ = writeln!(
                out,
                "client left #{} {:?} {:?} after the latest write",
                gone.request, gone.how, gone.after
            );
        }
        out
    }
}
