//! Rule `words`: tokens that belong to one machine or one working place never occur in the tree.

use crate::check::architecture::Architecture;
use crate::check::finding::Finding;
use crate::check::workspace::Workspace;
use std::path::Path;
use std::process::Command;

const RULE: &str = "words";

/// Searches every file that git tracks or would track for `[words]`.
pub(crate) fn check(ws: &Workspace, arch: &Architecture) -> Vec<Finding> {
    let files = match listed(&ws.root) {
        Ok(files) => files,
        Err(message) => return vec![Finding::new(RULE, ".", 0, message)],
    };
    let mut out = Vec::new();
    for file in files {
        if arch
            .words
            .except
            .iter()
            .any(|e| file.starts_with(e.as_str()))
        {
            continue;
        }
        // A file that git lists and that is gone has no words; a folder (a submodule) neither.
        let Ok(bytes) = std::fs::read(ws.root.join(&file)) else {
            continue;
        };
        let text = String::from_utf8_lossy(&bytes);
        for (index, line) in text.lines().enumerate() {
            for word in &arch.words.forbidden {
                if occurs(line, word) {
                    let message = format!("the forbidden token `{word}`");
                    out.push(Finding::new(RULE, &file, index + 1, message));
                }
            }
        }
    }
    out
}

/// The files that git tracks, and the new ones that it does not ignore.
fn listed(root: &Path) -> Result<Vec<String>, String> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .map_err(|e| format!("git ls-files: {e}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git ls-files: {}", text.trim()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text
        .split('\0')
        .filter(|f| !f.is_empty())
        .map(str::to_owned)
        .collect())
}

fn occurs(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|s| s.chars().next_back());
        let inside_a_path = before
            .is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '~' | '}' | '/'));
        !(word.starts_with('/') && inside_a_path)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::check;
    use crate::check::planted::{Planted, shown};
    use std::process::Command;

    const ARCH: &str = "[words]\nforbidden = [\"/secret/\", \"place\"]\nexcept = [\"fixtures/\"]\n";

    fn tree() -> Planted {
        let tree = Planted::new().member("a", "").file(".gitignore", "/out\n");
        let git = Command::new("git")
            .args(["init", "--quiet"])
            .current_dir(tree.root())
            .status()
            .unwrap();
        assert!(git.success());
        tree
    }

    #[test]
    fn a_forbidden_token_in_any_file_is_found() {
        let tree = tree().file("docs/x.md", "one\nsee \"/secret/x\" in this place\n");
        assert_eq!(
            shown(&tree.judge(check, ARCH)),
            [
                "docs/x.md:2 the forbidden token `/secret/`",
                "docs/x.md:2 the forbidden token `place`"
            ]
        );
    }

    #[test]
    fn excepted_ignored_and_relative_ones_pass() {
        let tree = tree()
            .file("fixtures/x", "/secret/\n")
            .file("out/x", "/secret/\n")
            .file("b", "src/secret/mod.rs and ~/secret/ and ../secret/\n");
        assert_eq!(shown(&tree.judge(check, ARCH)), Vec::<String>::new());
    }

    #[test]
    fn a_tree_that_git_cannot_list_is_found() {
        let tree = Planted::new()
            .member("a", "")
            .file(".git", "not a repository\n");
        assert_eq!(tree.judge(check, ARCH).len(), 1);
    }
}
