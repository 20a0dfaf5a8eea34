//! tmux by one process per command: for what is asked rarely, and as the second opinion in tests.
//!
//! What lives here: facts after the start, the dead pane's status, the end of the server. What never does: keys of a
//! session that has a control client (one way for keys only), or retries.

use std::{path::PathBuf, process::Stdio, sync::Arc};

use ccd_model::intent::Key;
use ccd_ports::clock::Clock;
use thiserror::Error;
use tokio::process::Command;

use super::{PANE, request};

/// How long one command may take, milliseconds.
const DEADLINE_MS: u64 = 5_000;

/// Why a tmux command gave nothing.
#[derive(Debug, Error)]
pub enum TmuxError {
    /// The program could not be run.
    #[error("tmux cannot be run: {0}")]
    Run(#[from] std::io::Error),
    /// It ended with an error.
    #[error("tmux: {0}")]
    Refused(String),
    /// It did not end in time.
    #[error("tmux did not answer in time")]
    TimedOut,
    /// Its answer has an unknown form.
    #[error("tmux answered {0:?}")]
    Answer(String),
}

/// One server, asked by exec.
#[derive(Clone)]
pub struct ExecTmux {
    tmux: PathBuf,
    socket: PathBuf,
    clock: Arc<dyn Clock>,
}

/// What the server tells of a pane whose process has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeadStatus {
    /// Exit code.
    pub code: Option<i32>,
    /// Signal.
    pub signal: Option<i32>,
}

impl ExecTmux {
    /// The server at `socket`, asked with the program `tmux`. Starts nothing.
    #[must_use]
    pub fn new(tmux: PathBuf, socket: PathBuf, clock: Arc<dyn Clock>) -> Self {
        Self {
            tmux,
            socket,
            clock,
        }
    }

    /// Process ids of the pane's program and of the server.
    ///
    /// # Errors
    /// [`TmuxError`].
    pub async fn pids(&self) -> Result<(u32, u32), TmuxError> {
        let answer = self.ask("#{pane_pid} #{pid}").await?;
        let pids = answer
            .split_once(' ')
            .and_then(|(pane, server)| Some((pane.parse().ok()?, server.parse().ok()?)));
        pids.ok_or(TmuxError::Answer(answer))
    }

    /// How the pane's program ended; empty while tmux does not know.
    ///
    /// # Errors
    /// [`TmuxError`].
    pub async fn dead_status(&self) -> Result<DeadStatus, TmuxError> {
        let answer = self.ask("#{pane_dead_status},#{pane_dead_signal}").await?;
        let (code, signal) = answer
            .split_once(',')
            .ok_or_else(|| TmuxError::Answer(answer.clone()))?;
        Ok(DeadStatus {
            code: code.parse().ok(),
            signal: signal.parse().ok(),
        })
    }

    /// The value of a format for the pane.
    ///
    /// # Errors
    /// [`TmuxError`].
    pub async fn ask(&self, format: &str) -> Result<String, TmuxError> {
        let out = self
            .run(&["display-message", "-p", "-t", PANE, format])
            .await?;
        Ok(out.strip_suffix('\n').unwrap_or(&out).to_owned())
    }

    /// The visible rows, each with its line end.
    ///
    /// # Errors
    /// [`TmuxError`].
    pub async fn rows(&self) -> Result<String, TmuxError> {
        self.run(&["capture-pane", "-p", "-t", PANE]).await
    }

    /// The visible rows and the few above them: tmux itself scrolls the pane when it tells that its program ended.
    ///
    /// # Errors
    /// [`TmuxError`].
    pub async fn last_rows(&self) -> Result<String, TmuxError> {
        self.run(&["capture-pane", "-p", "-S", "-16", "-t", PANE])
            .await
    }

    /// Presses a key without a guard. Never in a session that has a control client.
    ///
    /// # Errors
    /// [`TmuxError`].
    pub async fn press(&self, key: Key) -> Result<(), TmuxError> {
        self.run(&["send-keys", "-t", PANE, request::name(key)])
            .await?;
        Ok(())
    }

    /// Ends the server and what runs in it.
    ///
    /// # Errors
    /// [`TmuxError`]; a server that is gone already is one.
    pub async fn kill_server(&self) -> Result<(), TmuxError> {
        self.run(&["kill-server"]).await?;
        Ok(())
    }

    async fn run(&self, arguments: &[&str]) -> Result<String, TmuxError> {
        let mut command = Command::new(&self.tmux);
        // UTF-8 whatever the locale: the environment is empty.
        command.arg("-u").arg("-S").arg(&self.socket);
        command.args(arguments).env_clear().current_dir("/");
        command.stdin(Stdio::null()).process_group(0);
        command.kill_on_drop(true);
        let deadline = self.clock.now().after(DEADLINE_MS);
        let output = tokio::select! {
            biased;
            output = command.output() => output?,
            () = self.clock.sleep_until(deadline) => return Err(TmuxError::TimedOut),
        };
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(TmuxError::Refused(said.trim().to_owned()))
        }
    }
}
