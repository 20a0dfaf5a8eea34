//! Decisions, by entity. Each reads the state through the context and emits changes, events and intents; none writes the state itself.

pub(crate) mod agents;
pub(crate) mod close;
pub(crate) mod effects;
pub(crate) mod interrupt;
pub(crate) mod messages;
pub(crate) mod model_calls;
pub(crate) mod permissions;
pub(crate) mod prompts;
pub(crate) mod screen;
pub(crate) mod session;
pub(crate) mod start;
pub(crate) mod stop;
pub(crate) mod tools;
pub(crate) mod turns;
pub(crate) mod usage;
