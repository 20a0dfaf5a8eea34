//! The public vocabulary of claude-code-driver: ids, events, outcomes, state, permissions, error codes and exit codes.
//!
//! One vocabulary for both drives. Nothing here does anything; every type is data that serializes.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod error;
mod event;
mod exit;
mod ids;
mod outcome;
mod permission;
mod result;
mod state;

pub use error::{Category, Error, ErrorCode, ErrorDetails};
pub use event::{
    AlertKind, CompactionTrigger, Event, EventKind, PermissionAnswer, PermissionResolution,
    ToolResult, TurnOrigin,
};
pub use exit::ExitCode;
pub use ids::{AgentId, CallId, MessageId, PermissionId, ToolId, TurnId};
pub use outcome::{NormalizationChange, ToolRun, ToolRunStatus, TurnOutcome, TurnStatus, Usage};
pub use permission::{PermissionDecision, PermissionMode, PermissionRequest};
pub use result::{PermissionDenial, RunResult};
pub use state::{AgentStatus, CallPhase, ExitInfo, Lifecycle, PendingPermission, State, TurnState};

/// Any JSON value: tool inputs, tool results, permission updates.
pub type Json = serde_json::Value;
