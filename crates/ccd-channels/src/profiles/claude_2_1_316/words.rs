//! Words of this version that decisions hang on. The session layer hands them to the core, which knows none itself.

use crate::profile::{ReadTool, WordTable};

pub(super) static WORDS: WordTable = WordTable {
    exit_words: &["exit", "quit", ":q", ":q!", ":wq", ":wq!"],
    exit_command: "/exit",
    question_tools: &["AskUserQuestion", "ExitPlanMode"],
    usage_limit_errors: &["rate_limit"],
    usage_limit_texts: &["You've hit your "],
    auth_errors: &["authentication_failed"],
    user_denials: &["user-rejected"],
    background_running: "running",
    switching_ends: &["clear", "resume"],
    read_only_tools: &[
        ReadTool {
            name: "Read",
            paths: &[("file_path", true, false)],
        },
        ReadTool {
            name: "Glob",
            paths: &[("pattern", true, true), ("path", false, false)],
        },
        ReadTool {
            name: "Grep",
            paths: &[("path", false, false), ("glob", false, true)],
        },
    ],
    registry_dir: "sessions",
};
