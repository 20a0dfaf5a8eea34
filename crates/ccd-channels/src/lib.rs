//! Normalizers from raw records to observations, and the version profiles.
//!
//! Everything that belongs to one version of Claude Code (strings, field names, event lists, patterns, reply texts, settings
//! keys) lives in a profile under `profiles/`; the code outside is free of versions. No I/O, no clock, no panic.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod channels;
mod hooks;
mod paths;
mod profile;
pub mod profiles;
mod registry;
mod replies;
mod rules;
mod screen;
mod settings;
mod statusline;
mod text;
mod transcript;

pub use channels::{Channels, FileRole};
pub use profile::{Profile, ReadTool, WordTable};
pub use rules::{PermissionRule, RuleError};
pub use settings::SettingsRequest;
