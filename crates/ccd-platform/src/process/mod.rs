//! Facts about operating-system processes, and waiting for their end.
//!
//! What lives here: what any program that drives other programs needs from the system, with std and third-party crates
//! alone. What never does: sessions, ports, tmux, or any other module of this workspace.

pub mod exit_watch;
pub mod pinned;

pub use exit_watch::ExitWatch;
pub use pinned::{PinError, PinnedProcess, StopSignal};
