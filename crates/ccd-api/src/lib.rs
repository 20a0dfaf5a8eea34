//! The public Rust API of claude-code-driver: one session of the real, unmodified Claude Code, driven from code.
//!
//! ```no_run
//! use ccd_api::{ClaudeSession, Options, PermissionDecision, Permissions};
//!
//! # async fn example() -> Result<(), ccd_api::Error> {
//! let permissions = Permissions::ask(|request| async move {
//!     if request.tool_name == "Bash" { PermissionDecision::allow() } else { PermissionDecision::deny("not here") }
//! });
//! let session = ClaudeSession::start(Options::new("/path/to/project").permissions(permissions)).await?;
//! let mut turn = session.send("Which files are here?").await?;
//! while let Some(event) = turn.next().await {
//!     println!("{event:?}");
//! }
//! println!("{}", turn.done().await.text);
//! session.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! Everything runs on one kernel thread of the process, so any executor can drive these futures, and a blocked one stops nothing.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod failure_codes;
mod map_errors;
mod map_events;
mod map_state;
mod options;
mod permissions;
mod prompt;
mod session;
mod stream;
mod turn;

pub use ccd_types::*;
pub use options::{Account, ExpectVersion, Options, Trust};
pub use permissions::{BoxFuture, PermissionHandler, Permissions};
pub use prompt::Prompt;
pub use session::{ClaudeSession, Close, Debug, InterruptResult};
pub use stream::EventStream;
pub use turn::Turn;

/// The examples of the documents compile, or the documents are wrong.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/USAGE.md")]
    struct Usage;
}
