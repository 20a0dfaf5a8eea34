//! Bounded reads of small files, with errors that never quote a file's content.
//!
//! What lives here: reading text and parsing JSON out of files that may hold secrets. What never does: their meaning.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

use ccd_ports::error::{PortError, PortErrorKind};
use serde::de::DeserializeOwned;

/// Largest file that is read, bytes (16 MiB).
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// Reads a small UTF-8 file.
pub(super) fn read(path: &Path) -> Result<String, PortError> {
    read_bytes(path)
        .map_err(|error| unreadable(path, &error))
        .and_then(|bytes| String::from_utf8(bytes).map_err(|_| malformed(path, "is not UTF-8")))
}

/// Reads a small UTF-8 file; `None` if there is none.
pub(super) fn read_if_there(path: &Path) -> Result<Option<String>, PortError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        _ => read(path).map(Some),
    }
}

/// Parses JSON; a byte-order mark is passed over. The error says where, never what.
pub(super) fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, PortError> {
    serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text)).map_err(|error| {
        let what = match error.classify() {
            serde_json::error::Category::Data => "has a value of an unexpected kind",
            serde_json::error::Category::Io
            | serde_json::error::Category::Syntax
            | serde_json::error::Category::Eof => "is not valid JSON",
        };
        malformed(path, &format!("{what} at line {}", error.line()))
    })
}

pub(super) fn malformed(path: &Path, what: &str) -> PortError {
    PortError::new(
        PortErrorKind::FileMalformed,
        format!("{} {what}", path.display()),
    )
    .with_fix("Repair the file, or move it away.")
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> PortError {
    let message = format!("{} cannot be read: {error}", path.display());
    PortError::new(PortErrorKind::FileUnreadable, message)
        .with_fix("Check that the file exists and that this user may read it.")
}

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    // Asked before the open: opening a pipe would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a plain file",
        ));
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_FILE + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "larger than 16 MiB",
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn what_cannot_be_read_is_a_typed_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        assert_eq!(read_if_there(&path).unwrap(), None);
        assert_eq!(read(&path).unwrap_err().kind, PortErrorKind::FileUnreadable);
        assert_eq!(
            read(dir.path()).unwrap_err().kind,
            PortErrorKind::FileUnreadable
        );
        fs::write(&path, b"\xff").unwrap();
        assert_eq!(read(&path).unwrap_err().kind, PortErrorKind::FileMalformed);
        File::create(&path).unwrap().set_len(MAX_FILE + 1).unwrap();
        assert_eq!(read(&path).unwrap_err().kind, PortErrorKind::FileUnreadable);
        File::create(&path).unwrap().set_len(MAX_FILE).unwrap();
        assert_eq!(read(&path).unwrap().len() as u64, MAX_FILE);
    }

    #[test]
    fn an_error_never_quotes_the_file() {
        for text in ["{\"a\":\"sk-secret", "{\"a\":\"sk-secret\"}", "sk-secret"] {
            let error =
                parse::<std::collections::BTreeMap<String, u8>>(Path::new("/f"), text).unwrap_err();
            assert_eq!(error.kind, PortErrorKind::FileMalformed);
            assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        }
        assert_eq!(parse::<u8>(Path::new("/f"), "\u{feff}7").unwrap(), 7);
    }
}
