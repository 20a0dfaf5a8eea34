//! One followed file: what stands at its path now, and what is new in it.
//!
//! What lives here: opening, positional reads, and telling a shrunk or replaced file from a grown one. What never
//! does: waiting, or more than one file.
//!
//! The open file is kept: while it is, no other file can take its inode number, so a replacement is always seen.

use std::{
    fs::{File, Metadata},
    io,
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::PathBuf,
    sync::Arc,
};

use ccd_ports::raw::TailNote;

use super::lines::{LineSplitter, Piece};

/// Most bytes of one read.
const CHUNK: usize = 256 * 1024;

/// What a poll found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// A whole line.
    Line {
        /// Offset of its first byte.
        offset: u64,
        /// Its text.
        text: Arc<str>,
    },
    /// Something else.
    Note(TailNote),
}

/// Where to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// At this byte, which begins a line.
    Byte(u64),
    /// After what is there now.
    End,
}

#[derive(Debug)]
pub(super) struct FollowedFile {
    path: PathBuf,
    splitter: LineSplitter,
    /// Offset of the next byte to read.
    next: u64,
    open: Option<File>,
    /// The byte before `next` is known to be the newline that ended the line before.
    aligned: bool,
}

impl FollowedFile {
    pub(super) fn new(path: PathBuf, from: From) -> Self {
        let next = match from {
            From::Byte(byte) => byte,
            From::End => std::fs::metadata(&path).map_or(0, |metadata| metadata.len()),
        };
        Self {
            path,
            splitter: LineSplitter::new(next),
            next,
            open: None,
            aligned: false,
        }
    }

    /// Reads one chunk of what is new. Returns whether there may be more; a file that cannot be read now has nothing
    /// new.
    pub(super) fn poll(&mut self, out: &mut Vec<Found>) -> bool {
        self.try_poll(out).unwrap_or(false)
    }

    fn try_poll(&mut self, out: &mut Vec<Found>) -> io::Result<bool> {
        let metadata = std::fs::metadata(&self.path)?;
        if !metadata.is_file() {
            return Ok(false);
        }
        let same = match &self.open {
            Some(file) => same_file(&file.metadata()?, &metadata),
            None => false,
        };
        if !same {
            let file = File::open(&self.path)?;
            if self.open.replace(file).is_some() {
                out.push(Found::Note(TailNote::Replaced));
                self.restart(0);
            } else {
                out.push(Found::Note(TailNote::Appeared));
            }
        }
        let Some(file) = &self.open else {
            return Ok(false);
        };
        let size = file.metadata()?.len();
        if size < self.next {
            out.push(Found::Note(TailNote::Shrank));
            self.restart(size);
            return Ok(false);
        }
        if size == self.next {
            return Ok(false);
        }
        // One byte more in front shows whether the line before still ends where it did.
        let check = self.next > 0 && self.splitter.at_line_start();
        let begin = self.next - u64::from(check);
        let wanted = usize::try_from(size - begin).unwrap_or(CHUNK).min(CHUNK);
        let mut buffer = vec![0; wanted];
        let read = file.read_at(&mut buffer, begin)?;
        buffer.truncate(read);
        let mut fresh = buffer.as_slice();
        if check && let Some((before, rest)) = buffer.split_first() {
            fresh = rest;
            if *before != b'\n' {
                if self.aligned {
                    out.push(Found::Note(TailNote::Shrank));
                }
                self.splitter.skip_line();
            }
        }
        self.aligned = true;
        self.next = self.next.saturating_add(fresh.len() as u64);
        self.splitter.push(fresh, &mut |piece| match piece {
            Piece::Line {
                offset,
                text,
                repaired,
            } => {
                out.push(Found::Line { offset, text });
                if repaired {
                    out.push(Found::Note(TailNote::Repaired));
                }
            }
            Piece::Oversize { bytes, .. } => out.push(Found::Note(TailNote::Oversize { bytes })),
        });
        Ok(read == wanted && wanted == CHUNK)
    }

    /// Goes on at `offset`, which need not begin a line.
    fn restart(&mut self, offset: u64) {
        self.next = offset;
        self.splitter = LineSplitter::new(offset);
        self.aligned = false;
    }
}

fn same_file(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::{fs, io::Write as _, path::Path};

    fn append(path: &Path, bytes: &[u8]) {
        let file = fs::OpenOptions::new().append(true).create(true).open(path);
        file.unwrap().write_all(bytes).unwrap();
    }

    fn all(file: &mut FollowedFile) -> Vec<Found> {
        let mut out = Vec::new();
        while file.poll(&mut out) {}
        out
    }

    fn line(offset: u64, text: &str) -> Found {
        Found::Line {
            offset,
            text: text.into(),
        }
    }

    use Found::Note;

    #[test]
    fn a_file_that_appears_later_is_read_from_its_start_and_grows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let mut file = FollowedFile::new(path.clone(), From::Byte(0));
        assert_eq!(all(&mut file), []);
        append(&path, b"one\ntw");
        assert_eq!(all(&mut file), [Note(TailNote::Appeared), line(0, "one")]);
        append(&path, b"o\nthree\n");
        assert_eq!(all(&mut file), [line(4, "two"), line(8, "three")]);
        assert_eq!(all(&mut file), []);
    }

    #[test]
    fn from_the_end_a_torn_line_is_dropped_and_what_follows_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        for (before, added) in [
            (&b"old\nto"[..], &b"rn\nnew\n"[..]),
            (b"old\ntorn", b"\nnew\n"),
            (b"old1\nold2\n", b"new\n"),
        ] {
            fs::write(&path, before).unwrap();
            let mut file = FollowedFile::new(path.clone(), From::End);
            assert_eq!(all(&mut file), [Note(TailNote::Appeared)]);
            append(&path, added);
            let offset = (before.len() + added.len() - 4) as u64;
            assert_eq!(all(&mut file), [line(offset, "new")]);
        }
    }

    #[test]
    fn a_shrunk_file_goes_on_from_its_new_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        append(&path, b"one\ntwo\nthree\npart");
        let mut file = FollowedFile::new(path.clone(), From::Byte(0));
        assert_eq!(all(&mut file).len(), 4);
        fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(8)
            .unwrap();
        assert_eq!(all(&mut file), [Note(TailNote::Shrank)]);
        append(&path, b"four\n");
        assert_eq!(all(&mut file), [line(8, "four")]);
    }

    #[test]
    fn a_file_rewritten_in_place_beyond_its_old_size_is_noticed_at_the_missing_newline() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        append(&path, b"one\n");
        let mut file = FollowedFile::new(path.clone(), From::Byte(0));
        assert_eq!(all(&mut file).len(), 2);
        let same_inode = fs::OpenOptions::new().write(true).open(&path).unwrap();
        same_inode.write_all_at(b"rewritten\nnext\n", 0).unwrap();
        assert_eq!(all(&mut file), [Note(TailNote::Shrank), line(10, "next")]);
    }

    #[test]
    fn another_file_at_the_path_is_read_from_its_start_even_after_a_gap() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        append(&path, b"one\n");
        let mut file = FollowedFile::new(path.clone(), From::Byte(0));
        all(&mut file);
        let other = dir.path().join("other");
        append(&other, b"a longer first line\nb\n");
        fs::rename(&other, &path).unwrap();
        let expected = [
            Note(TailNote::Replaced),
            line(0, "a longer first line"),
            line(20, "b"),
        ];
        assert_eq!(all(&mut file), expected);
        fs::remove_file(&path).unwrap();
        assert_eq!(all(&mut file), []);
        append(&path, b"again\n");
        assert_eq!(all(&mut file), [Note(TailNote::Replaced), line(0, "again")]);
    }

    #[test]
    fn a_large_file_comes_in_chunks_and_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        let mut expected = String::new();
        for n in 0..40_000 {
            expected.push_str(&format!("line number {n}\n"));
        }
        expected.push_str(&"long ".repeat(300_000));
        expected.push('\n');
        fs::write(&path, &expected).unwrap();
        let mut file = FollowedFile::new(path, From::Byte(0));
        let mut text = String::new();
        for found in all(&mut file) {
            match found {
                Found::Line { offset, text: line } => {
                    assert_eq!(offset, text.len() as u64);
                    text.push_str(&line);
                    text.push('\n');
                }
                Note(note) => assert_eq!(note, TailNote::Appeared),
            }
        }
        assert!(text == expected);
    }

    #[test]
    fn a_directory_at_the_path_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = FollowedFile::new(dir.path().to_owned(), From::Byte(0));
        assert_eq!(all(&mut file), []);
    }
}
