//! Session-scoped identifiers. They never change, also when Claude's own ids become known.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps an id's text form.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text form.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// A turn, `t1`.
    TurnId);
id!(
    /// A tool run, `u1`.
    ToolId);
id!(
    /// A subagent, `a1`.
    AgentId);
id!(
    /// A permission request, `p1`.
    PermissionId);
id!(
    /// A model call, `c1`.
    CallId);
id!(
    /// An assistant message, `m1`.
    MessageId);
