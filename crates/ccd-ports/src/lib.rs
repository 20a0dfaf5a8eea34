//! The port traits and raw records between the adapters and the session loop.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
