//! Time as data. Nothing here reads a clock; adapters stamp, the core compares.

use serde::{Deserialize, Serialize};

use crate::ids::{Launch, Seq};

/// Monotonic milliseconds since the session's own start.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Mono(pub u64);

impl Mono {
    /// This moment plus `ms` milliseconds, saturating.
    #[must_use]
    pub const fn after(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this moment, zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Wall-clock milliseconds since the Unix epoch. Only for display and for the usage wake time.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Wall(pub i64);

/// Where and when one input entered the serialized loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Position in the session's input order, from 1.
    pub seq: Seq,
    /// Monotonic time of arrival.
    pub at: Mono,
    /// Wall-clock time of arrival.
    pub wall: Wall,
    /// Which start of the Claude process this input belongs to.
    pub launch: Launch,
}
