//! The state directory: one record for each live session, and what was learned before.
//!
//! What lives here: where the directory is, its records, the memory of self-tests, who this process is. What never
//! does: deciding when to reap, or what a session is.

mod reap;
mod runtime_base;

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use ccd_helper::proc::{self, Identity};
use ccd_ports::{
    PortFut,
    error::{PortError, PortErrorKind},
    state::{ProcessId, Reaped, SessionRecord, StateStore},
};

use crate::{env::set, private_file};

/// The record format that is written and understood.
const FORMAT: u32 = 1;

/// Largest record that is read, bytes.
const MAX_RECORD: u64 = 64 * 1024;

/// File of the successful self-tests, one key in a line.
const SELF_TESTS: &str = "self-tests";

/// Most keys that are remembered; the oldest go first.
const MAX_SELF_TESTS: usize = 64;

/// Longest session id, bytes.
const MAX_SESSION: usize = 64;

/// A state directory of this user, mode 0700.
#[derive(Debug, Clone)]
pub struct StateDir {
    dir: PathBuf,
    env: BTreeMap<String, String>,
    this: ProcessId,
}

impl StateDir {
    /// Opens the directory: `option`, else `CCD_STATE_DIR`, else `ccd` in `XDG_STATE_HOME`, else in `.local/state` of
    /// `HOME`. It is created where it is missing, with mode 0700.
    ///
    /// # Errors
    /// `DirUnusable` if there is no such place, or it cannot be made private; `Unsupported` where the system cannot
    /// tell a process from a later one with the same pid.
    pub fn open(option: Option<&str>, env: &BTreeMap<String, String>) -> Result<Self, PortError> {
        let dir = place(option, env)?;
        make_private(&dir).map_err(|error| unusable(&dir, &error))?;
        let pid = std::process::id();
        let start_time = proc::start_time(pid).ok().flatten().ok_or_else(|| {
            let message = "this system does not tell the start time of a process";
            PortError::new(PortErrorKind::Unsupported, message)
        })?;
        Ok(Self {
            dir,
            env: env.clone(),
            this: ProcessId { pid, start_time },
        })
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.dir
    }

    fn record_path(&self, session: &str) -> Result<PathBuf, PortError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if session.is_empty() || session.len() > MAX_SESSION || !session.bytes().all(plain) {
            let message = format!("{session:?} is no session id");
            return Err(PortError::new(PortErrorKind::Config, message));
        }
        Ok(self.dir.join(format!("{session}.json")))
    }

    fn self_tests(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.join(SELF_TESTS)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl StateStore for StateDir {
    fn write(&self, record: &SessionRecord) -> Result<(), PortError> {
        let path = self.record_path(&record.session)?;
        let text = serde_json::to_string(record).map_err(|error| {
            PortError::new(
                PortErrorKind::Internal,
                format!("a session record cannot be written: {error}"),
            )
        })?;
        private_file::replace(&path, &text, 0o600).map_err(|error| unusable(&path, &error))
    }

    fn remove(&self, session: &str) -> Result<(), PortError> {
        let path = self.record_path(session)?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unusable(&path, &error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn list(&self) -> Vec<SessionRecord> {
        let Ok(listing) = fs::read_dir(&self.dir) else {
            return Vec::new();
        };
        let mut records: Vec<SessionRecord> = listing
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let record = read_record(&path)?;
                // A record under another name could be removed by nobody.
                (self.record_path(&record.session).ok()? == path).then_some(record)
            })
            .collect();
        records.sort_by(|a, b| (a.started_ms, &a.session).cmp(&(b.started_ms, &b.session)));
        records
    }

    fn owner_alive(&self, record: &SessionRecord) -> bool {
        // Where the system cannot tell, nobody's session is touched.
        proc::is_alive(identity(record.owner)).unwrap_or(true)
    }

    fn reap(&self) -> PortFut<'_, Vec<Reaped>> {
        let store = self.clone();
        Box::pin(async move {
            let (done, reaped) = tokio::sync::oneshot::channel();
            let thread = std::thread::Builder::new().name("ccd-reap".to_owned());
            let started = thread.spawn(move || {
                // Nobody waits any more when the caller dropped the future; the work is done all the same.
                let _ = done.send(reap::reap(&store));
            });
            if let Err(error) = started {
                tracing::error!(%error, "no thread to reap with");
            }
            reaped.await.unwrap_or_default()
        })
    }

    fn this_process(&self) -> ProcessId {
        self.this
    }

    fn runtime_base(&self) -> Result<PathBuf, PortError> {
        runtime_base::runtime_base(&self.env)
    }

    fn self_test_known(&self, key: &str) -> bool {
        !key.is_empty() && self.self_tests().iter().any(|known| known == key)
    }

    fn remember_self_test(&self, key: &str) {
        if key.is_empty() || key.contains(['\n', '\r']) || self.self_test_known(key) {
            return;
        }
        let mut keys = self.self_tests();
        keys.push(key.to_owned());
        let first = keys.len().saturating_sub(MAX_SELF_TESTS);
        let text: String = keys
            .iter()
            .skip(first)
            .map(|key| format!("{key}\n"))
            .collect();
        if let Err(error) = private_file::replace(&self.dir.join(SELF_TESTS), &text, 0o600) {
            // The next start tests again.
            tracing::warn!(%error, "a self-test could not be remembered");
        }
    }
}

fn place(option: Option<&str>, env: &BTreeMap<String, String>) -> Result<PathBuf, PortError> {
    let absolute = |name: &str| {
        set(env, name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let dir = match option.or_else(|| set(env, "CCD_STATE_DIR")) {
        Some(dir) => std::path::absolute(dir).ok(),
        None => absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
            .map(|base| base.join("ccd")),
    };
    dir.ok_or_else(|| {
        PortError::new(
            PortErrorKind::DirUnusable,
            "there is no place for the state directory",
        )
        .with_fix("Set HOME or CCD_STATE_DIR.")
    })
}

/// Makes sure that a directory exists, is a real one, is ours, and nobody else may enter it.
fn make_private(dir: &Path) -> io::Result<()> {
    match DirBuilder::new().recursive(true).mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let metadata = fs::metadata(dir)?;
    if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "not a directory of this user",
        ));
    }
    if metadata.mode() & 0o077 != 0 {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

fn read_record(path: &Path) -> Option<SessionRecord> {
    if path.extension()? != "json" {
        return None;
    }
    let metadata = fs::symlink_metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_RECORD {
        return None;
    }
    let record: SessionRecord = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    (record.format == FORMAT).then_some(record)
}

fn identity(process: ProcessId) -> Identity {
    Identity {
        pid: process.pid,
        start_time: process.start_time,
    }
}

fn unusable(path: &Path, error: &io::Error) -> PortError {
    let message = format!("{} cannot be used: {error}", path.display());
    PortError::new(PortErrorKind::DirUnusable, message)
        .with_fix("Name another state directory with CCD_STATE_DIR.")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn env(pairs: &[(&str, &Path)]) -> BTreeMap<String, String> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        pairs
            .iter()
            .map(|(name, path)| ((*name).to_owned(), text(path)))
            .collect()
    }

    #[test]
    fn the_place_follows_option_and_variables_in_order() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let variables = [
            ("CCD_STATE_DIR", at("b")),
            ("XDG_STATE_HOME", at("c")),
            ("HOME", at("d")),
        ];
        let pairs: Vec<(&str, &Path)> = variables.iter().map(|(n, p)| (*n, p.as_path())).collect();
        let open = |option: Option<&Path>, from: usize| {
            let option = option.map(|path| path.to_str().unwrap());
            StateDir::open(option, &env(&pairs[from..])).map(|store| store.dir)
        };
        assert_eq!(open(Some(&at("a")), 0).unwrap(), at("a"));
        assert_eq!(open(None, 0).unwrap(), at("b"));
        assert_eq!(open(None, 1).unwrap(), at("c/ccd"));
        assert_eq!(open(None, 2).unwrap(), at("d/.local/state/ccd"));
        assert_eq!(open(None, 3).unwrap_err().kind, PortErrorKind::DirUnusable);
    }

    #[test]
    fn the_directory_and_its_files_are_private() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("state");
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        let store = StateDir::open(dir.to_str(), &BTreeMap::new()).unwrap();
        store.remember_self_test("k");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&dir), mode(&dir.join(SELF_TESTS))), (0o700, 0o600));
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        let error = StateDir::open(file.to_str(), &BTreeMap::new()).unwrap_err();
        assert_eq!(error.kind, PortErrorKind::DirUnusable);
    }

    #[test]
    fn self_tests_are_bounded_and_forget_the_oldest() {
        let root = tempfile::tempdir().unwrap();
        let store = StateDir::open(root.path().to_str(), &BTreeMap::new()).unwrap();
        for n in 0..=MAX_SELF_TESTS {
            store.remember_self_test(&format!("key{n}"));
        }
        assert!(!store.self_test_known("key0"));
        assert!(store.self_test_known("key1"));
        assert!(store.self_test_known(&format!("key{MAX_SELF_TESTS}")));
        store.remember_self_test("a\nb");
        assert!(!store.self_test_known("b"));
    }

    #[test]
    fn files_that_are_no_records_are_skipped() {
        let root = tempfile::tempdir().unwrap();
        let store = StateDir::open(root.path().to_str(), &BTreeMap::new()).unwrap();
        let record = serde_json::json!({
            "format": 1, "session": "s1", "claude_session": "c", "owner": {"pid": 1, "start_time": 2}, "supervisor": null,
            "runtime_dir": "/r", "marker": ["M", "v"], "cwd": "/w", "started_ms": 3,
        });
        let write = |name: &str, text: &str| fs::write(root.path().join(name), text).unwrap();
        write("s1.json", &record.to_string());
        write("s2.json", &record.to_string());
        write(
            "s3.json",
            &record
                .to_string()
                .replace("s1", "s3")
                .replace("\"format\":1", "\"format\":2"),
        );
        write("s4.json", "{");
        write("s5", &record.to_string().replace("s1", "s5"));
        let found: Vec<String> = store
            .list()
            .into_iter()
            .map(|record| record.session)
            .collect();
        assert_eq!(found, ["s1"]);
    }
}
