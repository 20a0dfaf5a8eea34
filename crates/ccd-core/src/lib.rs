//! The pure reducer: every decision, no I/O, no clock, no randomness.
//!
//! One call of [`step`] takes one input (an observation or a command), changes the core and fills a [`Step`] with what follows from it:
//! domain events to publish, intents to carry out, diagnostics, replies to commands and the next moment at which time alone decides something.
//! [`view`] is the only way out of the state.
//!
//! # Module map
//!
//! | module | what lives there |
//! |---|---|
//! | `step` | [`Core`], [`step`]: due deadlines, gating by launch and generation, the one dispatch over observations and commands |
//! | `input`, `config` | the types of the boundary: [`Input`], [`Step`], [`Diagnostic`], [`CoreConfig`] |
//! | `cx` | the context that decision code works with: read the state, emit changes, events, intents |
//! | `state` | the domain state as plain data, readable by everyone in this crate |
//! | `evolve` | the only writer of that state: applies changes, keeps the indexes, the retention window and the tombstones |
//! | `keys` | the next library key of each kind |
//! | `deadlines` | the one table of everything that time alone decides |
//! | `decide` | decisions by entity: `start`, `session`, `close`, `turns`, `prompts`, `stop`, `interrupt`, `tools`, `agents`, `permissions`, `effects`, `model_calls`, `messages`, `usage`, `screen` |
//! | `reconcile` | joins between sources: `turn_of`, `permission_binding`, `text_match` |
//! | `input_policy` | everything about keys: `sanitize` (what may be sent), `gate` (when), `jobs` (how a text gets into the composer and out of it) |
//! | `permission_policy` | what a named policy answers to a request |
//! | `closing` | nothing open outlives its container |
//! | `status` | the derived agent status, quiescence and the cadence table |
//! | `selectors` | [`view`] |
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::wildcard_enum_match_arm
)]

extern crate alloc;

mod closing;
mod config;
mod cx;
mod deadlines;
mod decide;
mod evolve;
mod input;
mod input_policy;
mod keys;
mod permission_policy;
mod reconcile;
mod selectors;
mod state;
mod status;
mod step;

pub use config::{CoreConfig, PathField, ReadOnlyTool, Vocabulary};
pub use deadlines::{DEADLINES, DeadlineRow, Row};
pub use input::{Diagnostic, DiagnosticKind, Input, Step};
pub use input_policy::sanitize::{MAX_PROMPT_BYTES, normalize};
pub use selectors::view;
pub use status::cadence::{CADENCES, CadenceRow};
pub use step::{Core, step};
