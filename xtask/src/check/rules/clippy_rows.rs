//! Rule `clippy rows`: a crate's own `clippy.toml` repeats the rows of the root file, because clippy does not merge them.

use crate::check::architecture::Architecture;
use crate::check::finding::Finding;
use crate::check::workspace::Workspace;
use std::collections::BTreeSet;
use std::path::Path;

const RULE: &str = "clippy rows";
const LISTS: [&str; 3] = [
    "disallowed-methods",
    "disallowed-types",
    "disallowed-macros",
];

/// Compares every crate's `clippy.toml` with the one at the root; pure crates must have one.
pub(crate) fn check(ws: &Workspace, arch: &Architecture) -> Vec<Finding> {
    let mut out = Vec::new();
    let common = match rows(&ws.root.join("clippy.toml")) {
        Ok(rows) => rows.unwrap_or_default(),
        Err(message) => return vec![Finding::new(RULE, "clippy.toml", 0, message)],
    };
    for member in &ws.members {
        let file = format!("{}/clippy.toml", member.dir);
        match rows(&ws.root.join(&file)) {
            Ok(Some(own)) => {
                for missing in common.difference(&own) {
                    let message = format!("the row {missing} of the root file is missing");
                    out.push(Finding::new(RULE, &file, 0, message));
                }
            }
            Ok(None) => {
                if arch.pure.iter().any(|p| p.krate == member.name) {
                    let message = "a pure crate has its own `clippy.toml`";
                    out.push(Finding::new(RULE, &file, 0, message));
                }
            }
            Err(message) => out.push(Finding::new(RULE, &file, 0, message)),
        }
    }
    out
}

fn rows(path: &Path) -> Result<Option<BTreeSet<String>>, String> {
    if !path.exists() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let table: toml::Table = toml::from_str(&text).map_err(|e| e.to_string())?;
    let mut rows = BTreeSet::new();
    for list in LISTS {
        for entry in table
            .get(list)
            .and_then(toml::Value::as_array)
            .into_iter()
            .flatten()
        {
            let path = entry.as_str().or_else(|| entry.get("path")?.as_str());
            if let Some(path) = path {
                rows.insert(format!("{list}: {path}"));
            }
        }
    }
    Ok(Some(rows))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::check;
    use crate::check::planted::{Planted, shown};

    const ARCH: &str = "[[pure]]\ncrate = \"a\"\npaths = []\nnames = []\nmacros = []\n";
    const ROOT: &str = "disallowed-methods = [{ path = \"std::env::set_var\", reason = \"r\" }]\n";

    #[test]
    fn a_crate_that_repeats_the_rows_passes() {
        let own = "disallowed-methods = [\"std::fs::read\", \"std::env::set_var\"]\n";
        let tree = Planted::new()
            .member("a", "")
            .file("clippy.toml", ROOT)
            .file("crates/a/clippy.toml", own);
        assert_eq!(shown(&tree.judge(check, ARCH)), Vec::<String>::new());
    }

    #[test]
    fn a_missing_row_is_found() {
        let tree = Planted::new()
            .member("a", "")
            .file("clippy.toml", ROOT)
            .file(
                "crates/a/clippy.toml",
                "disallowed-types = [\"std::env::set_var\"]\n",
            );
        let message = "crates/a/clippy.toml:0 the row disallowed-methods: std::env::set_var of the root file is missing";
        assert_eq!(shown(&tree.judge(check, ARCH)), [message]);
    }

    #[test]
    fn a_pure_crate_without_its_own_file_is_found() {
        let tree = Planted::new()
            .member("a", "")
            .member("b", "")
            .file("clippy.toml", ROOT);
        let message = "crates/a/clippy.toml:0 a pure crate has its own `clippy.toml`";
        assert_eq!(shown(&tree.judge(check, ARCH)), [message]);
    }
}
