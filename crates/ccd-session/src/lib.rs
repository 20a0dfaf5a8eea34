//! The session layer: one serialized loop around channels and core, the start sequence, the executors, the event log, the trace and its replay.
//!
//! Everything here sees the outside world through port traits only. Waiting goes through the clock port; nothing blocks the kernel thread.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod argv_builder;
mod core_config;
mod engine;
mod env_builder;
mod error;
mod event_log;
mod input_executor;
mod kernel;
mod launch_facts;
mod launch_plan;
mod launcher;
mod lifecycle;
mod loop_lag;
mod permission_broker;
mod pollers;
mod preflight;
mod queue;
mod reaper;
mod redact;
mod replay;
mod scheduler;
mod self_test;
mod step_loop;
mod tail_driver;
#[cfg(test)]
mod testing;
mod trace;

pub use error::{LaunchError, LaunchErrorKind, LaunchStep};
pub use lifecycle::{start, start_with};
pub use permission_broker::Handler;
pub use redact::{RedactOptions, Redactor};
pub use replay::{ReplayError, Replayed, replay};
pub use trace::{Header, TraceConfig, TraceLine, TraceRole};
