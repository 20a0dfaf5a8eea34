//! The pure reducer: every decision, no I/O, no clock, no randomness.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
