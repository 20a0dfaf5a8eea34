//! The public vocabulary of claude-code-driver: ids, events, outcomes, usage, error codes.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
