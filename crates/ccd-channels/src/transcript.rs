//! Transcript lines: repair, dispatch into the profile's reader, and what must be remembered between the lines of one file.
//! Entry types and field names live in the profile.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use ccd_model::{
    fact::Source,
    ids::FileKey,
    observation::{Observation, Observed},
};

use crate::{
    channels::FileRole,
    text::{SeenKinds, Unreadable, repair_surrogates, unrecognized},
};

/// Channel name in `Unrecognized`.
const CHANNEL: &str = "transcript";
/// Model requests remembered per file, to recognise retries.
const REQUESTS: usize = 8;

/// What is remembered between the lines of one file.
#[derive(Debug, Default)]
pub(crate) struct FileState {
    requests: VecDeque<(Arc<str>, Arc<str>)>,
    /// Prompt id of the last prompt line.
    pub(crate) prompt_id: Option<Arc<str>>,
    /// A withdrawal was reported since the last prompt line; metadata lines repeat.
    pub(crate) withdrawn: bool,
}

impl FileState {
    /// Notes a model request and its digest.
    pub(crate) fn request(&mut self, id: &Arc<str>, digest: Arc<str>) {
        if self.requests.len() >= REQUESTS {
            self.requests.pop_front();
        }
        self.requests.push_back((Arc::clone(id), digest));
    }

    /// The digest of the request `id`, if it is remembered.
    pub(crate) fn digest(&self, id: &str) -> Option<&str> {
        self.requests
            .iter()
            .find(|(known, _)| &**known == id)
            .map(|(_, digest)| &**digest)
    }
}

/// One line on its way through a reader.
pub(crate) struct LineContext<'c> {
    pub(crate) file: FileKey,
    pub(crate) role: Option<&'c FileRole>,
    pub(crate) state: &'c mut FileState,
    /// Claude's session id of the line, once known.
    pub(crate) session: Option<Arc<str>>,
    /// What the line means.
    pub(crate) found: Vec<Observation>,
    /// A kind that no table knows.
    pub(crate) unknown: Option<String>,
}

/// The transcript tables of a profile.
pub(crate) struct TranscriptTable {
    /// Reads one line. Must leave the state alone when it fails.
    pub(crate) read: fn(&str, &mut LineContext<'_>) -> Result<(), Unreadable>,
    /// Reads a subagent's meta file: its id and the content.
    pub(crate) agent_meta: fn(&Arc<str>, &str) -> Result<Observation, Unreadable>,
}

/// The transcript normalizer.
#[derive(Debug, Default)]
pub(crate) struct TranscriptReader {
    files: BTreeMap<FileKey, FileState>,
}

impl TranscriptReader {
    /// Forgets what is remembered of `file`.
    pub(crate) fn forget(&mut self, file: FileKey) {
        self.files.remove(&file);
    }

    /// Appends what one line means.
    pub(crate) fn line(
        &mut self,
        table: &TranscriptTable,
        file: FileKey,
        role: Option<&FileRole>,
        text: &str,
        seen: &mut SeenKinds,
        out: &mut Vec<Observed>,
    ) {
        if text.trim().is_empty() {
            return;
        }
        let mut context = LineContext {
            file,
            role,
            state: self.files.entry(file).or_default(),
            session: match role {
                Some(FileRole::Main { session_id }) => Some(Arc::clone(session_id)),
                Some(FileRole::Agent { .. }) | None => None,
            },
            found: Vec::new(),
            unknown: None,
        };
        let mut read = (table.read)(text, &mut context);
        if read.is_err() {
            let repaired = repair_surrogates(text);
            if repaired != text {
                context.found.clear();
                read = (table.read)(&repaired, &mut context);
            }
        }
        if let Err(error) = read {
            context.found.clear();
            context
                .found
                .push(unrecognized(CHANNEL, &error.to_string()));
        }
        if let Some(kind) = context.unknown.take()
            && seen.first(&format!("{CHANNEL} {kind}"))
        {
            context.found.push(unrecognized(CHANNEL, &kind));
        }
        let session = context.session;
        out.extend(context.found.into_iter().map(|what| Observed {
            source: Source::Transcript,
            session: session.clone(),
            what,
        }));
    }
}
