//! The command line: a stable contract. Spellings follow Claude Code's own where it has one.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Drives the real Claude Code from the command line and from programs.
#[derive(Debug, Parser)]
#[command(name = "ccd", version, about, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one prompt in one interactive session of Claude Code
    Run(Box<RunArgs>),
    /// List live, stale and orphaned sessions
    #[command(alias = "ls")]
    Lifecheck(LifecheckArgs),
    /// Work with recorded traces
    Trace(TraceArgs),
    #[command(external_subcommand)]
    Later(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The final answer alone
    Text,
    /// One result object
    Json,
    /// One event per line, then the result object
    Events,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyArg {
    /// Deny every permission request
    Deny,
    /// Ask on this terminal
    Ask,
    /// Allow read-only tools
    AllowRead,
    /// Allow every request
    DangerouslyAllowAll,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExpectVersionArg {
    /// The pinned version only
    Pinned,
    /// Any version, without guarantees
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Until {
    /// Until the prompt's own turn ends
    Turn,
    /// Until background work has ended too
    Quiescent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TrustArg {
    /// Refuse to start in an untrusted workspace
    Require,
    /// Write trust before the start
    Seed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetworkArg {
    /// Do not meter
    Off,
    /// Meter model calls
    On,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AccountArg {
    /// A subscription login only
    Subscription,
    /// Whatever Claude finds: API keys, gateways
    Any,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The prompt; `-` or nothing reads standard input
    pub(crate) prompt: Option<String>,
    /// What to print on standard output
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) output_format: OutputFormat,
    /// Working directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,
    /// The Claude binary
    #[arg(long, value_name = "PATH")]
    pub(crate) claude: Option<PathBuf>,
    /// Which version of Claude Code may run
    #[arg(long, value_enum, default_value = "pinned")]
    pub(crate) expect_version: ExpectVersionArg,
    /// Which accounts may be used
    #[arg(long, value_enum, default_value = "subscription")]
    pub(crate) account: AccountArg,
    /// Model
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Permission mode: default, acceptEdits, plan, auto, dontAsk, bypassPermissions
    #[arg(long, value_name = "MODE", default_value = "default")]
    pub(crate) permission_mode: String,
    /// Who answers permission requests [default: ask on a terminal, otherwise deny]
    #[arg(long, value_enum)]
    pub(crate) policy: Option<PolicyArg>,
    /// Allow rules, in Claude's rule syntax, separated by commas or repeated
    #[arg(
        long = "allowedTools",
        visible_alias = "allowed-tools",
        value_name = "RULES"
    )]
    pub(crate) allowed_tools: Vec<String>,
    /// Deny rules, in Claude's rule syntax, separated by commas or repeated
    #[arg(
        long = "disallowedTools",
        visible_alias = "disallowed-tools",
        value_name = "RULES"
    )]
    pub(crate) disallowed_tools: Vec<String>,
    /// A further directory that tools may work in
    #[arg(long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Text appended to the system prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) append_system_prompt: Option<String>,
    /// An MCP configuration file
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,
    /// Continue the newest conversation of the directory
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub(crate) continue_last: bool,
    /// Resume the conversation with this id
    #[arg(short = 'r', long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// Copy the resumed conversation under a new id
    #[arg(long)]
    pub(crate) fork_session: bool,
    /// When the command is done
    #[arg(long, value_enum, default_value = "quiescent")]
    pub(crate) until: Until,
    /// What to do about workspace trust
    #[arg(long, value_enum, default_value = "require")]
    pub(crate) trust: TrustArg,
    /// The network meter
    #[arg(long, value_enum, default_value = "off")]
    pub(crate) network: NetworkArg,
    /// Interrupt after this time (`30s`, `5m`), then exit with 124
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Record a trace into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Set a variable for Claude (`K=V`), or pass one on (`K`)
    #[arg(long, value_name = "K[=V]")]
    pub(crate) env: Vec<String>,
    /// Set variables for Claude from a file of `K=V` lines
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Vec<PathBuf>,
    /// Deliver even what looks like a command, as text
    #[arg(long)]
    pub(crate) as_text: bool,
    /// For tests: route a public host to a loopback address
    #[arg(long, value_name = "HOST:PORT=ADDR", hide = true)]
    pub(crate) connect_map: Vec<String>,
    /// For tests: inject a network fault
    #[arg(long, value_name = "SPEC", hide = true)]
    pub(crate) fault: Vec<String>,
    /// Arguments for Claude itself
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) claude_args: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LifecheckArgs {
    /// Clean what crashed owners left
    #[arg(long)]
    pub(crate) reap: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) command: TraceCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Run a trace through the decision layers again and report any difference
    Replay {
        /// The trace file
        file: PathBuf,
    },
    #[command(external_subcommand)]
    Later(Vec<String>),
}

fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<u64>().ok().map(Duration::from_secs);
    let parsed = seconds.or_else(|| {
        text.parse::<jiff::SignedDuration>()
            .ok()
            .and_then(|duration| Duration::try_from(duration).ok())
    });
    parsed
        .filter(|limit| !limit.is_zero())
        .ok_or_else(|| "expected a time like `30s` or `5m`".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn durations_are_read_with_and_without_units() {
        for (text, seconds) in [("30", 30), ("30s", 30), ("5m", 300), ("1h", 3600)] {
            assert_eq!(
                duration(text).unwrap(),
                Duration::from_secs(seconds),
                "{text}"
            );
        }
        for text in ["", "0", "-5s", "soon"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }
}
