//! The public Rust API of claude-code-driver.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
