//! HTTP/1.1 on a transport: request in, response bytes out, and the watch for a client that leaves.
//!
//! What lives here: framing. What never does: paths, replies, the log. It is written by hand over the socket because
//! a scripted reset, cut or stall must fall between two known bytes.

use super::log::ClientEnd;
use super::transport::Transport;
use std::future::Future;
use std::io;
use std::pin::pin;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const MAX_HEAD: usize = 256 * 1024;
const MAX_BODY: usize = 64 * 1024 * 1024;
const MAX_HEADERS: usize = 128;

/// A request's head and body.
#[derive(Debug)]
pub(super) struct RawRequest {
    pub(super) method: String,
    pub(super) target: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl RawRequest {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Why no further request could be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadEnd {
    /// The client closed or reset the connection between requests.
    #[error("the client left between requests")]
    Idle,
    /// The client left inside a request.
    #[error("the client left inside a request")]
    Torn,
    /// The bytes are no HTTP/1.1 request.
    #[error("not an HTTP request: {0}")]
    Malformed(String),
    /// The head or the body is larger than the service takes.
    #[error("the {part} is larger than {limit} bytes")]
    TooLarge { part: &'static str, limit: usize },
}

/// A connection: a transport and the bytes read ahead.
pub(super) struct Conn<T> {
    io: T,
    ahead: Vec<u8>,
}

impl<T: Transport> Conn<T> {
    pub(super) fn new(io: T) -> Self {
        Self {
            io,
            ahead: Vec::new(),
        }
    }

    /// Reads the next request.
    pub(super) async fn read_request(&mut self) -> Result<RawRequest, ReadEnd> {
        let (mut request, head_length) = loop {
            if let Some(parsed) = parse_head(&self.ahead)? {
                break parsed;
            }
            if self.ahead.len() > MAX_HEAD {
                return Err(ReadEnd::TooLarge {
                    part: "head",
                    limit: MAX_HEAD,
                });
            }
            if !self.fill().await {
                return Err(if self.ahead.is_empty() {
                    ReadEnd::Idle
                } else {
                    ReadEnd::Torn
                });
            }
        };
        self.ahead.drain(..head_length);
        if request
            .header("expect")
            .is_some_and(|value| value.eq_ignore_ascii_case("100-continue"))
        {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                .await
                .map_err(|_| ReadEnd::Torn)?;
        }
        let chunked = request
            .header("transfer-encoding")
            .is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
        request.body = if chunked {
            self.read_chunked().await?
        } else {
            let length = match request.header("content-length") {
                None => 0,
                Some(text) => text
                    .trim()
                    .parse()
                    .map_err(|_| ReadEnd::Malformed(format!("content-length {text:?}")))?,
            };
            self.take(length).await?
        };
        Ok(request)
    }

    async fn read_chunked(&mut self) -> Result<Vec<u8>, ReadEnd> {
        let mut body = Vec::new();
        loop {
            let (offset, length) = loop {
                match httparse::parse_chunk_size(&self.ahead) {
                    Ok(httparse::Status::Complete((offset, length))) => break (offset, length),
                    Ok(httparse::Status::Partial) => {
                        if !self.fill().await {
                            return Err(ReadEnd::Torn);
                        }
                    }
                    Err(_) => return Err(ReadEnd::Malformed("chunk size".to_owned())),
                }
            };
            self.ahead.drain(..offset);
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            if body.len().saturating_add(length) > MAX_BODY {
                return Err(ReadEnd::TooLarge {
                    part: "body",
                    limit: MAX_BODY,
                });
            }
            body.extend(self.take(length).await?);
            // The line end behind the chunk. Trailers do not occur.
            self.take(2).await?;
            if length == 0 {
                return Ok(body);
            }
        }
    }

    async fn take(&mut self, length: usize) -> Result<Vec<u8>, ReadEnd> {
        if length > MAX_BODY {
            return Err(ReadEnd::TooLarge {
                part: "body",
                limit: MAX_BODY,
            });
        }
        while self.ahead.len() < length {
            if !self.fill().await {
                return Err(ReadEnd::Torn);
            }
        }
        let rest = self.ahead.split_off(length);
        Ok(std::mem::replace(&mut self.ahead, rest))
    }

    /// Reads more; `false` = the client is gone.
    async fn fill(&mut self) -> bool {
        self.ahead.reserve(16 * 1024);
        matches!(self.io.read_buf(&mut self.ahead).await, Ok(read) if read > 0)
    }

    /// Waits for `wait`, unless the client leaves first.
    pub(super) async fn while_there<F: Future>(&mut self, wait: F) -> Result<F::Output, ClientEnd> {
        let mut wait = pin!(wait);
        loop {
            self.ahead.reserve(4 * 1024);
            tokio::select! {
                biased;
                read = self.io.read_buf(&mut self.ahead) => match read {
                    Ok(0) => return Err(ClientEnd::Closed),
                    Ok(_) => {}
                    Err(_) => return Err(ClientEnd::Reset),
                },
                output = &mut wait => return Ok(output),
            }
        }
    }

    /// Writes bytes and flushes them.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), ClientEnd> {
        let written = async {
            self.io.write_all(bytes).await?;
            self.io.flush().await
        };
        written.await.map_err(|_: io::Error| ClientEnd::WriteFailed)
    }

    /// Closes with a FIN.
    pub(super) async fn finish(mut self) {
        // The client may be gone already; then there is nothing to close.
        let _ = self.io.shutdown().await;
    }

    /// Closes with a reset.
    pub(super) fn reset(self) {
        // A socket that refuses the option still closes, with a FIN.
        let _ = self.io.arm_reset();
    }
}

fn parse_head(bytes: &[u8]) -> Result<Option<(RawRequest, usize)>, ReadEnd> {
    let mut storage = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut storage);
    match parsed.parse(bytes) {
        Ok(httparse::Status::Partial) => Ok(None),
        Ok(httparse::Status::Complete(length)) => {
            let headers = parsed
                .headers
                .iter()
                .map(|header| {
                    (
                        header.name.to_ascii_lowercase(),
                        String::from_utf8_lossy(header.value).into_owned(),
                    )
                })
                .collect();
            let request = RawRequest {
                method: parsed.method.unwrap_or_default().to_owned(),
                target: parsed.path.unwrap_or_default().to_owned(),
                headers,
                body: Vec::new(),
            };
            Ok(Some((request, length)))
        }
        Err(error) => Err(ReadEnd::Malformed(error.to_string())),
    }
}

/// The head of a response. `length` = `None` announces a chunked body.
pub(super) fn response_head(
    status: u16,
    length: Option<usize>,
    headers: &[(String, String)],
) -> Vec<u8> {
    use std::fmt::Write;
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write!(out, "HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        let _ = write!(out, "{name}: {value}\r\n");
    }
    match length {
        Some(length) => {
            let _ = write!(out, "content-length: {length}\r\n\r\n");
        }
        None => out.push_str("transfer-encoding: chunked\r\n\r\n"),
    }
    out.into_bytes()
}

/// One chunk of a chunked body.
pub(super) fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut out = format!("{:x}\r\n", bytes.len()).into_bytes();
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
    out
}

/// The end of a chunked body.
pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        408 => "Request Timeout",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        529 => "Overloaded",
        _ => "Status",
    }
}
