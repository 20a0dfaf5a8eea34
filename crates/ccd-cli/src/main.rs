//! The `ccd` command: argument parsing and dispatch. Each command lives in its own module.
#![forbid(unsafe_code)]

mod args;
mod collect;
mod lifecheck;
mod output;
mod permissions;
mod progress;
mod run;
mod run_options;
mod signals;
mod trace;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Command};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::from(error.use_stderr()) * 2);
        }
    };
    match cli.command {
        Command::Run(args) => in_runtime(run::run(*args)),
        Command::Lifecheck(args) => in_runtime(lifecheck::lifecheck(args)),
        Command::Trace(args) => trace::trace(&args),
        Command::Later(name) => {
            output::tell(&format!(
                "ccd: `{}` is not available yet; see `ccd --help` for what is",
                name.first().map_or("", String::as_str)
            ));
            ExitCode::from(2)
        }
    }
}

fn in_runtime(command: impl Future<Output = u8>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(command);
            // A terminal read that nobody answers must not hold the process.
            runtime.shutdown_background();
            ExitCode::from(code)
        }
        Err(error) => {
            output::tell(&format!("ccd: cannot start: {error}"));
            ExitCode::from(1)
        }
    }
}
