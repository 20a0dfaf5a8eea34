//! The `ccd-helper` program: nothing but the call of the library's entry point.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    ccd_helper::main_entry()
}
