//! Ports without an outside world. Each passes the same contract suite as its real counterpart.

pub mod clock;
pub mod editor;
pub mod hooks;
pub mod host;
pub mod pane;
pub mod process;
pub mod registry;
pub mod state;
pub mod tail;
pub mod trace;
