//! The stand-alone helper program: hook forwarder, prompt editor and session supervisor.
//!
//! What lives here: the three modes of `ccd-helper` and, exported for the host, the protocol of their arguments
//! ([`ForwardArgs`], [`EditorArgs`], [`SuperviseArgs`]), of the supervisor's messages ([`Report`], [`OwnerCommand`]),
//! of the editor's frames ([`frame`]) and the process facts both sides need ([`proc`]).
//! What never does: knowledge of Claude Code's payloads, policy, an async runtime, or any dependency but std and
//! rustix. The program starts many times per session, so it stays small.
//!
//! # Exit codes
//!
//! | mode | 0 | 1 | 64 |
//! |---|---|---|---|
//! | forward | a complete 2xx answer was written to stdout | anything else, wrong arguments too | never |
//! | editor | the text was written, or the file was to be kept | anything else; the file is untouched | wrong arguments |
//! | supervise | the orderly end, also after the owner's death | the set-up failed (reported) | wrong arguments |
//!
//! Exit code 2 is never used: as a hook's answer it would let a permission dialog stay open.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::process::ExitCode;

mod args;
#[cfg(unix)]
mod editor;
#[cfg(unix)]
mod forward;
pub mod frame;
#[cfg(unix)]
mod http;
pub mod owner;
pub mod proc;
mod report;
#[cfg(target_os = "linux")]
mod supervise;

pub use args::{
    EDITOR_LINK_NAME, EDITOR_SOCKET_NAME, EditorArgs, ForwardArgs, Invocation, Marker,
    SuperviseArgs, UsageError, is_helper_invocation,
};
pub use proc::{Identity, ProcError};
pub use report::{Acknowledged, MessageError, OwnerCommand, Report};

/// Version of the whole protocol: arguments, messages and frames. Both sides must agree exactly.
pub const PROTOCOL: u8 = 1;

/// Most bytes of a hook body, a hook answer or an editor text (64 MiB).
pub const MAX_BODY: usize = 64 * 1024 * 1024;

/// Exit code for wrong arguments of every mode but `forward` (`EX_USAGE`).
pub const EXIT_USAGE: u8 = 64;

/// Exit code for every failure at run time.
pub const EXIT_FAILURE: u8 = 1;

/// Runs the helper on the arguments of this process; the whole body of a `main`.
#[must_use]
pub fn main_entry() -> ExitCode {
    run(std::env::args_os())
}

/// Runs the helper on `args`, where the first element is the name of the program as invoked.
///
/// Returns the exit code of the process, see the table in the crate's documentation. Never prints the environment.
#[must_use]
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    match Invocation::parse(&args) {
        Ok(invocation) => dispatch(&invocation),
        Err(error) => {
            complain(&error);
            if args.get(1).map(OsString::as_os_str) == Some(OsStr::new(args::FORWARD)) {
                ExitCode::from(EXIT_FAILURE)
            } else {
                ExitCode::from(EXIT_USAGE)
            }
        }
    }
}

#[cfg(unix)]
fn dispatch(invocation: &Invocation) -> ExitCode {
    match invocation {
        Invocation::Forward(args) => match forward::run(args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                complain(&error);
                ExitCode::from(EXIT_FAILURE)
            }
        },
        // Silent in both cases: stdout and stderr are the terminal that Claude paints on.
        Invocation::Editor(args) => match editor::run(args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(EXIT_FAILURE),
        },
        Invocation::Supervise(args) => supervise(args),
    }
}

#[cfg(not(unix))]
fn dispatch(_invocation: &Invocation) -> ExitCode {
    complain(&"this mode needs unix sockets");
    ExitCode::from(EXIT_FAILURE)
}

#[cfg(target_os = "linux")]
fn supervise(args: &SuperviseArgs) -> ExitCode {
    match supervise::run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(EXIT_FAILURE),
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn supervise(_args: &SuperviseArgs) -> ExitCode {
    let report = Report::Failed {
        message: "the supervisor needs Linux".to_owned(),
    };
    // The owner reads stdout; if it is gone there is nobody to tell.
    let _ = std::io::stdout().write_all(report.to_first_line().as_bytes());
    ExitCode::from(EXIT_FAILURE)
}

/// One line on stderr; a closed stderr changes nothing.
fn complain(error: &dyn std::fmt::Display) {
    let line = error.to_string().replace(['\n', '\r'], " ");
    let _ = writeln!(std::io::stderr(), "ccd-helper: {line}");
}
