//! Timer A-6, the transcript polling, as the session drives it: which files are followed, from where, under which keys.
//!
//! Here lives the list of followed files. Reading a file and what a line means never do.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use ccd_channels::FileRole;
use ccd_model::{ids::FileKey, observation::StartSource};
use ccd_ports::{raw::Raw, session::Tail};

/// One followed conversation file.
struct Followed {
    file: FileKey,
    path: PathBuf,
    session_id: Arc<str>,
}

/// The followed files of a session.
pub(crate) struct TailDriver {
    tail: Box<dyn Tail>,
    files: Vec<Followed>,
    /// Files that gave at least one line.
    read: BTreeSet<FileKey>,
    last: u32,
    /// The first file holds an older conversation: only what comes is wanted.
    from_end: bool,
}

impl TailDriver {
    /// `resumed`: the first file that is followed already holds an older conversation.
    pub(crate) fn new(tail: Box<dyn Tail>, resumed: bool) -> Self {
        Self {
            tail,
            files: Vec::new(),
            read: BTreeSet::new(),
            last: 0,
            from_end: resumed,
        }
    }

    /// Follows `path`, the conversation of `session_id`. Returns the key and role to register, or nothing when it is followed already.
    pub(crate) fn follow(
        &mut self,
        path: &str,
        session_id: &Arc<str>,
    ) -> Option<(FileKey, FileRole)> {
        let path = PathBuf::from(path);
        let same_session = self.files.iter().position(|f| f.session_id == *session_id);
        if let Some(index) = same_session {
            let known = self.files.get(index)?;
            if known.path == path || self.read.contains(&known.file) {
                self.tail.nudge();
                return None;
            }
            // The expected path was wrong, nothing came from it.
            self.tail.forget(known.file);
            self.files.remove(index);
        }
        self.last = self.last.saturating_add(1);
        let file = FileKey(self.last);
        if self.from_end {
            self.tail.follow_from_end(file, path.clone());
        } else {
            self.tail.follow(file, path.clone(), 0);
        }
        self.files.push(Followed {
            file,
            path,
            session_id: Arc::clone(session_id),
        });
        Some((
            file,
            FileRole::Main {
                session_id: Arc::clone(session_id),
            },
        ))
    }

    /// A raw record came by.
    pub(crate) fn saw(&mut self, raw: &Raw) {
        if let Raw::Line { file, .. } = raw {
            self.read.insert(*file);
        }
    }

    /// A conversation began: only a resumed one has a past in its file.
    pub(crate) fn conversation_started(&mut self, start: StartSource) {
        self.from_end = match start {
            StartSource::Resume => true,
            StartSource::Startup
            | StartSource::Clear
            | StartSource::Compact
            | StartSource::Fork
            | StartSource::Other => false,
        };
    }

    /// Polls this often, milliseconds.
    pub(crate) fn cadence(&mut self, ms: u32) {
        self.tail.cadence(ms);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::sync::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<String>>>);
    impl Log {
        fn add(&self, line: String) {
            self.0.lock().unwrap().push(line);
        }
        fn take(&self) -> Vec<String> {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }
    impl Tail for Log {
        fn follow(&mut self, file: FileKey, path: PathBuf, from: u64) {
            self.add(format!("{file} {} {from}", path.display()));
        }
        fn follow_from_end(&mut self, file: FileKey, path: PathBuf) {
            self.add(format!("{file} {} end", path.display()));
        }
        fn forget(&mut self, file: FileKey) {
            self.add(format!("{file} forget"));
        }
        fn cadence(&mut self, ms: u32) {
            self.add(format!("cadence {ms}"));
        }
        fn nudge(&mut self) {
            self.add("nudge".into());
        }
    }

    fn line(file: u32) -> Raw {
        Raw::Line {
            file: FileKey(file),
            offset: 0,
            text: "{}".into(),
        }
    }

    #[test]
    fn a_named_path_replaces_an_expected_one_only_while_nothing_was_read() {
        let log = Log::default();
        let mut driver = TailDriver::new(Box::new(log.clone()), false);
        let id: Arc<str> = "s".into();
        let (file, role) = driver.follow("/a", &id).unwrap();
        assert_eq!(file, FileKey(1));
        assert_eq!(
            role,
            FileRole::Main {
                session_id: id.clone()
            }
        );
        assert!(driver.follow("/a", &id).is_none());
        assert_eq!(driver.follow("/b", &id).unwrap().0, FileKey(2));
        driver.saw(&line(2));
        assert!(driver.follow("/c", &id).is_none());
        assert_eq!(driver.follow("/d", &"other".into()).unwrap().0, FileKey(3));
        assert_eq!(
            log.take(),
            [
                "f1 /a 0",
                "nudge",
                "f1 forget",
                "f2 /b 0",
                "nudge",
                "f3 /d 0"
            ]
        );
    }

    #[test]
    fn a_resumed_conversation_is_read_from_its_end_and_the_next_from_its_start() {
        let log = Log::default();
        let mut driver = TailDriver::new(Box::new(log.clone()), true);
        driver.follow("/a", &"s".into()).unwrap();
        driver.conversation_started(StartSource::Clear);
        driver.follow("/b", &"t".into()).unwrap();
        driver.cadence(50);
        assert_eq!(log.take(), ["f1 /a end", "f2 /b 0", "cadence 50"]);
    }
}
