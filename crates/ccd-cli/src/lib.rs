//! The ccd command.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
