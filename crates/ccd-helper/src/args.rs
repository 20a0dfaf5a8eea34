//! The command line of every mode: typed arguments, their argv and the parser.
//!
//! What lives here: the one place where flags are spelled, for the host (`to_argv`) and for the program
//! ([`Invocation::parse`]). What never does: running a mode, or reading anything but the arguments given.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::PROTOCOL;

/// Name of the link to the helper that makes it act as Claude's editor (its file name alone decides).
pub const EDITOR_LINK_NAME: &str = "ccd-editor";

/// Name of the host's editor socket, beside the link.
pub const EDITOR_SOCKET_NAME: &str = "editor.sock";

pub(crate) const FORWARD: &str = "forward";
const EDITOR: &str = "editor";
const SUPERVISE: &str = "supervise";

const F_PROTOCOL: &str = "--protocol";
const F_SOCKET: &str = "--socket";
const F_EVENT: &str = "--event";
const F_SESSION: &str = "--session";
const F_DIR: &str = "--dir";
const F_MARKER: &str = "--marker";
const F_GRACE: &str = "--grace-ms";
const F_UNLINK: &str = "--unlink";

/// Longest grace the supervisor accepts, in milliseconds.
const MAX_GRACE_MS: u64 = 60_000;

/// Why a command line was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsageError {
    /// There is no mode, or its name is unknown.
    UnknownMode(String),
    /// A flag that the mode does not have, or an argument too many.
    UnknownArgument(String),
    /// A needed flag or argument is missing.
    Missing(&'static str),
    /// A flag was given twice.
    Repeated(&'static str),
    /// A value that does not have the form its flag needs.
    Invalid {
        /// The flag.
        flag: &'static str,
        /// What was expected, in words.
        expected: &'static str,
    },
    /// The caller speaks another version of the protocol.
    Protocol {
        /// The version the caller named.
        got: String,
    },
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownMode(mode) => write!(f, "unknown mode {mode:?}"),
            Self::UnknownArgument(argument) => write!(f, "unknown argument {argument:?}"),
            Self::Missing(what) => write!(f, "{what} is missing"),
            Self::Repeated(flag) => write!(f, "{flag} is given twice"),
            Self::Invalid { flag, expected } => write!(f, "{flag} must be {expected}"),
            Self::Protocol { got } => {
                write!(
                    f,
                    "protocol {got:?} is not {PROTOCOL}: host and helper are of different versions"
                )
            }
        }
    }
}

impl std::error::Error for UsageError {}

/// Arguments of `ccd-helper forward`: one hook call carried to the host's unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardArgs {
    /// The host's hook socket.
    pub socket: PathBuf,
    /// Name of the hook event (letters, digits, `_` and `-`): the last segment of the request's path.
    pub event: String,
}

impl ForwardArgs {
    /// The arguments after the program's name.
    #[must_use]
    pub fn to_argv(&self) -> Vec<OsString> {
        let mut argv = head(FORWARD);
        argv.extend([F_SOCKET.into(), self.socket.clone().into()]);
        argv.extend([F_EVENT.into(), (&self.event).into()]);
        argv
    }
}

/// Arguments of `ccd-helper editor`: one composer text exchanged with the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorArgs {
    /// The host's editor socket.
    pub socket: PathBuf,
    /// The file that Claude wants edited.
    pub file: PathBuf,
}

impl EditorArgs {
    /// The arguments after the program's name.
    #[must_use]
    pub fn to_argv(&self) -> Vec<OsString> {
        let mut argv = head(EDITOR);
        argv.extend([F_SOCKET.into(), self.socket.clone().into()]);
        argv.push(self.file.clone().into());
        argv
    }
}

/// An environment entry `NAME=VALUE` that exactly the processes of one session carry.
///
/// Invariant: neither part is empty or contains a NUL, and the name contains no `=`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    entry: String,
    name_len: usize,
}

impl Marker {
    /// Builds a marker.
    ///
    /// # Errors
    /// [`UsageError::Invalid`] if a part is empty, contains a NUL, or the name contains `=`.
    pub fn new(name: &str, value: &str) -> Result<Self, UsageError> {
        if name.is_empty() || value.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
        {
            return Err(UsageError::Invalid {
                flag: F_MARKER,
                expected: "NAME=VALUE, both not empty",
            });
        }
        Ok(Self {
            entry: format!("{name}={value}"),
            name_len: name.len(),
        })
    }

    /// The name of the variable.
    #[must_use]
    pub fn name(&self) -> &str {
        self.entry.get(..self.name_len).unwrap_or_default()
    }

    /// The value of the variable.
    #[must_use]
    pub fn value(&self) -> &str {
        self.entry.get(self.name_len + 1..).unwrap_or_default()
    }

    /// The whole entry `NAME=VALUE` as it stands in an environment block.
    #[must_use]
    pub fn entry(&self) -> &str {
        &self.entry
    }
}

/// Arguments of `ccd-helper supervise`: one session's tmux server, watched and ended with its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuperviseArgs {
    /// The host's id of the session; a label for people who list processes.
    pub session: String,
    /// The runtime directory to create (mode 0700; it must not exist, its parent must) and to remove at the end.
    pub dir: PathBuf,
    /// The environment entry by which stray processes of the session are found.
    pub marker: Marker,
    /// How long Claude may take to end after SIGTERM (whole milliseconds, at most 60 s).
    pub grace: Duration,
    /// Further files (never directories) to remove at the end.
    pub unlink: Vec<PathBuf>,
    /// The tmux program, run with the supervisor's own environment and working directory. Best given as a full path.
    pub program: OsString,
    /// Its arguments.
    pub program_args: Vec<OsString>,
}

impl SuperviseArgs {
    /// The arguments after the program's name.
    #[must_use]
    pub fn to_argv(&self) -> Vec<OsString> {
        let mut argv = head(SUPERVISE);
        argv.extend([F_SESSION.into(), (&self.session).into()]);
        argv.extend([F_DIR.into(), self.dir.clone().into()]);
        argv.extend([F_MARKER.into(), self.marker.entry().into()]);
        let grace_ms = self.grace.as_millis().min(u128::from(MAX_GRACE_MS));
        argv.extend([F_GRACE.into(), grace_ms.to_string().into()]);
        for path in &self.unlink {
            argv.extend([F_UNLINK.into(), path.clone().into()]);
        }
        argv.push("--".into());
        argv.push(self.program.clone());
        argv.extend(self.program_args.iter().cloned());
        argv
    }
}

fn head(mode: &str) -> Vec<OsString> {
    vec![mode.into(), F_PROTOCOL.into(), PROTOCOL.to_string().into()]
}

/// What a command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invocation {
    /// Carry one hook call.
    Forward(ForwardArgs),
    /// Exchange one composer text.
    Editor(EditorArgs),
    /// Supervise one session.
    Supervise(SuperviseArgs),
}

impl Invocation {
    /// Reads a whole argument list, the program's name first.
    ///
    /// A program name whose last part is [`EDITOR_LINK_NAME`] means the editor mode: the socket is
    /// [`EDITOR_SOCKET_NAME`] in the directory of that name as invoked (links are not resolved), the one argument is
    /// the file.
    ///
    /// # Errors
    /// A [`UsageError`] for everything that is not exactly a known command line of this protocol version.
    pub fn parse(args: &[OsString]) -> Result<Self, UsageError> {
        let program = Path::new(args.first().map_or(OsStr::new(""), OsString::as_os_str));
        if program.file_name() == Some(OsStr::new(EDITOR_LINK_NAME)) {
            return linked_editor(program, args.get(1..).unwrap_or_default());
        }
        let mode = args.get(1).ok_or(UsageError::Missing("the mode"))?;
        let rest = args.get(2..).unwrap_or_default();
        match mode.to_str() {
            Some(FORWARD) => forward(rest),
            Some(EDITOR) => editor(rest),
            Some(SUPERVISE) => supervise(rest),
            Some(_) | None => Err(UsageError::UnknownMode(lossy(mode))),
        }
    }
}

/// Whether this argument list (program name first) is meant for the helper: for hosts that carry it inside their own
/// program and must decide first thing in `main`.
#[must_use]
pub fn is_helper_invocation(args: &[OsString]) -> bool {
    let program = Path::new(args.first().map_or(OsStr::new(""), OsString::as_os_str));
    if program.file_name() == Some(OsStr::new(EDITOR_LINK_NAME)) {
        return true;
    }
    let mode = args.get(1).and_then(|mode| mode.to_str());
    matches!(mode, Some(FORWARD | EDITOR | SUPERVISE))
        && args.get(2).map(OsString::as_os_str) == Some(OsStr::new(F_PROTOCOL))
}

fn linked_editor(program: &Path, rest: &[OsString]) -> Result<Invocation, UsageError> {
    let dir = program
        .parent()
        .filter(|dir| !dir.as_os_str().is_empty())
        .ok_or(UsageError::Missing("the directory of the editor link"))?;
    let [file] = rest else {
        return Err(UsageError::Missing("exactly one file"));
    };
    Ok(Invocation::Editor(EditorArgs {
        socket: dir.join(EDITOR_SOCKET_NAME),
        file: file.into(),
    }))
}

fn forward(rest: &[OsString]) -> Result<Invocation, UsageError> {
    let flags = Flags::read(rest, &[F_SOCKET, F_EVENT])?;
    flags.end()?;
    let event = flags.text(F_EVENT, "a hook event's name")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if event.is_empty() || !event.chars().all(plain) {
        return Err(UsageError::Invalid {
            flag: F_EVENT,
            expected: "a hook event's name",
        });
    }
    Ok(Invocation::Forward(ForwardArgs {
        socket: flags.one(F_SOCKET)?.into(),
        event,
    }))
}

fn editor(rest: &[OsString]) -> Result<Invocation, UsageError> {
    let mut flags = Flags::read(rest, &[F_SOCKET])?;
    let file = flags
        .next_argument()
        .ok_or(UsageError::Missing("the file"))?;
    flags.end()?;
    Ok(Invocation::Editor(EditorArgs {
        socket: flags.one(F_SOCKET)?.into(),
        file: file.into(),
    }))
}

fn supervise(rest: &[OsString]) -> Result<Invocation, UsageError> {
    let known = [F_SESSION, F_DIR, F_MARKER, F_GRACE, F_UNLINK];
    let mut flags = Flags::read(rest, &known)?;
    let marker = flags.text(F_MARKER, "NAME=VALUE in UTF-8")?;
    let (name, value) = marker.split_once('=').unwrap_or((&marker, ""));
    let marker = Marker::new(name, value)?;
    let grace = flags.text(F_GRACE, "whole milliseconds")?;
    let grace = grace.parse::<u64>().ok().filter(|ms| *ms <= MAX_GRACE_MS);
    let grace = grace.ok_or(UsageError::Invalid {
        flag: F_GRACE,
        expected: "whole milliseconds, at most 60000",
    })?;
    if !flags.separated {
        return Err(UsageError::Missing("-- before the program"));
    }
    let program = flags
        .next_argument()
        .ok_or(UsageError::Missing("the program"))?;
    Ok(Invocation::Supervise(SuperviseArgs {
        session: flags.text(F_SESSION, "UTF-8")?,
        dir: flags.one(F_DIR)?.into(),
        marker,
        grace: Duration::from_millis(grace),
        unlink: flags.all(F_UNLINK).into_iter().map(PathBuf::from).collect(),
        program,
        program_args: flags.arguments.split_off(0),
    }))
}

/// The flags before the first plain argument (or `--`), and the arguments after them.
struct Flags {
    values: Vec<(&'static str, OsString)>,
    arguments: Vec<OsString>,
    separated: bool,
}

impl Flags {
    /// Splits `rest`, refuses unknown flags, and checks the protocol version before anything else is judged.
    fn read(rest: &[OsString], known: &[&'static str]) -> Result<Self, UsageError> {
        let mut flags = Self {
            values: Vec::new(),
            arguments: Vec::new(),
            separated: false,
        };
        let mut protocol = None;
        let mut first_error = None;
        let mut rest = rest.iter();
        while let Some(word) = rest.next() {
            if word == "--" {
                flags.separated = true;
                break;
            }
            if !word.as_encoded_bytes().starts_with(b"-") {
                flags.arguments.push(word.clone());
                break;
            }
            if word == F_PROTOCOL {
                protocol = rest.next().cloned();
                continue;
            }
            match known.iter().find(|flag| word == **flag) {
                Some(flag) => match rest.next() {
                    Some(value) => flags.values.push((flag, value.clone())),
                    None => {
                        first_error.get_or_insert(UsageError::Missing(flag));
                    }
                },
                None => {
                    first_error.get_or_insert(UsageError::UnknownArgument(lossy(word)));
                    break;
                }
            }
        }
        flags.arguments.extend(rest.cloned());
        match protocol {
            Some(got) if got == *PROTOCOL.to_string() => {}
            Some(got) => return Err(UsageError::Protocol { got: lossy(&got) }),
            None => return Err(first_error.unwrap_or(UsageError::Missing(F_PROTOCOL))),
        }
        first_error.map_or(Ok(flags), Err)
    }

    fn one(&self, flag: &'static str) -> Result<OsString, UsageError> {
        let mut found = self.values.iter().filter(|(name, _)| *name == flag);
        let value = found.next().ok_or(UsageError::Missing(flag))?;
        if found.next().is_some() {
            return Err(UsageError::Repeated(flag));
        }
        Ok(value.1.clone())
    }

    fn text(&self, flag: &'static str, expected: &'static str) -> Result<String, UsageError> {
        self.one(flag)?
            .into_string()
            .map_err(|_| UsageError::Invalid { flag, expected })
    }

    fn all(&self, flag: &'static str) -> Vec<OsString> {
        let found = self.values.iter().filter(|(name, _)| *name == flag);
        found.map(|(_, value)| value.clone()).collect()
    }

    fn next_argument(&mut self) -> Option<OsString> {
        if self.arguments.is_empty() {
            None
        } else {
            Some(self.arguments.remove(0))
        }
    }

    fn end(&self) -> Result<(), UsageError> {
        match self.arguments.first() {
            Some(argument) => Err(UsageError::UnknownArgument(lossy(argument))),
            None => Ok(()),
        }
    }
}

fn lossy(text: &OsStr) -> String {
    text.to_string_lossy().into_owned()
}
