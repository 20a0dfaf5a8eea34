//! The adapters of one launch, in the order in which the launcher opens them.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use ccd_model::{
    ids::{FileKey, HoldId, OpId},
    intent::{Key, KeyGuard, PromptGuard, Signal},
    json::RawJson,
    time::Mono,
};

use crate::{PortFut, error::PortError};

/// What the supervisor needs. It creates the runtime directory and starts the tmux server with exactly `env`.
#[derive(Debug, Clone)]
pub struct SuperviseSpec {
    /// Our session id.
    pub session: String,
    /// The helper program.
    pub helper: PathBuf,
    /// The runtime directory to create, 0700. Its parent exists.
    pub runtime_dir: PathBuf,
    /// Environment of the tmux server and so of Claude. Contains `marker`.
    pub env: BTreeMap<String, String>,
    /// The variable that marks every process of this session.
    pub marker: (String, String),
    /// From TERM to KILL, milliseconds.
    pub grace_ms: u64,
    /// tmux.
    pub tmux: PathBuf,
    /// Columns and rows of the pane.
    pub size: (u16, u16),
    /// Working directory of Claude.
    pub cwd: PathBuf,
    /// Claude and its arguments, run in the pane through `/usr/bin/env -u TMUX -u TMUX_PANE`.
    pub claude_argv: Vec<String>,
}

/// What the hook server needs.
#[derive(Debug, Clone)]
pub struct HookSpec {
    /// Secret that each HTTP hook carries.
    pub token: String,
    /// Directory of the unix socket.
    pub runtime_dir: PathBuf,
    /// After this many milliseconds the hook thread itself denies a held request.
    pub permission_deadline_ms: u64,
    /// Rules that PreToolUse is denied by, in Claude's rule syntax, parsed by the session layer.
    pub deny: Vec<DenyRule>,
    /// The answers, as exact JSON texts, by kind.
    pub replies: HookReplies,
}

/// A parsed deny rule that the hook thread can decide without Claude.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenyRule {
    /// The rule as written.
    pub text: String,
    /// Tool name; a trailing `*` matches any rest.
    pub tool: String,
    /// For `Bash(prefix:*)` and `Bash(prefix *)`: the command prefix; `None` matches every call of the tool.
    pub command_prefix: Option<String>,
    /// For `Bash(exact)`: the whole command.
    pub command_exact: Option<String>,
}

/// Version-specific answer texts, from the profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookReplies {
    /// Blocks a submitted prompt (self-test, mismatch).
    pub block_prompt: String,
    /// Denies a tool; `{reason}` is replaced by a JSON string literal.
    pub deny_tool: String,
    /// Denies a permission; `{message}` is replaced by a JSON string literal.
    pub deny_permission: String,
    /// Name of the payload field with the prompt text.
    pub prompt_field: String,
    /// Event names: the held permission request, the prompt, the tool gate.
    pub permission_event: String,
    /// The prompt event.
    pub prompt_event: String,
    /// The tool gate event.
    pub tool_event: String,
    /// Prefix of prompts that Claude submits itself; never compared with the guard.
    pub internal_prompt_prefixes: Vec<String>,
}

/// Where the hook server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookAddress {
    /// Base URL of HTTP hooks, without a trailing slash (`http://127.0.0.1:4711`).
    pub url: String,
    /// The unix socket of the forwarder.
    pub socket: PathBuf,
}

/// A started hook server.
pub struct OpenHooks {
    /// Where it listens.
    pub address: HookAddress,
    /// Its handle.
    pub hooks: Box<dyn Hooks>,
}

/// How the pane adapter tests the screen at a key; tmux formats from the profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardFormats {
    /// True (non-zero) when the prompt composer owns the keys and no dialog is painted.
    pub composer: String,
    /// True (non-zero) when, besides, the cursor stands where it stands in an empty composer.
    pub empty: String,
    /// True (non-zero) when Claude looks busy, dialogs aside.
    pub busy: String,
    /// True (non-zero) when the prompt composer fills the pane, so that its mark has scrolled off, and no dialog is painted.
    pub tall: String,
    /// True (non-zero) when a dialog is painted.
    pub dialog: String,
}

/// Where the pane lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneAddress {
    /// The tmux socket.
    pub socket: PathBuf,
    /// The process in the pane.
    pub pane_pid: u32,
    /// The tmux server.
    pub server_pid: u32,
}

/// File name of the editor program in the runtime directory; `VISUAL` is its absolute path.
pub const EDITOR_NAME: &str = "ccd-editor";
/// File name of the settings file in the runtime directory.
pub const SETTINGS_NAME: &str = "settings.json";
/// File name of the forwarder's socket in the runtime directory.
pub const HOOK_SOCKET_NAME: &str = "hook.sock";
/// File name of the tmux socket in the runtime directory.
pub const TMUX_SOCKET_NAME: &str = "tmux.sock";

/// All adapters of one launch. Methods are called in the order given; [`SessionPorts::teardown`] undoes whatever was done, in reverse, and is safe at any point.
pub trait SessionPorts: Send {
    /// Starts the supervisor, which creates the runtime directory.
    fn supervise(&mut self, spec: SuperviseSpec) -> PortFut<'_, Result<(), PortError>>;
    /// Starts the hook server on its own thread and hands its listening sockets to the supervisor.
    fn hooks(&mut self, spec: HookSpec) -> PortFut<'_, Result<OpenHooks, PortError>>;
    /// Starts the editor socket `editor.sock` in the runtime directory and lays out the editor program there as [`EDITOR_NAME`].
    fn editor(&mut self) -> PortFut<'_, Result<Box<dyn Editor>, PortError>>;
    /// Writes a file into the runtime directory: exclusively, 0600. Returns its path.
    fn write_private<'a>(
        &'a mut self,
        name: &'a str,
        content: &'a str,
    ) -> PortFut<'a, Result<PathBuf, PortError>>;
    /// Starts the tmux server with Claude in its pane.
    fn spawn(&mut self) -> PortFut<'_, Result<PaneAddress, PortError>>;
    /// Attaches the control client.
    fn pane(&mut self, guards: GuardFormats) -> PortFut<'_, Result<Box<dyn Pane>, PortError>>;
    /// Opens the transcript follower.
    fn tail(&mut self) -> Box<dyn Tail>;
    /// Opens the follower of Claude's registry directory for the process of `session_id`.
    fn registry(&mut self, dir: PathBuf, session_id: &str) -> Box<dyn RegistryFile>;
    /// Opens the process watcher; the pane's process is watched at once.
    fn process(&mut self) -> Box<dyn Process>;
    /// Ends everything: adapters, tmux server, every process of the session, every file. Resolves when nothing is left.
    fn teardown(&mut self) -> PortFut<'_, Teardown>;
}

/// What teardown found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Teardown {
    /// Processes that had to be killed.
    pub killed: u32,
    /// What could not be removed.
    pub left: Vec<String>,
}

/// The hook server.
pub trait Hooks: Send {
    /// Arms the prompt guard.
    fn arm(&mut self, guard: PromptGuard);
    /// Disarms the prompt guard.
    fn disarm(&mut self);
    /// Answers a held request with this JSON; an unknown hold is ignored.
    fn answer(&mut self, hold: HoldId, reply: RawJson);
}

/// The editor injection.
pub trait Editor: Send {
    /// Lays out `text` for the next editor start; ends `Taken`, or `Refused` when unstaged or replaced.
    fn stage(&mut self, op: OpId, text: Arc<str>);
    /// Withdraws the staged text of `staged` if it was not taken yet. `op` ends `Done`.
    fn unstage(&mut self, op: OpId, staged: OpId);
}

/// The tmux pane. Operations run in order; each ends exactly once.
pub trait Pane: Send {
    /// Takes a capture; ends with a `Frame` or `FrameSame` record, and `Unknown` when the answer was lost.
    fn capture(&mut self, op: Option<OpId>);
    /// Presses a key if the guard holds, tried every few milliseconds until `until`.
    fn key(&mut self, op: OpId, key: Key, guard: KeyGuard, until: Mono);
    /// Forgets the last frame, so that the next capture is reported in full.
    fn forget_frame(&mut self);
    /// The last captured text.
    fn last_frame(&self) -> Arc<str>;
    /// Command line that attaches a terminal read-only.
    fn attach_command(&self) -> String;
}

/// The transcript follower.
pub trait Tail: Send {
    /// Follows `path` from byte `from`; the file need not exist yet.
    fn follow(&mut self, file: FileKey, path: PathBuf, from: u64);
    /// Follows `path` from its current end.
    fn follow_from_end(&mut self, file: FileKey, path: PathBuf);
    /// Stops following.
    fn forget(&mut self, file: FileKey);
    /// Polls this often, milliseconds.
    fn cadence(&mut self, ms: u32);
    /// Polls now.
    fn nudge(&mut self);
}

/// Claude's registry file of our process.
pub trait RegistryFile: Send {
    /// The pid is known: read its file only.
    fn pid(&mut self, pid: u32);
    /// Polls this often, milliseconds.
    fn cadence(&mut self, ms: u32);
}

/// The Claude process.
pub trait Process: Send {
    /// Watches Claude's own pid, in addition to the pane's. Its end is reported once.
    fn watch(&mut self, pid: u32);
    /// Signals Claude's own verified process; ends `Done`, or `Refused` when its identity does not fit.
    fn signal(&mut self, op: OpId, signal: Signal);
}
