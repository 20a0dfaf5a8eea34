//! `ccd trace`: recorded traces. Replay runs them through the decision layers again.

use std::{path::Path, process::ExitCode};

use ccd_runtime::replay_file;

use crate::{
    args::{TraceArgs, TraceCommand},
    output,
};

/// Runs the command: 0 no difference, 1 a difference, 2 a file that cannot be replayed.
pub(crate) fn trace(args: &TraceArgs) -> ExitCode {
    match &args.command {
        TraceCommand::Replay { file } => replay(file),
        TraceCommand::Later(name) => {
            output::tell(&format!(
                "ccd: `trace {}` is not available yet",
                name.first().map_or("", String::as_str)
            ));
            ExitCode::from(2)
        }
    }
}

fn replay(file: &Path) -> ExitCode {
    let replayed = match replay_file(file) {
        Ok(replayed) => replayed,
        Err(error) => {
            output::tell(&format!("ccd: {}: {error}", file.display()));
            return ExitCode::from(2);
        }
    };
    let written = replayed
        .differences
        .iter()
        .all(|difference| output::line(difference));
    if !written {
        output::tell("ccd: the differences could not be written");
    }
    output::tell(&format!(
        "ccd: {} events, {} differences",
        replayed.events.len(),
        replayed.differences.len()
    ));
    ExitCode::from(u8::from(!replayed.differences.is_empty()))
}
