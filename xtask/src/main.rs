//! The tasks of the project, run as `cargo xtask TASK`. Only the choice of the task lives here.
#![forbid(unsafe_code)]

mod cache;
mod check;
mod child;
mod failure;
mod isolate;
mod programs;
mod setup;
mod suites;

use failure::{Failure, Outcome};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask TASK

  check [--fast]        the rules of the architecture, then fmt, clippy, doc and cargo-deny; --fast: the rules only
  setup                 finds or fetches tmux, ip and the pinned Claude Code; prints its path
  test [SUITE] [FILTER] runs a suite: unit, arch, kernel, replay, contract, real, all (default: all)
  demo [ARGS]           one real session against the fake service, in isolation
  soak NAME N           long runs, in isolation
  bench AREA [ARGS]     figures, in isolation, release build
  isolate -- CMD…       runs CMD in a network namespace with only loopback";

/// Tasks that have a name and nothing behind it yet.
const LATER: [&str; 3] = ["goldens", "fixtures", "docs"];

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match task(&args) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.code)
        }
    }
}

fn task(args: &[OsString]) -> Outcome<u8> {
    let Some((name, rest)) = args.split_first() else {
        return Err(Failure::usage(USAGE));
    };
    let root = root()?;
    let name = name.to_string_lossy();
    match name.as_ref() {
        "check" => {
            let fast = match words(rest).as_slice() {
                [] => false,
                ["--fast"] => true,
                _ => return Err(Failure::usage(USAGE)),
            };
            check::run(&root, fast).map(|()| 0)
        }
        "setup" if rest.is_empty() => {
            println!("{}", setup::ensure(&root)?.display());
            Ok(0)
        }
        "test" => {
            let words = words(rest);
            let (suite, filter) = match words.as_slice() {
                [] => ("all", None),
                [suite] => (*suite, None),
                [suite, filter] => (*suite, Some(*filter)),
                _ => return Err(Failure::usage(USAGE)),
            };
            suites::run(&root, suite, filter).map(|()| 0)
        }
        "demo" => programs::run_isolated(&root, "ccd-demo", rest, false),
        "soak" if rest.len() == 2 => programs::run_isolated(&root, "ccd-soak", rest, false),
        "bench" if !rest.is_empty() => programs::run_isolated(&root, "ccd-bench", rest, true),
        "isolate" => Err(isolate::run(rest)),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(0)
        }
        later if LATER.contains(&later) => {
            Err(Failure::usage(format!("{later}: not available yet")))
        }
        _ => Err(Failure::usage(USAGE)),
    }
}

/// Arguments that are words; one that is not text is a word that nothing is called.
fn words(args: &[OsString]) -> Vec<&str> {
    args.iter()
        .map(|a| a.to_str().unwrap_or("\u{fffd}"))
        .collect()
}

/// The root of the workspace: the folder above this crate, else the nearest folder with the architecture.
fn root() -> Outcome<PathBuf> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let here = std::env::current_dir().ok();
    let candidates = here.iter().flat_map(|dir| dir.ancestors()).chain(built);
    for dir in candidates {
        if dir.join("architecture.toml").is_file() {
            return Ok(dir.to_path_buf());
        }
    }
    Err(Failure::new(
        "no architecture.toml in this folder or above it: run this inside the workspace",
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::task;

    fn code(args: &[&str]) -> u8 {
        let args: Vec<_> = args.iter().map(Into::into).collect();
        match task(&args) {
            Ok(code) => code,
            Err(failure) => failure.code,
        }
    }

    #[test]
    fn a_wrong_request_ends_with_2() {
        for args in [
            [].as_slice(),
            &["nonsense"],
            &["check", "--slow"],
            &["setup", "now"],
            &["test", "nonsense"],
            &["test", "unit", "a", "b"],
            &["soak", "one"],
            &["bench"],
            &["goldens"],
            &["fixtures"],
            &["docs"],
            &["isolate"],
        ] {
            assert_eq!(code(args), 2, "{args:?}");
        }
        assert_eq!(code(&["help"]), 0);
    }
}
