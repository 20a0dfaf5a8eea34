//! The figures of the driver. Not available yet; it says so.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let area = std::env::args().nth(1).unwrap_or_default();
    eprintln!("ccd-bench: `{area}` is not available yet");
    ExitCode::from(2)
}
