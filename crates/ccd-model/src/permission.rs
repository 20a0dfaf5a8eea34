//! Permission modes, policies, decisions, and the table of which policy makes sense in which mode.

use alloc::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::json::RawJson;

/// Claude Code's permission mode, always pinned at start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// Ask for everything that is not allowed.
    Default,
    /// Edits are allowed.
    AcceptEdits,
    /// Plan only.
    Plan,
    /// A classifier decides; permission requests never reach a hook.
    Auto,
    /// Whatever is not allowed is denied; nothing is asked.
    DontAsk,
    /// Everything is allowed.
    BypassPermissions,
}

impl PermissionMode {
    /// Every mode with the spelling of Claude's `--permission-mode` flag.
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

    /// Reads the flag's spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(_, name)| *name == text)
            .map(|(mode, _)| *mode)
    }
}

/// Who answers permission requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Every request is denied.
    Deny,
    /// The caller's handler decides; no answer is a deny.
    Ask,
    /// Read-only tools inside the workspace roots are allowed, the rest is denied.
    AllowRead,
    /// Every unambiguous request is allowed.
    DangerouslyAllowAll,
}

/// Why a policy cannot be used in a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction(pub &'static str);

/// The policy × mode table: only contradictions have rows.
const CONTRADICTIONS: &[(Policy, PermissionMode, &str)] = &[
    (
        Policy::Ask,
        PermissionMode::Auto,
        "in auto mode no permission request reaches a handler",
    ),
    (
        Policy::Ask,
        PermissionMode::DontAsk,
        "in dontAsk mode no permission request reaches a handler",
    ),
    (
        Policy::Ask,
        PermissionMode::BypassPermissions,
        "in bypassPermissions mode no permission request reaches a handler",
    ),
    (
        Policy::AllowRead,
        PermissionMode::Auto,
        "in auto mode the allowRead policy is never consulted",
    ),
    (
        Policy::AllowRead,
        PermissionMode::BypassPermissions,
        "in bypassPermissions mode the allowRead policy is never consulted",
    ),
    (
        Policy::Deny,
        PermissionMode::Auto,
        "in auto mode the deny policy is never consulted",
    ),
    (
        Policy::Deny,
        PermissionMode::BypassPermissions,
        "in bypassPermissions mode the deny policy is never consulted",
    ),
    (
        Policy::DangerouslyAllowAll,
        PermissionMode::DontAsk,
        "in dontAsk mode nothing is asked, so nothing can be allowed",
    ),
];

/// Checks a policy against a mode.
///
/// # Errors
/// The contradiction's sentence, to be shown as a configuration error.
pub fn check_policy(policy: Policy, mode: PermissionMode) -> Result<(), Contradiction> {
    CONTRADICTIONS
        .iter()
        .find(|(p, m, _)| *p == policy && *m == mode)
        .map_or(Ok(()), |(_, _, why)| Err(Contradiction(why)))
}

/// The answer to one permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "behavior")]
pub enum Decision {
    /// Run it.
    Allow {
        /// Replaces the whole input.
        updated_input: Option<RawJson>,
        /// Permission updates to apply, as Claude suggests them.
        updated_permissions: Option<RawJson>,
    },
    /// Do not run it.
    Deny {
        /// Told to the model, exactly.
        message: Arc<str>,
        /// End the turn as well.
        interrupt: bool,
    },
}

impl Decision {
    /// A plain allow.
    #[must_use]
    pub const fn allow() -> Self {
        Self::Allow {
            updated_input: None,
            updated_permissions: None,
        }
    }

    /// A deny that lets the model go on.
    #[must_use]
    pub fn deny(message: impl Into<Arc<str>>) -> Self {
        Self::Deny {
            message: message.into(),
            interrupt: false,
        }
    }

    /// Whether it allows.
    #[must_use]
    pub const fn allows(&self) -> bool {
        matches!(self, Self::Allow { .. })
    }
}

/// Who or what made a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// A named policy.
    Policy,
    /// The caller's handler.
    Handler,
    /// The handler panicked, timed out or was dropped.
    HandlerFailure,
    /// The request could not be told apart from another one.
    Ambiguous,
    /// The deadline of the hook thread.
    Deadline,
    /// An interrupt.
    Interrupt,
    /// Close.
    Close,
    /// A person at the dialog.
    Keyboard,
    /// Not supported yet: questions and plans.
    Unsupported,
}

/// Why a handler gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandlerFailure {
    /// It panicked.
    Panicked,
    /// It did not answer in time.
    TimedOut,
    /// Its future was dropped.
    Dropped,
    /// There is none.
    Missing,
}
