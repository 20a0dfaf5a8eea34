//! A rig with the driver in it: options that are ready for the rig, a trace for each session, and the proof at the end.
//!
//! What lives here: what the demo, the soak program and the real suite share. What never does: a scenario or an assertion
//! about one.

use std::{
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use ccd_api::{ClaudeSession, Error, Options, Permissions};

use crate::{
    rig::{Rig, RigError, RigOptions},
    service::{Scenario, StopReport},
};

/// Why a driven rig could not be made, or did not end clean.
#[derive(Debug, thiserror::Error)]
pub enum DrivenError {
    /// The rig.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// The driver.
    #[error(transparent)]
    Driver(#[from] Error),
    /// A trace could not be run again.
    #[error("the trace {} cannot be replayed: {reason}", path.display())]
    Trace {
        /// The trace.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A trace gave other events or another end than the session.
    #[error("the trace {} replays differently:\n{}", path.display(), differences.join("\n"))]
    Replay {
        /// The trace.
        path: PathBuf,
        /// What differs.
        differences: Vec<String>,
    },
    /// Something of the driver is left.
    #[error("the driver left {}", left.join(", "))]
    Left {
        /// What.
        left: Vec<String>,
    },
}

/// A rig with the driver in it.
#[derive(Debug)]
pub struct Driven {
    rig: Rig,
    traces: AtomicU32,
    // After the rig, whose drop ends the processes that use them.
    runtime_dirs: RuntimeDirs,
}

/// The runtime directories of the rig's sessions. A failed test removes what its sessions could not.
#[derive(Debug, Default)]
struct RuntimeDirs(Mutex<Vec<PathBuf>>);

impl RuntimeDirs {
    fn add(&self, dirs: impl IntoIterator<Item = PathBuf>) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(dirs);
    }

    fn left(&self) -> Vec<PathBuf> {
        let dirs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        dirs.iter().filter(|dir| dir.exists()).cloned().collect()
    }
}

impl Drop for RuntimeDirs {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for dir in self.left() {
                // The test has failed already.
                let _ = std::fs::remove_dir_all(dir);
            }
        }
    }
}

impl Driven {
    /// A rig for `scenario` with a ready home.
    ///
    /// # Errors
    /// The rig could not be made.
    pub fn new(scenario: Scenario) -> Result<Self, DrivenError> {
        Ok(Self::of(Rig::new(scenario)?))
    }

    /// A rig of the given parts.
    ///
    /// # Errors
    /// The rig could not be made.
    pub fn with(options: RigOptions) -> Result<Self, DrivenError> {
        Ok(Self::of(Rig::with(options)?))
    }

    fn of(rig: Rig) -> Self {
        Self {
            rig,
            traces: AtomicU32::new(0),
            runtime_dirs: RuntimeDirs::default(),
        }
    }

    /// The rig.
    #[must_use]
    pub fn rig(&self) -> &Rig {
        &self.rig
    }

    /// The state directory of the rig's sessions.
    #[must_use]
    pub fn state_dir(&self) -> PathBuf {
        self.rig.root().join("state")
    }

    /// Options that run in the rig and record a trace.
    ///
    /// # Errors
    /// A program is not named by the environment.
    pub fn options(&self, permissions: Permissions) -> Result<Options, DrivenError> {
        let number = self.traces.fetch_add(1, Ordering::Relaxed);
        let trace = self.rig.root().join(format!("{number}.ccd.jsonl"));
        let mut options = Options::new(self.rig.cwd())
            .permissions(permissions)
            .claude(self.rig.claude()?)
            .helper(self.rig.helper()?)
            .state_dir(self.state_dir())
            .trace(trace);
        for (name, value) in self.rig.env() {
            // The driver's tmux server has a socket of its own and takes no such variable.
            if !name.starts_with("TMUX") {
                options = options.env(name, value);
            }
        }
        Ok(options)
    }

    /// Starts a session with these options.
    ///
    /// # Errors
    /// The session did not become ready.
    pub async fn start(&self, permissions: Permissions) -> Result<ClaudeSession, DrivenError> {
        let session = ClaudeSession::start(self.options(permissions)?).await?;
        self.note_runtime_dirs();
        Ok(session)
    }

    /// Notes the runtime directories of the sessions that live now: each must be gone when the rig is finished. They lie
    /// outside of the rig's own directory. Call it after a start with options of one's own.
    pub fn note_runtime_dirs(&self) {
        let recorded = ccd_runtime::list_sessions(self.state_dir().to_str()).unwrap_or_default();
        let dirs = recorded
            .into_iter()
            .map(|session| PathBuf::from(session.runtime_dir));
        self.runtime_dirs.add(dirs);
    }

    /// Every trace recorded so far.
    #[must_use]
    pub fn traces(&self) -> Vec<PathBuf> {
        (0..self.traces.load(Ordering::Relaxed))
            .map(|number| self.rig.root().join(format!("{number}.ccd.jsonl")))
            .filter(|path| path.is_file())
            .collect()
    }

    /// Runs every trace again: the same events and the same end, or an error that names the differences.
    ///
    /// # Errors
    /// A trace cannot be read, or differs.
    pub fn replay(&self) -> Result<usize, DrivenError> {
        let traces = self.traces();
        for path in &traces {
            let replayed = ccd_runtime::replay_file(path).map_err(|error| DrivenError::Trace {
                path: path.clone(),
                reason: error.to_string(),
            })?;
            if !replayed.differences.is_empty() {
                return Err(DrivenError::Replay {
                    path: path.clone(),
                    differences: replayed.differences,
                });
            }
        }
        Ok(traces.len())
    }

    /// Ends the rig after its sessions were closed: every trace replays, no record, runtime directory, process, socket
    /// or directory is left.
    ///
    /// # Errors
    /// What is left or differs.
    pub fn finish(self) -> Result<StopReport, DrivenError> {
        let replayed = self.replay();
        let state_dir = self.state_dir();
        let mut left: Vec<String> = ccd_runtime::list_sessions(state_dir.to_str())
            .unwrap_or_default()
            .into_iter()
            .map(|session| format!("the record of session {}", session.session))
            .collect();
        left.extend(
            self.runtime_dirs
                .left()
                .iter()
                .map(|dir| format!("the runtime directory {}", dir.display())),
        );
        let report = self.rig.finish()?;
        replayed?;
        if left.is_empty() {
            Ok(report)
        } else {
            Err(DrivenError::Left { left })
        }
    }
}
