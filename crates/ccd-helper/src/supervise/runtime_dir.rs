//! The session's runtime directory.
//!
//! What lives here: its exclusive creation and its removal. What never does: its contents' meaning.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// How often the removal is tried: a process in its last moment may have added a file.
const ATTEMPTS: u32 = 3;

/// A directory that this process has made.
#[derive(Debug)]
pub(super) struct RuntimeDir {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl RuntimeDir {
    /// Makes the directory with mode 0700. It must not exist (in any form), its parent must.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        DirBuilder::new().mode(0o700).create(&path)?;
        let metadata = fs::symlink_metadata(&path)?;
        if !is_own_dir(&metadata) || metadata.mode() & 0o777 != 0o700 {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        Ok(Self {
            path,
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Removes it with everything inside, unless something else stands in its place. Links are not followed.
    pub(super) fn remove(&self) {
        for _ in 0..ATTEMPTS {
            match fs::symlink_metadata(&self.path) {
                Ok(metadata) if self.is_this(&metadata) => {}
                Ok(_) | Err(_) => return,
            }
            if fs::remove_dir_all(&self.path).is_ok() {
                return;
            }
        }
    }

    fn is_this(&self, metadata: &Metadata) -> bool {
        is_own_dir(metadata) && metadata.dev() == self.device && metadata.ino() == self.inode
    }
}

fn is_own_dir(metadata: &Metadata) -> bool {
    metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn it_is_made_once_and_private_and_removed_without_following_links() {
        let base = tempfile::tempdir().unwrap();
        let kept = base.path().join("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "x").unwrap();
        let path = base.path().join("run");
        let dir = RuntimeDir::create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        let again = RuntimeDir::create(&path).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        fs::create_dir(path.join("sub")).unwrap();
        symlink(&kept, path.join("sub/link")).unwrap();
        dir.remove();
        assert!(!path.exists());
        assert!(kept.join("file").exists());
    }

    #[test]
    fn what_took_its_place_is_left_alone() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("run");
        let dir = RuntimeDir::create(&path).unwrap();
        let moved = base.path().join("moved");
        fs::rename(&path, &moved).unwrap();
        for link in [true, false] {
            if link {
                symlink(&moved, &path).unwrap();
            } else {
                fs::remove_file(&path).unwrap();
                fs::create_dir(&path).unwrap();
                fs::write(path.join("file"), "x").unwrap();
            }
            dir.remove();
            assert!(fs::symlink_metadata(&path).is_ok());
        }
        assert!(path.join("file").exists());
        assert!(moved.exists());
    }

    #[test]
    fn a_missing_parent_is_an_error() {
        let base = tempfile::tempdir().unwrap();
        let error = RuntimeDir::create(&base.path().join("a/b")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
