//! The programs of a session: Claude, tmux and the helper.
//!
//! What lives here: where each is looked for, and whether it is what it should be. What never does: running one for
//! anything but its version.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::UNIX_EPOCH,
};

use ccd_ports::{
    clock::Clock,
    error::{PortError, PortErrorKind},
    host::{ClaudeBinary, TmuxBinary},
};
use rustix::fs::Access;

use super::run;
use crate::{claude_install, env::set};

/// What Claude prints after its version.
const CLAUDE_SUFFIX: &str = "(Claude Code)";

/// Oldest tmux with everything that is used.
const OLDEST_TMUX: (u32, u32) = (3, 2);

/// File name of the helper beside the running program.
const HELPER: &str = "ccd-helper";

pub(super) async fn claude(
    option: Option<&str>,
    pinned: &str,
    env: &BTreeMap<String, String>,
    clock: &Arc<dyn Clock>,
) -> Result<ClaudeBinary, PortError> {
    let found = find_claude(option, pinned, env)?;
    let broken = |what: String| {
        PortError::new(
            PortErrorKind::ClaudeBroken,
            format!("{}: {what}", found.display()),
        )
        .with_fix("Reinstall Claude Code, or name another one with CCD_CLAUDE.")
    };
    let path = std::fs::canonicalize(&found).map_err(|error| broken(error.to_string()))?;
    let said = run::ask(&path, &["--version"], set(env, "PATH"), clock).await;
    let said = said.map_err(|error| broken(error.to_string()))?;
    let version = claude_version(&said).ok_or_else(|| {
        broken(format!(
            "it is not Claude Code: it says {:?}",
            shorten(&said)
        ))
    })?;
    let fingerprint = fingerprint(&path).map_err(|error| broken(error.to_string()))?;
    Ok(ClaudeBinary {
        version: version.to_owned(),
        fingerprint,
        path,
    })
}

fn find_claude(
    option: Option<&str>,
    pinned: &str,
    env: &BTreeMap<String, String>,
) -> Result<PathBuf, PortError> {
    let missing = |message: String| {
        PortError::new(PortErrorKind::ClaudeMissing, message)
            .with_fix("Run `ccd claude install`, or name a binary with CCD_CLAUDE.")
    };
    if let Some((source, path)) = named(option, "CCD_CLAUDE", env) {
        let path = PathBuf::from(path);
        if is_program(&path) {
            return Ok(path);
        }
        return Err(missing(format!(
            "{source} names {}, which is no program",
            path.display()
        )));
    }
    if let Some(path) = claude_install::installed(pinned, env) {
        return Ok(path);
    }
    on_path("claude", env).ok_or_else(|| missing("no Claude Code was found".to_owned()))
}

pub(super) async fn tmux(
    env: &BTreeMap<String, String>,
    clock: &Arc<dyn Clock>,
) -> Result<TmuxBinary, PortError> {
    const FIX: &str = "Install tmux 3.2 or newer.";
    let path = on_path("tmux", env).ok_or_else(|| {
        PortError::new(PortErrorKind::TmuxMissing, "no tmux was found on PATH").with_fix(FIX)
    })?;
    let failed = |what: String| {
        PortError::new(
            PortErrorKind::TmuxFailed,
            format!("{}: {what}", path.display()),
        )
        .with_fix(FIX)
    };
    let said = run::ask(&path, &["-V"], set(env, "PATH"), clock).await;
    let said = said.map_err(|error| failed(error.to_string()))?;
    let version = said
        .strip_prefix("tmux ")
        .ok_or_else(|| failed(format!("it says {:?}", shorten(&said))))?;
    match tmux_is_new_enough(version) {
        Some(true) => Ok(TmuxBinary {
            path,
            version: version.to_owned(),
        }),
        Some(false) => {
            let message = format!("tmux {version} is older than 3.2");
            Err(PortError::new(PortErrorKind::TmuxTooOld, message).with_fix(FIX))
        }
        None => Err(failed(format!(
            "its version {:?} is unknown",
            shorten(version)
        ))),
    }
}

/// Finds the helper. That it speaks our protocol is checked by its first words when it is started.
pub(super) fn helper(
    option: Option<&str>,
    env: &BTreeMap<String, String>,
    program: Option<PathBuf>,
) -> Result<PathBuf, PortError> {
    let missing = |message: String| {
        PortError::new(PortErrorKind::HelperMissing, message).with_fix(
            "Install ccd-helper beside the program that uses it, or name it with CCD_HELPER.",
        )
    };
    let (source, path) = match named(option, "CCD_HELPER", env) {
        Some((source, path)) => (source, PathBuf::from(path)),
        None => {
            let program =
                program.ok_or_else(|| missing("the running program has no path".to_owned()))?;
            (
                "the running program's directory",
                program.with_file_name(HELPER),
            )
        }
    };
    if !is_program(&path) {
        return Err(missing(format!(
            "no helper: {source} gives {}",
            path.display()
        )));
    }
    std::fs::canonicalize(&path).map_err(|error| missing(format!("{}: {error}", path.display())))
}

/// The path that an option or a variable names, and which of them did.
fn named<'a>(
    option: Option<&'a str>,
    variable: &'static str,
    env: &'a BTreeMap<String, String>,
) -> Option<(&'static str, &'a str)> {
    let option = option.map(|path| ("the option", path));
    option.or_else(|| set(env, variable).map(|path| (variable, path)))
}

fn on_path(name: &str, env: &BTreeMap<String, String>) -> Option<PathBuf> {
    // Relative entries of PATH would depend on where we run.
    let found = which::which_in_all(name, set(env, "PATH"), "/").ok()?;
    let mut found = found.filter(|path| path.is_absolute());
    found
        .find(|path| is_program(path))
        .and_then(|path| std::fs::canonicalize(path).ok())
}

fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}

fn claude_version(said: &str) -> Option<&str> {
    let version = said.lines().next()?.strip_suffix(CLAUDE_SUFFIX)?.trim_end();
    version
        .starts_with(|c: char| c.is_ascii_digit())
        .then_some(version)
}

/// `None` for a version of unknown form. A development build counts as the newest.
fn tmux_is_new_enough(version: &str) -> Option<bool> {
    if version == "master" {
        return Some(true);
    }
    let version = version.strip_prefix("next-").unwrap_or(version);
    let (major, rest) = version.split_once('.')?;
    let minor = rest
        .find(|c: char| !c.is_ascii_digit())
        .map_or(rest, |end| &rest[..end]);
    Some((major.parse().ok()?, minor.parse().ok()?) >= OLDEST_TMUX)
}

fn fingerprint(path: &Path) -> std::io::Result<String> {
    let metadata = std::fs::metadata(path)?;
    let modified = metadata
        .modified()?
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Ok(format!(
        "{}-{}.{:09}",
        metadata.len(),
        modified.as_secs(),
        modified.subsec_nanos()
    ))
}

fn shorten(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::clock::BootClock;
    use std::{
        fs,
        io::Write as _,
        process::{Command, Stdio},
    };

    /// Writes a program through another process: this one never holds it open for writing while another test forks.
    fn script(dir: &Path, name: &str, text: &str) -> PathBuf {
        let path = dir.join(name);
        let mut child = Command::new("/bin/sh")
            .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
            .arg(&path)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(format!("#!/bin/sh\n{text}\n").as_bytes())
            .unwrap();
        assert!(child.wait().unwrap().success());
        fs::canonicalize(path).unwrap()
    }

    fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn clock() -> Arc<dyn Clock> {
        Arc::new(BootClock::new())
    }

    fn text(path: &Path) -> &str {
        path.to_str().unwrap()
    }

    #[tokio::test]
    async fn claude_is_taken_from_option_variable_install_and_path_in_this_order() {
        let dir = tempfile::tempdir().unwrap();
        let says = |version: &str| format!("echo '{version} (Claude Code)'");
        let option = script(dir.path(), "option", &says("1.0.0"));
        let variable = script(dir.path(), "variable", &says("2.0.0"));
        script(dir.path(), "claude", &says("4.0.0"));
        let cache = dir.path().join("cache");
        let pin = claude_install::PINS
            .iter()
            .find(|pin| {
                pin.program(&cache).is_some()
                    && cfg!(target_arch = "x86_64") == pin.platform.ends_with("-x64")
            })
            .unwrap();
        let program = pin.program(&cache).unwrap();
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        script(program.parent().unwrap(), "claude", &says("3.0.0"));
        let mut env = env(&[
            ("CCD_CLAUDE", text(&variable)),
            ("CCD_CACHE_DIR", text(&cache)),
            ("PATH", text(dir.path())),
        ]);
        let version = async |option: Option<&str>, env: &BTreeMap<String, String>| {
            claude(option, pin.version, env, &clock())
                .await
                .unwrap()
                .version
        };
        assert_eq!(version(Some(text(&option)), &env).await, "1.0.0");
        assert_eq!(version(None, &env).await, "2.0.0");
        env.remove("CCD_CLAUDE");
        assert_eq!(version(None, &env).await, "3.0.0");
        env.remove("CCD_CACHE_DIR");
        assert_eq!(version(None, &env).await, "4.0.0");
        env.remove("PATH");
        let error = claude(None, pin.version, &env, &clock()).await.unwrap_err();
        assert_eq!(error.kind, PortErrorKind::ClaudeMissing);
        assert!(error.fix.is_some());
    }

    #[tokio::test]
    async fn a_named_claude_that_is_no_program_is_never_replaced_by_another() {
        let dir = tempfile::tempdir().unwrap();
        let good = script(dir.path(), "claude", "echo '1.0.0 (Claude Code)'");
        let plain = dir.path().join("plain");
        fs::write(&plain, "").unwrap();
        let env = env(&[("PATH", text(dir.path())), ("CCD_CLAUDE", text(&good))]);
        for option in [text(&plain), text(dir.path()), "/no/such/claude"] {
            let error = claude(Some(option), "x", &env, &clock()).await.unwrap_err();
            assert_eq!(error.kind, PortErrorKind::ClaudeMissing, "{option}");
        }
    }

    #[tokio::test]
    async fn what_does_not_answer_like_claude_is_broken() {
        let dir = tempfile::tempdir().unwrap();
        for (index, body) in [
            "echo 1.0.0",
            "exit 3",
            "echo 'x (Claude Code)'",
            "kill -9 $$",
        ]
        .iter()
        .enumerate()
        {
            let path = script(dir.path(), &format!("c{index}"), body);
            let error = claude(Some(text(&path)), "x", &env(&[]), &clock())
                .await
                .unwrap_err();
            assert_eq!(error.kind, PortErrorKind::ClaudeBroken, "{body}");
            assert!(error.fix.is_some());
        }
        let unreadable = dir.path().join("format");
        fs::write(&unreadable, "\x7fELF").unwrap();
        fs::set_permissions(
            &unreadable,
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
        let error = claude(Some(text(&unreadable)), "x", &env(&[]), &clock())
            .await
            .unwrap_err();
        assert_eq!(error.kind, PortErrorKind::ClaudeBroken);
    }

    #[tokio::test]
    async fn a_program_is_asked_in_an_empty_home_that_is_gone_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let probe = dir.path().join("probe");
        let body = format!(
            "env > {0}; ls -A \"$HOME\" | wc -l >> {0}; touch \"$HOME/x\"; echo '1.0.0 (Claude Code)'",
            probe.display()
        );
        let path = script(dir.path(), "c", &body);
        let env = env(&[("SECRET", "1"), ("PATH", "/usr/bin:/bin")]);
        let found = claude(Some(text(&path)), "x", &env, &clock())
            .await
            .unwrap();
        assert_eq!(found.path, path);
        let seen = fs::read_to_string(probe).unwrap();
        assert!(!seen.contains("SECRET"), "{seen}");
        assert_eq!(seen.lines().last().map(str::trim), Some("0"));
        let home = seen
            .lines()
            .find_map(|line| line.strip_prefix("HOME="))
            .unwrap();
        assert!(!Path::new(home).exists());
        let again = claude(Some(text(&path)), "x", &env, &clock())
            .await
            .unwrap();
        assert_eq!(found.fingerprint, again.fingerprint);
    }

    #[test]
    fn tmux_versions_are_compared_by_number() {
        for (version, expected) in [
            ("3.2", Some(true)),
            ("3.2a", Some(true)),
            ("3.3a", Some(true)),
            ("3.10", Some(true)),
            ("4.0", Some(true)),
            ("next-3.5", Some(true)),
            ("next-3.1", Some(false)),
            ("master", Some(true)),
            ("3.5-rc2", Some(true)),
            ("3.1c", Some(false)),
            ("2.9", Some(false)),
            ("1.8", Some(false)),
            ("openbsd-7.4", None),
            ("", None),
            ("3", None),
        ] {
            assert_eq!(tmux_is_new_enough(version), expected, "{version}");
        }
    }

    #[tokio::test]
    async fn tmux_is_found_on_the_path_given_and_judged() {
        let dir = tempfile::tempdir().unwrap();
        let env = env(&[("PATH", text(dir.path()))]);
        assert_eq!(
            tmux(&env, &clock()).await.unwrap_err().kind,
            PortErrorKind::TmuxMissing
        );
        for (says, expected) in [
            ("tmux 3.3a", Ok("3.3a")),
            ("tmux 3.1c", Err(PortErrorKind::TmuxTooOld)),
            ("screen 4", Err(PortErrorKind::TmuxFailed)),
            ("tmux ???", Err(PortErrorKind::TmuxFailed)),
        ] {
            script(
                dir.path(),
                "tmux",
                &format!("test \"$1\" = -V && echo '{says}'"),
            );
            let found = tmux(&env, &clock()).await;
            let found = found
                .as_ref()
                .map(|tmux| tmux.version.as_str())
                .map_err(|error| error.kind);
            assert_eq!(found, expected, "{says}");
        }
    }

    #[test]
    fn the_helper_is_an_explicit_one_or_a_sibling_and_never_on_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let there = script(dir.path(), HELPER, "");
        let other = tempfile::tempdir().unwrap();
        let sibling_of = |dir: &Path| Some(dir.join("program"));
        let path = env(&[("PATH", text(dir.path()))]);
        assert_eq!(helper(None, &path, sibling_of(dir.path())).unwrap(), there);
        for program in [sibling_of(other.path()), None] {
            assert_eq!(
                helper(None, &path, program).unwrap_err().kind,
                PortErrorKind::HelperMissing
            );
        }
        let variable = env(&[("CCD_HELPER", text(&there))]);
        assert_eq!(helper(None, &variable, None).unwrap(), there);
        assert_eq!(helper(Some(text(&there)), &path, None).unwrap(), there);
        let error = helper(Some("/no/such/helper"), &variable, sibling_of(dir.path())).unwrap_err();
        assert_eq!(error.kind, PortErrorKind::HelperMissing);
    }
}
