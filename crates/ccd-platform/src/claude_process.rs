//! The process port: the pane's process and Claude's own, watched and signalled.
//!
//! What lives here: whose end is told, with which exit status, and who may be signalled. What never does: waiting on
//! descriptors itself ([`crate::process`] does), or deciding when to signal.

use std::{
    os::unix::net::UnixStream,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use ccd_helper::{Identity, OwnerCommand, proc};
use ccd_model::{ids::OpId, intent::Signal, observation::OpEnd};
use ccd_ports::{raw::Raw, session::Process};
use tokio::{runtime::Handle, sync::mpsc, task::JoinHandle};

use crate::{
    outlet::Outlet,
    process::{ExitWatch, PinError, PinnedProcess, StopSignal},
    supervisor,
    tmux::exec::{DeadStatus, ExecTmux},
};

/// How long the pane's exit status is asked for, milliseconds. After that it is unknown.
const STATUS_MS: u64 = 250;

/// Pause between two questions for it, milliseconds.
const STATUS_PAUSE_MS: u64 = 15;

/// What the watcher must know of its surroundings.
pub(crate) struct Surroundings {
    pub(crate) outlet: Arc<Outlet>,
    pub(crate) exits: Arc<ExitWatch>,
    pub(crate) tmux: ExecTmux,
    pub(crate) server: Arc<PinnedProcess>,
    /// The pane's process as found right after the start; `None` if it had ended by then.
    pub(crate) pane: Option<Arc<PinnedProcess>>,
    /// Its process id.
    pub(crate) pane_pid: u32,
    /// `NAME=VALUE` that every process of the session carries.
    pub(crate) marker: String,
    /// The supervisor's command socket; gone when the session is.
    pub(crate) owner: Weak<UnixStream>,
    pub(crate) runtime: Handle,
}

/// The [`Process`] of one launch.
pub(crate) struct ClaudeProcess {
    around: Surroundings,
    /// Ends to tell, in the order in which they happened.
    ends: mpsc::UnboundedSender<u32>,
    watched: Mutex<Vec<u32>>,
    claude: Option<Arc<PinnedProcess>>,
    task: JoinHandle<()>,
}

impl Drop for ClaudeProcess {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Opens the watcher; the pane's process is watched at once.
pub(crate) fn open(around: Surroundings) -> ClaudeProcess {
    let (ends, incoming) = mpsc::unbounded_channel();
    let teller = Teller {
        outlet: Arc::clone(&around.outlet),
        tmux: around.tmux.clone(),
        server: Arc::clone(&around.server),
        pane_pid: around.pane_pid,
    };
    let task = around.runtime.spawn(teller.run(incoming));
    let process = ClaudeProcess {
        ends,
        watched: Mutex::new(Vec::new()),
        claude: None,
        task,
        around,
    };
    process.follow(process.around.pane_pid, process.around.pane.as_deref());
    process
}

impl ClaudeProcess {
    /// Tells the end of `pid` once; at once if it cannot be pinned any more.
    fn follow(&self, pid: u32, process: Option<&PinnedProcess>) {
        {
            let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
            if watched.contains(&pid) {
                return;
            }
            watched.push(pid);
        }
        let ends = self.ends.clone();
        let tell = move || {
            // The session is over: nobody wants to know.
            let _ = ends.send(pid);
        };
        match process {
            Some(process) => {
                if let Err(error) = self.around.exits.watch(process, Box::new(tell)) {
                    tracing::error!(pid, %error, "a process cannot be watched");
                }
            }
            None => tell(),
        }
    }

    /// A process that is surely of this session: the pane's, below it, or marked.
    fn is_ours(&self, pid: u32) -> bool {
        let marked = || proc::environ_has(pid, self.around.marker.as_bytes()).unwrap_or(false);
        let below = || {
            proc::descendants(self.around.pane_pid)
                .is_ok_and(|list| list.iter().any(|one| one.pid == pid))
        };
        pid == self.around.pane_pid || marked() || below()
    }
}

impl Process for ClaudeProcess {
    fn watch(&mut self, pid: u32) {
        let process = if pid == self.around.pane_pid {
            self.around.pane.clone()
        } else {
            match PinnedProcess::open(pid) {
                Ok(process) => Some(Arc::new(process)),
                Err(PinError::Ended { .. } | PinError::Other { .. }) => None,
                Err(error) => {
                    return tracing::error!(pid, %error, "a process cannot be watched");
                }
            }
        };
        if let Some(process) = &process {
            if !self.is_ours(pid) {
                return tracing::warn!(pid, "a process that is not of this session");
            }
            self.claude = Some(Arc::clone(process));
            let command = OwnerCommand::Watch(Identity {
                pid,
                start_time: process.start_time(),
            });
            if let Some(owner) = self.around.owner.upgrade()
                && let Err(error) = supervisor::command(&owner, command)
            {
                tracing::warn!(%error, "the supervisor takes no commands");
            }
        }
        self.follow(pid, process.as_deref());
    }

    fn signal(&mut self, op: OpId, signal: Signal) {
        let Some(target) = self.claude.as_ref().or(self.around.pane.as_ref()) else {
            return self.around.outlet.refuse(op, "the process has ended");
        };
        let signal = match signal {
            Signal::Term => StopSignal::Term,
            Signal::Kill => StopSignal::Kill,
        };
        match target.stop(signal) {
            Ok(()) => self.around.outlet.end(op, OpEnd::Done),
            Err(error) => self.around.outlet.refuse(op, &error.to_string()),
        }
    }
}

struct Teller {
    outlet: Arc<Outlet>,
    tmux: ExecTmux,
    server: Arc<PinnedProcess>,
    pane_pid: u32,
}

impl Teller {
    async fn run(self, mut ends: mpsc::UnboundedReceiver<u32>) {
        while let Some(pid) = ends.recv().await {
            let status = if pid == self.pane_pid {
                let asked = self.outlet.within(STATUS_MS, self.status()).await;
                let status = asked.unwrap_or_default();
                // A program that was killed had no time for last words.
                if status.code.is_some() {
                    let shown = self.outlet.within(STATUS_MS, self.tmux.last_rows());
                    if let Some(Ok(text)) = shown.await {
                        self.outlet.push(Raw::LastScreen { text: text.into() });
                    }
                }
                status
            } else {
                DeadStatus::default()
            };
            self.outlet.push(Raw::Exited {
                pid,
                code: status.code,
                signal: status.signal,
            });
        }
    }

    /// Asks until tmux knows. Before version 3.6 it may have missed the end: then it is told once.
    async fn status(&self) -> DeadStatus {
        let mut nudged = false;
        loop {
            match self.tmux.dead_status().await {
                Ok(status) if status != DeadStatus::default() => return status,
                Ok(_) => {}
                // No server, no status.
                Err(_) => return DeadStatus::default(),
            }
            if !nudged {
                nudged = true;
                if self.server.nudge_parent().is_err() {
                    return DeadStatus::default();
                }
            }
            self.outlet.after(STATUS_PAUSE_MS).await;
        }
    }
}
