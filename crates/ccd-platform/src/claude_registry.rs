//! The follower of Claude's own session registry, `sessions/<pid>.json`.
//!
//! What lives here: finding the file of one Claude session, reading it at the cadence asked for, reporting its first
//! JSON value whenever that changes, and the tolerant reading that [`crate::host`] shares. What never does: the meaning
//! of a field, a timer of its own (it waits on the clock port), or opening the secret `*.key` files beside it.
//!
//! Claude writes the file in place: a longer old text may show behind a shorter new one. The first JSON value is the
//! new one; where it is cut, the next look finds it whole.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use ccd_model::{ids::Launch, json::RawJson};
use ccd_ports::{clock::Clock, inbox::Inbox, raw::Raw, session::RegistryFile};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Largest registry file that is read, bytes.
const MAX_FILE: u64 = 1024 * 1024;

/// Cadence until one is asked for, milliseconds.
const FIRST_CADENCE_MS: u32 = 250;

enum Ask {
    Pid(u32),
    Cadence(u32),
}

/// Follows the registry file of one Claude session. Dropping it ends the task.
///
/// The task runs on the tokio runtime that [`RegistryFollower::start`] is called in, else on a thread of its own. It
/// looks once at its start, whenever the pid becomes known, and at the cadence (250 ms at first, 0 turns it off).
#[derive(Debug)]
pub struct RegistryFollower {
    asks: UnboundedSender<Ask>,
}

impl RegistryFollower {
    /// Starts the task. `dir` is Claude's directory `sessions`, which need not exist yet.
    #[must_use]
    pub fn start(
        dir: PathBuf,
        session_id: &str,
        launch: Launch,
        inbox: Arc<dyn Inbox>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (asks, queue) = unbounded_channel();
        let follower = Follower {
            dir,
            session_id: session_id.to_owned(),
            pid: None,
            last: None,
            launch,
            inbox,
            clock,
            cadence_ms: FIRST_CADENCE_MS,
        };
        crate::background::spawn("ccd-registry", follower.run(queue));
        Self { asks }
    }
}

impl RegistryFile for RegistryFollower {
    fn pid(&mut self, pid: u32) {
        // The task ends only with this sender.
        let _ = self.asks.send(Ask::Pid(pid));
    }

    fn cadence(&mut self, ms: u32) {
        let _ = self.asks.send(Ask::Cadence(ms));
    }
}

struct Follower {
    dir: PathBuf,
    session_id: String,
    /// Known: only its file is read. A session id may change within a process, the pid does not.
    pid: Option<u32>,
    /// The content reported last, while the file exists.
    last: Option<RawJson>,
    launch: Launch,
    inbox: Arc<dyn Inbox>,
    clock: Arc<dyn Clock>,
    cadence_ms: u32,
}

impl Follower {
    async fn run(mut self, mut asks: UnboundedReceiver<Ask>) {
        self.look();
        let mut last = self.clock.now();
        loop {
            let due = last.after(u64::from(self.cadence_ms));
            tokio::select! {
                biased;
                ask = asks.recv() => match ask {
                    Some(Ask::Cadence(ms)) => {
                        self.cadence_ms = ms;
                        continue;
                    }
                    Some(Ask::Pid(pid)) if self.pid == Some(pid) => continue,
                    Some(Ask::Pid(pid)) => self.pid = Some(pid),
                    None => return,
                },
                () = self.clock.sleep_until(due), if self.cadence_ms > 0 => {}
            }
            self.look();
            last = self.clock.now();
        }
    }

    fn look(&mut self) {
        let Some(pid) = self.pid else {
            self.search();
            return;
        };
        match read_entry(&self.dir.join(format!("{pid}.json"))) {
            Ok(Some(body)) => self.report(body),
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if self.last.take().is_some() {
                    self.push(Raw::RegistryGone);
                }
            }
            Err(_) => {}
        }
    }

    /// Looks through all entries for a living process with our session id.
    fn search(&mut self) {
        for (pid, path) in entries(&self.dir) {
            let Ok(Some(body)) = read_entry(&path) else {
                continue;
            };
            let Some(entry) = Entry::parse(body.get()) else {
                continue;
            };
            if entry.session_id.as_deref() == Some(self.session_id.as_str()) && entry.lives(pid) {
                self.pid = Some(pid);
                self.report(body);
                return;
            }
        }
    }

    fn report(&mut self, body: RawJson) {
        if self.last.as_ref() != Some(&body) {
            self.last = Some(body.clone());
            self.push(Raw::Registry { body });
        }
    }

    fn push(&self, raw: Raw) {
        self.inbox.push(self.launch, self.clock.now(), raw);
    }
}

/// The fields of a registry entry that identify its process.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    pub(crate) session_id: Option<String>,
    pub(crate) cwd: Option<String>,
    proc_start: Option<serde_json::Value>,
}

impl Entry {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Whether exactly the process that wrote this entry lives. Without a start time in it, or where the system cannot
    /// tell, a process of this pid counts.
    pub(crate) fn lives(&self, pid: u32) -> bool {
        let Ok(found) = ccd_helper::proc::identity(pid) else {
            return true;
        };
        let Some(found) = found else { return false };
        let start_time = self
            .proc_start
            .as_ref()
            .and_then(|start| match start.as_str() {
                Some(text) => text.parse().ok(),
                None => start.as_u64(),
            });
        start_time.is_none_or(|start_time: u64| found.start_time == start_time)
    }
}

/// The entries of a registry directory, in order of their pids. The key files beside them are not entries.
pub(crate) fn entries(dir: &Path) -> Vec<(u32, PathBuf)> {
    let Ok(listing) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut found: Vec<(u32, PathBuf)> = listing
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name();
            let digits = name.to_str()?.strip_suffix(".json")?;
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            Some((plain.then(|| digits.parse().ok())??, entry.path()))
        })
        .collect();
    found.sort_unstable();
    found
}

/// The first JSON value of an entry; `None` when it is torn, or not a plain file of a sane size.
pub(crate) fn read_entry(path: &Path) -> io::Result<Option<RawJson>> {
    if !std::fs::metadata(path)?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_FILE + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Ok(None);
    }
    Ok(first_value(&String::from_utf8_lossy(&bytes)))
}

/// The first JSON object of a text, whatever follows it.
fn first_value(text: &str) -> Option<RawJson> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let first = values.next()?.ok()?.get();
    first.starts_with('{').then(|| RawJson::new(first))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_torn_file_gives_its_first_value_or_nothing() {
        let torn = "{\"a\":{\"b\":1},\"updatedAt\":7}46,\"waitingFor\":\"dialog open\"}";
        assert_eq!(
            first_value(torn).unwrap().get(),
            "{\"a\":{\"b\":1},\"updatedAt\":7}"
        );
        for text in ["", "{\"a\":", "46,\"x\":1}", "\0\0\0", "null"] {
            assert_eq!(first_value(text), None, "{text:?}");
        }
    }

    #[test]
    fn only_files_named_by_a_pid_are_entries() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "10.json",
            "9.json",
            "x.json",
            "9.abcd.key",
            "9.json.tmp",
            ".json",
            "+9.json",
            "99999999999.json",
        ] {
            std::fs::write(dir.path().join(name), "{}").unwrap();
        }
        let pids: Vec<u32> = entries(dir.path())
            .into_iter()
            .map(|(pid, _)| pid)
            .collect();
        assert_eq!(pids, [9, 10]);
        assert!(entries(&dir.path().join("missing")).is_empty());
    }

    #[test]
    fn an_entry_lives_only_with_its_own_start_time() {
        let pid = std::process::id();
        let start = ccd_helper::proc::start_time(pid).unwrap().unwrap();
        let entry = |start: u64| Entry::parse(&format!("{{\"procStart\":\"{start}\"}}")).unwrap();
        assert!(entry(start).lives(pid));
        assert!(!entry(start + 1).lives(pid));
        assert!(Entry::parse("{}").unwrap().lives(pid));
        assert!(!Entry::parse("{}").unwrap().lives(u32::MAX));
    }
}
