//! The forward mode: one hook call carried to the host.
//!
//! What lives here: stdin to the host's unix socket, the host's answer to stdout. What never does: an opinion of its
//! own. Without a complete good answer nothing is printed and the exit code is 1, so that `onFailure` decides.
//! There is no deadline here: Claude ends the program at the hook's own time-out by SIGTERM, whose default action is
//! left in place.

use std::fmt;
use std::io::{self, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use crate::MAX_BODY;
use crate::args::ForwardArgs;
use crate::http::{self, ResponseError};

/// Environment variable in which Claude Code names its process id to hooks.
const CLAUDE_PID: &str = "CLAUDE_PID";

#[derive(Debug)]
pub(crate) enum ForwardError {
    Stdin(io::Error),
    TooLong,
    Connect(io::Error),
    Send(io::Error),
    Response(ResponseError),
    Stdout(io::Error),
}

impl fmt::Display for ForwardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin(error) => write!(f, "the hook's input could not be read: {error}"),
            Self::TooLong => write!(f, "the hook's input is more than {MAX_BODY} bytes"),
            Self::Connect(error) => write!(f, "the host's socket does not answer: {error}"),
            Self::Send(error) => write!(f, "the hook's input could not be sent: {error}"),
            Self::Response(error) => error.fmt(f),
            Self::Stdout(error) => write!(f, "the answer could not be printed: {error}"),
        }
    }
}

pub(crate) fn run(args: &ForwardArgs) -> Result<(), ForwardError> {
    let mut body = Vec::new();
    io::stdin()
        .lock()
        .take(MAX_BODY as u64 + 1)
        .read_to_end(&mut body)
        .map_err(ForwardError::Stdin)?;
    if body.len() > MAX_BODY {
        return Err(ForwardError::TooLong);
    }
    let mut stream = UnixStream::connect(&args.socket).map_err(ForwardError::Connect)?;
    // One write for the ordinary call: the host then has the whole request when it first wakes.
    let mut request = http::request_head(&args.event, body.len(), claude_pid()).into_bytes();
    request.append(&mut body);
    stream.write_all(&request).map_err(ForwardError::Send)?;
    drop(request);
    let answer =
        http::read_response(&mut BufReader::new(stream)).map_err(ForwardError::Response)?;
    let mut stdout = io::stdout().lock();
    stdout.write_all(&answer).map_err(ForwardError::Stdout)?;
    stdout.flush().map_err(ForwardError::Stdout)
}

fn claude_pid() -> Option<u32> {
    std::env::var(CLAUDE_PID).ok()?.parse().ok()
}
