//! Standard output: the answer, the events, the result object; and lines on standard error. What cannot be written is told by the
//! exit code, never by a crash.

use std::io::{self, Write as _};

use ccd_api::{Event, RunResult};

/// Writes one line to standard error; nobody has to read it.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes one line. `false`: nobody reads any more.
pub(crate) fn line(text: &str) -> bool {
    let mut out = io::stdout().lock();
    let written = out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    written.is_ok()
}

/// Writes one event as a JSON line.
pub(crate) fn event(event: &Event) -> bool {
    serde_json::to_string(event).is_ok_and(|text| line(&text))
}

/// Writes the result object as a JSON line.
pub(crate) fn result(result: &RunResult) -> bool {
    serde_json::to_string(result).is_ok_and(|text| line(&text))
}

/// Text that cannot move a terminal's cursor: control characters but newline and tab are shown as `?`, long text is cut.
pub(crate) fn printable(text: &str) -> String {
    const LIMIT: usize = 400;
    let mut shown: String = text
        .chars()
        .take(LIMIT)
        .map(|c| {
            if c.is_control() && c != '\n' && c != '\t' {
                '?'
            } else {
                c
            }
        })
        .collect();
    if text.chars().nth(LIMIT).is_some() {
        shown.push('…');
    }
    shown
}
