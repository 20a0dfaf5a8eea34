//! The version profiles: one folder for each supported version of Claude Code, and the list of them.

mod claude_2_1_316;

use crate::profile::Profile;

/// Every profile, the pinned one first.
static PROFILES: [&Profile; 1] = [&claude_2_1_316::PROFILE];

/// The profile of exactly this version (`2.1.316`).
#[must_use]
pub fn get(version: &str) -> Option<&'static Profile> {
    PROFILES
        .iter()
        .copied()
        .find(|profile| profile.version == version)
}

/// The profile of the version that this build is made and tested for.
#[must_use]
pub fn pinned() -> &'static Profile {
    &claude_2_1_316::PROFILE
}
