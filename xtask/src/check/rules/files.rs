//! Rule `files`: every source file begins with a module header; a long file is noted.

use crate::check::architecture::Architecture;
use crate::check::finding::Finding;
use crate::check::workspace::Workspace;

const RULE: &str = "files";

/// Looks at the first line and the length of every source file.
pub(crate) fn check(ws: &Workspace, arch: &Architecture) -> Vec<Finding> {
    let mut out = Vec::new();
    for source in ws.sources() {
        if !source.text.starts_with("//!") {
            let message = "a module begins with a `//!` line: what lives here, what never does";
            out.push(Finding::new(RULE, &source.file, 1, message));
        }
        let lines = source.text.lines().count();
        if lines > arch.files.warn_lines {
            let message = format!("{lines} lines, more than {}", arch.files.warn_lines);
            out.push(Finding::note(RULE, &source.file, 0, message));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::check;
    use crate::check::planted::{Planted, shown};

    const ARCH: &str = "[files]\nwarn_lines = 3\n";

    #[test]
    fn a_file_without_a_header_is_found() {
        for text in ["use x;\n", "\n//! Late.\n", "// Not a header.\n", ""] {
            let tree = Planted::new()
                .member("a", "")
                .file("crates/a/src/b.rs", text);
            let found = tree.judge(check, ARCH);
            assert!(
                found.len() == 1 && found.iter().all(|f| !f.note),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_file_of_tests_needs_a_header_too() {
        let tree = Planted::new()
            .library("a", "#[cfg(test)]\nmod t;")
            .file("crates/a/src/t.rs", "use x;\n");
        assert_eq!(tree.judge(check, ARCH).len(), 1);
    }

    #[test]
    fn a_long_file_is_noted_only() {
        let tree = Planted::new().library("a", "\n\n\n");
        let found = tree.judge(check, ARCH);
        assert!(
            found.len() == 1 && found.iter().all(|f| f.note),
            "{:?}",
            shown(&found)
        );
    }

    #[test]
    fn a_short_file_with_a_header_passes() {
        let tree = Planted::new().member("a", "");
        assert_eq!(shown(&tree.judge(check, ARCH)), Vec::<String>::new());
    }
}
