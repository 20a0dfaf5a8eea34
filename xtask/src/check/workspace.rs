//! The tree that the rules look at: members with their declared dependencies, and their parsed sources. No rule.

use super::finding::Finding;
use super::usage::Usage;
use crate::failure::{Failure, Outcome, during};
use cargo_metadata::{DependencyKind, MetadataCommand, TargetKind};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The workspace as read from disk.
pub(crate) struct Workspace {
    /// The absolute root.
    pub(crate) root: PathBuf,
    pub(crate) members: Vec<Member>,
    /// Files that could not be read or parsed.
    pub(crate) broken: Vec<Finding>,
}

/// One crate of the workspace.
pub(crate) struct Member {
    pub(crate) name: String,
    /// Relative to the root, like every path here.
    pub(crate) dir: String,
    pub(crate) manifest: String,
    pub(crate) manifest_text: String,
    pub(crate) dependencies: Vec<Dependency>,
    /// The root files of its libraries and binaries.
    pub(crate) roots: Vec<String>,
    /// Every `.rs` file under `src`.
    pub(crate) sources: Vec<Source>,
    /// Test targets that a plain `cargo test` leaves out.
    pub(crate) held_back_tests: Vec<String>,
}

/// One declared dependency.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// A member of this workspace.
    pub(crate) internal: bool,
    /// Normal and build dependencies; false for dev-dependencies.
    pub(crate) shipped: bool,
    pub(crate) renamed: bool,
}

/// One source file.
pub(crate) struct Source {
    pub(crate) file: String,
    pub(crate) text: String,
    pub(crate) ast: syn::File,
    pub(crate) usage: Usage,
    /// The module path, beginning with `crate`.
    pub(crate) module: Vec<String>,
}

impl Workspace {
    /// Reads the workspace at `root`. The dependency graph is not resolved and nothing is fetched.
    pub(crate) fn load(root: &Path) -> Outcome<Self> {
        let root = root.canonicalize().map_err(during(root.display()))?;
        let metadata = MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .no_deps()
            .exec()
            .map_err(during("cargo metadata"))?;
        let names: BTreeSet<&str> = metadata.packages.iter().map(|p| p.name.as_str()).collect();
        let mut broken = Vec::new();
        let mut members = Vec::new();
        for package in &metadata.packages {
            let manifest = relative(&root, package.manifest_path.as_std_path())?;
            let dir = match manifest.rsplit_once('/') {
                Some((dir, _)) => dir.to_owned(),
                None => String::new(),
            };
            let dependencies = package
                .dependencies
                .iter()
                .map(|d| Dependency {
                    name: d.name.clone(),
                    internal: d.path.is_some() && names.contains(d.name.as_str()),
                    shipped: d.kind != DependencyKind::Development,
                    renamed: d.rename.is_some(),
                })
                .collect();
            let mut roots = Vec::new();
            let mut held_back_tests = Vec::new();
            for target in &package.targets {
                if target.is_kind(TargetKind::Test) && !target.test {
                    held_back_tests.push(target.name.clone());
                }
                let program = [TargetKind::Lib, TargetKind::Bin, TargetKind::ProcMacro];
                if program.iter().any(|kind| target.is_kind(kind.clone())) {
                    roots.push(relative(&root, target.src_path.as_std_path())?);
                }
            }
            let sources = sources(&root, &dir, &roots, &mut broken)?;
            let manifest_path = root.join(&manifest);
            members.push(Member {
                name: package.name.to_string(),
                manifest_text: fs::read_to_string(&manifest_path)
                    .map_err(during(manifest_path.display()))?,
                dir,
                manifest,
                dependencies,
                roots,
                sources,
                held_back_tests,
            });
        }
        members.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self {
            root,
            members,
            broken,
        })
    }

    /// Every source file of every member.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.members.iter().flat_map(|m| &m.sources)
    }

    /// The source files of some crates.
    pub(crate) fn sources_of(&self, crates: &[String]) -> impl Iterator<Item = &Source> {
        self.members
            .iter()
            .filter(move |m| crates.contains(&m.name))
            .flat_map(|m| &m.sources)
    }
}

fn relative(root: &Path, path: &Path) -> Outcome<String> {
    let path = path.canonicalize().map_err(during(path.display()))?;
    let inside = path.strip_prefix(root).map_err(|_| {
        Failure::new(format!(
            "{} is not inside the workspace {}",
            path.display(),
            root.display()
        ))
    })?;
    let parts: Vec<_> = inside.iter().map(|p| p.to_string_lossy()).collect();
    Ok(parts.join("/"))
}

fn sources(
    root: &Path,
    dir: &str,
    roots: &[String],
    broken: &mut Vec<Finding>,
) -> Outcome<Vec<Source>> {
    let src = root.join(dir).join("src");
    let mut files = Vec::new();
    rust_files(&src, &mut files)?;
    files.sort();
    let mut parsed = Vec::new();
    for path in files {
        let file = relative(root, &path)?;
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                broken.push(Finding::new("sources", file, 0, error.to_string()));
                continue;
            }
        };
        match syn::parse_file(&text) {
            Ok(ast) => {
                let module = module(dir, &file, roots);
                parsed.push(Source {
                    usage: Usage::of(module.clone(), &ast),
                    file,
                    text,
                    ast,
                    module,
                });
            }
            Err(error) => {
                let line = error.span().start().line;
                broken.push(Finding::new("sources", file, line, error.to_string()));
            }
        }
    }
    Ok(without_test_modules(parsed))
}

/// Drops the code of files that exist only in tests; the file itself stays for the rules about files.
fn without_test_modules(mut parsed: Vec<Source>) -> Vec<Source> {
    let mut hidden: Vec<Vec<String>> = Vec::new();
    for source in &parsed {
        for name in &source.usage.test_modules {
            let mut module = source.module.clone();
            module.push(name.clone());
            hidden.push(module);
        }
    }
    for source in &mut parsed {
        if hidden
            .iter()
            .any(|module| source.module.starts_with(module))
        {
            source.usage = Usage::default();
            source.ast.items.clear();
        }
    }
    parsed
}

fn rust_files(dir: &Path, out: &mut Vec<PathBuf>) -> Outcome<()> {
    if !dir.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(dir).map_err(during(dir.display()))? {
        let path = entry.map_err(during(dir.display()))?.path();
        if path.is_dir() {
            rust_files(&path, out)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
    Ok(())
}

fn module(dir: &str, file: &str, roots: &[String]) -> Vec<String> {
    let mut module = vec!["crate".to_owned()];
    if roots.iter().any(|r| r == file) {
        return module;
    }
    let inside = file
        .strip_prefix(dir)
        .and_then(|f| f.trim_start_matches('/').strip_prefix("src/"))
        .unwrap_or(file);
    let inside = inside.strip_suffix(".rs").unwrap_or(inside);
    module.extend(
        inside
            .split('/')
            .map(str::to_owned)
            .filter(|part| part != "mod"),
    );
    module
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use crate::check::planted::Planted;

    #[test]
    fn modules_are_named_by_their_files() {
        let tree = Planted::new()
            .member("a", "")
            .file("crates/a/src/lib.rs", "//! A.\nmod b;\n")
            .file("crates/a/src/b/mod.rs", "//! B.\nmod c;\n")
            .file("crates/a/src/b/c.rs", "//! C.\n")
            .load();
        let modules: Vec<_> = tree.sources().map(|s| s.module.join("::")).collect();
        assert_eq!(modules, ["crate::b::c", "crate::b", "crate"]);
    }

    #[test]
    fn a_file_that_exists_only_in_tests_has_no_code_to_judge() {
        let tree = Planted::new()
            .member("a", "")
            .file("crates/a/src/lib.rs", "//! A.\n#[cfg(test)]\nmod t;\n")
            .file("crates/a/src/t.rs", "//! T.\nuse std::fs;\n")
            .load();
        let t = tree.sources().find(|s| s.file.ends_with("t.rs")).unwrap();
        assert!(t.usage.paths.is_empty());
    }

    #[test]
    fn a_file_that_does_not_parse_is_reported() {
        let tree = Planted::new()
            .member("a", "")
            .file("crates/a/src/lib.rs", "//! A.\nfn f( {\n")
            .load();
        assert_eq!(tree.broken.len(), 1, "{:?}", tree.broken);
    }
}
