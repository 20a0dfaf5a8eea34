//! The workspace as Claude will see it: its real path, whether it is trusted, which MCP servers it names.
//!
//! What lives here: Claude's own rules for trust and for `.mcp.json`, as measured. What never does: writing.
//!
//! Trust counts for a directory when it was given to the directory itself or to one above it; inside a git working
//! tree only up to the tree's root, and for a linked working tree also when given to the main one. Servers are read
//! from the `.mcp.json` of every directory above as well, git or not.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use ccd_ports::{
    error::{PortError, PortErrorKind},
    host::{ClaudeDirs, WorkspaceFacts},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use super::files;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Global {
    projects: BTreeMap<String, Project>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Project {
    has_trust_dialog_accepted: Option<Box<RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct McpFile {
    mcp_servers: BTreeMap<String, IgnoredAny>,
}

pub(super) fn workspace(dirs: &ClaudeDirs, cwd: &str) -> Result<WorkspaceFacts, PortError> {
    let unusable = |what: &dyn std::fmt::Display| {
        PortError::new(
            PortErrorKind::DirUnusable,
            format!("the workspace {cwd} {what}"),
        )
        .with_fix("Name a directory that exists and that this user may read.")
    };
    let real_path =
        fs::canonicalize(cwd).map_err(|error| unusable(&format!("cannot be used: {error}")))?;
    if !real_path.is_dir() {
        return Err(unusable(&"is not a directory"));
    }
    if real_path.to_str().is_none() {
        return Err(unusable(&"has a path that is not Unicode"));
    }
    Ok(WorkspaceFacts {
        trusted: is_trusted(&dirs.global, &real_path)?,
        mcp_servers: mcp_servers(&real_path)?,
        real_path,
    })
}

/// Whether `real_path` counts as trusted by the global state file; without that file nothing does.
pub(super) fn is_trusted(global: &Path, real_path: &Path) -> Result<bool, PortError> {
    let Some(text) = files::read_if_there(global)? else {
        return Ok(false);
    };
    let state: Global = files::parse(global, &text)?;
    let accepted = |path: &Path| {
        let project = path.to_str().and_then(|path| state.projects.get(path));
        let value = project.and_then(|project| project.has_trust_dialog_accepted.as_deref());
        value.is_some_and(|value| value.get() == "true")
    };
    Ok(trust_roots(real_path).iter().any(|path| accepted(path)))
}

/// The directories whose trust counts for `path`.
fn trust_roots(path: &Path) -> Vec<PathBuf> {
    let git_root = path.ancestors().find(|above| is_git_root(above));
    let mut roots: Vec<PathBuf> = Vec::new();
    for above in path.ancestors() {
        roots.push(above.to_owned());
        if Some(above) == git_root {
            roots.extend(main_tree(above));
            break;
        }
    }
    roots
}

fn is_git_root(path: &Path) -> bool {
    fs::symlink_metadata(path.join(".git")).is_ok_and(|found| found.is_dir() || found.is_file())
}

/// The main working tree of a linked one.
fn main_tree(root: &Path) -> Option<PathBuf> {
    let link = fs::read_to_string(root.join(".git")).ok()?;
    let git_dir = root.join(link.strip_prefix("gitdir:")?.trim());
    let common = fs::read_to_string(git_dir.join("commondir")).ok()?;
    let common = fs::canonicalize(git_dir.join(common.trim())).ok()?;
    // Only the usual layout has a main tree there.
    (common.file_name()? == ".git").then(|| common.parent().map(Path::to_owned))?
}

fn mcp_servers(real_path: &Path) -> Result<Vec<String>, PortError> {
    let mut names = BTreeSet::new();
    for above in real_path.ancestors() {
        let path = above.join(".mcp.json");
        if let Some(text) = files::read_if_there(&path)? {
            names.extend(
                files::parse::<McpFile>(&path, &text)?
                    .mcp_servers
                    .into_keys(),
            );
        }
    }
    Ok(names.into_iter().collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    struct World {
        root: tempfile::TempDir,
        dirs: ClaudeDirs,
    }

    impl World {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let home = root.path().join("home");
            let dirs = ClaudeDirs {
                config: home.join(".claude"),
                global: home.join(".claude.json"),
                home,
            };
            fs::create_dir_all(&dirs.home).unwrap();
            Self { root, dirs }
        }

        fn at(&self, name: &str) -> PathBuf {
            fs::canonicalize(self.root.path()).unwrap().join(name)
        }

        fn dir(&self, name: &str) {
            fs::create_dir_all(self.at(name)).unwrap();
        }

        fn trust(&self, name: &str) {
            let path = self.at(name);
            let text = serde_json::json!({"projects": {path.to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
            fs::write(&self.dirs.global, text.to_string()).unwrap();
        }

        fn trusted(&self, name: &str) -> bool {
            workspace(&self.dirs, self.at(name).to_str().unwrap())
                .unwrap()
                .trusted
        }
    }

    #[test]
    fn trust_of_a_parent_counts_outside_of_git() {
        let world = World::new();
        world.dir("p/child/sub");
        assert!(!world.trusted("p/child"));
        for (given, asked, expected) in [
            ("p/child", "p/child", true),
            ("p", "p/child/sub", true),
            ("p/child/sub", "p/child", false),
            ("p/chi", "p/child", false),
        ] {
            world.trust(given);
            assert_eq!(world.trusted(asked), expected, "{given} for {asked}");
        }
    }

    #[test]
    fn inside_a_git_tree_trust_counts_up_to_its_root_only() {
        let world = World::new();
        world.dir("p/repo/mid/sub");
        world.dir("p/repo/.git");
        for (given, asked, expected) in [
            ("p", "p/repo/mid", false),
            ("p", "p/repo", false),
            ("p/repo", "p/repo/mid/sub", true),
            ("p/repo/mid", "p/repo/mid/sub", true),
            ("p/repo/mid", "p/repo", false),
        ] {
            world.trust(given);
            assert_eq!(world.trusted(asked), expected, "{given} for {asked}");
        }
    }

    #[test]
    fn a_linked_working_tree_takes_trust_from_the_main_one() {
        let world = World::new();
        world.dir("repo/.git/worktrees/wt");
        world.dir("wt/sub");
        let git_dir = world.at("repo/.git/worktrees/wt");
        fs::write(git_dir.join("commondir"), "../..\n").unwrap();
        fs::write(
            world.at("wt/.git"),
            format!("gitdir: {}\n", git_dir.display()),
        )
        .unwrap();
        for given in ["repo", "wt", "wt/sub"] {
            world.trust(given);
            assert!(world.trusted("wt/sub"), "{given}");
        }
        world.trust("repo/.git");
        assert!(!world.trusted("wt/sub"));
        fs::write(world.at("wt/.git"), "gitdir: ../nowhere\n").unwrap();
        world.trust("repo");
        assert!(!world.trusted("wt/sub"));
    }

    #[test]
    fn only_true_is_trust_and_the_real_path_is_asked() {
        let world = World::new();
        world.dir("real");
        std::os::unix::fs::symlink(world.at("real"), world.at("link")).unwrap();
        world.trust("link");
        assert!(!world.trusted("link"));
        world.trust("real");
        let facts = workspace(&world.dirs, world.at("link").to_str().unwrap()).unwrap();
        assert!(facts.trusted);
        assert_eq!(facts.real_path, world.at("real"));
        let real = world.at("real");
        for value in ["\"true\"", "1", "null", "false"] {
            let text = format!(
                "{{\"projects\":{{{:?}:{{\"hasTrustDialogAccepted\":{value}}}}}}}",
                real.to_str().unwrap()
            );
            fs::write(&world.dirs.global, text).unwrap();
            assert!(!world.trusted("real"), "{value}");
        }
        fs::write(&world.dirs.global, "{\"projects\":[]}").unwrap();
        let error = workspace(&world.dirs, real.to_str().unwrap()).unwrap_err();
        assert_eq!(error.kind, PortErrorKind::FileMalformed);
    }

    #[test]
    fn servers_of_all_directories_above_are_named_once() {
        let world = World::new();
        world.dir("p/child/.git");
        fs::write(
            world.at("p/.mcp.json"),
            r#"{"mcpServers":{"b":{"command":"x"},"a":{}}}"#,
        )
        .unwrap();
        fs::write(
            world.at("p/child/.mcp.json"),
            r#"{"mcpServers":{"c":{},"a":{}}}"#,
        )
        .unwrap();
        let cwd = world.at("p/child");
        let facts = workspace(&world.dirs, cwd.to_str().unwrap()).unwrap();
        assert_eq!(facts.mcp_servers, ["a", "b", "c"]);
        fs::write(world.at("p/.mcp.json"), "{").unwrap();
        assert_eq!(
            workspace(&world.dirs, cwd.to_str().unwrap())
                .unwrap_err()
                .kind,
            PortErrorKind::FileMalformed
        );
    }

    #[test]
    fn a_workspace_that_is_no_directory_is_unusable() {
        let world = World::new();
        fs::write(world.at("file"), "").unwrap();
        for name in ["file", "missing"] {
            let error = workspace(&world.dirs, world.at(name).to_str().unwrap()).unwrap_err();
            assert_eq!(error.kind, PortErrorKind::DirUnusable, "{name}");
        }
    }
}
