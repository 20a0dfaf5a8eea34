//! Monotone status lattices as tables. The table is the specification: row ids stand in the tests.

use serde::{Deserialize, Serialize};

use crate::fact::Source;

/// A status type whose legal moves are data.
pub trait Lattice: Copy + Eq + 'static {
    /// Legal moves between open states, each with its row id.
    const MOVES: &'static [(&'static str, Self, Self)];
    /// States that end the entity. Reachable from every open state, never left.
    const TERMINAL: &'static [Self];

    /// Whether this state ends the entity.
    fn is_terminal(self) -> bool {
        Self::TERMINAL.contains(&self)
    }
}

/// A status with the source that proved it. Only [`Status::advance`] changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status<L> {
    now: L,
    proof: Source,
}

impl<L: Lattice> Status<L> {
    /// A first status.
    pub const fn new(now: L, proof: Source) -> Self {
        Self { now, proof }
    }

    /// Moves to `to` if the lattice allows it. `false`: late or duplicate; the caller makes a diagnostic of it.
    #[must_use]
    pub fn advance(&mut self, to: L, proof: Source) -> bool {
        let legal = !self.now.is_terminal()
            && (to.is_terminal()
                || L::MOVES
                    .iter()
                    .any(|(_, from, next)| *from == self.now && *next == to));
        if legal {
            *self = Self { now: to, proof };
        }
        legal
    }

    /// The status in force.
    pub const fn get(&self) -> L {
        self.now
    }

    /// The source that proved it.
    pub const fn proof(&self) -> Source {
        self.proof
    }

    /// Whether the entity has ended.
    pub fn ended(&self) -> bool {
        self.now.is_terminal()
    }
}
