//! Followed files that exist only in memory.
//!
//! What lives here: the [`Tail`] port on files that a test writes. What never does: a file of this machine, or looking
//! by itself: a look happens at `follow`, at a nudge, and when the test says that a cadence has passed.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ccd_model::ids::{FileKey, Launch};
use ccd_platform::fs_tail::lines::{LineSplitter, Piece};
use ccd_ports::{
    clock::Clock,
    inbox::Inbox,
    raw::{Raw, TailNote},
    session::Tail,
};

#[derive(Clone, Default)]
struct Content {
    bytes: Vec<u8>,
    /// Differs between files that stood at the same path.
    identity: u64,
}

struct Followed {
    path: PathBuf,
    identity: Option<u64>,
    next: usize,
    splitter: LineSplitter,
    aligned: bool,
}

struct State {
    launch: Launch,
    inbox: Arc<dyn Inbox>,
    clock: Arc<dyn Clock>,
    files: BTreeMap<PathBuf, Content>,
    last_identity: u64,
    followed: BTreeMap<FileKey, Followed>,
    cadence_ms: u32,
}

/// The port side; give it to the session.
pub struct FakeTail(Arc<Mutex<State>>);

/// The test side: the files.
#[derive(Clone)]
pub struct FakeTailControl(Arc<Mutex<State>>);

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn add(&mut self, file: FileKey, path: PathBuf, next: usize) {
        let splitter = LineSplitter::new(next as u64);
        let followed = Followed {
            path,
            identity: None,
            next,
            splitter,
            aligned: false,
        };
        self.followed.insert(file, followed);
        self.look();
    }

    fn look(&mut self) {
        let mut found = Vec::new();
        for (file, followed) in &mut self.followed {
            if let Some(content) = self.files.get(&followed.path) {
                followed.look(*file, content, &mut found);
            }
        }
        for raw in found {
            self.inbox.push(self.launch, self.clock.now(), raw);
        }
    }
}

impl Followed {
    fn look(&mut self, file: FileKey, content: &Content, out: &mut Vec<Raw>) {
        let note = |note| Raw::Tail { file, note };
        match self.identity.replace(content.identity) {
            None => out.push(note(TailNote::Appeared)),
            Some(identity) if identity == content.identity => {}
            Some(_) => {
                out.push(note(TailNote::Replaced));
                self.restart(0);
            }
        }
        let Some(fresh) = content.bytes.get(self.next..) else {
            out.push(note(TailNote::Shrank));
            return self.restart(content.bytes.len());
        };
        if fresh.is_empty() {
            return;
        }
        let before = self
            .next
            .checked_sub(1)
            .and_then(|before| content.bytes.get(before));
        if self.splitter.at_line_start() && before.is_some_and(|before| *before != b'\n') {
            if self.aligned {
                out.push(note(TailNote::Shrank));
            }
            self.splitter.skip_line();
        }
        self.aligned = true;
        self.next = content.bytes.len();
        self.splitter.push(fresh, &mut |piece| match piece {
            Piece::Line {
                offset,
                text,
                repaired,
            } => {
                out.push(Raw::Line { file, offset, text });
                if repaired {
                    out.push(note(TailNote::Repaired));
                }
            }
            Piece::Oversize { bytes, .. } => out.push(note(TailNote::Oversize { bytes })),
        });
    }

    fn restart(&mut self, next: usize) {
        self.next = next;
        self.splitter = LineSplitter::new(next as u64);
        self.aligned = false;
    }
}

impl FakeTail {
    /// A follower without files, and the control over the files.
    #[must_use]
    pub fn new(
        launch: Launch,
        inbox: Arc<dyn Inbox>,
        clock: Arc<dyn Clock>,
    ) -> (Self, FakeTailControl) {
        let state = Arc::new(Mutex::new(State {
            launch,
            inbox,
            clock,
            files: BTreeMap::new(),
            last_identity: 0,
            followed: BTreeMap::new(),
            cadence_ms: 250,
        }));
        (Self(Arc::clone(&state)), FakeTailControl(state))
    }
}

impl Tail for FakeTail {
    fn follow(&mut self, file: FileKey, path: PathBuf, from: u64) {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        lock(&self.0).add(file, path, from);
    }

    fn follow_from_end(&mut self, file: FileKey, path: PathBuf) {
        let mut state = lock(&self.0);
        let end = state
            .files
            .get(&path)
            .map_or(0, |content| content.bytes.len());
        state.add(file, path, end);
    }

    fn forget(&mut self, file: FileKey) {
        lock(&self.0).followed.remove(&file);
    }

    fn cadence(&mut self, ms: u32) {
        lock(&self.0).cadence_ms = ms;
    }

    fn nudge(&mut self) {
        lock(&self.0).look();
    }
}

impl FakeTailControl {
    /// Appends to a file, which is created where it does not exist.
    pub fn append(&self, path: &Path, bytes: &[u8]) {
        let mut state = lock(&self.0);
        if !state.files.contains_key(path) {
            drop(state);
            return self.replace(path, bytes);
        }
        if let Some(content) = state.files.get_mut(path) {
            content.bytes.extend_from_slice(bytes);
        }
    }

    /// Appends one line and lets it be seen at once.
    pub fn line(&self, path: &Path, line: &str) {
        self.append(path, format!("{line}\n").as_bytes());
        self.look();
    }

    /// Puts another file at the path.
    pub fn replace(&self, path: &Path, bytes: &[u8]) {
        let mut state = lock(&self.0);
        state.last_identity = state.last_identity.saturating_add(1);
        let content = Content {
            bytes: bytes.to_vec(),
            identity: state.last_identity,
        };
        state.files.insert(path.to_owned(), content);
    }

    /// Cuts a file.
    pub fn truncate(&self, path: &Path, length: usize) {
        if let Some(content) = lock(&self.0).files.get_mut(path) {
            content.bytes.truncate(length);
        }
    }

    /// Removes a file.
    pub fn remove(&self, path: &Path) {
        lock(&self.0).files.remove(path);
    }

    /// A cadence passes: everything is looked at, unless the cadence is off.
    pub fn look(&self) {
        let mut state = lock(&self.0);
        if state.cadence_ms > 0 {
            state.look();
        }
    }

    /// The cadence asked for last, milliseconds.
    #[must_use]
    pub fn cadence_ms(&self) -> u32 {
        lock(&self.0).cadence_ms
    }

    /// The followed files.
    #[must_use]
    pub fn followed(&self) -> Vec<(FileKey, PathBuf)> {
        let state = lock(&self.0);
        state
            .followed
            .iter()
            .map(|(file, followed)| (*file, followed.path.clone()))
            .collect()
    }
}
