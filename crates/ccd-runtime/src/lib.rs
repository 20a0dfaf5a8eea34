//! The composition root: builds the real adapters and wires them to the session loop.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
