//! Files replaced as a whole.
//!
//! What lives here: writing beside a file and renaming over it, so that a reader sees the old or the new text. What
//! never does: choosing names or texts.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use uuid::Uuid;

/// Replaces `path` by a file with this text and mode. Nothing is left beside it, whatever happens.
pub(crate) fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let staged = Staged::write(path, text, mode)?;
    staged.commit()
}

/// A written file that waits beside the one it will replace. Dropping it removes it.
pub(crate) struct Staged {
    target: PathBuf,
    path: Option<PathBuf>,
}

impl Staged {
    /// Writes `text` beside `target`, in the same directory.
    pub(crate) fn write(target: &Path, text: &str, mode: u32) -> io::Result<Self> {
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut beside = std::ffi::OsString::from(".");
        beside.push(name);
        beside.push(format!(".{}.tmp", Uuid::new_v4().simple()));
        let path = target.with_file_name(beside);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let staged = Self {
            target: target.to_owned(),
            path: Some(path),
        };
        file.write_all(text.as_bytes())?;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()?;
        Ok(staged)
    }

    /// Puts it in the target's place.
    pub(crate) fn commit(mut self) -> io::Result<()> {
        match &self.path {
            Some(path) => fs::rename(path, &self.target)?,
            None => return Ok(()),
        }
        self.path = None;
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // It was ours alone; if it cannot be removed there is nothing more to do.
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let names = fs::read_dir(dir).unwrap();
        names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_file_is_replaced_with_its_mode_and_nothing_stays_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        for (text, mode) in [("one", 0o600), ("two", 0o644)] {
            replace(&path, text, mode).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(
                fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                mode
            );
        }
        drop(Staged::write(&path, "three", 0o600).unwrap());
        let occupied = dir.path().join("d");
        fs::create_dir(&occupied).unwrap();
        replace(&occupied, "x", 0o600).unwrap_err();
        let mut left = names(dir.path());
        left.sort();
        assert_eq!(left, ["d", "f"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    }
}
