//! The internal vocabulary: time, observations, events, commands, intents, facts, lattices and the kernel port.
//!
//! Everything here is data and small pure helpers. No I/O, no clock, no randomness, no async: `no_std` makes that a compile-time fact.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod command;
pub mod event;
pub mod fact;
pub mod ids;
pub mod intent;
pub mod json;
pub mod kernel;
pub mod lattice;
pub mod observation;
pub mod outcome;
pub mod permission;
pub mod screen;
pub mod spec;
pub mod status;
pub mod time;
pub mod view;
