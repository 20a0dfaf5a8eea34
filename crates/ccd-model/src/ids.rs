//! Identifiers. Library keys (`t1`, `u4`, …) are deterministic, session-scoped and never change; Claude's own ids are aliases.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

macro_rules! key {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The letter that starts the key's text form.
            pub const PREFIX: &'static str = $prefix;
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = String::deserialize(d)?;
                text.strip_prefix($prefix)
                    .and_then(|n| n.parse().ok())
                    .map(Self)
                    .ok_or_else(|| de::Error::custom(concat!("expected a key like ", $prefix, "1")))
            }
        }
    };
}

key!(
    /// A turn, `t1`.
    TurnKey, "t");
key!(
    /// A tool run, `u1`.
    ToolKey, "u");
key!(
    /// A subagent, `a1`.
    AgentKey, "a");
key!(
    /// A permission request, `p1`.
    PermissionKey, "p");
key!(
    /// A model call, `c1`.
    CallKey, "c");
key!(
    /// An assistant message, `m1`.
    MessageKey, "m");
key!(
    /// An input job: everything done to deliver one prompt or key, `j1`.
    JobKey, "j");
key!(
    /// A generation: one Claude session id within our session, `g1`.
    GenerationKey, "g");
key!(
    /// An I/O operation that the core asked for; each ends exactly once, `o1`.
    OpId, "o");
key!(
    /// A hook call whose answer is held open, `h1`.
    HoldId, "h");
key!(
    /// A followed transcript file, `f1`.
    FileKey, "f");

/// Position in a session's input order or event order, from 1.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Seq(pub u64);

impl Seq {
    /// The next position.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Number of the Claude process start within a session, from 1. Echoes of a stopped process carry an older number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Launch(pub u16);

/// Matches a command with its answer. Chosen by the session loop, never by a facade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ticket(pub u32);
