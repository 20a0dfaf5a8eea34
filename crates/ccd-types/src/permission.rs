//! Permission requests and answers. Payload names follow the Claude Agent SDK.

use serde::{Deserialize, Serialize};

use crate::{AgentId, Json, PermissionId, TurnId};

/// Claude Code's permission mode, always pinned at start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum PermissionMode {
    /// Ask for everything that is not allowed.
    Default,
    /// Edits are allowed.
    AcceptEdits,
    /// Plan only.
    Plan,
    /// A classifier decides; no request reaches a handler.
    Auto,
    /// What is not allowed is denied; nothing is asked.
    DontAsk,
    /// Everything is allowed.
    BypassPermissions,
}

impl PermissionMode {
    /// Every mode with the spelling of Claude's own flag.
    pub const ALL: &'static [(Self, &'static str)] = &[
        (Self::Default, "default"),
        (Self::AcceptEdits, "acceptEdits"),
        (Self::Plan, "plan"),
        (Self::Auto, "auto"),
        (Self::DontAsk, "dontAsk"),
        (Self::BypassPermissions, "bypassPermissions"),
    ];

    /// The flag's spelling.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(mode, _)| *mode == self)
            .map_or("default", |(_, name)| name)
    }

    /// Reads the flag's spelling; `manual` is Claude's second name for `default`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = if text == "manual" { "default" } else { text };
        Self::ALL
            .iter()
            .find(|(_, name)| *name == text)
            .map(|(mode, _)| *mode)
    }
}

/// A tool that Claude wants to run, as a handler sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// The request.
    pub id: PermissionId,
    /// The turn that wants it, when known.
    pub turn: Option<TurnId>,
    /// The subagent that wants it; absent for the main thread.
    pub agent: Option<AgentId>,
    /// Tool name.
    pub tool_name: String,
    /// Tool input.
    pub tool_input: Json,
    /// Claude's id of the call; absent when more than one running call fits.
    pub tool_use_id: Option<String>,
    /// Permission updates that Claude suggests; an allow may send them back.
    pub permission_suggestions: Option<Json>,
}

impl PermissionRequest {
    /// A request with the given identity; the optional parts start empty.
    #[must_use]
    pub fn new(id: PermissionId, tool_name: String, tool_input: Json) -> Self {
        Self {
            id,
            turn: None,
            agent: None,
            tool_name,
            tool_input,
            tool_use_id: None,
            permission_suggestions: None,
        }
    }
}

/// A handler's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "behavior")]
pub enum PermissionDecision {
    /// Run the tool.
    Allow {
        /// Replaces the whole tool input.
        updated_input: Option<Json>,
        /// Permission updates to apply, shaped like Claude's suggestions.
        updated_permissions: Option<Json>,
    },
    /// Do not run the tool.
    Deny {
        /// Told to the model, exactly.
        message: String,
        /// End the turn as well.
        interrupt: bool,
    },
}

impl PermissionDecision {
    /// Allows the call as it is.
    #[must_use]
    pub const fn allow() -> Self {
        Self::Allow {
            updated_input: None,
            updated_permissions: None,
        }
    }

    /// Denies the call; the model is told why and goes on.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny {
            message: message.into(),
            interrupt: false,
        }
    }
}
