//! The pollers that the core's cadence drives. Here live their modules; what a poll means never does.

pub(crate) mod pane_dead;
pub(crate) mod screen;
