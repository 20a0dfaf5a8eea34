//! Rule `processes`: programs are started in the listed crates only.

use crate::check::architecture::Architecture;
use crate::check::finding::Finding;
use crate::check::imports::begins_with;
use crate::check::workspace::Workspace;

const RULE: &str = "processes";

/// Compares the places that start programs with `[processes]`.
pub(crate) fn check(ws: &Workspace, arch: &Architecture) -> Vec<Finding> {
    let mut out = Vec::new();
    for member in &ws.members {
        if arch.processes.crates.contains(&member.name) {
            continue;
        }
        for source in &member.sources {
            for used in &source.usage.paths {
                if arch
                    .processes
                    .paths
                    .iter()
                    .any(|p| begins_with(&used.path, p))
                {
                    let message = format!("`{}` in {}", used.path.join("::"), member.name);
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

    const ARCH: &str = "[processes]\npaths = [\"std::process::Command\", \"tokio::process::Command\"]\ncrates = [\"p\"]\n";

    #[test]
    fn starting_a_program_elsewhere_is_found() {
        for code in [
            "fn f() { std::process::Command::new(\"x\"); }",
            "use tokio::process; fn f() { process::Command::new(\"x\"); }",
            "use std::process::Command as C; fn f() { C::new(\"x\"); }",
        ] {
            let tree = Planted::new().library("a", code);
            assert!(!tree.judge(check, ARCH).is_empty(), "{code}");
        }
    }

    #[test]
    fn the_listed_crate_and_other_commands_pass() {
        let tree = Planted::new()
            .library(
                "a",
                "use crate::Command; fn f() { Command::new(); std::process::exit(1); }",
            )
            .library("p", "fn f() { std::process::Command::new(\"x\"); }");
        assert_eq!(shown(&tree.judge(check, ARCH)), Vec::<String>::new());
    }
}
