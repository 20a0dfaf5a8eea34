//! The base directory of runtime directories.
//!
//! What lives here: a place that is private and short enough for the paths of unix sockets. What never does: the
//! runtime directories themselves.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use ccd_ports::error::{PortError, PortErrorKind};

use crate::env::set;

/// Longest base, bytes. A socket's path may have 107 (103 on some systems); a runtime directory's name takes up to 37
/// with its slash, a socket's name up to 12.
const MAX_BASE: usize = 54;

pub(super) fn runtime_base(env: &BTreeMap<String, String>) -> Result<PathBuf, PortError> {
    let uid = rustix::process::geteuid().as_raw();
    let mut refused = Vec::new();
    for (parent, must_be_private) in candidates(env) {
        let base = parent.join(format!("ccd-{uid}"));
        match prepare(&parent, &base, uid, must_be_private) {
            Ok(()) => return Ok(base),
            Err(why) => refused.push(format!("{}: {why}", base.display())),
        }
    }
    let message = format!(
        "there is no place for runtime directories ({})",
        refused.join("; ")
    );
    Err(PortError::new(PortErrorKind::DirUnusable, message)
        .with_fix("Set TMPDIR to a short path of a directory that this user may write."))
}

/// Where a base may be, best first, and whether the parent itself must be private.
fn candidates(env: &BTreeMap<String, String>) -> Vec<(PathBuf, bool)> {
    let absolute = |name: &str| {
        set(env, name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let mut found = Vec::new();
    found.extend(absolute("XDG_RUNTIME_DIR").map(|dir| (dir, true)));
    found.extend(absolute("TMPDIR").map(|dir| (dir, false)));
    found.push((PathBuf::from("/tmp"), false));
    found
}

fn prepare(parent: &Path, base: &Path, uid: u32, must_be_private: bool) -> io::Result<()> {
    let denied = |why: &'static str| io::Error::new(io::ErrorKind::PermissionDenied, why);
    if base.as_os_str().len() > MAX_BASE {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path is too long for sockets",
        ));
    }
    // The editor's path stands in a variable that Claude splits at white space.
    if base
        .to_str()
        .is_none_or(|path| path.contains(char::is_whitespace))
    {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path has white space or is not UTF-8",
        ));
    }
    let above = fs::metadata(parent)?;
    let private = above.uid() == uid && above.mode() & 0o077 == 0;
    if must_be_private && !private {
        return Err(denied("it is not private"));
    }
    // Without the sticky bit whoever may write there could put something else in our place.
    if above.mode() & 0o022 != 0 && above.mode() & 0o1000 == 0 {
        return Err(denied("others may replace what is in it"));
    }
    match DirBuilder::new().mode(0o700).create(base) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    // Not followed: a link of somebody else's is not ours.
    let metadata = fs::symlink_metadata(base)?;
    if !metadata.is_dir() || metadata.uid() != uid {
        return Err(denied("something of another user stands there"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(denied("others may enter it"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn own() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn base(variables: &[(&str, &Path)]) -> PathBuf {
        let env = variables
            .iter()
            .map(|(n, p)| ((*n).to_owned(), p.to_str().unwrap().to_owned()))
            .collect();
        runtime_base(&env).unwrap()
    }

    #[test]
    fn a_private_runtime_directory_of_the_user_is_preferred() {
        let (run, tmp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let name = format!("ccd-{}", own());
        let variables = [("XDG_RUNTIME_DIR", run.path()), ("TMPDIR", tmp.path())];
        set_mode(run.path(), 0o700);
        let found = base(&variables);
        assert_eq!(found, run.path().join(&name));
        assert_eq!(fs::metadata(&found).unwrap().mode() & 0o777, 0o700);
        assert_eq!(base(&variables), found);
        set_mode(run.path(), 0o750);
        assert_eq!(base(&variables), tmp.path().join(&name));
    }

    #[test]
    fn a_base_that_is_not_surely_ours_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let base = parent.path().join("b");
        let judge = |uid| prepare(parent.path(), &base, uid, false);
        judge(own()).unwrap();
        judge(own().wrapping_add(1)).unwrap_err();
        set_mode(&base, 0o750);
        judge(own()).unwrap_err();
        fs::remove_dir(&base).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        set_mode(elsewhere.path(), 0o700);
        symlink(elsewhere.path(), &base).unwrap();
        judge(own()).unwrap_err();
        fs::remove_file(&base).unwrap();
        set_mode(parent.path(), 0o777);
        judge(own()).unwrap_err();
        set_mode(parent.path(), 0o1777);
        judge(own()).unwrap();
    }

    #[test]
    fn a_path_too_long_for_sockets_is_passed_over() {
        let run = tempfile::tempdir().unwrap();
        let long = run.path().join("x".repeat(MAX_BASE));
        fs::create_dir(&long).unwrap();
        set_mode(&long, 0o700);
        let tmp = tempfile::tempdir().unwrap();
        let found = base(&[("XDG_RUNTIME_DIR", &long), ("TMPDIR", tmp.path())]);
        assert!(found.starts_with(tmp.path()));
        assert_eq!(fs::read_dir(&long).unwrap().count(), 0);
    }
}
