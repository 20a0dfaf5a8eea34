//! Giving trust to a workspace in Claude's global state file.
//!
//! What lives here: the only write to a file of Claude's: one field, on the newest text, by rename, verified. What
//! never does: trust for any directory but the one named, or a write while another Claude works there.

use std::{fs, io, os::unix::fs::PermissionsExt as _, path::Path};

use ccd_ports::{
    error::{PortError, PortErrorKind},
    host::ClaudeDirs,
};

use super::{files, json_object::JsonObject, live, workspace};
use crate::private_file::Staged;

const PROJECTS: &str = "projects";
const ACCEPTED: &str = "hasTrustDialogAccepted";

/// How often a text that changed under the edit is read again.
const ATTEMPTS: u32 = 5;

pub(super) fn seed_trust(dirs: &ClaudeDirs, path: &Path) -> Result<(), PortError> {
    let path = fs::canonicalize(path).map_err(|error| files::unreadable(path, &error))?;
    let Some(key) = path.to_str().filter(|_| path.is_dir()) else {
        let message = format!(
            "the workspace {} is not a directory with a Unicode path",
            path.display()
        );
        return Err(PortError::new(PortErrorKind::DirUnusable, message));
    };
    let occupied = live::live_claudes(dirs)
        .into_iter()
        .find(|claude| fs::canonicalize(&claude.cwd).is_ok_and(|cwd| cwd == path));
    if let Some(claude) = occupied {
        let message = format!("another Claude (process {}) works in {key}", claude.pid);
        return Err(PortError::new(PortErrorKind::SessionBusy, message)
            .with_fix("End it first, or accept the trust dialog there."));
    }
    // A link is written through, not replaced.
    let target = match fs::canonicalize(&dirs.global) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(not_onboarded(dirs)),
        Err(error) => return Err(files::unreadable(&dirs.global, &error)),
    };
    for _ in 0..ATTEMPTS {
        let before = files::read(&target)?;
        if !workspace::is_trusted(&target, &path)? {
            let mode =
                fs::metadata(&target).map_or(0o600, |found| found.permissions().mode() & 0o777);
            let staged = Staged::write(&target, &edited(&target, &before, key)?, mode);
            let staged = staged.map_err(|error| unwritable(&target, &error))?;
            if files::read(&target)? != before {
                continue;
            }
            staged
                .commit()
                .map_err(|error| unwritable(&target, &error))?;
        }
        if workspace::is_trusted(&target, &path)? {
            return Ok(());
        }
    }
    let message = format!("{} changes too often to be edited", target.display());
    Err(PortError::new(PortErrorKind::Internal, message)
        .with_fix("End other Claude processes, or accept the trust dialog yourself."))
}

/// The text with trust for `key`; everything else as it was.
fn edited(path: &Path, text: &str, key: &str) -> Result<String, PortError> {
    let mut state: JsonObject = files::parse(path, text)?;
    let mut projects = inner(path, &state, PROJECTS)?;
    let mut project = inner(path, &projects, key)?;
    let malformed = |_| files::malformed(path, "cannot be edited");
    project
        .set(ACCEPTED, "true".to_owned())
        .map_err(malformed)?;
    projects.set(key, project.to_text(2)).map_err(malformed)?;
    state
        .set(PROJECTS, projects.to_text(1))
        .map_err(malformed)?;
    Ok(state.to_text(0))
}

fn inner(path: &Path, object: &JsonObject, name: &str) -> Result<JsonObject, PortError> {
    object
        .get(name)
        .map_or_else(|| Ok(JsonObject::empty()), |text| files::parse(path, text))
}

fn not_onboarded(dirs: &ClaudeDirs) -> PortError {
    let message = format!(
        "{} does not exist: Claude was never started",
        dirs.global.display()
    );
    PortError::new(PortErrorKind::NotOnboarded, message).with_fix("Run `claude` once.")
}

fn unwritable(path: &Path, error: &io::Error) -> PortError {
    let message = format!("{} cannot be written: {error}", path.display());
    PortError::new(PortErrorKind::DirUnusable, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::path::PathBuf;

    struct World {
        root: tempfile::TempDir,
        dirs: ClaudeDirs,
        work: PathBuf,
    }

    impl World {
        fn new(global: &str) -> Self {
            let root = tempfile::tempdir().unwrap();
            let home = root.path().to_owned();
            let dirs = ClaudeDirs {
                config: home.join(".claude"),
                global: home.join(".claude.json"),
                home,
            };
            let work = fs::canonicalize(root.path()).unwrap().join("work");
            fs::create_dir(&work).unwrap();
            fs::write(&dirs.global, global).unwrap();
            Self { root, dirs, work }
        }

        fn global(&self) -> String {
            fs::read_to_string(&self.dirs.global).unwrap()
        }
    }

    #[test]
    fn one_field_is_added_and_the_rest_stays_as_it_was() {
        let before = "{\n  \"numStartups\": 1.0,\n  \"projects\": {\n    \"/other\": {\n      \"history\": [\"\\ud800\"]\n    }\n  },\n  \"last\": true\n}";
        let world = World::new(before);
        fs::set_permissions(&world.dirs.global, fs::Permissions::from_mode(0o640)).unwrap();
        seed_trust(&world.dirs, &world.work).unwrap();
        let added = format!(
            "\n    }},\n    {:?}: {{\n      \"hasTrustDialogAccepted\": true\n    }}\n  }},",
            world.work.to_str().unwrap()
        );
        assert_eq!(world.global(), before.replace("\n    }\n  },", &added));
        assert_eq!(
            fs::metadata(&world.dirs.global)
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o640
        );
        let once = world.global();
        seed_trust(&world.dirs, &world.work).unwrap();
        assert_eq!(world.global(), once);
        // Nothing is left beside it.
        assert_eq!(fs::read_dir(world.root.path()).unwrap().count(), 2);
    }

    #[test]
    fn an_entry_that_refused_trust_is_changed_in_place() {
        let world = World::new("{}");
        let text = serde_json::json!({"projects": {world.work.to_str().unwrap(): {"a": 1, "hasTrustDialogAccepted": false}}});
        fs::write(&world.dirs.global, text.to_string()).unwrap();
        seed_trust(&world.dirs, &world.work).unwrap();
        let after: serde_json::Value = serde_json::from_str(&world.global()).unwrap();
        let expected = serde_json::json!({"a": 1, "hasTrustDialogAccepted": true});
        assert_eq!(after["projects"][world.work.to_str().unwrap()], expected);
    }

    #[test]
    fn a_linked_state_file_is_written_through() {
        let world = World::new("{}");
        let real = world.root.path().join("real.json");
        fs::rename(&world.dirs.global, &real).unwrap();
        std::os::unix::fs::symlink(&real, &world.dirs.global).unwrap();
        seed_trust(&world.dirs, &world.work).unwrap();
        assert!(
            fs::symlink_metadata(&world.dirs.global)
                .unwrap()
                .is_symlink()
        );
        assert!(fs::read_to_string(real).unwrap().contains(ACCEPTED));
    }

    #[test]
    fn a_workspace_with_a_living_claude_is_left_alone() {
        let world = World::new("{}");
        let sessions = world.dirs.config.join("sessions");
        fs::create_dir_all(&sessions).unwrap();
        let pid = std::process::id();
        let start = ccd_helper::proc::start_time(pid).unwrap().unwrap();
        let entry = serde_json::json!({"sessionId": "s", "cwd": world.work, "procStart": start.to_string()});
        fs::write(sessions.join(format!("{pid}.json")), entry.to_string()).unwrap();
        let error = seed_trust(&world.dirs, &world.work).unwrap_err();
        assert_eq!(error.kind, PortErrorKind::SessionBusy);
        assert_eq!(world.global(), "{}");
    }

    #[test]
    fn a_missing_or_malformed_state_file_is_never_replaced() {
        let world = World::new("{\"projects\":[]}");
        let kind = |world: &World| seed_trust(&world.dirs, &world.work).unwrap_err().kind;
        assert_eq!(kind(&world), PortErrorKind::FileMalformed);
        assert_eq!(world.global(), "{\"projects\":[]}");
        fs::remove_file(&world.dirs.global).unwrap();
        assert_eq!(kind(&world), PortErrorKind::NotOnboarded);
        assert!(!world.dirs.global.exists());
    }
}
