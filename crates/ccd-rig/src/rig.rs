//! The rig of one real test: a private directory, a home in it, a fake service, and the guard over all of it.
//!
//! What lives here: the tying together. What never does: the driver (a test starts it with this rig's environment).

use crate::guard::{Guard, ID_VARIABLE, Survived, Survivor};
use crate::home::{Home, HomeOptions};
use crate::isolation::{self, IsolationError};
use crate::service::{Scenario, Service, ServiceError, StopReport};
use std::collections::BTreeMap;
use std::env;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// The environment variable that names the pinned Claude Code.
pub const CLAUDE_VARIABLE: &str = "CCD_CLAUDE";

/// The environment variable that names the built helper program.
pub const HELPER_VARIABLE: &str = "CCD_HELPER";

/// How long a finished rig waits for its processes to go.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long killed processes are waited for.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// Why a rig could not be made, or was not left clean.
#[derive(Debug, thiserror::Error)]
pub enum RigError {
    /// The network is not isolated.
    #[error(transparent)]
    Isolation(#[from] IsolationError),
    /// The directory or the home could not be made or removed.
    #[error("the rig's directory: {0}")]
    Directory(#[from] io::Error),
    /// The service could not start or stop.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// A program the rig needs is not named, or is not there.
    #[error("{variable} must name {what}; it is {found:?}: run through `cargo xtask test real`")]
    Program {
        /// The variable.
        variable: &'static str,
        /// What it must name.
        what: &'static str,
        /// What it holds.
        found: Option<PathBuf>,
    },
    /// Something survived.
    #[error(transparent)]
    Survived(#[from] Survived),
}

/// What a rig is made of.
#[derive(Debug, Clone, Default)]
pub struct RigOptions {
    /// The script of the service.
    pub scenario: Scenario,
    /// The home.
    pub home: HomeOptions,
}

/// A rig. End it with [`Rig::finish`]; one that is dropped checks itself, and fails the test unless that has failed
/// already. Either way nothing of it is left.
#[derive(Debug)]
pub struct Rig {
    id: String,
    service: Option<Service>,
    home: Home,
    root: Option<TempDir>,
    guard: Guard,
    patience: Duration,
}

impl Rig {
    /// A rig with a ready home (onboarded, logged in, trusted) and this script, in an isolated network.
    ///
    /// # Errors
    /// The network is not isolated, or a part could not be made.
    pub fn new(scenario: Scenario) -> Result<Self, RigError> {
        Self::with(RigOptions {
            scenario,
            home: HomeOptions::default(),
        })
    }

    /// A rig of the given parts, in an isolated network.
    ///
    /// # Errors
    /// As [`Rig::new`].
    pub fn with(options: RigOptions) -> Result<Self, RigError> {
        isolation::require()?;
        Self::unisolated(options)
    }

    /// A rig that does not ask about the network: for what starts no Claude Code.
    ///
    /// # Errors
    /// A part could not be made.
    pub fn unisolated(options: RigOptions) -> Result<Self, RigError> {
        let root = tempfile::Builder::new()
            .prefix("ccd-rig-")
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir()?;
        let path = root.path().canonicalize()?;
        let home = Home::build(&path, &options.home)?;
        let service = Service::start(options.scenario)?;
        let id = new_id();
        Ok(Self {
            guard: Guard::new(&id, &path),
            id,
            service: Some(service),
            home,
            root: Some(root),
            patience: PATIENCE,
        })
    }

    /// Sets how long [`Rig::finish`] waits for processes to go.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The mark of the rig's processes (`CCD_RIG_ID` in their environment).
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The rig's private directory, in canonical form.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.home
            .workdir()
            .parent()
            .map_or_else(PathBuf::new, Path::to_path_buf)
    }

    /// The home.
    #[must_use]
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// The workspace.
    #[must_use]
    pub fn cwd(&self) -> PathBuf {
        self.home.workdir()
    }

    /// The service.
    ///
    /// # Panics
    /// Never: only [`Rig::finish`], which consumes the rig, takes the service away.
    #[must_use]
    pub fn service(&self) -> &Service {
        match &self.service {
            Some(service) => service,
            None => unreachable!("the service is taken only by finish, which consumes the rig"),
        }
    }

    /// The guard.
    #[must_use]
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The whole environment of a child of this rig.
    #[must_use]
    pub fn env(&self) -> BTreeMap<String, String> {
        self.home.child_env(&self.service().base_url(), &self.id)
    }

    /// The pinned Claude Code, named by `CCD_CLAUDE`.
    ///
    /// # Errors
    /// The variable is not set, or names no file.
    pub fn claude(&self) -> Result<PathBuf, RigError> {
        program(CLAUDE_VARIABLE, "the pinned Claude Code")
    }

    /// The helper program, named by `CCD_HELPER`.
    ///
    /// # Errors
    /// The variable is not set, or names no file.
    pub fn helper(&self) -> Result<PathBuf, RigError> {
        program(HELPER_VARIABLE, "the built helper program")
    }

    /// Ends the rig: waits for its processes and sockets to go, stops the service, removes the directory, and checks
    /// that nothing is left. What does not go by itself is killed, after it was noted.
    ///
    /// # Errors
    /// Something survived, or a part could not be ended.
    pub fn finish(mut self) -> Result<StopReport, RigError> {
        let report = self.end()?;
        report.ok_or_else(|| RigError::Directory(io::Error::other("the rig was ended before")))
    }

    fn end(&mut self) -> Result<Option<StopReport>, RigError> {
        let Some(service) = self.service.take() else {
            return Ok(None);
        };
        let idle = self.guard.wait_until_idle(self.patience);
        if idle.is_err() {
            self.guard.kill(KILL_PATIENCE);
        }
        let report = service.stop();
        let removed = self.root.take().map_or(Ok(()), TempDir::close);
        // What survived says more than what could not be removed because of it.
        idle?;
        removed?;
        self.guard.wait_until_gone(KILL_PATIENCE)?;
        Ok(Some(report?))
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The test has failed already: leave nothing, and wait for nothing.
            let killed: Vec<Survivor> = self.guard.kill(KILL_PATIENCE);
            for survivor in killed {
                eprintln!("killed at the end of a failed test: {survivor}");
            }
            return;
        }
        let end = self.end();
        assert!(end.is_ok(), "a rig was not left clean: {}", reason(&end));
    }
}

fn reason(end: &Result<Option<StopReport>, RigError>) -> String {
    end.as_ref()
        .err()
        .map(ToString::to_string)
        .unwrap_or_default()
}

fn program(variable: &'static str, what: &'static str) -> Result<PathBuf, RigError> {
    let found = env::var_os(variable).map(PathBuf::from);
    match found {
        Some(path) if path.is_file() => Ok(path),
        found => Err(RigError::Program {
            variable,
            what,
            found,
        }),
    }
}

fn new_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos());
    format!("{ID_VARIABLE}-{}-{since:x}-{number}", std::process::id()).to_lowercase()
}
