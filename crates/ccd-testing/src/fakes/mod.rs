//! Ports without an outside world. Each passes the same contract suite as its real counterpart.

pub mod editor;
pub mod pane;
pub mod process;
