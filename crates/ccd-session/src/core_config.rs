//! The core's configuration from a session specification and the words of the pinned Claude version.
//!
//! Here lives that mapping. No decision is taken here.

use std::sync::Arc;

use ccd_channels::Profile;
use ccd_core::{CoreConfig, PathField, ReadOnlyTool, Vocabulary};
use ccd_model::spec::SessionSpec;

fn words(words: &[&str]) -> Vec<Arc<str>> {
    words.iter().map(|word| Arc::from(*word)).collect()
}

/// The configuration of the core for `spec`. `real_cwd` is the workspace with symlinks resolved.
pub(crate) fn core_config(profile: &Profile, spec: &SessionSpec, real_cwd: &str) -> CoreConfig {
    let table = profile.words();
    let mut workspace_roots: Vec<Arc<str>> = Vec::new();
    for root in [real_cwd, spec.cwd.as_str()]
        .into_iter()
        .chain(spec.add_dirs.iter().map(String::as_str))
    {
        if !workspace_roots.iter().any(|known| known.as_ref() == root) {
            workspace_roots.push(root.into());
        }
    }
    CoreConfig {
        policy: spec.policy,
        mode: spec.mode,
        workspace_roots,
        limits: spec.limits.clone(),
        read_only_tools: table
            .read_only_tools
            .iter()
            .map(|tool| ReadOnlyTool {
                name: tool.name.into(),
                paths: tool
                    .paths
                    .iter()
                    .map(|(field, required, relative)| PathField {
                        field: (*field).into(),
                        required: *required,
                        relative: *relative,
                    })
                    .collect(),
            })
            .collect(),
        vocabulary: Vocabulary {
            exit_words: words(table.exit_words),
            exit_command: table.exit_command.into(),
            question_tools: words(table.question_tools),
            usage_limit_errors: words(table.usage_limit_errors),
            usage_limit_texts: words(table.usage_limit_texts),
            auth_errors: words(table.auth_errors),
            user_denials: words(table.user_denials),
            background_running: table.background_running.into(),
            switching_ends: words(table.switching_ends),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::testing::spec;

    #[test]
    fn the_workspace_roots_are_the_directory_in_both_spellings_and_the_added_ones() {
        let spec = SessionSpec {
            add_dirs: vec!["/extra".into(), "/w".into()],
            ..spec()
        };
        let config = core_config(ccd_channels::profiles::pinned(), &spec, "/real");
        let roots: Vec<&str> = config.workspace_roots.iter().map(AsRef::as_ref).collect();
        assert_eq!(roots, ["/real", "/w", "/extra"]);
        assert_eq!(config.limits, spec.limits);
    }
}
