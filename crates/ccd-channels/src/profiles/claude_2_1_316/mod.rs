//! Claude Code 2.1.316: every string, field name, pattern and key that belongs to this version, as tables.

mod agent_meta;
mod blocks;
mod entry;
mod hooks;
mod registry;
mod replies;
mod rules;
mod screen;
mod settings;
mod statusline;
mod transcript;
mod words;

use crate::{
    hooks::HookTable, profile::Profile, registry::RegistryTable, statusline::StatusTable,
    transcript::TranscriptTable,
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
        agent_meta: agent_meta::read,
    },
    registry: RegistryTable {
        read: registry::read,
    },
    statusline: StatusTable {
        read: statusline::read,
    },
    screen: &screen::SCREEN,
    replies: &replies::REPLIES,
    settings: &settings::SETTINGS,
    rules: &rules::RULES,
    paths: &settings::PATHS,
    guards: screen::guard_formats,
    words: &words::WORDS,
};
