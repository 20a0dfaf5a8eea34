//! Rule `module edges`: which module names which, inside and across crates.

use crate::check::architecture::{Architecture, covers};
use crate::check::finding::Finding;
use crate::check::imports::{begins_with, is_under};
use crate::check::workspace::Workspace;

const RULE: &str = "module edges";

/// Compares the resolved paths of the listed modules with `[[module_edge]]`.
pub(crate) fn check(ws: &Workspace, arch: &Architecture) -> Vec<Finding> {
    let mut out = Vec::new();
    for edge in &arch.module_edge {
        for source in ws.sources().filter(|s| covers(&edge.path, &s.file)) {
            for used in &source.usage.paths {
                let forbidden = edge.forbid.iter().any(|f| begins_with(&used.path, f));
                let allowed = edge.allow.iter().any(|a| is_under(&used.path, a));
                if forbidden && !allowed {
                    let message = format!(
                        "{} may not name `{}`: it {}",
                        edge.path,
                        used.path.join("::"),
                        edge.reason
                    );
                    out.push(Finding::new(RULE, &source.file, used.line, message));
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::check;
    use crate::check::planted::{Planted, shown};

    const ARCH: &str = "[[module_edge]]\npath = \"crates/a/src/process\"\nforbid = [\"crate\", \"ccd_*\"]\nallow = [\"crate::process\", \"crate::path\"]\nreason = \"stands alone\"\n";

    fn found(code: &str) -> Vec<String> {
        let tree = Planted::new()
            .member("a", "")
            .file("crates/a/src/process/job.rs", &format!("//! J.\n{code}\n"));
        shown(&tree.judge(check, ARCH))
    }

    #[test]
    fn std_third_party_and_listed_modules_pass() {
        let code = "use std::fs; use tokio::sync; use super::exec::Exec; use crate::path::Abs; mod inner { use super::*; }";
        assert_eq!(found(code), Vec::<String>::new());
    }

    #[test]
    fn another_module_another_crate_and_globs_are_found() {
        for code in [
            "use crate::tmux::Server;",
            "use ccd_model::time::At;",
            "fn f() { super::super::tmux::start(); }",
            "use crate::*;",
            "fn f() { vec![ccd_ports::X]; }",
            "use ccd_model as m; fn f(x: m::X) {}",
        ] {
            assert!(!found(code).is_empty(), "{code}");
        }
    }

    #[test]
    fn a_neighbour_with_a_longer_name_is_not_the_module() {
        let tree = Planted::new()
            .member("a", "")
            .file("crates/a/src/processes.rs", "//! P.\nuse crate::tmux;\n");
        assert_eq!(shown(&tree.judge(check, ARCH)), Vec::<String>::new());
    }
}
