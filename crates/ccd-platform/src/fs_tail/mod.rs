//! The transcript follower: timer A-6.
//!
//! What lives here: one background task that looks at the followed files at the cadence asked for, or when nudged, and
//! pushes whole lines. What never does: file watches, a timer of its own (it waits on the clock port), or the meaning
//! of a line.

mod file;
pub mod lines;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use ccd_model::ids::{FileKey, Launch};
use ccd_ports::{clock::Clock, inbox::Inbox, raw::Raw, session::Tail};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use self::file::{FollowedFile, Found, From};

/// Cadence until one is asked for, milliseconds.
const FIRST_CADENCE_MS: u32 = 250;

enum Ask {
    Follow(FileKey, FollowedFile),
    Forget(FileKey),
    Cadence(u32),
    Nudge,
}

/// Follows files by polling. Dropping it ends the task.
///
/// The task runs on the tokio runtime that [`TailFollower::start`] is called in, else on a thread of its own. The
/// files are looked at when one is added, when nudged, and at the cadence (250 ms at first, 0 turns it off).
#[derive(Debug)]
pub struct TailFollower {
    asks: UnboundedSender<Ask>,
}

impl TailFollower {
    /// Starts the task.
    #[must_use]
    pub fn start(launch: Launch, inbox: Arc<dyn Inbox>, clock: Arc<dyn Clock>) -> Self {
        let (asks, queue) = unbounded_channel();
        let follower = Follower {
            launch,
            inbox,
            clock,
            files: BTreeMap::new(),
            cadence_ms: FIRST_CADENCE_MS,
        };
        crate::background::spawn("ccd-tail", follower.run(queue));
        Self { asks }
    }

    fn ask(&self, ask: Ask) {
        // The task ends only with this sender.
        let _ = self.asks.send(ask);
    }
}

impl Tail for TailFollower {
    fn follow(&mut self, file: FileKey, path: PathBuf, from: u64) {
        self.ask(Ask::Follow(file, FollowedFile::new(path, From::Byte(from))));
    }

    fn follow_from_end(&mut self, file: FileKey, path: PathBuf) {
        self.ask(Ask::Follow(file, FollowedFile::new(path, From::End)));
    }

    fn forget(&mut self, file: FileKey) {
        self.ask(Ask::Forget(file));
    }

    fn cadence(&mut self, ms: u32) {
        self.ask(Ask::Cadence(ms));
    }

    fn nudge(&mut self) {
        self.ask(Ask::Nudge);
    }
}

struct Follower {
    launch: Launch,
    inbox: Arc<dyn Inbox>,
    clock: Arc<dyn Clock>,
    files: BTreeMap<FileKey, FollowedFile>,
    cadence_ms: u32,
}

impl Follower {
    async fn run(mut self, mut asks: UnboundedReceiver<Ask>) {
        let mut last = self.clock.now();
        loop {
            let due = last.after(u64::from(self.cadence_ms));
            let on = self.cadence_ms > 0 && !self.files.is_empty();
            let look = tokio::select! {
                biased;
                ask = asks.recv() => match ask {
                    Some(ask) => self.apply(ask),
                    None => return,
                },
                () = self.clock.sleep_until(due), if on => true,
            };
            if look {
                while self.look() {
                    // A large file does not keep others waiting, nor a `forget` from taking effect.
                    tokio::task::yield_now().await;
                    while let Ok(ask) = asks.try_recv() {
                        self.apply(ask);
                    }
                }
                last = self.clock.now();
            }
        }
    }

    /// Does what was asked; tells whether the files are to be looked at now.
    fn apply(&mut self, ask: Ask) -> bool {
        match ask {
            Ask::Follow(key, file) => {
                self.files.insert(key, file);
                true
            }
            Ask::Forget(key) => {
                self.files.remove(&key);
                false
            }
            Ask::Cadence(ms) => {
                self.cadence_ms = ms;
                false
            }
            Ask::Nudge => true,
        }
    }

    /// Reads a chunk of each file; tells whether there may be more.
    fn look(&mut self) -> bool {
        let mut more = false;
        let mut found = Vec::new();
        for (key, file) in &mut self.files {
            more |= file.poll(&mut found);
            for found in found.drain(..) {
                let raw = match found {
                    Found::Line { offset, text } => Raw::Line {
                        file: *key,
                        offset,
                        text,
                    },
                    Found::Note(note) => Raw::Tail { file: *key, note },
                };
                self.inbox.push(self.launch, self.clock.now(), raw);
            }
        }
        more
    }
}
