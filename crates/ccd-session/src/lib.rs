//! The session loop, launcher, executors, event log, trace and replay.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
