//! The trace file: lines written by a thread of its own.
//!
//! What lives here: a private file, its writer thread and the first write error. What never does: what a line says,
//! or a timer: lines are written out whenever the writer has caught up.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
};

use ccd_ports::{
    error::{PortError, PortErrorKind},
    trace::TraceSink,
};

/// Most bytes that wait for the disk; further lines are lost and reported by `finish`.
const MAX_PENDING: usize = 256 * 1024 * 1024;

/// A trace file with its writer thread. Dropping it writes everything out.
#[derive(Debug)]
pub struct TraceFile {
    path: PathBuf,
    lines: Option<Sender<String>>,
    pending: Arc<AtomicUsize>,
    overflow: bool,
    writer: Option<JoinHandle<io::Result<()>>>,
}

impl TraceFile {
    /// Creates `path`, or empties it, with mode 0600. A symbolic link is refused.
    ///
    /// # Errors
    /// `DirUnusable` if its directory does not exist or cannot be written, `FileUnreadable` for anything else.
    pub fn create(path: &str) -> Result<Self, PortError> {
        let path = Path::new(path);
        let file = open(path).map_err(|error| refusal(path, &error))?;
        let pending = Arc::new(AtomicUsize::new(0));
        let (lines, queue) = channel();
        let counter = Arc::clone(&pending);
        let writer = std::thread::Builder::new()
            .name("ccd-trace".to_owned())
            .spawn(move || write_all(file, &queue, &counter))
            .map_err(|error| {
                PortError::new(
                    PortErrorKind::Internal,
                    format!("no thread for the trace: {error}"),
                )
            })?;
        Ok(Self {
            path: path.to_owned(),
            lines: Some(lines),
            pending,
            overflow: false,
            writer: Some(writer),
        })
    }
}

impl TraceSink for TraceFile {
    fn line(&mut self, line: String) {
        let Some(lines) = &self.lines else { return };
        if self
            .pending
            .load(Ordering::Relaxed)
            .saturating_add(line.len())
            > MAX_PENDING
        {
            self.overflow = true;
            return;
        }
        self.pending.fetch_add(line.len(), Ordering::Relaxed);
        // The writer ends early only after a write error, which `finish` reports.
        let _ = lines.send(line);
    }

    fn finish(&mut self) -> Result<(), PortError> {
        self.lines = None;
        let failed = |what: String| {
            let message = format!("the trace {} is incomplete: {what}", self.path.display());
            Err(PortError::new(PortErrorKind::Internal, message))
        };
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(Err(error))) => failed(error.to_string()),
            Some(Err(_)) => failed("its writer ended".to_owned()),
            Some(Ok(Ok(()))) | None if self.overflow => failed("the disk was too slow".to_owned()),
            Some(Ok(Ok(()))) | None => Ok(()),
        }
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        if let Err(error) = self.finish() {
            tracing::warn!(%error, "trace");
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0))
        .open(path)?;
    // A device keeps its mode.
    if file.metadata()?.is_file() {
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

fn refusal(path: &Path, error: &io::Error) -> PortError {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let no_parent = parent.is_some_and(|parent| !parent.is_dir());
    let (kind, fix) = if no_parent || error.kind() == io::ErrorKind::PermissionDenied {
        (
            PortErrorKind::DirUnusable,
            "Name a file in a directory that exists and can be written.",
        )
    } else {
        (PortErrorKind::FileUnreadable, "Name a plain file.")
    };
    let message = format!("the trace {} cannot be opened: {error}", path.display());
    PortError::new(kind, message).with_fix(fix)
}

fn write_all(file: File, queue: &Receiver<String>, pending: &AtomicUsize) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(64 * 1024, file);
    while let Ok(mut line) = queue.recv() {
        loop {
            pending.fetch_sub(line.len(), Ordering::Relaxed);
            out.write_all(line.as_bytes())?;
            out.write_all(b"\n")?;
            match queue.try_recv() {
                Ok(next) => line = next,
                Err(_) => break,
            }
        }
        out.flush()?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::fs;

    #[test]
    fn lines_are_there_in_order_after_finish_in_a_private_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.ccd.jsonl");
        fs::write(&path, "older").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let mut sink = TraceFile::create(path.to_str().unwrap()).unwrap();
        let expected: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        for n in 0..1000 {
            sink.line(format!("line {n}"));
        }
        sink.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        sink.line("after the end".to_owned());
        sink.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    }

    #[test]
    fn dropping_it_writes_everything_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        let mut sink = TraceFile::create(path.to_str().unwrap()).unwrap();
        sink.line("one".to_owned());
        drop(sink);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
    }

    #[test]
    fn a_missing_directory_and_a_link_are_typed_errors() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("no/such/file");
        let error = TraceFile::create(missing.to_str().unwrap()).unwrap_err();
        assert_eq!(error.kind, PortErrorKind::DirUnusable);
        assert!(error.fix.is_some());
        let target = dir.path().join("target");
        fs::write(&target, "kept").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let error = TraceFile::create(link.to_str().unwrap()).unwrap_err();
        assert_eq!(error.kind, PortErrorKind::FileUnreadable);
        assert_eq!(fs::read_to_string(&target).unwrap(), "kept");
    }

    #[test]
    fn a_failed_write_is_reported_once_by_finish() {
        let mut sink = TraceFile::create("/dev/full").unwrap();
        sink.line("x".repeat(100_000));
        let error = sink.finish().unwrap_err();
        assert_eq!(error.kind, PortErrorKind::Internal);
        sink.finish().unwrap();
    }
}
