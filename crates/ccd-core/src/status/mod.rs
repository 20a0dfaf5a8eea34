//! What is derived from the state and never stored: the agent status, quiescence, and how often to look.

pub(crate) mod cadence;
pub(crate) mod derive;
