//! The fake Anthropic service: a scripted Messages API on loopback, with faults, gates and a log of all it saw.
//!
//! What lives here: the way from a connected stream to a scripted reply. What never does: Claude Code, tmux, files.
//!
//! The parts, from the wire inwards: the listener accepts and hands a transport to the connection
//! loop; the connection loop parses HTTP and asks the router; the router knows hosts, methods and paths; Messages
//! requests are classified, a reply is picked from the [`Scenario`], planned into a flat list of actions, and played.
//! Nothing behind the transport knows how the bytes came in, so that a TLS listener can feed the same router.

mod build;
mod canned;
mod classify;
mod clock;
mod connection;
mod endpoints;
mod handle;
mod http;
mod limits;
mod listener;
mod log;
mod picker;
mod plan;
mod play;
mod reply;
mod router;
mod scenario;
mod shared;
mod sse;
mod transport;

pub use classify::{RequestClass, SideKind, ToolResult};
pub use clock::Stamp;
pub use handle::{Service, ServiceError, StopReport, WaitError};
pub use limits::{LimitClaim, LimitStatus, LimitWindow, RateLimits};
pub use log::{
    ClientEnd, ConnectionRecord, Disconnect, Exchange, Log, Mark, Outcome, Picked, Queue, Request,
};
pub use reply::{
    Block, Content, Drip, HttpError, Message, Placed, Point, RawResponse, Reply, ReplyBody, Step,
    StopReason, ToolCall, Usage, Verdicts,
};
pub use scenario::{EndpointReply, Matcher, Scenario, ScenarioError, Scripted};
