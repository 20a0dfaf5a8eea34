//! A version profile: all tables of one Claude Code version, and what a launcher asks of them.

use std::path::{Path, PathBuf};

use ccd_model::{json::RawJson, permission::Decision};
use ccd_ports::session::{GuardFormats, HookReplies};

use crate::{
    hooks::HookTable,
    paths::{self, PathTable},
    registry::RegistryTable,
    replies::{self, ReplyTable},
    rules::{self, PermissionRule, RuleError, RuleTable},
    screen::ScreenTable,
    settings::{self, SettingsRequest, SettingsTable},
    statusline::StatusTable,
    transcript::TranscriptTable,
};

/// Everything that is particular to one version of Claude Code.
pub struct Profile {
    /// The version (`2.1.316`).
    pub version: &'static str,
    pub(crate) hooks: HookTable,
    pub(crate) transcript: TranscriptTable,
    pub(crate) registry: RegistryTable,
    pub(crate) statusline: StatusTable,
    pub(crate) screen: &'static ScreenTable,
    pub(crate) replies: &'static ReplyTable,
    pub(crate) settings: &'static SettingsTable,
    pub(crate) rules: &'static RuleTable,
    pub(crate) paths: &'static PathTable,
    pub(crate) guards: fn() -> GuardFormats,
    pub(crate) words: &'static WordTable,
}

/// Words of a version that decisions hang on.
#[derive(Debug)]
pub struct WordTable {
    /// Prompts that end the program.
    pub exit_words: &'static [&'static str],
    /// The command that ends the program.
    pub exit_command: &'static str,
    /// Tools whose permission request is a question or a plan.
    pub question_tools: &'static [&'static str],
    /// Error classes that a usage limit has.
    pub usage_limit_errors: &'static [&'static str],
    /// Beginnings of the messages that tell a usage limit from a passing rate limit of the same class.
    pub usage_limit_texts: &'static [&'static str],
    /// Error classes of a missing login.
    pub auth_errors: &'static [&'static str],
    /// Denial kinds of a person at the dialog.
    pub user_denials: &'static [&'static str],
    /// Status of background work that still runs.
    pub background_running: &'static str,
    /// Reasons of a session end that open another conversation.
    pub switching_ends: &'static [&'static str],
    /// Tools that only read.
    pub read_only_tools: &'static [ReadTool],
    /// Directory of the session registry in Claude's configuration directory.
    pub registry_dir: &'static str,
}

/// A tool that only reads.
#[derive(Debug)]
pub struct ReadTool {
    /// Its name.
    pub name: &'static str,
    /// Input fields with paths: name, required, relative to the workspace.
    pub paths: &'static [(&'static str, bool, bool)],
}

impl Profile {
    /// tmux formats that test the screen together with a key.
    #[must_use]
    pub fn guard_formats(&self) -> GuardFormats {
        (self.guards)()
    }

    /// Words that decisions hang on.
    #[must_use]
    pub fn words(&self) -> &'static WordTable {
        self.words
    }

    /// The hook thread's constant answers.
    #[must_use]
    pub fn hook_replies(&self) -> HookReplies {
        (self.replies.hooks)()
    }

    /// The JSON text that answers a held permission request of `tool_name` with `input`. An allow of a question or a plan gets
    /// the input without which Claude would ignore it; answers are the caller's to give and to check. An allow whose bodies
    /// are not JSON becomes a deny.
    #[must_use]
    pub fn permission_reply(
        &self,
        decision: &Decision,
        tool_name: &str,
        input: &RawJson,
    ) -> RawJson {
        replies::permission(self.replies, decision, tool_name, input)
    }

    /// The session's settings as JSON text, deterministic.
    #[must_use]
    pub fn settings_plan(&self, plan: &SettingsRequest<'_>) -> String {
        settings::plan(self.settings, &self.hooks, plan)
    }

    /// Variables that the environment of Claude must have, by name.
    #[must_use]
    pub fn child_env(&self) -> &'static [(&'static str, &'static str)] {
        self.settings.child_env
    }

    /// Reads one permission rule.
    ///
    /// # Errors
    /// Why Claude would drop the rule. Names of tools are not checked: Claude takes unknown ones.
    pub fn parse_rule(&self, rule: &str) -> Result<PermissionRule, RuleError> {
        rules::parse(self.rules, rule)
    }

    /// Where the transcript of a session will lie. `real_cwd` is the working directory with symlinks resolved. Different
    /// directories may share a folder; the path in hook payloads is the authority.
    #[must_use]
    pub fn transcript_path(&self, config_dir: &Path, real_cwd: &str, session_id: &str) -> PathBuf {
        paths::transcript(self.paths, config_dir, real_cwd, session_id)
    }
}
