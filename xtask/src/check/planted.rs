//! A tiny workspace in a temporary folder, for the tests of the rules. Never used outside tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::architecture::Architecture;
use super::finding::Finding;
use super::workspace::Workspace;
use std::fs;
use std::path::Path;

/// A workspace under construction; removed when dropped.
pub(crate) struct Planted {
    dir: tempfile::TempDir,
}

impl Planted {
    /// An empty workspace.
    pub(crate) fn new() -> Self {
        let planted = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        let manifest =
            "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n[workspace.lints]\n";
        planted.file("Cargo.toml", manifest)
    }

    /// The root folder.
    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    /// Writes one file.
    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Adds a crate; `rest` is the manifest after its package table.
    pub(crate) fn member(self, name: &str, rest: &str) -> Self {
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[lints]\nworkspace = true\n\n{rest}"
        );
        let code = "//! A planted crate.\n#![forbid(unsafe_code)]\n";
        self.file(&format!("crates/{name}/Cargo.toml"), &manifest)
            .file(&format!("crates/{name}/src/lib.rs"), code)
    }

    /// Adds a crate whose library is `code`, below a module header.
    pub(crate) fn library(self, name: &str, code: &str) -> Self {
        let text = format!("//! A planted crate.\n{code}\n");
        self.member(name, "")
            .file(&format!("crates/{name}/src/lib.rs"), &text)
    }

    /// Reads it back.
    pub(crate) fn load(&self) -> Workspace {
        Workspace::load(self.dir.path()).unwrap()
    }

    /// Runs one rule with the given architecture.
    pub(crate) fn judge(
        &self,
        rule: fn(&Workspace, &Architecture) -> Vec<Finding>,
        architecture: &str,
    ) -> Vec<Finding> {
        rule(&self.load(), &toml::from_str(architecture).unwrap())
    }
}

/// The findings as `file:line message`, to assert on.
pub(crate) fn shown(findings: &[Finding]) -> Vec<String> {
    findings
        .iter()
        .map(|f| format!("{}:{} {}", f.file, f.line, f.message))
        .collect()
}
