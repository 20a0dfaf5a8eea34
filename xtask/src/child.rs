//! Child programs of the tasks: how they are started, timed and reported. Which programs, is the business of the tasks.

use crate::failure::{Failure, Outcome, during};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The cargo that runs this task, so that the children use the same toolchain.
pub(crate) fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    if cfg!(test) {
        // The planted workspaces of the tests never build into the target folder of this one.
        command.env_remove("CARGO_TARGET_DIR");
    }
    command
}

/// The command as a person would type it.
pub(crate) fn typed(command: &Command) -> String {
    let name = |s: &OsStr| s.to_string_lossy().into_owned();
    let program = Path::new(command.get_program());
    let mut words = vec![program.file_name().map_or_else(String::new, name)];
    words.extend(command.get_args().map(name));
    words.join(" ")
}

/// Runs a command with the output of this process; says what runs, and how long it took.
pub(crate) fn show(command: &mut Command) -> Outcome<ExitStatus> {
    let typed = typed(command);
    show_as(&typed, command)
}

/// As `show`, under a name of its own.
pub(crate) fn show_as(typed: &str, command: &mut Command) -> Outcome<ExitStatus> {
    eprintln!("==> {typed}");
    let start = Instant::now();
    if cfg!(test) {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    let status = command.status().map_err(during(typed))?;
    if !status.success() {
        eprintln!("==> {typed}: {status} after {}", seconds(start.elapsed()));
    }
    Ok(status)
}

/// As `show`; anything but success is a failure.
pub(crate) fn must(command: &mut Command) -> Outcome<()> {
    let status = show(command)?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("{}: {status}", typed(command))))
}

/// Runs a command and gives back its standard output; anything but success is a failure with its standard error.
pub(crate) fn read(command: &mut Command) -> Outcome<String> {
    let typed = typed(command);
    let output = command.output().map_err(during(&typed))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let message = format!("{typed}: {}: {}", output.status, text.trim());
        return Err(Failure::new(message));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Starts a command and kills it when it has not ended by itself in time; `None` then.
pub(crate) fn within(command: &mut Command, limit: Duration) -> Outcome<Option<ExitStatus>> {
    let typed = typed(command);
    let start = Instant::now();
    let mut child = command.spawn().map_err(during(&typed))?;
    loop {
        if let Some(status) = child.try_wait().map_err(during(&typed))? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            child.kill().map_err(during(&typed))?;
            child.wait().map_err(during(&typed))?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A duration for a person.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// Finds a program in `PATH`, then in the given folders.
pub(crate) fn find(name: &str, more: &[&Path]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(more.iter().map(|p| p.to_path_buf()))
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .find(|file| executable(file))
}

/// Whether a path is a file that may be run.
pub(crate) fn executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::{find, read, typed, within};
    use std::path::Path;
    use std::process::Command;
    use std::time::{Duration, Instant};

    #[test]
    fn a_program_that_does_not_end_is_killed_at_the_limit() {
        let start = Instant::now();
        let ended = within(Command::new("sleep").arg("30"), Duration::from_millis(50)).unwrap();
        assert!(ended.is_none() && start.elapsed() < Duration::from_secs(10));
        let ended = within(&mut Command::new("true"), Duration::from_secs(10)).unwrap();
        assert!(ended.unwrap().success());
    }

    #[test]
    fn the_error_of_a_child_is_passed_on() {
        let failure = read(Command::new("sh").args(["-c", "echo broken >&2; exit 3"])).unwrap_err();
        assert!(failure.message.contains("broken"), "{failure}");
        assert_eq!(read(Command::new("echo").arg("x")).unwrap(), "x\n");
    }

    #[test]
    fn a_program_is_found_by_name_in_the_given_folder() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(find("no-such-program-here", &[dir.path()]), None);
        let sh = find("sh", &[]).unwrap();
        std::fs::copy(sh, dir.path().join("no-such-program-here")).unwrap();
        let found = find("no-such-program-here", &[dir.path()]);
        assert_eq!(
            found.as_deref(),
            Some(dir.path().join("no-such-program-here").as_path())
        );
    }

    #[test]
    fn a_command_is_shown_as_typed() {
        let mut command = Command::new(Path::new("/some/bin/cargo"));
        assert_eq!(typed(command.args(["fmt", "--all"])), "cargo fmt --all");
    }
}
