//! The headless drive over stream-json.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
