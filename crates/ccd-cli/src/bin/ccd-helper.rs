//! The helper program, built beside `ccd` so that an installation puts both into one directory.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ccd_helper::main_entry()
}
