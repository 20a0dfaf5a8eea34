//! Claude Code 2.1.316: every string, field name, pattern and key that belongs to this version, as tables.

mod blocks;
mod entry;
mod hooks;
mod registry;
mod replies;
mod rules;
mod screen;
mod settings;
mod transcript;
mod words;

use crate::{
    hooks::HookTable, profile::Profile, registry::RegistryTable, transcript::TranscriptTable,
};

/// Prefix of the prompts that Claude submits itself when a background task ends.
const TASK_NOTIFICATION: &str = "<task-notification>";

pub(crate) static PROFILE: Profile = Profile {
    version: "2.1.316",
    hooks: HookTable {
        rows: &hooks::EVENTS,
    },
    transcript: TranscriptTable {
        read: transcript::read,
    },
    registry: RegistryTable {
        read: registry::read,
    },
    screen: &screen::SCREEN,
    replies: &replies::REPLIES,
    settings: &settings::SETTINGS,
    rules: &rules::RULES,
    paths: &settings::PATHS,
    guards: screen::guard_formats,
    words: &words::WORDS,
};
