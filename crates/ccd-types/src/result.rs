//! The result object that the command prints last.

use serde::{Deserialize, Serialize};

use crate::{Error, Json, ToolRun, TurnId, TurnStatus, Usage};

/// A permission that was denied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionDenial {
    /// Tool name.
    pub tool_name: String,
    /// Claude's id of the call, when known.
    pub tool_use_id: Option<String>,
    /// Tool input.
    pub tool_input: Json,
}

/// What `--output-format json` prints, and the last line of `events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Always `result`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `success`, or `error_<status>`.
    pub subtype: String,
    /// Whether the turn did not complete.
    pub is_error: bool,
    /// How the turn ended.
    pub status: TurnStatus,
    /// The final answer, or the text so far.
    pub result: String,
    /// Claude's session id.
    pub session_id: Option<String>,
    /// Our session id.
    pub ccd_session: Option<String>,
    /// The turn.
    pub turn: Option<TurnId>,
    /// Turns that ran in the session.
    pub num_turns: u32,
    /// Milliseconds from acceptance to the end.
    pub duration_ms: u64,
    /// Permissions that were denied.
    pub permission_denials: Vec<PermissionDenial>,
    /// Tool runs.
    pub tools: Vec<ToolRun>,
    /// Token counts.
    pub usage: Option<Usage>,
    /// Cost in US dollars, when a source names it.
    pub total_cost_usd: Option<f64>,
    /// Why it did not complete.
    pub error: Option<Error>,
}
