//! The session specification: every option of a facade, already validated, in internal terms.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::permission::{PermissionMode, Policy};

/// Which version of Claude Code may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectVersion {
    /// Exactly the version of the profile.
    Pinned,
    /// Any version, without guarantees.
    Any,
}

/// What to do about workspace trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Refuse to start in an untrusted workspace.
    Require,
    /// Write trust before the start.
    Seed,
}

/// Which accounts may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Account {
    /// A subscription login only.
    Subscription,
    /// Whatever Claude finds: API keys, gateways, tests.
    Any,
}

/// Which conversation to open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "conversation")]
pub enum Conversation {
    /// A new one.
    New,
    /// The newest of the directory.
    Continue {
        /// Copy it under a new id.
        fork: bool,
    },
    /// A given one.
    Resume {
        /// Claude's session id.
        id: String,
        /// Copy it under a new id.
        fork: bool,
    },
}

/// Limits, milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// From launch to ready.
    pub start_ms: u64,
    /// For a permission handler.
    pub permission_ms: u64,
    /// From close to kill.
    pub close_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start_ms: 30_000,
            permission_ms: 300_000,
            close_ms: 5_000,
        }
    }
}

/// A whole session, ready to launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSpec {
    /// Working directory, absolute.
    pub cwd: String,
    /// Claude binary; found by the usual order when absent.
    pub claude: Option<String>,
    /// Helper program; found by the usual order when absent.
    pub helper: Option<String>,
    /// Version rule.
    pub expect_version: ExpectVersion,
    /// Account rule.
    pub account: Account,
    /// Trust rule.
    pub trust: Trust,
    /// Conversation.
    pub conversation: Conversation,
    /// Model for `--model`.
    pub model: Option<String>,
    /// Permission mode, always passed.
    pub mode: PermissionMode,
    /// Permission policy.
    pub policy: Policy,
    /// Allow rules in Claude's rule syntax.
    pub allowed_tools: Vec<String>,
    /// Deny rules in Claude's rule syntax.
    pub disallowed_tools: Vec<String>,
    /// Additional directories.
    pub add_dirs: Vec<String>,
    /// Text appended to the system prompt.
    pub append_system_prompt: Option<String>,
    /// MCP configuration files or JSON.
    pub mcp_config: Vec<String>,
    /// Further arguments for Claude.
    pub extra_args: Vec<String>,
    /// Additions to the child's environment, over the allowlist.
    pub env: BTreeMap<String, String>,
    /// Whether the self-test runs before ready.
    pub self_test: bool,
    /// Trace file.
    pub trace: Option<String>,
    /// State directory; the default place when absent.
    pub state_dir: Option<String>,
    /// Limits.
    pub limits: Limits,
}
