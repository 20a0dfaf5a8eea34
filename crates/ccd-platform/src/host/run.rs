//! Asking a program for its version: bounded in time and output, in an environment built for it.
//!
//! What lives here: one short run. What never does: this process's environment, or a shell.

use std::{
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
};

use ccd_ports::clock::Clock;
use tokio::{io::AsyncReadExt as _, process::Command};
use uuid::Uuid;

/// A program must have answered after this time, milliseconds.
const DEADLINE_MS: u64 = 5_000;

/// Most bytes of an answer.
const MAX_OUTPUT: u64 = 64 * 1024;

/// Why a program gave no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error("it cannot be run: {0}")]
    Io(#[from] io::Error),
    #[error("it did not answer within {} s", DEADLINE_MS / 1000)]
    TimedOut,
    #[error("it ended with {status} and printed {said:?}")]
    Failed {
        status: std::process::ExitStatus,
        said: String,
    },
}

/// Runs `program` with `args`; gives what it wrote to stdout, without the white space around it. Its environment is
/// `PATH` (wrapper scripts find their interpreter) and an empty, temporary `HOME`.
pub(super) async fn ask(
    program: &Path,
    args: &[&str],
    path: Option<&str>,
    clock: &Arc<dyn Clock>,
) -> Result<String, RunError> {
    let home = EmptyHome::create()?;
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .env("HOME", &home.0)
        .current_dir(&home.0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let mut child = command.spawn()?;
    // Whatever it starts is in its group and ends with it, unless it answers in order.
    let mut group = Group(child.id());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let answer = async {
        let (mut out, mut err) = (String::new(), String::new());
        tokio::try_join!(read(stdout, &mut out), read(stderr, &mut err))?;
        Ok::<_, io::Error>((child.wait().await?, out, err))
    };
    let (status, out, err) = tokio::select! {
        answer = answer => answer?,
        () = clock.sleep_until(clock.now().after(DEADLINE_MS)) => return Err(RunError::TimedOut),
    };
    // Its leader is waited for: from here on the number may come to mean another group.
    group.0 = None;
    if status.success() {
        return Ok(out.trim().to_owned());
    }
    let said = err
        .lines()
        .chain(out.lines())
        .find(|line| !line.trim().is_empty());
    let said: String = said.unwrap_or_default().chars().take(200).collect();
    Err(RunError::Failed { status, said })
}

async fn read(
    stream: Option<impl tokio::io::AsyncRead + Unpin>,
    text: &mut String,
) -> io::Result<()> {
    if let Some(stream) = stream {
        let mut bytes = Vec::new();
        stream.take(MAX_OUTPUT).read_to_end(&mut bytes).await?;
        *text = String::from_utf8_lossy(&bytes).into_owned();
    }
    Ok(())
}

/// Kills a process group when dropped. Invariant: the group's leader is our child and was not waited for.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        let group = self
            .0
            .and_then(|pid| i32::try_from(pid).ok())
            .and_then(rustix::process::Pid::from_raw);
        if let Some(group) = group {
            // An empty group is no error worth a word.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

/// An empty private directory, removed when dropped.
struct EmptyHome(PathBuf);

impl EmptyHome {
    fn create() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("ccd-ask-{}", Uuid::new_v4().simple()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for EmptyHome {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, "a temporary directory could not be removed");
        }
    }
}
