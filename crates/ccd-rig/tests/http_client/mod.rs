//! A hand-written HTTP client for the service's tests: it shows the bytes as they come, and how the connection ends.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    dead_code
)]

use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// No answer of a loopback service takes this long.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// One connection.
pub struct Client {
    stream: TcpStream,
    ahead: Vec<u8>,
}

/// A response's head.
#[derive(Debug)]
pub struct Head {
    pub status: u16,
    pub headers: Vec<(String, String)>,
}

impl Head {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }
}

/// How a body ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// As HTTP demands.
    Complete,
    /// FIN in the middle.
    Fin,
    /// A reset.
    Reset,
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub name: String,
    pub data: Value,
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Self {
        Self {
            stream: TcpStream::connect(address).await.unwrap(),
            ahead: Vec::new(),
        }
    }

    pub async fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:1\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        self.stream.write_all(head.as_bytes()).await.unwrap();
        self.stream.write_all(body).await.unwrap();
    }

    pub async fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Posts a main request that asks for a stream.
    pub async fn prompt(&mut self, text: &str) {
        self.post(&main_body(text, true)).await;
    }

    pub async fn post(&mut self, body: &Value) {
        self.send(
            "POST",
            "/v1/messages?beta=true",
            &[("X-Claude-Code-Session-Id", "session-1")],
            body.to_string().as_bytes(),
        )
        .await;
    }

    async fn fill(&mut self) -> io::Result<usize> {
        tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.ahead))
            .await
            .expect("the service says nothing")
    }

    async fn until(&mut self, pattern: &[u8]) -> io::Result<Vec<u8>> {
        loop {
            if let Some(at) = self
                .ahead
                .windows(pattern.len())
                .position(|part| part == pattern)
            {
                let rest = self.ahead.split_off(at + pattern.len());
                return Ok(std::mem::replace(&mut self.ahead, rest));
            }
            if self.fill().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.ahead.len() < length {
            if self.fill().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let rest = self.ahead.split_off(length);
        Ok(std::mem::replace(&mut self.ahead, rest))
    }

    pub async fn head(&mut self) -> Result<Head, End> {
        let bytes = self.until(b"\r\n\r\n").await.map_err(|e| end(&e))?;
        let text = String::from_utf8(bytes).unwrap();
        let mut lines = text.trim_end().lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        Ok(Head {
            status: status.parse().unwrap(),
            headers: lines
                .map(|line| line.split_once(": ").unwrap())
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        })
    }

    /// Reads one chunk of a chunked body; empty = the last one.
    pub async fn chunk(&mut self) -> Result<Vec<u8>, End> {
        let size = self.until(b"\r\n").await.map_err(|e| end(&e))?;
        let size = std::str::from_utf8(&size).unwrap().trim();
        let size = usize::from_str_radix(size, 16).unwrap();
        let mut data = self.take(size + 2).await.map_err(|e| end(&e))?;
        assert_eq!(data.split_off(size), b"\r\n");
        Ok(data)
    }

    /// Reads the events that are left, and how the body ends.
    pub async fn events(&mut self) -> (Vec<Event>, End) {
        let mut text = Vec::new();
        let how = loop {
            match self.chunk().await {
                Ok(chunk) if chunk.is_empty() => break End::Complete,
                Ok(chunk) => text.extend(chunk),
                Err(how) => break how,
            }
        };
        (events_of(&text), how)
    }

    /// Reads a body with a length.
    pub async fn body(&mut self, head: &Head) -> Result<Vec<u8>, End> {
        let length = head.header("content-length").unwrap().parse().unwrap();
        self.take(length).await.map_err(|e| end(&e))
    }

    pub async fn json(&mut self, head: &Head) -> Value {
        serde_json::from_slice(&self.body(head).await.unwrap()).unwrap()
    }

    /// Reads until the service closes.
    pub async fn wait_for_close(&mut self) -> End {
        loop {
            match self.fill().await {
                Ok(0) => return End::Fin,
                Ok(_) => {}
                Err(error) => return end(&error),
            }
        }
    }

    /// Closes with a reset.
    pub fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }
}

fn end(error: &io::Error) -> End {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => End::Fin,
        io::ErrorKind::ConnectionReset => End::Reset,
        other => panic!("{other}"),
    }
}

pub fn events_of(text: &[u8]) -> Vec<Event> {
    let text = std::str::from_utf8(text).unwrap();
    text.split_terminator("\n\n")
        .map(|event| {
            let (name, data) = event.split_once('\n').unwrap();
            Event {
                name: name.strip_prefix("event: ").unwrap().to_owned(),
                data: serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap(),
            }
        })
        .collect()
}

pub fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

/// All text of a stream.
pub fn text_of(events: &[Event]) -> String {
    events
        .iter()
        .filter_map(|event| event.data["delta"]["text"].as_str())
        .collect()
}

pub fn main_body(text: &str, stream: bool) -> Value {
    let mut body = json!({
        "model": "claude-opus-5-5",
        "max_tokens": 128_000,
        "system": [{ "type": "text", "text": "You are Claude Code, Anthropic's official CLI for Claude." }],
        "tools": [{ "name": "Bash" }],
        "messages": [
            { "role": "user", "content": [
                { "type": "text", "text": "<system-reminder>\ncontext\n</system-reminder>" },
                { "type": "text", "text": text }] },
            { "role": "system", "content": "# Environment" }
        ],
    });
    if stream {
        body["stream"] = json!(true);
    }
    body
}
