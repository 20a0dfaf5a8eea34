//! The shape of `architecture.toml`. Only data; the rules that read it live in `rules`.

use crate::failure::{Outcome, during};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Architecture {
    /// Crate to the workspace crates it may depend on; `*` means any.
    pub(crate) layers: BTreeMap<String, Vec<String>>,
    /// Crates that others may have as dev-dependencies only.
    pub(crate) dev_only: Crates,
    /// Crate to its third-party crates; `*` means any.
    pub(crate) external: BTreeMap<String, Vec<String>>,
    /// Crate to the dependencies that may show in its public API.
    pub(crate) public_dependencies: BTreeMap<String, Vec<String>>,
    /// Edges between modules that must not exist.
    pub(crate) module_edge: Vec<ModuleEdge>,
    /// Crates without effects.
    pub(crate) pure: Vec<Pure>,
    /// Crate to the folders that may hold `unsafe`.
    pub(crate) unsafe_code: BTreeMap<String, Vec<String>>,
    /// What counts as a timer, and where.
    pub(crate) timers: Timers,
    /// The modules that hold a timer.
    pub(crate) timer: Vec<Timer>,
    /// Modules with a bounded wait on one operation.
    pub(crate) adapter_wait: Vec<AdapterWait>,
    /// Who may start programs.
    pub(crate) processes: Processes,
    /// Who may read the whole environment.
    pub(crate) environment: Environment,
    /// Files whose matches name every case.
    pub(crate) exhaustive_mappers: Mappers,
    /// Crates whose enums are closed.
    pub(crate) exhaustive_enums: Crates,
    /// Names that stay out of the public API.
    pub(crate) internal_names: InternalNames,
    /// Limits of single files.
    pub(crate) files: Files,
    /// Tokens that never occur in the tree.
    pub(crate) words: Words,
}

/// A list of crates.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Crates {
    pub(crate) crates: Vec<String>,
}

/// One set of modules and the paths it must not name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModuleEdge {
    /// A file without `.rs`, or a folder, or a file.
    pub(crate) path: String,
    pub(crate) forbid: Vec<String>,
    #[serde(default)]
    pub(crate) allow: Vec<String>,
    pub(crate) reason: String,
}

/// One crate without effects.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pure {
    #[serde(rename = "crate")]
    pub(crate) krate: String,
    /// Forbidden path prefixes.
    pub(crate) paths: Vec<String>,
    /// Forbidden names, wherever they come from.
    pub(crate) names: Vec<String>,
    /// Forbidden macros.
    pub(crate) macros: Vec<String>,
}

/// What counts as a timer.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Timers {
    pub(crate) crates: Vec<String>,
    pub(crate) paths: Vec<String>,
    pub(crate) methods: Vec<String>,
}

/// One timer and the module that holds it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Timer {
    pub(crate) id: String,
    /// A file, or a folder when it ends in `/`.
    pub(crate) path: String,
    pub(crate) purpose: String,
    /// The module does not exist yet.
    #[serde(default)]
    pub(crate) planned: bool,
}

/// One module that waits for one operation, with a bound.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdapterWait {
    pub(crate) path: String,
    pub(crate) reason: String,
}

/// Who may start programs.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Processes {
    pub(crate) paths: Vec<String>,
    pub(crate) crates: Vec<String>,
}

/// Who may read the whole environment.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Environment {
    pub(crate) paths: Vec<String>,
    pub(crate) modules: Vec<String>,
}

/// Files whose matches name every case.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mappers {
    pub(crate) files: Vec<String>,
    #[serde(default)]
    pub(crate) planned: Vec<String>,
}

/// Names that stay out of the public API of some crates.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InternalNames {
    pub(crate) crates: Vec<String>,
    pub(crate) names: Vec<String>,
}

/// Limits of single files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Files {
    /// A longer file is noted, not refused.
    pub(crate) warn_lines: usize,
}

impl Default for Files {
    fn default() -> Self {
        Self {
            warn_lines: usize::MAX,
        }
    }
}

/// Tokens that never occur in the tree.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Words {
    pub(crate) forbidden: Vec<String>,
    pub(crate) except: Vec<String>,
}

impl Architecture {
    /// Reads the file at the root of the workspace.
    pub(crate) fn load(root: &Path) -> Outcome<Self> {
        let path = root.join("architecture.toml");
        let text = std::fs::read_to_string(&path).map_err(during(path.display()))?;
        toml::from_str(&text).map_err(during(path.display()))
    }
}

/// Whether a file belongs to a listed path: the file itself, the file without `.rs`, or a folder above it.
pub(crate) fn covers(listed: &str, file: &str) -> bool {
    let folder = listed.strip_suffix('/').unwrap_or(listed);
    match file.strip_prefix(folder) {
        Some("") | Some(".rs") => true,
        Some(rest) => rest.starts_with('/'),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn a_listed_path_covers_its_file_and_its_folder_only() {
        assert!(covers("crates/a/src/process", "crates/a/src/process.rs"));
        assert!(covers(
            "crates/a/src/process",
            "crates/a/src/process/job.rs"
        ));
        assert!(covers("crates/a/src/process.rs", "crates/a/src/process.rs"));
        assert!(covers("crates/a/src/", "crates/a/src/main.rs"));
        assert!(!covers("crates/a/src/path", "crates/a/src/paths.rs"));
        assert!(!covers(
            "crates/a/src/process",
            "crates/a/src/other/process.rs"
        ));
    }
}
