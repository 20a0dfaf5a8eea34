//! Permission rule syntax of 2.1.316.

use crate::rules::{ContentRule, RuleTable};

pub(super) static RULES: RuleTable = RuleTable {
    mcp_prefix: "mcp__",
    mcp_separator: "__",
    command_tool: "Bash",
    contents: &[
        ("Read", ContentRule::Path),
        ("Edit", ContentRule::Path),
        ("Write", ContentRule::Path),
        ("Glob", ContentRule::Path),
        ("NotebookEdit", ContentRule::Path),
        ("NotebookRead", ContentRule::Path),
        ("WebFetch", ContentRule::Host("domain:")),
        ("WebSearch", ContentRule::Literal),
    ],
    prefix_sign: ":*",
    prefix_ends: &[" *"],
};
