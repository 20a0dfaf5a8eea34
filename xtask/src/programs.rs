//! The programs of the workspace that tasks run: building them, finding them, and what they are told by environment.

use crate::child::{cargo, show_as, typed};
use crate::failure::{Failure, Outcome, during};
use cargo_metadata::{Message, Metadata, MetadataCommand, TargetKind};
use std::ffi::OsString;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The programs that the others are told about, with the variable that says where each is.
const TOLD: [(&str, &str); 2] = [("ccd-helper", "CCD_HELPER"), ("ccd", "CCD_BIN")];

/// The crate that holds the rig's programs and the real suite.
pub(crate) const RIG: &str = "ccd-rig";

/// The workspace as cargo sees it, without its dependencies.
pub(crate) fn metadata(root: &Path) -> Outcome<Metadata> {
    MetadataCommand::new()
        .current_dir(root)
        .no_deps()
        .exec()
        .map_err(during("cargo metadata"))
}

/// The package that has a binary of this name; the package of the same name first.
fn owner(metadata: &Metadata, binary: &str) -> Option<String> {
    let mut owners: Vec<&str> = metadata
        .packages
        .iter()
        .filter(|p| {
            p.targets
                .iter()
                .any(|t| t.name == binary && t.is_kind(TargetKind::Bin))
        })
        .map(|p| p.name.as_str())
        .collect();
    owners.sort_by_key(|name| *name != binary);
    owners.first().map(|name| (*name).to_owned())
}

/// Builds one binary and gives back its path.
pub(crate) fn build(
    root: &Path,
    metadata: &Metadata,
    binary: &str,
    release: bool,
) -> Outcome<PathBuf> {
    let Some(package) = owner(metadata, binary) else {
        return Err(Failure::usage(format!(
            "not available yet: no crate of the workspace has a program `{binary}`"
        )));
    };
    let mut command = cargo();
    command.args(["build", "-p", &package, "--bin", binary]);
    if release {
        command.arg("--release");
    }
    eprintln!("==> {}", typed(&command));
    let start = Instant::now();
    command
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    if cfg!(test) {
        command.stderr(Stdio::null());
    }
    let mut child = command.spawn().map_err(during("cargo build"))?;
    let mut path = None;
    if let Some(stdout) = child.stdout.take() {
        for message in Message::parse_stream(BufReader::new(stdout)) {
            if let Message::CompilerArtifact(artifact) = message.map_err(during("cargo build"))?
                && artifact.target.name == binary
                && let Some(executable) = artifact.executable
            {
                path = Some(executable.into_std_path_buf());
            }
        }
    }
    let status = child.wait().map_err(during("cargo build"))?;
    let took = crate::child::seconds(start.elapsed());
    match path {
        Some(path) if status.success() => Ok(path),
        _ => Err(Failure::new(format!(
            "building {binary} failed after {took}: {status}"
        ))),
    }
}

/// Builds `ccd-helper` and `ccd` and gives back the variables that say where they are. A program that no crate has yet
/// is told on standard error and left out.
pub(crate) fn told(
    root: &Path,
    metadata: &Metadata,
    release: bool,
) -> Outcome<Vec<(&'static str, OsString)>> {
    let mut variables = Vec::new();
    for (binary, variable) in TOLD {
        if owner(metadata, binary).is_none() {
            eprintln!("xtask: no crate has a program `{binary}` yet: {variable} is not set");
            continue;
        }
        variables.push((variable, build(root, metadata, binary, release)?.into()));
    }
    Ok(variables)
}

/// Builds and runs one program of the rig in isolation, with everything it is told.
pub(crate) fn run_isolated(
    root: &Path,
    binary: &str,
    args: &[OsString],
    release: bool,
) -> Outcome<u8> {
    let metadata = metadata(root)?;
    // First what can fail at once, then what takes time.
    if owner(&metadata, binary).is_none() {
        build(root, &metadata, binary, release)?;
    }
    let claude = crate::setup::ensure(root)?;
    let variables = told(root, &metadata, release)?;
    let program = build(root, &metadata, binary, release)?;
    let mut command: Command = crate::isolate::command(&program)?;
    command.args(args).env("CCD_CLAUDE", claude).envs(variables);
    let status = show_as(&format!("{binary} (isolated)"), &mut command)?;
    Ok(status
        .code()
        .and_then(|c| u8::try_from(c).ok())
        .unwrap_or(1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::{build, metadata, owner, told};

    /// A workspace whose crate `ccd-cli` has two programs, one of which another crate is named after.
    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "Cargo.toml",
            "[workspace]\nresolver = \"3\"\nmembers = [\"ccd-cli\", \"ccd-helper\"]\n",
        );
        for name in ["ccd-cli", "ccd-helper"] {
            let manifest =
                format!("[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n");
            write(&format!("{name}/Cargo.toml"), &manifest);
        }
        write("ccd-cli/src/bin/ccd.rs", "fn main() {}\n");
        write("ccd-cli/src/bin/ccd-helper.rs", "fn main() {}\n");
        write("ccd-helper/src/main.rs", "fn main() {}\n");
        dir
    }

    #[test]
    fn a_program_belongs_to_the_crate_of_its_name_first() {
        let tree = tree();
        let metadata = metadata(tree.path()).unwrap();
        assert_eq!(
            owner(&metadata, "ccd-helper").as_deref(),
            Some("ccd-helper")
        );
        assert_eq!(owner(&metadata, "ccd").as_deref(), Some("ccd-cli"));
        assert_eq!(owner(&metadata, "ccd-demo"), None);
    }

    #[test]
    fn a_program_that_no_crate_has_is_not_available() {
        let tree = tree();
        let metadata = metadata(tree.path()).unwrap();
        let failure = build(tree.path(), &metadata, "ccd-demo", false).unwrap_err();
        assert_eq!(failure.code, 2);
    }

    #[test]
    fn the_programs_are_built_and_told() {
        let tree = tree();
        let metadata = metadata(tree.path()).unwrap();
        let variables = told(tree.path(), &metadata, false).unwrap();
        let names: Vec<_> = variables.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["CCD_HELPER", "CCD_BIN"]);
        for (_, path) in variables {
            assert!(std::path::Path::new(&path).is_file());
        }
    }

    #[test]
    fn a_program_that_does_not_build_fails() {
        let tree = tree();
        std::fs::write(tree.path().join("ccd-cli/src/bin/ccd.rs"), "fn main( {}\n").unwrap();
        let metadata = metadata(tree.path()).unwrap();
        let failure = build(tree.path(), &metadata, "ccd", false).unwrap_err();
        assert_eq!(failure.code, 1, "{failure}");
    }
}
