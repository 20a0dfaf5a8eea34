//! The adapter to a private tmux server: started once by exec, then driven through one control client.
//!
//! What lives here: the control protocol, the command lines, the pane. What never does: Claude's screen strings (the
//! guards' formats come from outside), or meaning read out of a capture.

pub(crate) mod connection;
pub mod exec;
pub(crate) mod frame;
pub(crate) mod pane;
pub mod protocol;
pub(crate) mod request;
pub(crate) mod start;
pub(crate) mod words;

/// The one session of the server.
pub(crate) const SESSION: &str = "ccd";

/// The one pane of the server.
pub(crate) const PANE: &str = "%0";
