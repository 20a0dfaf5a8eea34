//! The status lattices of every entity, and the derived agent status.

use alloc::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::lattice::Lattice;

/// Life of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// Accepted, held on our side until the session is idle.
    Queued,
    /// Being delivered into the composer.
    Submitting,
    /// The exact text was acknowledged and the model works on it.
    Running,
    /// A Stop hook arrived, but another Stop hook may still block it.
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

impl Lattice for TurnStatus {
    const MOVES: &'static [(&'static str, Self, Self)] = &[
        ("T-1", Self::Queued, Self::Submitting),
        ("T-2", Self::Submitting, Self::Running),
        ("T-3", Self::Queued, Self::Running),
        ("T-4", Self::Running, Self::Stopping),
        ("T-5", Self::Stopping, Self::Running),
        ("T-6", Self::Submitting, Self::Queued),
    ];
    const TERMINAL: &'static [Self] = &[
        Self::Completed,
        Self::Failed,
        Self::Interrupted,
        Self::Withdrawn,
        Self::NotSubmitted,
        Self::Aborted,
        Self::Unknown,
    ];
}

/// Life of a tool run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// Seen in the transcript only.
    Proposed,
    /// PreToolUse seen: about to run or to ask.
    Pending,
    /// A permission request is bound to it.
    AwaitingPermission,
    /// Allowed and running.
    Running,
    /// Started in the background; the result comes later.
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

impl Lattice for ToolStatus {
    const MOVES: &'static [(&'static str, Self, Self)] = &[
        ("U-1", Self::Proposed, Self::Pending),
        ("U-2", Self::Pending, Self::AwaitingPermission),
        ("U-3", Self::Pending, Self::Running),
        ("U-4", Self::AwaitingPermission, Self::Running),
        ("U-5", Self::Running, Self::Launched),
        ("U-6", Self::Pending, Self::Launched),
        ("U-7", Self::AwaitingPermission, Self::Launched),
        ("U-8", Self::Proposed, Self::AwaitingPermission),
        ("U-9", Self::Proposed, Self::Running),
    ];
    const TERMINAL: &'static [Self] = &[
        Self::Succeeded,
        Self::Failed,
        Self::Denied,
        Self::Interrupted,
        Self::Unknown,
    ];
}

/// Life of a subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentRunStatus {
    /// Working.
    Running,
    /// Ended, reported by a hook or a notification.
    Stopped,
    /// Evidence ran out.
    Unknown,
}

impl Lattice for AgentRunStatus {
    const MOVES: &'static [(&'static str, Self, Self)] = &[];
    const TERMINAL: &'static [Self] = &[Self::Stopped, Self::Unknown];
}

/// Life of a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionStatus {
    /// Waiting for an answer.
    Pending,
    /// Our answer went out; its effect is not seen yet.
    Answered,
    /// Only the dialog is known, or the answer had no visible effect.
    DialogOnly,
    /// The effect of the answer was seen.
    Resolved,
    /// The request went away without our answer.
    Abandoned,
    /// Evidence ran out.
    Unknown,
}

impl Lattice for PermissionStatus {
    const MOVES: &'static [(&'static str, Self, Self)] = &[
        ("P-1", Self::Pending, Self::Answered),
        ("P-2", Self::Pending, Self::DialogOnly),
        ("P-3", Self::Answered, Self::DialogOnly),
        ("P-4", Self::DialogOnly, Self::Answered),
    ];
    const TERMINAL: &'static [Self] = &[Self::Resolved, Self::Abandoned, Self::Unknown];
}

/// Life of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// The request left.
    Started,
    /// Nothing came back yet.
    Waiting,
    /// Output arrives.
    Streaming,
    /// Claude waits before the next attempt.
    Retrying,
    /// Quiet for longer than the limit.
    Stalled,
    /// Ended well.
    Ended,
    /// Cut by an interrupt or an exit.
    Aborted,
    /// Ended with an API error.
    Failed,
    /// The model refused.
    Refused,
    /// Evidence ran out.
    Unknown,
}

impl Lattice for CallStatus {
    const MOVES: &'static [(&'static str, Self, Self)] = &[
        ("C-1", Self::Started, Self::Waiting),
        ("C-2", Self::Started, Self::Streaming),
        ("C-3", Self::Waiting, Self::Streaming),
        ("C-4", Self::Started, Self::Retrying),
        ("C-5", Self::Waiting, Self::Retrying),
        ("C-6", Self::Streaming, Self::Retrying),
        ("C-7", Self::Stalled, Self::Retrying),
        ("C-8", Self::Retrying, Self::Waiting),
        ("C-9", Self::Retrying, Self::Streaming),
        ("C-10", Self::Started, Self::Stalled),
        ("C-11", Self::Waiting, Self::Stalled),
        ("C-12", Self::Streaming, Self::Stalled),
        ("C-13", Self::Stalled, Self::Streaming),
        ("C-14", Self::Stalled, Self::Waiting),
    ];
    const TERMINAL: &'static [Self] = &[
        Self::Ended,
        Self::Aborted,
        Self::Failed,
        Self::Refused,
        Self::Unknown,
    ];
}

/// Life of the session itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    /// Launched, not ready.
    Starting,
    /// Ready for prompts.
    Ready,
    /// Being closed.
    Closing,
    /// Over.
    Exited,
}

impl Lattice for Lifecycle {
    const MOVES: &'static [(&'static str, Self, Self)] = &[
        ("L-1", Self::Starting, Self::Ready),
        ("L-2", Self::Starting, Self::Closing),
        ("L-3", Self::Ready, Self::Closing),
    ];
    const TERMINAL: &'static [Self] = &[Self::Exited];
}

/// What the agent is doing now. Never stored: derived from the state, first match wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum AgentStatus {
    /// The session is over.
    Exited,
    /// Not ready yet.
    Starting,
    /// A permission request waits for an answer.
    AwaitingPermission,
    /// A question, a plan or an unknown dialog waits for a person.
    AwaitingInput,
    /// An interrupt was just confirmed or is being confirmed.
    Interrupting,
    /// Claude is not logged in.
    AuthRequired,
    /// The usage limit was reached.
    UsageLimited,
    /// The conversation is being compacted.
    Compacting,
    /// At least one tool of the main thread runs.
    RunningTools,
    /// Text is being written.
    Writing,
    /// A model call is open.
    ModelRequest {
        /// How the call is doing.
        phase: CallPhase,
    },
    /// A turn is running and no more is known.
    Working,
    /// Nothing runs in the foreground.
    Idle,
    /// Evidence ran out: what Claude is doing is not known.
    Unknown,
}

/// Phase of an open model call, for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "phase")]
pub enum CallPhase {
    /// Nothing came back yet.
    Waiting,
    /// Output arrives.
    Streaming,
    /// Claude waits before the next attempt.
    Retrying {
        /// Number of the coming attempt, from 1.
        attempt: u32,
        /// Highest attempt number.
        max: u32,
        /// Cause as shown on screen.
        reason: Arc<str>,
    },
    /// Quiet for longer than the limit.
    Stalled,
}
