//! The line protocol between the supervisor and its owner.
//!
//! What lives here: the supervisor's reports (its stdout), the owner's commands (its stdin), both directions of both
//! as pure functions on text. What never does: reading or writing a file descriptor.
//!
//! All lines are printable ASCII and end with `\n`. The supervisor's first line alone carries the protocol version
//! (`CCD1 `): `CCD1 READY <pid>` or `CCD1 FAILED <message>`.

use std::fmt;

use crate::PROTOCOL;
use crate::proc::Identity;

/// Longest message of a `FAILED` report, in bytes before escaping.
const MAX_MESSAGE: usize = 1024;

/// A line that is not part of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageError {
    /// The line's verb is unknown.
    Unknown(String),
    /// The verb is known, its operands are not of the right form.
    Malformed(String),
    /// The line carries another protocol version than [`PROTOCOL`].
    Protocol(String),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(line) => write!(f, "unknown message {line:?}"),
            Self::Malformed(line) => write!(f, "malformed message {line:?}"),
            Self::Protocol(line) => {
                write!(f, "message {line:?} is not of protocol version {PROTOCOL}")
            }
        }
    }
}

impl std::error::Error for MessageError {}

/// A command of the owner that the supervisor confirms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledged {
    /// The listening sockets are held.
    Listen,
    /// Claude's identity is remembered.
    Watch,
}

/// One report of the supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The runtime directory exists and commands are served.
    Ready {
        /// The supervisor's process id.
        pid: u32,
    },
    /// The tmux command ended well; its server runs (unless [`Report::ServerGone`] follows).
    Started {
        /// Exit code of the tmux command.
        code: u8,
    },
    /// The set-up, the tmux command or an owner's command failed.
    Failed {
        /// Why: for the tmux command, its exit status and the first line of its stderr.
        message: String,
    },
    /// A command was carried out.
    Ok(Acknowledged),
    /// The tmux server ended by itself. At most once.
    ServerGone,
    /// The orderly end: everything is killed, the files are removed.
    Closed {
        /// Processes that had to be killed by SIGKILL, the tmux server not counted.
        killed: u32,
    },
}

impl Report {
    /// Reads one line, with or without its line end.
    ///
    /// # Errors
    /// [`MessageError`] if the line is none of the reports of this protocol version.
    pub fn parse(line: &str) -> Result<Self, MessageError> {
        let line = line.trim_end_matches(['\n', '\r']);
        let malformed = || MessageError::Malformed(line.to_owned());
        let (versioned, body) = match line.strip_prefix("CCD") {
            Some(rest) => match rest.split_once(' ') {
                Some((version, body)) if version == PROTOCOL.to_string() => (true, body),
                Some(_) | None => return Err(MessageError::Protocol(line.to_owned())),
            },
            None => (false, line),
        };
        let (verb, operand) = body.split_once(' ').unwrap_or((body, ""));
        match (verb, versioned) {
            ("READY", true) => Ok(Self::Ready {
                pid: number(operand).ok_or_else(malformed)?,
            }),
            ("READY", false) => Err(MessageError::Protocol(line.to_owned())),
            ("FAILED", _) => Ok(Self::Failed {
                message: unescape(operand).ok_or_else(malformed)?,
            }),
            ("STARTED", false) => Ok(Self::Started {
                code: number(operand).ok_or_else(malformed)?,
            }),
            ("OK", false) => match operand {
                "LISTEN" => Ok(Self::Ok(Acknowledged::Listen)),
                "WATCH" => Ok(Self::Ok(Acknowledged::Watch)),
                _ => Err(malformed()),
            },
            ("SERVER-GONE", false) if operand.is_empty() => Ok(Self::ServerGone),
            ("CLOSED", false) => Ok(Self::Closed {
                killed: number(operand).ok_or_else(malformed)?,
            }),
            _ => Err(MessageError::Unknown(line.to_owned())),
        }
    }

    /// The line of this report, `\n` included. `READY` always carries the version.
    #[must_use]
    pub fn to_line(&self) -> String {
        match self {
            Self::Ready { pid } => format!("CCD{PROTOCOL} READY {pid}\n"),
            Self::Started { code } => format!("STARTED {code}\n"),
            Self::Failed { message } => format!("FAILED {}\n", escape(message)),
            Self::Ok(Acknowledged::Listen) => "OK LISTEN\n".to_owned(),
            Self::Ok(Acknowledged::Watch) => "OK WATCH\n".to_owned(),
            Self::ServerGone => "SERVER-GONE\n".to_owned(),
            Self::Closed { killed } => format!("CLOSED {killed}\n"),
        }
    }

    /// The line of this report as the first one of a supervisor: it carries the version whatever it is.
    #[must_use]
    pub fn to_first_line(&self) -> String {
        match self {
            Self::Ready { .. } => self.to_line(),
            Self::Started { .. }
            | Self::Failed { .. }
            | Self::Ok(_)
            | Self::ServerGone
            | Self::Closed { .. } => format!("CCD{PROTOCOL} {}", self.to_line()),
        }
    }
}

/// One command of the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerCommand {
    /// Hold the listening sockets attached to this line (SCM_RIGHTS, see [`crate::owner::send_listeners`]).
    Listen {
        /// How many sockets are attached.
        count: u8,
    },
    /// Run the tmux command.
    Start,
    /// This is Claude.
    Watch(Identity),
    /// End everything in order.
    Close,
}

impl OwnerCommand {
    /// Reads one line, with or without its line end.
    ///
    /// # Errors
    /// [`MessageError`] if the line is none of the commands.
    pub fn parse(line: &str) -> Result<Self, MessageError> {
        let line = line.trim_end_matches(['\n', '\r']);
        let malformed = || MessageError::Malformed(line.to_owned());
        let (verb, operands) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "LISTEN" => Ok(Self::Listen {
                count: number(operands).ok_or_else(malformed)?,
            }),
            "START" if operands.is_empty() => Ok(Self::Start),
            "WATCH" => {
                let (pid, start_time) = operands.split_once(' ').ok_or_else(malformed)?;
                Ok(Self::Watch(Identity {
                    pid: number(pid).ok_or_else(malformed)?,
                    start_time: number(start_time).ok_or_else(malformed)?,
                }))
            }
            "CLOSE" if operands.is_empty() => Ok(Self::Close),
            _ => Err(MessageError::Unknown(line.to_owned())),
        }
    }

    /// The line of this command, `\n` included.
    #[must_use]
    pub fn to_line(&self) -> String {
        match self {
            Self::Listen { count } => format!("LISTEN {count}\n"),
            Self::Start => "START\n".to_owned(),
            Self::Watch(Identity { pid, start_time }) => format!("WATCH {pid} {start_time}\n"),
            Self::Close => "CLOSE\n".to_owned(),
        }
    }
}

/// A decimal number without sign or space.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

/// One line of printable ASCII: every other byte, and the backslash, as `\xNN`.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes().take(MAX_MESSAGE) {
        if (byte == b' ' || byte.is_ascii_graphic()) && byte != b'\\' {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("\\x{byte:02x}"));
        }
    }
    escaped
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, tail)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        let digits = tail.strip_prefix('x')?.get(..2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = tail.get(3..)?;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn every_report_survives_its_own_line() {
        let reports = [
            Report::Ready { pid: 4_194_304 },
            Report::Started { code: 0 },
            Report::Failed {
                message: "no \\ such\nfile: \u{e9}\t\u{1b}[0m".to_owned(),
            },
            Report::Failed {
                message: String::new(),
            },
            Report::Ok(Acknowledged::Listen),
            Report::Ok(Acknowledged::Watch),
            Report::ServerGone,
            Report::Closed { killed: 7 },
        ];
        for report in reports {
            let line = report.to_line();
            assert_eq!(line.matches('\n').count(), 1, "{line:?}");
            assert!(
                line.bytes()
                    .all(|b| b == b'\n' || b == b' ' || b.is_ascii_graphic())
            );
            assert_eq!(Report::parse(&line), Ok(report));
        }
    }

    #[test]
    fn a_first_line_without_or_with_another_version_is_a_protocol_error() {
        for line in [
            "READY 5",
            "CCD2 READY 5",
            "CCD READY 5",
            "CCD1",
            "CCD11 READY 5",
        ] {
            assert_eq!(
                Report::parse(line),
                Err(MessageError::Protocol(line.to_owned()))
            );
        }
        let failed = Report::Failed {
            message: "x".to_owned(),
        };
        assert_eq!(failed.to_first_line(), "CCD1 FAILED x\n");
        assert_eq!(Report::parse("CCD1 FAILED x\n"), Ok(failed));
    }

    #[test]
    fn malformed_reports_are_refused() {
        for line in [
            "CCD1 READY -1",
            "STARTED +0",
            "STARTED 256",
            "FAILED a\\q",
            "FAILED a\\x4",
            "OK",
            "CLOSED ",
        ] {
            assert_eq!(
                Report::parse(line),
                Err(MessageError::Malformed(line.to_owned()))
            );
        }
        assert!(matches!(Report::parse(""), Err(MessageError::Unknown(_))));
    }

    #[test]
    fn every_command_survives_its_own_line() {
        let commands = [
            OwnerCommand::Listen { count: 2 },
            OwnerCommand::Start,
            OwnerCommand::Watch(Identity {
                pid: 12,
                start_time: u64::MAX,
            }),
            OwnerCommand::Close,
        ];
        for command in commands {
            assert_eq!(OwnerCommand::parse(&command.to_line()), Ok(command));
        }
    }

    #[test]
    fn malformed_commands_are_refused() {
        for line in ["LISTEN", "LISTEN x", "WATCH 1", "WATCH 1 -2", "WATCH 1 2 3"] {
            assert_eq!(
                OwnerCommand::parse(line),
                Err(MessageError::Malformed(line.to_owned()))
            );
        }
        for line in ["", "START now", "close", "CLOSE 1"] {
            assert!(matches!(
                OwnerCommand::parse(line),
                Err(MessageError::Unknown(_))
            ));
        }
    }

    #[test]
    fn a_long_message_is_cut() {
        let report = Report::Failed {
            message: "x".repeat(100_000),
        };
        assert!(report.to_line().len() < 2_000);
    }
}
