//! Options of a session. The only place that knows their public shape; everything below sees the internal specification.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use ccd_runtime::model;
use ccd_types::{Error, ErrorCode, PermissionMode};
use model::{
    kernel::Decide,
    permission::{self, check_policy},
    spec,
};

use crate::permissions::Permissions;

/// Which version of Claude Code may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpectVersion {
    /// Exactly the pinned one.
    Pinned,
    /// Any, without guarantees.
    Any,
}

/// What to do about workspace trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trust {
    /// Refuse to start in a workspace that was never trusted.
    Require,
    /// Write trust before the start.
    Seed,
}

/// Which accounts may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Account {
    /// A subscription login only.
    Subscription,
    /// Whatever Claude finds: API keys, gateways.
    Any,
}

/// Options of one session. `permissions` has no default.
#[derive(Debug, Clone)]
#[must_use]
pub struct Options {
    cwd: PathBuf,
    permissions: Option<Permissions>,
    claude: Option<PathBuf>,
    helper: Option<PathBuf>,
    expect_version: ExpectVersion,
    account: Account,
    trust: Trust,
    resume: Option<String>,
    continue_last: bool,
    fork: bool,
    model: Option<String>,
    mode: PermissionMode,
    allowed_tools: Vec<String>,
    disallowed_tools: Vec<String>,
    add_dirs: Vec<PathBuf>,
    append_system_prompt: Option<String>,
    mcp_config: Vec<PathBuf>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    self_test: bool,
    trace: Option<PathBuf>,
    state_dir: Option<PathBuf>,
    start_timeout: Duration,
    permission_timeout: Duration,
    close_timeout: Duration,
}

impl Options {
    /// Options for a session in `cwd`.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        let limits = spec::Limits::default();
        Self {
            cwd: cwd.into(),
            permissions: None,
            claude: None,
            helper: None,
            expect_version: ExpectVersion::Pinned,
            account: Account::Subscription,
            trust: Trust::Require,
            resume: None,
            continue_last: false,
            fork: false,
            model: None,
            mode: PermissionMode::Default,
            allowed_tools: Vec::new(),
            disallowed_tools: Vec::new(),
            add_dirs: Vec::new(),
            append_system_prompt: None,
            mcp_config: Vec::new(),
            args: Vec::new(),
            env: BTreeMap::new(),
            self_test: true,
            trace: None,
            state_dir: None,
            start_timeout: Duration::from_millis(limits.start_ms),
            permission_timeout: Duration::from_millis(limits.permission_ms),
            close_timeout: Duration::from_millis(limits.close_ms),
        }
    }

    /// Who answers permission requests. Required.
    pub fn permissions(mut self, permissions: Permissions) -> Self {
        self.permissions = Some(permissions);
        self
    }

    /// The Claude binary; else `CCD_CLAUDE`, the managed install, or PATH.
    pub fn claude(mut self, path: impl Into<PathBuf>) -> Self {
        self.claude = Some(path.into());
        self
    }

    /// The helper program; else `CCD_HELPER` or a sibling of this executable.
    pub fn helper(mut self, path: impl Into<PathBuf>) -> Self {
        self.helper = Some(path.into());
        self
    }

    /// Which version of Claude Code may run.
    pub fn expect_version(mut self, expect: ExpectVersion) -> Self {
        self.expect_version = expect;
        self
    }

    /// Which accounts may be used.
    pub fn account(mut self, account: Account) -> Self {
        self.account = account;
        self
    }

    /// What to do about workspace trust.
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Resumes the conversation with Claude's session id `id`.
    pub fn resume(mut self, id: impl Into<String>) -> Self {
        self.resume = Some(id.into());
        self
    }

    /// Continues the newest conversation of the directory.
    pub fn continue_last(mut self) -> Self {
        self.continue_last = true;
        self
    }

    /// With `resume` or `continue_last`: copies the conversation under a new id.
    pub fn fork(mut self) -> Self {
        self.fork = true;
        self
    }

    /// Model, as Claude's own flag takes it.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Permission mode; always pinned, `default` unless set.
    pub fn permission_mode(mut self, mode: PermissionMode) -> Self {
        self.mode = mode;
        self
    }

    /// Adds allow rules in Claude's rule syntax.
    pub fn allowed_tools<S: Into<String>>(mut self, rules: impl IntoIterator<Item = S>) -> Self {
        self.allowed_tools.extend(rules.into_iter().map(Into::into));
        self
    }

    /// Adds deny rules in Claude's rule syntax. They hold under every policy.
    pub fn disallowed_tools<S: Into<String>>(mut self, rules: impl IntoIterator<Item = S>) -> Self {
        self.disallowed_tools
            .extend(rules.into_iter().map(Into::into));
        self
    }

    /// Adds a directory that tools may work in.
    pub fn add_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.add_dirs.push(dir.into());
        self
    }

    /// Appends to the system prompt.
    pub fn append_system_prompt(mut self, text: impl Into<String>) -> Self {
        self.append_system_prompt = Some(text.into());
        self
    }

    /// Adds an MCP configuration file.
    pub fn mcp_config(mut self, file: impl Into<PathBuf>) -> Self {
        self.mcp_config.push(file.into());
        self
    }

    /// Adds an argument for Claude itself. Arguments that would break the driver are refused at start.
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds a variable to Claude's environment, which is otherwise built from an allowlist.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Whether the start proves input and hooks with a blocked prompt; on unless the conversation is resumed.
    pub fn self_test(mut self, on: bool) -> Self {
        self.self_test = on;
        self
    }

    /// Records a trace into this file; secrets are replaced by placeholders.
    pub fn trace(mut self, file: impl Into<PathBuf>) -> Self {
        self.trace = Some(file.into());
        self
    }

    /// State directory with the records of live sessions.
    pub fn state_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.state_dir = Some(dir.into());
        self
    }

    /// From launch to ready.
    pub fn start_timeout(mut self, limit: Duration) -> Self {
        self.start_timeout = limit;
        self
    }

    /// For one permission answer.
    pub fn permission_timeout(mut self, limit: Duration) -> Self {
        self.permission_timeout = limit;
        self
    }

    /// From a graceful close to the kill.
    pub fn close_timeout(mut self, limit: Duration) -> Self {
        self.close_timeout = limit;
        self
    }

    pub(crate) fn to_session_spec(
        &self,
    ) -> Result<(spec::SessionSpec, Option<Arc<dyn Decide>>), Error> {
        let config = |reason: &str, message: String| Error::new(ErrorCode::Config, reason, message);
        let Some(permissions) = &self.permissions else {
            return Err(config(
                "permissions_missing",
                "choose who answers permission requests: Options::permissions".into(),
            ));
        };
        let mode = internal_mode(self.mode);
        if let Err(contradiction) = check_policy(permissions.policy(), mode) {
            return Err(config("policy_mode", contradiction.0.to_owned()));
        }
        if self.resume.is_some() && self.continue_last {
            return Err(config(
                "resume_and_continue",
                "resume and continue_last exclude each other".into(),
            ));
        }
        if self.fork && self.resume.is_none() && !self.continue_last {
            return Err(config(
                "fork_without_resume",
                "fork needs resume or continue_last".into(),
            ));
        }
        let text = |path: &PathBuf, what: &str| {
            path.to_str().map(str::to_owned).ok_or_else(|| {
                config(
                    "path_not_utf8",
                    format!("{what} is not valid UTF-8: {}", path.display()),
                )
            })
        };
        let cwd = std::path::absolute(&self.cwd).map_err(|error| {
            config(
                "cwd",
                format!("the working directory {}: {error}", self.cwd.display()),
            )
        })?;
        let millis = |limit: Duration| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let spec = spec::SessionSpec {
            cwd: text(&cwd, "the working directory")?,
            claude: self
                .claude
                .as_ref()
                .map(|path| text(path, "the Claude path"))
                .transpose()?,
            helper: self
                .helper
                .as_ref()
                .map(|path| text(path, "the helper path"))
                .transpose()?,
            expect_version: match self.expect_version {
                ExpectVersion::Pinned => spec::ExpectVersion::Pinned,
                ExpectVersion::Any => spec::ExpectVersion::Any,
            },
            account: match self.account {
                Account::Subscription => spec::Account::Subscription,
                Account::Any => spec::Account::Any,
            },
            trust: match self.trust {
                Trust::Require => spec::Trust::Require,
                Trust::Seed => spec::Trust::Seed,
            },
            conversation: match (&self.resume, self.continue_last) {
                (Some(id), _) => spec::Conversation::Resume {
                    id: id.clone(),
                    fork: self.fork,
                },
                (None, true) => spec::Conversation::Continue { fork: self.fork },
                (None, false) => spec::Conversation::New,
            },
            model: self.model.clone(),
            mode,
            policy: permissions.policy(),
            allowed_tools: self.allowed_tools.clone(),
            disallowed_tools: self.disallowed_tools.clone(),
            add_dirs: self
                .add_dirs
                .iter()
                .map(|dir| text(dir, "a directory"))
                .collect::<Result<_, _>>()?,
            append_system_prompt: self.append_system_prompt.clone(),
            mcp_config: self
                .mcp_config
                .iter()
                .map(|file| text(file, "an MCP file"))
                .collect::<Result<_, _>>()?,
            extra_args: self.args.clone(),
            env: self.env.clone(),
            self_test: self.self_test,
            trace: self
                .trace
                .as_ref()
                .map(|file| text(file, "the trace file"))
                .transpose()?,
            state_dir: self
                .state_dir
                .as_ref()
                .map(|dir| text(dir, "the state directory"))
                .transpose()?,
            limits: spec::Limits {
                start_ms: millis(self.start_timeout),
                permission_ms: millis(self.permission_timeout),
                close_ms: millis(self.close_timeout),
            },
        };
        Ok((spec, permissions.decider()))
    }
}

const fn internal_mode(mode: PermissionMode) -> permission::PermissionMode {
    match mode {
        PermissionMode::AcceptEdits => permission::PermissionMode::AcceptEdits,
        PermissionMode::Plan => permission::PermissionMode::Plan,
        PermissionMode::Auto => permission::PermissionMode::Auto,
        PermissionMode::DontAsk => permission::PermissionMode::DontAsk,
        PermissionMode::BypassPermissions => permission::PermissionMode::BypassPermissions,
        // `Default`, and any later mode that this version cannot pin.
        _ => permission::PermissionMode::Default,
    }
}
