//! The byte-level line splitter: chunks of a file in, whole lines out.
//!
//! What lives here: pure splitting with a bound on memory; any chunking of the same bytes gives the same pieces. What
//! never does: files, or the meaning of a line.

use std::sync::Arc;

/// Longest line that is kept, in bytes without its newline (32 MiB).
pub const MAX_LINE: usize = 32 * 1024 * 1024;

/// What the splitter found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A whole line, without its newline; a carriage return before it is kept.
    Line {
        /// Offset of its first byte.
        offset: u64,
        /// Its text.
        text: Arc<str>,
        /// It was not valid UTF-8; what was not is replaced by U+FFFD.
        repaired: bool,
    },
    /// A line over the limit, discarded.
    Oversize {
        /// Offset of its first byte.
        offset: u64,
        /// Its bytes, without the newline.
        bytes: u64,
    },
}

/// What happens to the bytes up to the next newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// They are kept in `partial`.
    Keep,
    /// They belong to a line over the limit: counted (so many so far) and reported.
    Discard(u64),
    /// They are the rest of a line whose start was not seen: dropped without a word.
    Skip,
}

/// Splits a stream of bytes into lines.
#[derive(Debug)]
pub struct LineSplitter {
    limit: usize,
    /// Offset of the first byte of the current line (in [`Mode::Skip`]: of the first byte not yet seen).
    line_start: u64,
    partial: Vec<u8>,
    mode: Mode,
}

impl LineSplitter {
    /// A splitter whose next byte has this offset and begins a line.
    #[must_use]
    pub fn new(offset: u64) -> Self {
        Self::with_limit(offset, MAX_LINE)
    }

    /// The same with another limit.
    #[must_use]
    pub fn with_limit(offset: u64, limit: usize) -> Self {
        Self {
            limit,
            line_start: offset,
            partial: Vec::new(),
            mode: Mode::Keep,
        }
    }

    /// Whether the next byte begins a line.
    #[must_use]
    pub fn at_line_start(&self) -> bool {
        self.mode == Mode::Keep && self.partial.is_empty()
    }

    /// Drops everything up to and with the next newline, without a report: the next byte is inside a line whose start
    /// is unknown.
    pub fn skip_line(&mut self) {
        self.line_start = self.line_start.saturating_add(self.partial.len() as u64);
        self.partial = Vec::new();
        self.mode = Mode::Skip;
    }

    /// Takes the next bytes and gives what they completed to `emit`, in order.
    pub fn push(&mut self, chunk: &[u8], emit: &mut dyn FnMut(Piece)) {
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (head, tail) = rest.split_at(end);
            rest = tail.get(1..).unwrap_or_default();
            self.take(head);
            self.end_line(head, emit);
        }
        self.take(rest);
        if self.mode == Mode::Keep {
            self.partial.extend_from_slice(rest);
        }
    }

    /// Counts bytes of the current line; switches to discarding when they go over the limit.
    fn take(&mut self, bytes: &[u8]) {
        let added = bytes.len() as u64;
        match &mut self.mode {
            Mode::Keep => {
                let total = self.partial.len().saturating_add(bytes.len());
                if total > self.limit {
                    self.partial = Vec::new();
                    self.mode = Mode::Discard(total as u64);
                }
            }
            Mode::Discard(total) => *total = total.saturating_add(added),
            Mode::Skip => self.line_start = self.line_start.saturating_add(added),
        }
    }

    /// The newline after `last`, whose bytes were counted already.
    fn end_line(&mut self, last: &[u8], emit: &mut dyn FnMut(Piece)) {
        let offset = self.line_start;
        let length = match self.mode {
            Mode::Keep => {
                let (bytes, whole);
                if self.partial.is_empty() {
                    bytes = last;
                } else {
                    whole = {
                        self.partial.extend_from_slice(last);
                        std::mem::take(&mut self.partial)
                    };
                    bytes = &whole;
                }
                emit(line(offset, bytes));
                bytes.len() as u64
            }
            Mode::Discard(bytes) => {
                emit(Piece::Oversize { offset, bytes });
                bytes
            }
            Mode::Skip => 0,
        };
        self.line_start = offset.saturating_add(length).saturating_add(1);
        self.mode = Mode::Keep;
    }
}

fn line(offset: u64, bytes: &[u8]) -> Piece {
    match std::str::from_utf8(bytes) {
        Ok(text) => Piece::Line {
            offset,
            text: text.into(),
            repaired: false,
        },
        Err(_) => {
            let text = String::from_utf8_lossy(bytes).into();
            Piece::Line {
                offset,
                text,
                repaired: true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    fn split(chunks: &[&[u8]], limit: usize) -> Vec<Piece> {
        let mut splitter = LineSplitter::with_limit(0, limit);
        let mut out = Vec::new();
        for chunk in chunks {
            splitter.push(chunk, &mut |piece| out.push(piece));
        }
        out
    }

    fn text(offset: u64, text: &str) -> Piece {
        Piece::Line {
            offset,
            text: text.into(),
            repaired: false,
        }
    }

    #[test]
    fn whole_lines_come_out_with_their_offsets_and_a_partial_one_waits() {
        assert_eq!(
            split(&[b"ab\n\ncd\r\npart"], 10),
            [text(0, "ab"), text(3, ""), text(4, "cd\r")]
        );
        assert_eq!(split(&[b"par", b"t", b"ial\nx"], 10), [text(0, "partial")]);
    }

    #[test]
    fn a_line_over_the_limit_is_discarded_and_the_next_one_is_whole() {
        let pieces = split(&[b"0123", b"4567", b"89\n", b"ok\n"], 5);
        assert_eq!(
            pieces,
            [
                Piece::Oversize {
                    offset: 0,
                    bytes: 10
                },
                text(11, "ok")
            ]
        );
        assert_eq!(split(&[b"01234\n"], 5), [text(0, "01234")]);
    }

    #[test]
    fn discarding_holds_no_memory() {
        let mut splitter = LineSplitter::with_limit(0, 1000);
        for _ in 0..100 {
            splitter.push(&[b'x'; 900], &mut |_| {});
            assert!(splitter.partial.capacity() <= 2000);
        }
        let mut out = Vec::new();
        splitter.push(b"\n", &mut |piece| out.push(piece));
        assert_eq!(
            out,
            [Piece::Oversize {
                offset: 0,
                bytes: 90_000
            }]
        );
    }

    #[test]
    fn invalid_utf_8_is_repaired_and_said() {
        let repaired = |offset, text: &str| Piece::Line {
            offset,
            text: text.into(),
            repaired: true,
        };
        let pieces = split(&[b"a\xffb\n\xf0\x9f\x98", b"\x80\n\xf0\x9f\n"], 10);
        assert_eq!(
            pieces,
            [
                repaired(0, "a\u{fffd}b"),
                text(4, "\u{1f600}"),
                repaired(9, "\u{fffd}")
            ]
        );
    }

    #[test]
    fn skipping_drops_the_rest_of_a_torn_line_and_keeps_offsets() {
        let mut splitter = LineSplitter::with_limit(100, 10);
        splitter.skip_line();
        let mut out = Vec::new();
        for chunk in [b"tail of a very long", &b"er line\nok\n"[..]] {
            splitter.push(chunk, &mut |piece| out.push(piece));
        }
        assert_eq!(out, [text(127, "ok")]);
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_lines(
            bytes in proptest::collection::vec(prop_oneof![3 => Just(b'\n'), 5 => any::<u8>()], 0..200),
            cuts in proptest::collection::vec(0_usize..200, 0..12),
            limit in 1_usize..20,
        ) {
            let whole = split(&[&bytes], limit);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let mut start = 0;
            let chunks: Vec<&[u8]> = cuts.iter().map(|end| {
                let chunk = &bytes[start..*end];
                start = *end;
                chunk
            }).collect();
            prop_assert_eq!(&split(&chunks, limit), &whole);

            // The pieces are the newline-terminated parts of the bytes, each at its offset.
            let mut offset = 0_u64;
            let mut expected = Vec::new();
            for part in bytes.split_inclusive(|byte| *byte == b'\n') {
                if let Some(part) = part.strip_suffix(b"\n") {
                    expected.push((offset, part.to_vec()));
                }
                offset += part.len() as u64;
            }
            prop_assert_eq!(whole.len(), expected.len());
            for (piece, (offset, part)) in whole.iter().zip(expected) {
                match piece {
                    Piece::Line { offset: at, text, .. } => {
                        prop_assert!(part.len() <= limit);
                        let expected = String::from_utf8_lossy(&part);
                        prop_assert_eq!((*at, text.as_ref()), (offset, expected.as_ref()));
                    }
                    Piece::Oversize { offset: at, bytes } => {
                        prop_assert!(part.len() > limit);
                        prop_assert_eq!((*at, *bytes), (offset, part.len() as u64));
                    }
                }
            }
        }
    }
}
