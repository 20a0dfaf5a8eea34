//! `cargo xtask test`: which cargo commands make up which suite, and the summary. The tests live in the crates.

use crate::child::{cargo, read, seconds, show};
use crate::failure::{Failure, Outcome};
use crate::programs::{self, RIG};
use cargo_metadata::{Metadata, TargetKind};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The suites by name. `all` is the whole workspace, then `real`.
pub(crate) const SUITES: [&str; 7] = [
    "unit", "arch", "kernel", "replay", "contract", "real", "all",
];

/// The suites with tests that start tmux.
const NEED_TOOLS: [&str; 3] = ["contract", "real", "all"];

/// How many tests with a real Claude Code run at a time.
const REAL_THREADS: &str = "2";

/// One suite that ran.
#[derive(Debug)]
struct Ran {
    suite: String,
    passed: bool,
    took: Duration,
}

/// Runs a suite, only the tests whose name contains `filter`.
pub(crate) fn run(root: &Path, suite: &str, filter: Option<&str>) -> Outcome<()> {
    if !SUITES.contains(&suite) {
        let known = SUITES.join("|");
        return Err(Failure::usage(format!(
            "test: no suite `{suite}`; one of {known}"
        )));
    }
    let metadata = programs::metadata(root)?;
    let steps = steps(&metadata, suite, filter)?;
    if NEED_TOOLS.contains(&suite) {
        crate::setup::ensure_tools()?;
    }
    let variables = programs::told(root, &metadata, false)?;
    let mut ran = Vec::new();
    for step in steps {
        let start = Instant::now();
        let passed = match step.run(root, &variables) {
            Ok(passed) => passed,
            Err(failure) => {
                eprintln!("{failure}");
                false
            }
        };
        ran.push(Ran {
            suite: step.suite,
            passed,
            took: start.elapsed(),
        });
    }
    summary(&ran)
}

/// One cargo command of a suite.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    suite: String,
    args: Vec<String>,
    /// Runs with the pinned Claude Code, in a network namespace.
    real: bool,
    /// Why it cannot run; it fails then, after the others have run.
    refused: Option<String>,
}

impl Step {
    fn new(suite: &str, args: &[&str], filter: Option<&str>) -> Self {
        let mut args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
        args.extend(filter.map(str::to_owned));
        Self {
            suite: suite.to_owned(),
            args,
            real: false,
            refused: None,
        }
    }

    fn run(&self, root: &Path, variables: &[(&'static str, OsString)]) -> Outcome<bool> {
        if let Some(why) = &self.refused {
            return Err(Failure::new(format!("{}: {why}", self.suite)));
        }
        let mut command = cargo();
        command.arg("test").current_dir(root);
        if self.real {
            command
                .arg("--config")
                .arg(runner()?)
                .env("CCD_CLAUDE", crate::setup::ensure(root)?)
                .env("RUST_TEST_THREADS", REAL_THREADS);
        }
        command
            .args(&self.args)
            .envs(variables.iter().map(|(name, value)| (name, value)));
        Ok(show(&mut command)?.success())
    }
}

fn steps(metadata: &Metadata, suite: &str, filter: Option<&str>) -> Outcome<Vec<Step>> {
    let workspace = ["--workspace", "--no-fail-fast"];
    match suite {
        "unit" => Ok(vec![
            Step::new(
                "unit",
                &["--workspace", "--no-fail-fast", "--lib", "--bins"],
                filter,
            ),
            Step::new("doc", &["--workspace", "--no-fail-fast", "--doc"], filter),
        ]),
        "arch" => Ok(vec![Step::new("arch", &["-p", "xtask"], filter)]),
        "real" => Ok(vec![real(metadata, filter)?]),
        "all" => Ok(vec![
            Step::new("workspace", &workspace, filter),
            real(metadata, filter).unwrap_or_else(|failure| Step {
                refused: Some(failure.message),
                ..Step::new("real", &[], None)
            }),
        ]),
        _ => {
            let steps: Vec<Step> = targets(metadata, suite)
                .iter()
                .map(|(package, test)| {
                    let args = ["-p", package, "--test", test];
                    Step::new(&format!("{suite} ({package})"), &args, filter)
                })
                .collect();
            if steps.is_empty() {
                let message = format!("not available yet: no crate has a test target `{suite}`");
                return Err(Failure::usage(message));
            }
            Ok(steps)
        }
    }
}

/// The test targets of a suite: those of its name, and those that begin with it and `_`.
fn targets(metadata: &Metadata, suite: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for package in &metadata.packages {
        for target in &package.targets {
            let rest = target.name.strip_prefix(suite);
            let named = rest.is_some_and(|r| r.is_empty() || r.starts_with('_'));
            if named && target.is_kind(TargetKind::Test) {
                found.push((package.name.to_string(), target.name.clone()));
            }
        }
    }
    found.sort();
    found
}

/// The real suite is a test target with `test = false`: a plain `cargo test` leaves it out, naming it runs it.
fn real(metadata: &Metadata, filter: Option<&str>) -> Outcome<Step> {
    let rig = metadata.packages.iter().find(|p| p.name.as_str() == RIG);
    let target = rig.and_then(|p| {
        let mut targets = p.targets.iter();
        targets.find(|t| t.name == "real" && t.is_kind(TargetKind::Test))
    });
    match target {
        Some(target) if target.test => Err(Failure::new(format!(
            "the test target `real` of {RIG} must say `test = false`: a plain `cargo test` would run it outside of the namespace"
        ))),
        Some(_) => Ok(Step {
            real: true,
            ..Step::new("real", &["-p", RIG, "--test", "real"], filter)
        }),
        None => Err(Failure::usage(format!(
            "not available yet: {RIG} has no test target `real`"
        ))),
    }
}

/// The cargo setting that runs only the test program in the namespace, and builds outside of it.
fn runner() -> Outcome<String> {
    let version = read(Command::new("rustc").arg("-vV"))?;
    let Some(host) = version.lines().find_map(|l| l.strip_prefix("host: ")) else {
        return Err(Failure::new("rustc -vV does not name the host"));
    };
    let me = std::env::current_exe().map_err(|e| Failure::new(format!("this program: {e}")))?;
    Ok(runner_setting(host, &me.to_string_lossy()))
}

fn runner_setting(host: &str, program: &str) -> String {
    let program = toml::Value::from(program);
    format!("target.{host}.runner=[{program}, \"isolate\", \"--\"]")
}

fn summary(ran: &[Ran]) -> Outcome<()> {
    println!();
    for suite in ran {
        let verdict = if suite.passed { "ok  " } else { "FAIL" };
        println!("  {verdict} {} ({})", suite.suite, seconds(suite.took));
    }
    let failed = ran.iter().filter(|s| !s.passed).count();
    let total = seconds(ran.iter().map(|s| s.took).sum());
    if failed > 0 {
        return Err(Failure::new(format!(
            "test: FAILED, {failed} of {} suites, {total}",
            ran.len()
        )));
    }
    println!("test: ok, {} suites, {total}", ran.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::{Ran, run, runner_setting, steps, summary};
    use crate::programs::metadata;
    use std::path::Path;
    use std::time::Duration;

    fn tree(rig: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let package = "[package]\nname = \"ccd-rig\"\nversion = \"0.0.0\"\nedition = \"2024\"\n";
        write("Cargo.toml", &format!("{package}{rig}\n[workspace]\n"));
        write("src/lib.rs", "");
        write("tests/real.rs", "");
        write("tests/replay_traces.rs", "#[test]\nfn it_replays() {}\n");
        write("tests/replayed.rs", "");
        dir
    }

    const HELD_BACK: &str = "[[test]]\nname = \"real\"\ntest = false\n";

    fn args(suite: &str, filter: Option<&str>) -> Vec<String> {
        let tree = tree(HELD_BACK);
        let metadata = metadata(tree.path()).unwrap();
        let steps = steps(&metadata, suite, filter).unwrap();
        steps.iter().map(|s| s.args.join(" ")).collect()
    }

    #[test]
    fn suites_are_cargo_commands() {
        assert_eq!(args("replay", None), ["-p ccd-rig --test replay_traces"]);
        assert_eq!(args("arch", Some("timers")), ["-p xtask timers"]);
        assert_eq!(
            args("all", None),
            ["--workspace --no-fail-fast", "-p ccd-rig --test real"]
        );
        let unit = args("unit", None);
        assert!(
            unit.iter().any(|a| a.ends_with("--doc")) && unit.len() == 2,
            "{unit:?}"
        );
    }

    #[test]
    fn a_suite_without_tests_is_not_available() {
        let tree = tree(HELD_BACK);
        let failure = steps(&metadata(tree.path()).unwrap(), "kernel", None).unwrap_err();
        assert_eq!(failure.code, 2);
        assert_eq!(run(tree.path(), "nonsense", None).unwrap_err().code, 2);
    }

    #[test]
    fn a_real_suite_that_a_plain_run_would_include_is_refused() {
        let tree = tree("");
        let metadata = metadata(tree.path()).unwrap();
        let failure = steps(&metadata, "real", None).unwrap_err();
        assert!(failure.message.contains("test = false"), "{failure}");
        let all = steps(&metadata, "all", None).unwrap();
        let real = all.last().unwrap();
        assert!(real.run(tree.path(), &[]).is_err(), "{real:?}");
    }

    #[test]
    fn one_failed_suite_fails_the_run() {
        let ran = |passed| Ran {
            suite: "s".into(),
            passed,
            took: Duration::from_secs(1),
        };
        assert!(summary(&[ran(true), ran(true)]).is_ok());
        let failure = summary(&[ran(true), ran(false)]).unwrap_err();
        assert_eq!(failure.message, "test: FAILED, 1 of 2 suites, 2.0 s");
    }

    #[test]
    fn a_suite_runs_and_its_failure_shows() {
        let tree = tree(HELD_BACK);
        run(tree.path(), "replay", None).unwrap();
        let code = "#[test]\nfn it_replays() { assert!(false) }\n";
        std::fs::write(tree.path().join("tests/replay_traces.rs"), code).unwrap();
        assert_eq!(run(tree.path(), "replay", None).unwrap_err().code, 1);
        run(tree.path(), "replay", Some("no_test_of_this_name")).unwrap();
    }

    #[test]
    fn the_runner_survives_spaces_and_quotes_in_the_path() {
        let setting = runner_setting("h", &Path::new("/a b/\"x\"").to_string_lossy());
        let table: toml::Table = toml::from_str(&setting).unwrap();
        let runner = table["target"]["h"]["runner"].as_array().unwrap();
        assert_eq!(runner[0].as_str().unwrap(), "/a b/\"x\"");
        assert_eq!(runner.len(), 3);
    }
}
