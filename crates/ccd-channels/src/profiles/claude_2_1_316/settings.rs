//! Settings keys, environment and paths of 2.1.316. An unknown key is ignored there, a known key with a wrong type opens a
//! blocking dialog: each type here is one that was seen to be taken.

use crate::{
    paths::PathTable,
    settings::{Constant, SettingsKeys, SettingsTable},
};

pub(super) static SETTINGS: SettingsTable = SettingsTable {
    constants: &[
        ("askUserQuestionTimeout", Constant::Text("never")),
        ("autoContinueAtUsageLimit", Constant::Bool(false)),
        ("awaySummaryEnabled", Constant::Bool(false)),
        ("feedbackSurveyRate", Constant::Number(0)),
        ("promptSuggestionEnabled", Constant::Bool(false)),
        ("spinnerTipsEnabled", Constant::Bool(false)),
        ("terminalProgressBarEnabled", Constant::Bool(false)),
        ("tui", Constant::Text("default")),
    ],
    child_env: &[
        ("CLAUDE_CODE_DISABLE_AGENT_VIEW", "1"),
        ("CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN", "1"),
        ("CLAUDE_CODE_DISABLE_FEEDBACK_SURVEY", "1"),
        ("CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION", "false"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("TERM", "xterm-256color"),
    ],
    no_proxy_names: &["NO_PROXY", "no_proxy"],
    no_proxy_hosts: &["127.0.0.1", "localhost"],
    token_header: "X-CCD-Token",
    forward: (&["forward", "--protocol", "1", "--socket"], "--event"),
    keys: SettingsKeys {
        hooks: "hooks",
        permissions: "permissions",
        allow: "allow",
        deny: "deny",
        env: "env",
        disabled_mcp_servers: "disabledMcpjsonServers",
        on_failure: ("onFailure", "block"),
    },
};

pub(super) static PATHS: PathTable = PathTable {
    projects: "projects",
    extension: "jsonl",
    longest_slug: 200,
};
