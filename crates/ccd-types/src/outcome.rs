//! How a turn ended.

use serde::{Deserialize, Serialize};

use crate::{Error, Json, ToolId, TurnId};

/// How a turn ended, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnStatus {
    /// Accepted, held until the session is idle.
    Queued,
    /// Being delivered.
    Submitting,
    /// The model works on it.
    Running,
    /// About to end; another Stop hook may still continue it.
    Stopping,
    /// Ended by itself.
    Completed,
    /// Ended by an API error.
    Failed,
    /// Interrupted, with evidence.
    Interrupted,
    /// Interrupted before any output; the text came back.
    Withdrawn,
    /// Never reached the model.
    NotSubmitted,
    /// The process or the session ended under it.
    Aborted,
    /// Evidence ran out.
    Unknown,
}

/// Token counts, summed over the turn's model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Tokens written to the prompt cache.
    pub cache_creation_input_tokens: u64,
    /// Tokens read from the prompt cache.
    pub cache_read_input_tokens: u64,
}

impl Usage {
    /// Counts from their parts.
    #[must_use]
    pub const fn new(input: u64, output: u64, cache_creation: u64, cache_read: u64) -> Self {
        Self {
            input_tokens: input,
            output_tokens: output,
            cache_creation_input_tokens: cache_creation,
            cache_read_input_tokens: cache_read,
        }
    }
}

/// What was changed in a prompt before delivery, because Claude would have changed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NormalizationChange {
    /// Trailing white space and newlines were removed.
    TrailingSpace,
    /// Line endings were made `\n`.
    LineEndings,
    /// Control characters were removed.
    ControlCharacters,
    /// Zero-width, tag or byte-order characters were removed.
    InvisibleCharacters,
    /// Bidirectional marks were removed.
    BidiMarks,
    /// A leading space was added so that the text is not taken as a command.
    AsText,
}

/// How a tool run ended or stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolRunStatus {
    /// Known, not running.
    Proposed,
    /// About to run or to ask.
    Pending,
    /// Waits for a permission.
    AwaitingPermission,
    /// Running.
    Running,
    /// Started in the background.
    Launched,
    /// Ended well.
    Succeeded,
    /// Ended with an error.
    Failed,
    /// Not run: denied.
    Denied,
    /// Stopped by an interrupt.
    Interrupted,
    /// Evidence ran out.
    Unknown,
}

/// One tool run of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolRun {
    /// Key.
    pub id: ToolId,
    /// Claude's id of the call.
    pub tool_use_id: String,
    /// Tool name.
    pub name: String,
    /// Tool input.
    pub input: Json,
    /// Status.
    pub status: ToolRunStatus,
    /// Result text, shortened to 2 KiB.
    pub result: Option<String>,
    /// Run time in milliseconds, as Claude measured it.
    pub duration_ms: Option<u64>,
}

impl ToolRun {
    /// A run with its identity; the optional parts start empty.
    #[must_use]
    pub fn new(
        id: ToolId,
        tool_use_id: String,
        name: String,
        input: Json,
        status: ToolRunStatus,
    ) -> Self {
        Self {
            id,
            tool_use_id,
            name,
            input,
            status,
            result: None,
            duration_ms: None,
        }
    }
}

/// How a turn ended, with what is known about it. Waiting for it never fails: failures are outcomes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TurnOutcome {
    /// The turn.
    pub turn: TurnId,
    /// How it ended.
    pub status: TurnStatus,
    /// The final answer, or the text so far.
    pub text: String,
    /// Tool runs in order of appearance.
    pub tools: Vec<ToolRun>,
    /// Token counts, once the transcript gave them.
    pub usage: Option<Usage>,
    /// The model that answered.
    pub model: Option<String>,
    /// Prompt text that came back to the composer and was cleared.
    pub returned: Option<String>,
    /// Why it did not complete.
    pub error: Option<Error>,
    /// Milliseconds from acceptance to the end.
    pub duration_ms: u64,
}

impl TurnOutcome {
    /// An outcome with its identity; the optional parts start empty.
    #[must_use]
    pub fn new(turn: TurnId, status: TurnStatus) -> Self {
        Self {
            turn,
            status,
            text: String::new(),
            tools: Vec::new(),
            usage: None,
            model: None,
            returned: None,
            error: None,
            duration_ms: 0,
        }
    }

    /// Whether the turn ended by itself.
    #[must_use]
    pub fn completed(&self) -> bool {
        self.status == TurnStatus::Completed
    }
}
