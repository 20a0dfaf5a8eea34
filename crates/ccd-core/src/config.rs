//! The core's configuration: plain data, fixed for the life of a session. Version-specific words come from the profile of the channels.

use alloc::{sync::Arc, vec::Vec};

use ccd_model::{
    permission::{PermissionMode, Policy},
    spec::Limits,
};
use serde::{Deserialize, Serialize};

/// Everything the core must know before the first input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreConfig {
    /// Who answers permission requests.
    pub policy: Policy,
    /// Permission mode pinned at start.
    pub mode: PermissionMode,
    /// Absolute directories within which the allow-read policy allows reading.
    pub workspace_roots: Vec<Arc<str>>,
    /// Limits, milliseconds.
    pub limits: Limits,
    /// Tools that only read, for the allow-read policy.
    pub read_only_tools: Vec<ReadOnlyTool>,
    /// Words of the Claude version in use.
    pub vocabulary: Vocabulary,
}

/// A tool that only reads, with the input fields that name what it reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadOnlyTool {
    /// Tool name.
    pub name: Arc<str>,
    /// Input fields that hold a path or a path pattern.
    pub paths: Vec<PathField>,
}

/// An input field that holds a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathField {
    /// Field name.
    pub field: Arc<str>,
    /// A call without it is not allowed.
    pub required: bool,
    /// A relative value is allowed (without parent steps); it is taken to lie in the workspace.
    pub relative: bool,
}

/// Words that depend on the version of Claude Code. The core compares them and never builds text from them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vocabulary {
    /// Prompts that end the program (`exit`, `quit`, …).
    pub exit_words: Vec<Arc<str>>,
    /// The command that ends the program (`/exit`).
    pub exit_command: Arc<str>,
    /// Tools whose permission request is a question or a plan.
    pub question_tools: Vec<Arc<str>>,
    /// Error classes of a usage limit (`rate_limit`).
    pub usage_limit_errors: Vec<Arc<str>>,
    /// Beginnings of the messages that tell a usage limit from a passing rate limit of the same class.
    #[serde(default)]
    pub usage_limit_texts: Vec<Arc<str>>,
    /// Error classes of a missing login (`authentication_failed`).
    pub auth_errors: Vec<Arc<str>>,
    /// Denial kinds that an interrupt and a rejection by a person have in common (`user-rejected`).
    pub user_denials: Vec<Arc<str>>,
    /// Status word of a background item that runs (`running`).
    pub background_running: Arc<str>,
    /// Reasons of a session end that open another conversation instead of ending the program (`clear`, `resume`).
    pub switching_ends: Vec<Arc<str>>,
}
