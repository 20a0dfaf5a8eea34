//! The real-Claude suite: the pinned Claude Code, driven through the public API and the command, against the fake service.
//!
//! What lives here: the list of themes. What never does: a test. Run it with `cargo xtask test real`, which brings the
//! pinned Claude Code, the built programs and a network namespace.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "real/attached.rs"]
mod attached;
#[path = "real/command.rs"]
mod command;
#[path = "real/crash.rs"]
mod crash;
#[path = "real/delivery.rs"]
mod delivery;
#[path = "real/interrupt.rs"]
mod interrupt;
#[path = "real/lifecycle.rs"]
mod lifecycle;
#[path = "real/live.rs"]
mod live;
#[path = "real/loss.rs"]
mod loss;
#[path = "real/permissions.rs"]
mod permissions;
#[path = "real/stage.rs"]
mod stage;
#[path = "real/start.rs"]
mod start;
#[path = "real/turn.rs"]
mod turn;
