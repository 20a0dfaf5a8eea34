//! The rig: a fake Anthropic service, an isolated home for the real Claude Code, and the guard that proves nothing is
//! left behind. The programs that use it (demo, bench, soak) and the real suite build on `Rig`.
//!
//! What lives here: everything a test needs around the real program. What never does: the driver itself, and anything
//! that reads this machine's own Claude configuration or talks to a host beyond loopback.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod driven;
pub mod guard;
pub mod home;
pub mod isolation;
pub mod rig;
pub mod service;
