//! The pinned Claude Code in the cache: fetched with npm, verified by its sha512, unpacked, tried, and moved into place.
//! It is never run here but for its version, with an empty environment and a folder of its own as home.

use super::integrity::Integrity;
use super::pin::Pin;
use crate::cache::{self, Scratch};
use crate::child::{executable, find, read, within};
use crate::failure::{Failure, Outcome, during};
use crate::isolate;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long `--version` may take, a cold start from a slow disk included.
const VERSION_LIMIT: Duration = Duration::from_secs(60);

/// How often the progress of a download is told.
const PROGRESS: Duration = Duration::from_secs(1);

/// What npm says when the network, and not the package, is the problem.
const UNREACHABLE: [&str; 14] = [
    "ECONNREFUSED",
    "ECONNRESET",
    "ECONNABORTED",
    "ENOTFOUND",
    "EAI_AGAIN",
    "ETIMEDOUT",
    "ENETUNREACH",
    "EHOSTUNREACH",
    "EPIPE",
    "ENOTCACHED",
    "ERR_SOCKET_TIMEOUT",
    "FETCH_ERROR",
    "_CERT",
    "E5",
];

/// Gives back the path of the pinned binary; fetches it when the cache does not have it.
pub(crate) fn ensure(root: &Path) -> Outcome<PathBuf> {
    ensure_in(&cache::root()?.join("claude"), &Pin::load(root)?)
}

fn ensure_in(cache: &Path, pin: &Pin) -> Outcome<PathBuf> {
    let place = cache.join(pin.folder());
    let binary = place.join("claude");
    if executable(&binary) {
        return Ok(binary);
    }
    fs::create_dir_all(cache).map_err(during(cache.display()))?;
    let _lock = cache::lock(&cache.join(".lock"), "fetch of Claude Code")?;
    if executable(&binary) {
        return Ok(binary);
    }
    remove_leftovers(cache)?;
    let scratch = Scratch::new(cache, &format!(".fetch-{}", std::process::id()))?;
    let archive = fetch(pin, scratch.path())?;
    verify(pin, &archive)?;
    let ready = unpack(&archive, scratch.path())?;
    try_version(pin, &ready.join("claude"), scratch.path())?;
    cache::remove(&place)?;
    fs::rename(&ready, &place).map_err(during(place.display()))?;
    eprintln!("setup: Claude Code {} is ready", pin.version);
    Ok(binary)
}

/// Under the lock, every scratch folder belongs to a process that is gone.
fn remove_leftovers(cache: &Path) -> Outcome<()> {
    for entry in fs::read_dir(cache).map_err(during(cache.display()))? {
        let entry = entry.map_err(during(cache.display()))?;
        if entry.file_name().to_string_lossy().starts_with(".fetch-") {
            cache::remove(&entry.path())?;
        }
    }
    Ok(())
}

fn fetch(pin: &Pin, scratch: &Path) -> Outcome<PathBuf> {
    let Some(npm) = find("npm", &[]) else {
        return Err(Failure::new(format!(
            "setup: npm is missing, and Claude Code {} is fetched with it: install Node.js with npm, then run `cargo xtask setup` again",
            pin.version
        )));
    };
    let wanted = format!("{}@{}", pin.package, pin.version);
    eprintln!("setup: fetching {wanted}");
    let received = scratch.join("npm");
    let said = scratch.join("npm.stderr");
    let log = File::create(&said).map_err(during(said.display()))?;
    let mut child = Command::new(npm)
        .args(["pack", &wanted, "--pack-destination"])
        .arg(scratch)
        .arg("--cache")
        .arg(&received)
        .args([
            "--loglevel=error",
            "--no-update-notifier",
            "--no-audit",
            "--no-fund",
        ])
        .args([
            "--fetch-retries=1",
            "--fetch-retry-mintimeout=1000",
            "--fetch-retry-maxtimeout=3000",
        ])
        .current_dir(scratch)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(during("npm"))?;
    let mut told = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(during("npm"))? {
            break status;
        }
        if told.elapsed() >= PROGRESS {
            eprintln!("setup: downloading, {} MB", megabytes(&received));
            told = Instant::now();
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    if !status.success() {
        let said = fs::read_to_string(&said).unwrap_or_default();
        return Err(Failure::new(explain(&wanted, &said)));
    }
    let archive = fs::read_dir(scratch)
        .map_err(during(scratch.display()))?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|e| e == "tgz"));
    archive.ok_or_else(|| Failure::new("setup: npm pack left no archive"))
}

/// The reason for a failed fetch, and the one command to retry.
fn explain(wanted: &str, said: &str) -> String {
    let code = said
        .lines()
        .find_map(|l| l.split_once(" code "))
        .map_or(said, |(_, code)| code.trim());
    let reason = if code.contains("EINTEGRITY") {
        "integrity mismatch: what arrived is not what the registry says; do not use it"
    } else if ["E404", "ETARGET", "ENOVERSIONS"]
        .iter()
        .any(|c| code.contains(c))
    {
        "the npm registry does not have it"
    } else if code.contains("ENOSPC") {
        "no space left"
    } else if UNREACHABLE.iter().any(|c| code.contains(c)) {
        "the npm registry is not reachable (network, proxy or `npm config get registry`)"
    } else {
        "npm pack failed"
    };
    let said: Vec<_> = said
        .lines()
        .filter(|l| !l.contains("A complete log") && !l.contains("error     at "))
        .take(6)
        .map(|l| format!("\n  {l}"))
        .collect();
    format!(
        "setup: {wanted}: {reason}\nthen retry with: cargo xtask setup{}",
        said.concat()
    )
}

fn megabytes(dir: &Path) -> u64 {
    fn bytes(dir: &Path) -> u64 {
        let Ok(entries) = fs::read_dir(dir) else {
            return 0;
        };
        entries
            .flatten()
            .map(|entry| match entry.metadata() {
                Ok(m) if m.is_dir() => bytes(&entry.path()),
                Ok(m) => m.len(),
                Err(_) => 0,
            })
            .sum()
    }
    bytes(dir) / 1_000_000
}

fn verify(pin: &Pin, archive: &Path) -> Outcome<()> {
    eprintln!(
        "setup: verifying {} MB",
        archive.metadata().map_or(0, |m| m.len()) / 1_000_000
    );
    let found = Integrity::of(archive)?;
    if found == pin.integrity {
        return Ok(());
    }
    Err(Failure::new(format!(
        "setup: integrity mismatch: {} is pinned as {:?}, and what arrived is {found:?}; it is thrown away, nothing was run",
        pin.package, pin.integrity
    )))
}

/// Unpacks the one binary into a folder that is ready to be moved into place.
fn unpack(archive: &Path, scratch: &Path) -> Outcome<PathBuf> {
    eprintln!("setup: unpacking");
    let open = scratch.join("open");
    let ready = scratch.join("ready");
    for dir in [&open, &ready] {
        fs::create_dir_all(dir).map_err(during(dir.display()))?;
    }
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(archive).arg("-C").arg(&open);
    read(tar.args(["--no-same-owner", "package/claude"]))?;
    let binary = ready.join("claude");
    fs::rename(open.join("package").join("claude"), &binary).map_err(during("package/claude"))?;
    fs::set_permissions(&binary, PermissionsExt::from_mode(0o755)).map_err(during("chmod"))?;
    let file = File::open(&binary).map_err(during(binary.display()))?;
    file.sync_all().map_err(during(binary.display()))?;
    Ok(ready)
}

fn try_version(pin: &Pin, binary: &Path, scratch: &Path) -> Outcome<()> {
    eprintln!("setup: trying {} --version", pin.package);
    let home = Scratch::new(scratch, "home")?;
    let said = scratch.join("version");
    let out = File::create(&said).map_err(during(said.display()))?;
    // Where a network namespace is allowed, even this runs in one.
    let mut command = isolate::command(binary).unwrap_or_else(|_| Command::new(binary));
    command
        .arg("--version")
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        .current_dir(home.path())
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(Stdio::null());
    let ended = within(&mut command, VERSION_LIMIT)?;
    let said = fs::read_to_string(&said).map_err(during(said.display()))?;
    let version = said.split_whitespace().next().unwrap_or_default();
    match ended {
        Some(status) if status.success() && version == pin.version => Ok(()),
        Some(status) => Err(Failure::new(format!(
            "setup: the binary says `{}` ({status}) and not {}",
            said.trim(),
            pin.version
        ))),
        None => Err(Failure::new(format!(
            "setup: the binary did not say its version within {} s",
            VERSION_LIMIT.as_secs()
        ))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::{explain, megabytes, try_version, unpack, verify};
    use crate::setup::integrity::Integrity;
    use crate::setup::pin::Pin;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// A pin of some archive, in the form of the table.
    fn pin() -> Pin {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        Pin::load(&root).unwrap()
    }

    fn archive(dir: &Path, script: &str) -> PathBuf {
        fs::create_dir(dir.join("package")).unwrap();
        fs::write(dir.join("package/claude"), script).unwrap();
        let file = dir.join("x.tgz");
        let tar = Command::new("tar")
            .arg("-czf")
            .arg(&file)
            .args(["-C".as_ref(), dir.as_os_str(), "package".as_ref()])
            .status()
            .unwrap();
        assert!(tar.success());
        file
    }

    #[test]
    fn an_archive_with_other_content_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = archive(dir.path(), "x");
        let failure = verify(&pin(), &file).unwrap_err();
        assert!(failure.message.contains("integrity mismatch"), "{failure}");
        let right = Pin {
            integrity: Integrity::of(&file).unwrap(),
            ..pin()
        };
        verify(&right, &file).unwrap();
    }

    #[test]
    fn a_binary_with_another_version_or_an_error_is_refused() {
        let good = format!("#!/bin/sh\necho \"{} (Claude Code)\"\n", pin().version);
        let bad = "#!/bin/sh\necho \"0.0.1 (Claude Code)\"\n".to_owned();
        let broken = format!("{good}exit 3\n");
        for (script, passes) in [(good, true), (bad, false), (broken, false)] {
            let dir = tempfile::tempdir().unwrap();
            let file = archive(dir.path(), &script);
            let ready = unpack(&file, dir.path()).unwrap();
            let tried = try_version(&pin(), &ready.join("claude"), dir.path());
            assert_eq!(tried.is_ok(), passes, "{script}");
        }
    }

    #[test]
    fn the_binary_is_tried_without_the_environment_of_this_process() {
        let dir = tempfile::tempdir().unwrap();
        let script = format!(
            "#!/bin/sh\ntest -z \"$CARGO_MANIFEST_DIR\" && test -n \"$HOME\" && test \"$HOME\" = \"$(pwd)\" && echo {}\n",
            pin().version
        );
        let ready = unpack(&archive(dir.path(), &script), dir.path()).unwrap();
        try_version(&pin(), &ready.join("claude"), dir.path()).unwrap();
    }

    #[test]
    fn a_failed_fetch_says_which_kind_it_is_and_how_to_retry() {
        for (said, reason) in [
            (
                "npm error code ECONNREFUSED\nnpm error errno x",
                "not reachable",
            ),
            ("npm error code EAI_AGAIN", "not reachable"),
            ("npm error code E503", "not reachable"),
            ("npm error code SELF_SIGNED_CERT_IN_CHAIN", "not reachable"),
            (
                "npm error code ETARGET\nnpm error notarget",
                "does not have it",
            ),
            ("npm error code EINTEGRITY", "integrity mismatch"),
            ("npm error code EACCES", "npm pack failed"),
        ] {
            let text = explain("p@1", said);
            assert!(text.contains(reason), "{text}");
            assert!(text.contains("retry with: cargo xtask setup"), "{text}");
        }
    }

    #[test]
    fn progress_counts_whole_folders() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        fs::write(dir.path().join("a/b"), vec![0; 2_500_000]).unwrap();
        assert_eq!(megabytes(dir.path()), 2);
        assert_eq!(megabytes(&dir.path().join("none")), 0);
    }
}
