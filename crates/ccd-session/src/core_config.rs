//! The core's configuration from a session specification and the words of the pinned Claude version.
//!
//! Here lives that mapping. No decision is taken here.

use std::sync::Arc;

use ccd_core::{CoreConfig, PathField, ReadOnlyTool, Vocabulary};
use ccd_model::spec::SessionSpec;

/// Prompts that end the program.
const EXIT_WORDS: &[&str] = &["exit", "quit", ":q", ":q!", ":wq", ":wq!"];
/// Tools whose permission request is a question or a plan.
const QUESTION_TOOLS: &[&str] = &["AskUserQuestion", "ExitPlanMode"];
/// Reasons of a session end that open another conversation.
const SWITCHING_ENDS: &[&str] = &["clear", "resume"];

/// A field as `(name, required, relative)`.
type Field = (&'static str, bool, bool);

/// Tools that only read.
const READ_ONLY_TOOLS: &[(&str, &[Field])] = &[
    ("Read", &[("file_path", true, false)]),
    ("Glob", &[("pattern", true, true), ("path", false, false)]),
    ("Grep", &[("path", false, false), ("glob", false, true)]),
];

fn words(words: &[&str]) -> Vec<Arc<str>> {
    words.iter().map(|word| Arc::from(*word)).collect()
}

/// The configuration of the core for `spec`. `real_cwd` is the workspace with symlinks resolved.
pub(crate) fn core_config(spec: &SessionSpec, real_cwd: &str) -> CoreConfig {
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
        read_only_tools: READ_ONLY_TOOLS
            .iter()
            .map(|(name, fields)| ReadOnlyTool {
                name: (*name).into(),
                paths: fields
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
            exit_words: words(EXIT_WORDS),
            exit_command: "/exit".into(),
            question_tools: words(QUESTION_TOOLS),
            usage_limit_errors: words(&["rate_limit"]),
            auth_errors: words(&["authentication_failed"]),
            user_denials: words(&["user-rejected"]),
            background_running: "running".into(),
            switching_ends: words(SWITCHING_ENDS),
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
        let config = core_config(&spec, "/real");
        let roots: Vec<&str> = config.workspace_roots.iter().map(AsRef::as_ref).collect();
        assert_eq!(roots, ["/real", "/w", "/extra"]);
        assert_eq!(config.limits, spec.limits);
    }
}
