//! Facts: values that remember which source said them. The authority order is the order of [`Source`].

use serde::{Deserialize, Serialize};

use crate::ids::Seq;

/// Who said it, lowest authority first. The statusline ranks with the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Our own bookkeeping and the clock.
    Own,
    /// A screen capture. Never confirms anything.
    Screen,
    /// Claude's session registry file or the statusline.
    Registry,
    /// Bytes metered on the network.
    Network,
    /// The transcript file.
    Transcript,
    /// A hook call.
    Hook,
    /// The operating system: process exit.
    Process,
}

impl Source {
    /// Whether this source may confirm a fact; the screen and our own bookkeeping never do.
    #[must_use]
    pub fn confirms(self) -> bool {
        self > Self::Screen
    }
}

/// What [`Fact::learn`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learned {
    /// The value changed.
    Changed,
    /// The value was known already; authority and confirmation may have risen.
    Corroborated,
    /// A lower-ranked source disagreed; the old value stands and the conflict is counted.
    Outranked,
}

/// A value with its source. Invariant: a value is only replaced by a source of equal or higher authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact<T> {
    value: T,
    source: Source,
    since: Seq,
    confirmed: bool,
    conflicts: u16,
}

impl<T: PartialEq> Fact<T> {
    /// A first value.
    pub fn new(value: T, source: Source, since: Seq) -> Self {
        Self {
            value,
            source,
            since,
            confirmed: source.confirms(),
            conflicts: 0,
        }
    }

    /// Takes what `source` says into account.
    pub fn learn(&mut self, value: T, source: Source, since: Seq) -> Learned {
        if self.value == value {
            self.confirmed |= source.confirms();
            self.source = self.source.max(source);
            return Learned::Corroborated;
        }
        if source < self.source {
            self.conflicts = self.conflicts.saturating_add(1);
            return Learned::Outranked;
        }
        let conflicts = self.conflicts;
        *self = Self {
            conflicts,
            ..Self::new(value, source, since)
        };
        Learned::Changed
    }

    /// The value in force.
    pub const fn get(&self) -> &T {
        &self.value
    }

    /// The highest source that said so.
    pub const fn source(&self) -> Source {
        self.source
    }

    /// When the value in force was first said.
    pub const fn since(&self) -> Seq {
        self.since
    }

    /// Whether a source above the screen said so.
    pub const fn confirmed(&self) -> bool {
        self.confirmed
    }

    /// How often a lower-ranked source disagreed.
    pub const fn conflicts(&self) -> u16 {
        self.conflicts
    }
}
