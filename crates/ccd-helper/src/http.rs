//! One HTTP/1.1 request and its answer, as the forwarder needs them.
//!
//! What lives here: the request's head and a reader of answers that accepts only what is complete. What never does:
//! sockets, chunked bodies, keep-alive.

use std::fmt;
use std::io::{self, BufRead, Read};

use crate::{MAX_BODY, PROTOCOL};

/// Longest status line plus headers, in bytes.
const MAX_HEAD: u64 = 64 * 1024;

/// Why there is no complete good answer.
#[derive(Debug)]
pub(crate) enum ResponseError {
    /// The peer ended before the whole answer had arrived.
    Truncated,
    /// Not an HTTP/1 answer, or one whose end cannot be known.
    Malformed(&'static str),
    /// A complete head with a status outside 200..=299.
    Status(u16),
    /// The socket failed.
    Io(io::Error),
}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the answer ended too early"),
            Self::Malformed(what) => write!(f, "the answer is malformed: {what}"),
            Self::Status(status) => write!(f, "the answer has status {status}"),
            Self::Io(error) => write!(f, "the answer could not be read: {error}"),
        }
    }
}

/// The head of the POST for `event`, blank line included.
pub(crate) fn request_head(event: &str, body_len: usize, claude_pid: Option<u32>) -> String {
    let pid = claude_pid.map_or_else(String::new, |pid| format!("X-CCD-Claude-Pid: {pid}\r\n"));
    format!(
        "POST /h/{event} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {body_len}\r\nConnection: close\r\nX-CCD-Protocol: {PROTOCOL}\r\n{pid}\r\n"
    )
}

/// Reads one answer to its end and gives its body.
///
/// The body's length must be announced (`Content-Length`, or status 204): a body that merely ends with the
/// connection cannot be told from one that was cut by the server's death, and would let a hook fail open.
pub(crate) fn read_response(reader: &mut impl BufRead) -> Result<Vec<u8>, ResponseError> {
    let mut head = Read::take(&mut *reader, MAX_HEAD);
    let status = parse_status(&read_line(&mut head)?)?;
    let mut length: Option<usize> = None;
    loop {
        let line = read_line(&mut head)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line
            .split_once(':')
            .ok_or(ResponseError::Malformed("a header without colon"))?;
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(ResponseError::Malformed("a transfer encoding"));
        }
        if name.eq_ignore_ascii_case("content-length") {
            let value = content_length(value.trim())?;
            if length.replace(value).is_some_and(|before| before != value) {
                return Err(ResponseError::Malformed("two content lengths"));
            }
        }
    }
    if !(200..=299).contains(&status) {
        return Err(ResponseError::Status(status));
    }
    let length = match length {
        _ if status == 204 => 0,
        Some(length) => length,
        None => return Err(ResponseError::Malformed("no content length")),
    };
    let mut body = Vec::new();
    Read::take(reader, length as u64)
        .read_to_end(&mut body)
        .map_err(ResponseError::Io)?;
    if body.len() == length {
        Ok(body)
    } else {
        Err(ResponseError::Truncated)
    }
}

fn read_line(head: &mut io::Take<&mut impl BufRead>) -> Result<String, ResponseError> {
    let mut line = Vec::new();
    head.read_until(b'\n', &mut line)
        .map_err(ResponseError::Io)?;
    if line.pop() != Some(b'\n') {
        return Err(if head.limit() == 0 {
            ResponseError::Malformed("its head is too long")
        } else {
            ResponseError::Truncated
        });
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    String::from_utf8(line).map_err(|_| ResponseError::Malformed("its head is not UTF-8"))
}

fn parse_status(line: &str) -> Result<u16, ResponseError> {
    let malformed = ResponseError::Malformed("no HTTP/1 status line");
    let mut words = line.split(' ');
    match (words.next(), words.next()) {
        (Some("HTTP/1.1" | "HTTP/1.0"), Some(code))
            if code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            code.parse().map_err(|_| malformed)
        }
        _ => Err(malformed),
    }
}

fn content_length(digits: &str) -> Result<usize, ResponseError> {
    let malformed = || ResponseError::Malformed("its content length");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(malformed());
    }
    match digits.parse::<usize>() {
        Ok(length) if length <= MAX_BODY => Ok(length),
        Ok(_) | Err(_) => Err(malformed()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn read(wire: &str) -> Result<Vec<u8>, ResponseError> {
        read_response(&mut wire.as_bytes())
    }

    #[test]
    fn complete_answers_give_their_body() {
        let full = "HTTP/1.1 200 OK\r\ncontent-LENGTH: 2\r\n\r\n{}trailing";
        assert_eq!(read(full).unwrap(), b"{}");
        assert_eq!(read("HTTP/1.1 204 No Content\r\n\r\n").unwrap(), b"");
        assert_eq!(read("HTTP/1.0 201\nContent-Length: 0\n\n").unwrap(), b"");
    }

    #[test]
    fn every_cut_of_an_answer_is_an_error() {
        let full = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        for end in 0..full.len() {
            assert!(read(full.get(..end).unwrap()).is_err(), "cut at {end}");
        }
        assert_eq!(read(full).unwrap(), b"hello");
    }

    #[test]
    fn answers_of_unknown_length_are_refused() {
        for wire in [
            "HTTP/1.1 200 OK\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 1\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}",
            "HTTP/2 200\r\nContent-Length: 2\r\n\r\n{}",
            "200 OK\r\n\r\n",
        ] {
            let result = read(wire);
            assert!(
                matches!(result, Err(ResponseError::Malformed(_))),
                "{wire:?}"
            );
        }
    }

    #[test]
    fn other_status_classes_are_refused() {
        for status in [101, 302, 404, 500] {
            let wire = format!("HTTP/1.1 {status} X\r\nContent-Length: 2\r\n\r\n{{}}");
            assert!(matches!(read(&wire), Err(ResponseError::Status(got)) if got == status));
        }
    }

    #[test]
    fn an_endless_head_is_refused() {
        let wire = format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(200_000));
        assert!(matches!(read(&wire), Err(ResponseError::Malformed(_))));
    }

    #[test]
    fn the_request_names_event_length_version_and_pid() {
        let head = request_head("PreToolUse", 12, Some(7));
        assert!(head.starts_with("POST /h/PreToolUse HTTP/1.1\r\n"));
        for line in [
            "Content-Length: 12",
            "Connection: close",
            "X-CCD-Protocol: 1",
            "X-CCD-Claude-Pid: 7",
        ] {
            assert!(head.contains(&format!("\r\n{line}\r\n")), "{line}");
        }
        assert!(head.ends_with("\r\n\r\n"));
        assert!(!request_head("Stop", 0, None).contains("Claude-Pid"));
    }
}
