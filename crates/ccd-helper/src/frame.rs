//! The frames of the editor socket, both sides.
//!
//! What lives here: one exchange on one connection. The helper sends `CCD1 EDIT <len>\n` and the file's bytes; the
//! host answers `CCD1 TEXT <len>\n` and the new bytes, or `CCD1 KEEP\n`. The helper keeps the connection open until
//! it ends, so its end tells the host that the file is written (or that it failed). Lengths are in bytes.
//! What never does: the socket itself, the file.

use std::fmt;
use std::io::{self, BufRead, Read, Write};

use crate::{MAX_BODY, PROTOCOL};

/// Longest header line, `\n` included.
pub const MAX_HEADER: usize = 64;

/// Why an exchange failed.
#[derive(Debug)]
pub enum FrameError {
    /// The header line is not of this protocol version.
    Protocol(String),
    /// The header line has the wrong form.
    Malformed(String),
    /// The length is more than [`MAX_BODY`].
    TooLong(u64),
    /// The peer ended before everything it announced had arrived.
    Truncated,
    /// The socket failed.
    Io(io::Error),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protocol(line) => write!(f, "header {line:?} is not of version {PROTOCOL}"),
            Self::Malformed(line) => write!(f, "malformed header {line:?}"),
            Self::TooLong(len) => write!(f, "{len} bytes are more than {MAX_BODY}"),
            Self::Truncated => f.write_str("the peer ended in the middle of a message"),
            Self::Io(error) => write!(f, "the socket failed: {error}"),
        }
    }
}

impl std::error::Error for FrameError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Protocol(_) | Self::Malformed(_) | Self::TooLong(_) | Self::Truncated => None,
        }
    }
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The host's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditReply {
    /// Write these bytes to the file.
    Text(Vec<u8>),
    /// Leave the file alone.
    Keep,
}

/// Header of the host's answer, before its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyHeader {
    /// That many bytes follow.
    Text(usize),
    /// Nothing follows.
    Keep,
}

/// The header line that announces `len` bytes of the file's content.
#[must_use]
pub fn edit_header(len: usize) -> String {
    format!("CCD{PROTOCOL} EDIT {len}\n")
}

/// The whole answer of the host as bytes, for hosts that write by themselves.
#[must_use]
pub fn encode_reply(reply: &EditReply) -> Vec<u8> {
    match reply {
        EditReply::Text(text) => {
            let mut bytes = format!("CCD{PROTOCOL} TEXT {}\n", text.len()).into_bytes();
            bytes.extend_from_slice(text);
            bytes
        }
        EditReply::Keep => format!("CCD{PROTOCOL} KEEP\n").into_bytes(),
    }
}

/// Reads the helper's header line (with or without `\n`); gives the number of bytes that follow.
///
/// # Errors
/// [`FrameError::Protocol`], [`FrameError::Malformed`] or [`FrameError::TooLong`].
pub fn parse_edit_header(line: &str) -> Result<usize, FrameError> {
    match split(line)? {
        ("EDIT", Some(len)) => length(line, len),
        _ => Err(FrameError::Malformed(line.to_owned())),
    }
}

/// Reads the host's header line (with or without `\n`).
///
/// # Errors
/// [`FrameError::Protocol`], [`FrameError::Malformed`] or [`FrameError::TooLong`].
pub fn parse_reply_header(line: &str) -> Result<ReplyHeader, FrameError> {
    match split(line)? {
        ("TEXT", Some(len)) => Ok(ReplyHeader::Text(length(line, len)?)),
        ("KEEP", None) => Ok(ReplyHeader::Keep),
        _ => Err(FrameError::Malformed(line.to_owned())),
    }
}

/// Helper's side: sends the file's content.
///
/// # Errors
/// [`FrameError::Io`] if the socket fails, [`FrameError::TooLong`] if the content is more than [`MAX_BODY`].
pub fn write_edit(writer: &mut impl Write, content: &[u8]) -> Result<(), FrameError> {
    if content.len() > MAX_BODY {
        return Err(FrameError::TooLong(content.len() as u64));
    }
    writer.write_all(edit_header(content.len()).as_bytes())?;
    writer.write_all(content)?;
    writer.flush()?;
    Ok(())
}

/// Host's side: receives the file's content.
///
/// # Errors
/// Every [`FrameError`].
pub fn read_edit(reader: &mut impl BufRead) -> Result<Vec<u8>, FrameError> {
    let line = read_header(reader)?;
    let len = parse_edit_header(&line)?;
    read_body(reader, len)
}

/// Host's side: sends the answer.
///
/// # Errors
/// [`FrameError::Io`] if the socket fails, [`FrameError::TooLong`] if the text is more than [`MAX_BODY`].
pub fn write_reply(writer: &mut impl Write, reply: &EditReply) -> Result<(), FrameError> {
    if let EditReply::Text(text) = reply
        && text.len() > MAX_BODY
    {
        return Err(FrameError::TooLong(text.len() as u64));
    }
    writer.write_all(&encode_reply(reply))?;
    writer.flush()?;
    Ok(())
}

/// Helper's side: receives the whole answer.
///
/// # Errors
/// Every [`FrameError`]; nothing is returned before all announced bytes have arrived.
pub fn read_reply(reader: &mut impl BufRead) -> Result<EditReply, FrameError> {
    let line = read_header(reader)?;
    match parse_reply_header(&line)? {
        ReplyHeader::Text(len) => Ok(EditReply::Text(read_body(reader, len)?)),
        ReplyHeader::Keep => Ok(EditReply::Keep),
    }
}

fn split(line: &str) -> Result<(&str, Option<&str>), FrameError> {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let version = line
        .strip_prefix("CCD")
        .and_then(|rest| rest.split_once(' '));
    match version {
        Some((version, body)) if version == PROTOCOL.to_string() => {
            Ok(match body.split_once(' ') {
                Some((verb, operand)) => (verb, Some(operand)),
                None => (body, None),
            })
        }
        Some(_) | None => Err(FrameError::Protocol(line.to_owned())),
    }
}

fn length(line: &str, digits: &str) -> Result<usize, FrameError> {
    let malformed = || FrameError::Malformed(line.to_owned());
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(malformed());
    }
    let len: u64 = digits.parse().map_err(|_| malformed())?;
    match usize::try_from(len) {
        Ok(len) if len <= MAX_BODY => Ok(len),
        Ok(_) | Err(_) => Err(FrameError::TooLong(len)),
    }
}

fn read_header(reader: &mut impl BufRead) -> Result<String, FrameError> {
    let mut line = Vec::new();
    reader
        .take(MAX_HEADER as u64)
        .read_until(b'\n', &mut line)?;
    let text = String::from_utf8_lossy(&line).into_owned();
    if line.ends_with(b"\n") {
        Ok(text)
    } else if line.len() < MAX_HEADER {
        Err(FrameError::Truncated)
    } else {
        Err(FrameError::Malformed(text))
    }
}

fn read_body(reader: &mut impl BufRead, len: usize) -> Result<Vec<u8>, FrameError> {
    let mut body = Vec::new();
    reader.take(len as u64).read_to_end(&mut body)?;
    if body.len() == len {
        Ok(body)
    } else {
        Err(FrameError::Truncated)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn both_directions_carry_any_bytes() {
        for content in [&b""[..], b"\n", b"CCD1 KEEP\n", &[0, 255, 10, 13]] {
            let mut wire = Vec::new();
            write_edit(&mut wire, content).unwrap();
            assert_eq!(read_edit(&mut wire.as_slice()).unwrap(), content);
            for reply in [EditReply::Text(content.to_vec()), EditReply::Keep] {
                let mut wire = Vec::new();
                write_reply(&mut wire, &reply).unwrap();
                assert_eq!(read_reply(&mut wire.as_slice()).unwrap(), reply);
            }
        }
    }

    #[test]
    fn every_cut_of_an_answer_is_truncated() {
        let wire = encode_reply(&EditReply::Text(b"hello\n".to_vec()));
        for end in 0..wire.len() {
            let cut = wire.get(..end).unwrap();
            let result = read_reply(&mut &cut[..]);
            assert!(
                matches!(result, Err(FrameError::Truncated)),
                "{end}: {result:?}"
            );
        }
    }

    #[test]
    fn wrong_headers_are_refused() {
        let malformed = [
            "CCD1 TEXT\n",
            "CCD1 TEXT -1\n",
            "CCD1 KEEP 1\n",
            "CCD1 EDIT 1\n",
        ];
        for line in malformed {
            assert!(matches!(
                parse_reply_header(line),
                Err(FrameError::Malformed(_))
            ));
        }
        for line in ["TEXT 1\n", "CCD2 KEEP\n", "\n"] {
            assert!(matches!(
                parse_reply_header(line),
                Err(FrameError::Protocol(_))
            ));
        }
        let long = format!("CCD1 TEXT {}\n", MAX_BODY + 1);
        assert!(matches!(
            parse_reply_header(&long),
            Err(FrameError::TooLong(_))
        ));
        assert!(matches!(
            parse_edit_header("CCD1 TEXT 1\n"),
            Err(FrameError::Malformed(_))
        ));
    }

    #[test]
    fn an_endless_header_is_refused_without_reading_on() {
        let endless = vec![b'x'; 10_000];
        let mut reader = endless.as_slice();
        assert!(matches!(
            read_reply(&mut reader),
            Err(FrameError::Malformed(_))
        ));
        assert_eq!(reader.len(), 10_000 - MAX_HEADER);
    }
}
