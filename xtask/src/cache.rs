//! The cache folder: where it is, and temporary folders and locks inside it. What is cached is the business of others.

use crate::failure::{Failure, Outcome, during};
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// The root of the cache: `$CCD_CACHE_DIR`, else `$XDG_CACHE_HOME/ccd`, else `$HOME/.cache/ccd`.
pub(crate) fn root() -> Outcome<PathBuf> {
    choose(|name| std::env::var_os(name))
}

fn choose(variable: impl Fn(&str) -> Option<OsString>) -> Outcome<PathBuf> {
    let set = |name| variable(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(dir) = set("CCD_CACHE_DIR") {
        return std::path::absolute(&dir).map_err(during(dir.display()));
    }
    // The specification ignores a relative XDG path.
    if let Some(dir) = set("XDG_CACHE_HOME").filter(|d| d.is_absolute()) {
        return Ok(dir.join("ccd"));
    }
    if let Some(home) = set("HOME").filter(|d| d.is_absolute()) {
        return Ok(home.join(".cache").join("ccd"));
    }
    Err(Failure::new(
        "no place for the cache: set CCD_CACHE_DIR to a folder",
    ))
}

/// Takes the lock file at `path`; says so when another process holds it, and waits for it.
pub(crate) fn lock(path: &Path, waiting_for: &str) -> Outcome<File> {
    let file = File::create(path).map_err(during(path.display()))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {
            eprintln!("setup: waiting for another {waiting_for}");
        }
        Err(TryLockError::Error(error)) => return Err(during(path.display())(error)),
    }
    file.lock().map_err(during(path.display()))?;
    Ok(file)
}

/// A folder that is removed when it goes out of scope.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes `parent/name`, empty; a left-over of the same name is removed first.
    pub(crate) fn new(parent: &Path, name: &str) -> Outcome<Self> {
        let path = parent.join(name);
        remove(&path)?;
        fs::create_dir_all(&path).map_err(during(path.display()))?;
        Ok(Self(path))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(failure) = remove(&self.0) {
            eprintln!("setup: {failure}");
        }
    }
}

/// Removes a folder, or nothing when there is none.
pub(crate) fn remove(path: &Path) -> Outcome<()> {
    match fs::remove_dir_all(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(during(path.display())(error)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::{Scratch, choose};
    use std::ffi::OsString;
    use std::path::Path;

    fn chosen(set: &[(&str, &str)]) -> Option<String> {
        let value = |name: &str| {
            let found = set.iter().find(|(n, _)| *n == name)?;
            Some(OsString::from(found.1))
        };
        choose(value).ok().map(|p| p.to_string_lossy().into_owned())
    }

    #[test]
    fn the_first_variable_that_is_set_wins() {
        let all = [
            ("CCD_CACHE_DIR", "/c"),
            ("XDG_CACHE_HOME", "/x"),
            ("HOME", "/h"),
        ];
        assert_eq!(chosen(&all).as_deref(), Some("/c"));
        assert_eq!(chosen(all.get(1..).unwrap()).as_deref(), Some("/x/ccd"));
        assert_eq!(
            chosen(all.get(2..).unwrap()).as_deref(),
            Some("/h/.cache/ccd")
        );
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn empty_and_relative_values_do_not_count() {
        let set = [
            ("CCD_CACHE_DIR", ""),
            ("XDG_CACHE_HOME", "x"),
            ("HOME", "/h"),
        ];
        assert_eq!(chosen(&set).as_deref(), Some("/h/.cache/ccd"));
    }

    #[test]
    fn a_scratch_folder_is_empty_and_goes_away() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("s")).unwrap();
        std::fs::write(dir.path().join("s/left"), "over").unwrap();
        let path = {
            let scratch = Scratch::new(dir.path(), "s").unwrap();
            assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
            scratch.path().to_path_buf()
        };
        assert!(!Path::new(&path).exists());
    }
}
