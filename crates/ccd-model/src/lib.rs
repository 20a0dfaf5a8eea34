//! The internal vocabulary: time, observations, events, commands, intents, facts, lattices and the kernel port.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
