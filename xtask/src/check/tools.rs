//! The second half of `check`: formatting, clippy, documentation, the public-dependency check and cargo-deny.

use super::Verdict;
use super::workspace::Workspace;
use crate::cache;
use crate::child::{cargo, executable, find, show, within};
use crate::failure::{Outcome, during};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The crate whose public API is kept clean.
const PUBLIC_API: &str = "ccd-api";

/// How long the advisory database may take to come.
const DATABASE_LIMIT: Duration = Duration::from_secs(60);

/// Runs every tool, also after a failure, and reports each.
pub(crate) fn run(workspace: &Workspace) -> Vec<(&'static str, Verdict)> {
    let root = &workspace.root;
    let mut report = vec![
        (
            "fmt",
            step(root, &mut cargo_with(&["fmt", "--all", "--check"])),
        ),
        ("clippy", clippy(workspace)),
        ("doc", doc(root)),
        ("public API types", public_types(root)),
    ];
    match deny(root) {
        Ok(rows) => report.extend(rows),
        Err(failure) => {
            eprintln!("{failure}");
            report.push(("deny", Verdict::Fail));
        }
    }
    report
}

fn cargo_with(args: &[&str]) -> Command {
    let mut command = cargo();
    command.args(args);
    command
}

fn step(root: &Path, command: &mut Command) -> Verdict {
    // The per-crate clippy files hold only while this variable is not set.
    command.current_dir(root).env_remove("CLIPPY_CONF_DIR");
    match show(command) {
        Ok(status) if status.success() => Verdict::Ok,
        Ok(_) => Verdict::Fail,
        Err(failure) => {
            eprintln!("{failure}");
            Verdict::Fail
        }
    }
}

/// `--all-targets` leaves out test targets with `test = false`; they are named one by one.
fn clippy(workspace: &Workspace) -> Verdict {
    let root = &workspace.root;
    let all = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    let mut verdict = step(root, &mut cargo_with(&all));
    for member in &workspace.members {
        for test in &member.held_back_tests {
            let args = [
                "clippy",
                "-p",
                &member.name,
                "--test",
                test,
                "--",
                "-D",
                "warnings",
            ];
            if step(root, &mut cargo_with(&args)) != Verdict::Ok {
                verdict = Verdict::Fail;
            }
        }
    }
    verdict
}

fn doc(root: &Path) -> Verdict {
    let mut command = cargo_with(&["doc", "--workspace", "--no-deps"]);
    step(root, command.env("RUSTDOCFLAGS", "-Dwarnings"))
}

/// Types of private dependencies in the public API are an error of the compiler, behind an unstable flag. Only the one
/// crate is judged: the others may show what they like to each other.
fn public_types(root: &Path) -> Verdict {
    let target = match target_dir(root) {
        Ok(dir) => dir.join("public-dep"),
        Err(failure) => {
            eprintln!("{failure}");
            return Verdict::Fail;
        }
    };
    let build = ["rustc", "-p", PUBLIC_API, "--lib", "--profile", "check"];
    let mut command = cargo_with(&build);
    command
        .args([
            "-Zpublic-dependency",
            "--",
            "-Fexported-private-dependencies",
        ])
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", "-Aexported-private-dependencies")
        .env("CARGO_TARGET_DIR", target);
    step(root, &mut command)
}

fn target_dir(root: &Path) -> Outcome<PathBuf> {
    let metadata = cargo_metadata::MetadataCommand::new()
        .current_dir(root)
        .no_deps()
        .exec()
        .map_err(during("cargo metadata"))?;
    Ok(metadata.target_directory.into_std_path_buf())
}

fn deny(root: &Path) -> Outcome<Vec<(&'static str, Verdict)>> {
    let program = cargo_deny()?;
    let mut check = Command::new(&program);
    check.args(["check", "bans", "licenses", "sources"]);
    let rules = step(root, &mut check);
    Ok(vec![
        ("deny", rules),
        ("advisories", advisories(root, &program)?),
    ])
}

/// The advisories need a database from the network; without it they are skipped, and with it they count.
fn advisories(root: &Path, program: &Path) -> Outcome<Verdict> {
    eprintln!("==> cargo-deny fetch db");
    let mut fetch = Command::new(program);
    fetch
        .args(["fetch", "db"])
        .current_dir(root)
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match within(&mut fetch, DATABASE_LIMIT)? {
        Some(status) if status.success() => {
            let mut check = Command::new(program);
            check.args(["check", "--disable-fetch", "advisories"]);
            Ok(step(root, &mut check))
        }
        Some(_) => Ok(Verdict::Skipped("the database cannot be had".to_owned())),
        None => Ok(Verdict::Skipped(format!(
            "the database did not come within {} s",
            DATABASE_LIMIT.as_secs()
        ))),
    }
}

/// Finds cargo-deny in `PATH` or in the cache, or installs it into the cache.
fn cargo_deny() -> Outcome<PathBuf> {
    let tools = cache::root()?.join("tools");
    let own = tools.join("bin").join("cargo-deny");
    if let Some(found) = find("cargo-deny", &[&tools.join("bin")]) {
        return Ok(found);
    }
    eprintln!("check: cargo-deny is missing: installing it once, which takes about 3 minutes");
    std::fs::create_dir_all(&tools).map_err(during(tools.display()))?;
    let mut install = cargo_with(&["install", "--locked", "cargo-deny", "--root"]);
    crate::child::must(install.arg(&tools))?;
    if executable(&own) {
        return Ok(own);
    }
    Err(crate::failure::Failure::new(format!(
        "cargo install did not leave {}",
        own.display()
    )))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::{clippy, doc, public_types, step};
    use crate::check::Verdict;
    use crate::check::planted::Planted;
    use crate::child::cargo;

    /// `ccd-api` with one public and one private dependency; the public one shows a private type of its own.
    fn api(code: &str) -> Planted {
        let dependencies = "[dependencies]\nshown = { path = \"../shown\", public = true }\nhidden = { path = \"../hidden\" }\n";
        let shown = "[dependencies]\nhidden = { path = \"../hidden\" }\n";
        Planted::new()
            .library("hidden", "pub struct Hidden;")
            .member("shown", shown)
            .file(
                "crates/shown/src/lib.rs",
                "//! S.\npub struct Shown;\npub fn leak(_: hidden::Hidden) {}\n",
            )
            .member("ccd-api", dependencies)
            .file("crates/ccd-api/src/lib.rs", &format!("//! A.\n{code}\n"))
    }

    #[test]
    fn a_type_of_a_private_dependency_in_the_public_api_is_found() {
        for code in [
            "pub fn f(_: hidden::Hidden) {}",
            "pub use hidden::Hidden;",
            "pub struct S; impl From<hidden::Hidden> for S { fn from(_: hidden::Hidden) -> S { S } }",
        ] {
            assert_eq!(public_types(api(code).root()), Verdict::Fail, "{code}");
        }
        let clean = "pub fn f(_: shown::Shown) {}\npub fn g() { let _ = hidden::Hidden; }";
        assert_eq!(public_types(api(clean).root()), Verdict::Ok);
    }

    #[test]
    fn the_tools_fail_on_what_they_are_for() {
        let bad = Planted::new().library("a", "//! [nowhere]\npub fn f( )->bool{ return true; }");
        let mut fmt = cargo();
        fmt.args(["fmt", "--all", "--check"]);
        assert_eq!(step(bad.root(), &mut fmt), Verdict::Fail);
        assert_eq!(clippy(&bad.load()), Verdict::Fail);
        assert_eq!(doc(bad.root()), Verdict::Fail);
        let good = Planted::new().library("a", "/// True.\npub fn f() -> bool {\n    true\n}");
        let mut fmt = cargo();
        fmt.args(["fmt", "--all", "--check"]);
        assert_eq!(step(good.root(), &mut fmt), Verdict::Ok);
        assert_eq!(clippy(&good.load()), Verdict::Ok);
        assert_eq!(doc(good.root()), Verdict::Ok);
    }

    #[test]
    fn a_test_target_that_a_plain_run_leaves_out_is_linted_too() {
        let tree = Planted::new()
            .member("a", "[[test]]\nname = \"held\"\ntest = false\n")
            .file("crates/a/tests/held.rs", "#[test]\nfn t() { let x = 1; }\n");
        assert_eq!(clippy(&tree.load()), Verdict::Fail);
    }
}
