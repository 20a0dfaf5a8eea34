//! Rule `environment`: the whole environment is read in the listed modules only.

use crate::check::architecture::{Architecture, covers};
use crate::check::finding::Finding;
use crate::check::imports::begins_with;
use crate::check::workspace::Workspace;

const RULE: &str = "environment";

/// Compares reads of the whole environment with `[environment]`.
pub(crate) fn check(ws: &Workspace, arch: &Architecture) -> Vec<Finding> {
    let mut out = Vec::new();
    for source in ws.sources() {
        if arch
            .environment
            .modules
            .iter()
            .any(|m| covers(m, &source.file))
        {
            continue;
        }
        for used in &source.usage.paths {
            if arch
                .environment
                .paths
                .iter()
                .any(|p| begins_with(&used.path, p))
            {
                let message = format!(
                    "`{}` outside {}: a child's environment is built, never inherited",
                    used.path.join("::"),
                    arch.environment.modules.join(", ")
                );
                out.push(Finding::new(RULE, &source.file, used.line, message));
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

    const ARCH: &str = "[environment]\npaths = [\"std::env::vars\", \"std::env::vars_os\"]\nmodules = [\"crates/p/src/env\"]\n";

    #[test]
    fn reading_the_whole_environment_is_found() {
        for code in [
            "fn f() { c.envs(std::env::vars()); }",
            "use std::env; fn f() { env::vars_os(); }",
            "use std::env::vars as all; fn f() { all(); }",
            "use std::env::*;",
        ] {
            let tree = Planted::new().library("a", code);
            assert!(!tree.judge(check, ARCH).is_empty(), "{code}");
        }
    }

    #[test]
    fn one_variable_and_the_listed_module_pass() {
        let tree = Planted::new()
            .library("a", "fn f() { std::env::var(\"HOME\"); c.envs(map); }")
            .member("p", "")
            .file(
                "crates/p/src/env.rs",
                "//! E.\nfn f() { std::env::vars(); }\n",
            );
        assert_eq!(shown(&tree.judge(check, ARCH)), Vec::<String>::new());
    }
}
