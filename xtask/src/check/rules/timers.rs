//! Rule `timers`: only the listed modules wait for time to pass, and each names its id.

use crate::check::architecture::{Architecture, covers};
use crate::check::finding::Finding;
use crate::check::imports::begins_with;
use crate::check::workspace::{Source, Workspace};

const RULE: &str = "timers";
const TABLE: &str = "architecture.toml";

/// Compares waits in the code with `[[timer]]` and `[[adapter_wait]]`.
pub(crate) fn check(ws: &Workspace, arch: &Architecture) -> Vec<Finding> {
    let mut out = Vec::new();
    for source in ws.sources_of(&arch.timers.crates) {
        let listed = arch.timer.iter().any(|t| covers(&t.path, &source.file))
            || arch
                .adapter_wait
                .iter()
                .any(|w| covers(&w.path, &source.file));
        if !listed {
            waits(source, arch, &mut out);
        }
    }
    for (index, timer) in arch.timer.iter().enumerate() {
        if arch.timer.iter().take(index).any(|t| t.id == timer.id) {
            let message = format!("{} is listed twice: a timer has one module", timer.id);
            out.push(Finding::new(RULE, TABLE, 0, message));
        }
        let files: Vec<&Source> = ws
            .sources()
            .filter(|s| covers(&timer.path, &s.file))
            .collect();
        let message = format!("{} ({}): {}", timer.id, timer.purpose, timer.path);
        match (files.is_empty(), timer.planned) {
            (true, true) => {}
            (true, false) => {
                let message = format!("{message} does not exist");
                out.push(Finding::new(RULE, TABLE, 0, message));
            }
            (false, planned) => {
                let named = files.iter().any(|s| names(&s.text, &timer.id));
                if !named && !planned {
                    let message = format!("{message} does not name its id");
                    out.push(Finding::new(RULE, TABLE, 0, message));
                } else if planned {
                    let message = format!("{message} exists: drop `planned`");
                    out.push(Finding::note(RULE, TABLE, 0, message));
                }
            }
        }
    }
    for wait in &arch.adapter_wait {
        if !ws.sources().any(|s| covers(&wait.path, &s.file)) {
            let message = format!("{} ({}) does not exist", wait.path, wait.reason);
            out.push(Finding::new(RULE, TABLE, 0, message));
        }
    }
    out
}

fn waits(source: &Source, arch: &Architecture, out: &mut Vec<Finding>) {
    let advice = "is a timer outside the listed modules";
    for used in &source.usage.paths {
        let method = used.path.last().is_some_and(|last| {
            used.path.len() > 1 && arch.timers.methods.iter().any(|m| m == last)
        });
        if method || arch.timers.paths.iter().any(|p| begins_with(&used.path, p)) {
            let message = format!("`{}` {advice}", used.path.join("::"));
            out.push(Finding::new(RULE, &source.file, used.line, message));
        }
    }
    for used in &source.usage.methods {
        if arch.timers.methods.contains(&used.name) {
            let message = format!("`.{}()` {advice}", used.name);
            out.push(Finding::new(RULE, &source.file, used.line, message));
        }
    }
}

/// Whether a comment names the id, as a word of its own.
fn names(text: &str, id: &str) -> bool {
    text.lines()
        .filter_map(|line| line.split_once("//"))
        .any(|(_, comment)| {
            comment.match_indices(id).any(|(at, _)| {
                let before = comment.get(..at).and_then(|s| s.chars().next_back());
                let after = comment.get(at + id.len()..).and_then(|s| s.chars().next());
                let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '-');
                !word(before) && !word(after)
            })
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::check;
    use crate::check::planted::{Planted, shown};

    const KINDS: &str = "[timers]\ncrates = [\"a\"]\npaths = [\"tokio::time::sleep\", \"tokio::time::timeout\", \"std::thread::sleep\"]\nmethods = [\"recv_timeout\"]\n";

    fn arch(rows: &str) -> String {
        format!("{KINDS}{rows}")
    }

    fn row(planned: bool) -> String {
        arch(&format!(
            "[[timer]]\nid = \"A-1\"\npath = \"crates/a/src/beat.rs\"\npurpose = \"beat\"\nplanned = {planned}\n"
        ))
    }

    #[test]
    fn a_timer_outside_the_listed_modules_is_found() {
        for code in [
            "fn f() { std::thread::sleep(d); }",
            "use std::thread; fn f() { thread::sleep(d); }",
            "use tokio::time::{sleep as nap, Duration}; fn f() { nap(d); }",
            "use tokio::time::*;",
            "fn f() { tokio::select! { _ = tokio::time::timeout(d, x) => {} } }",
            "fn f() { rx.recv_timeout(d); }",
            "use std::sync::mpsc::Receiver; fn f() { Receiver::recv_timeout(&rx, d); }",
        ] {
            let tree = Planted::new().library("a", code);
            assert!(!tree.judge(check, KINDS).is_empty(), "{code}");
        }
    }

    #[test]
    fn time_as_data_and_other_crates_pass() {
        let tree = Planted::new()
            .library(
                "a",
                "use std::time::Duration; use tokio::time::Instant; fn f() { x.sleep(); }",
            )
            .library("b", "fn f() { std::thread::sleep(d); }");
        assert_eq!(shown(&tree.judge(check, KINDS)), Vec::<String>::new());
    }

    #[test]
    fn a_listed_module_that_names_its_id_passes() {
        let code = "//! Beat.\n// A-1\nfn f() { std::thread::sleep(d); }\n";
        let tree = Planted::new()
            .member("a", "")
            .file("crates/a/src/beat.rs", code);
        assert_eq!(shown(&tree.judge(check, &row(false))), Vec::<String>::new());
    }

    #[test]
    fn a_listed_module_without_its_id_in_a_comment_is_found() {
        for code in [
            "//! Beat.\n",
            "//! Beat A-12.\n",
            "//! Beat.\nconst X: &str = \"A-1\";\n",
        ] {
            let tree = Planted::new()
                .member("a", "")
                .file("crates/a/src/beat.rs", code);
            assert_eq!(tree.judge(check, &row(false)).len(), 1, "{code}");
        }
    }

    #[test]
    fn a_missing_module_passes_only_when_planned() {
        let tree = Planted::new().member("a", "");
        assert_eq!(shown(&tree.judge(check, &row(true))), Vec::<String>::new());
        let found = shown(&tree.judge(check, &row(false)));
        let message = "architecture.toml:0 A-1 (beat): crates/a/src/beat.rs does not exist";
        assert_eq!(found, [message]);
    }

    #[test]
    fn a_planned_module_that_exists_is_noted() {
        let tree = Planted::new()
            .member("a", "")
            .file("crates/a/src/beat.rs", "//! Beat, A-1.\n");
        let found = tree.judge(check, &row(true));
        assert!(
            found.len() == 1 && found.iter().all(|f| f.note),
            "{found:?}"
        );
    }

    #[test]
    fn a_timer_with_two_modules_is_found() {
        let tree = Planted::new().member("a", "");
        let twice = format!("{}{}", row(true), row(true).trim_start_matches(KINDS));
        let found = shown(&tree.judge(check, &twice));
        assert_eq!(
            found,
            ["architecture.toml:0 A-1 is listed twice: a timer has one module"]
        );
    }

    #[test]
    fn a_bounded_wait_is_listed_by_file() {
        let rows = arch("[[adapter_wait]]\npath = \"crates/a/src/reply.rs\"\nreason = \"reply\"\n");
        let code = "//! Reply.\nfn f() { rx.recv_timeout(d); }\n";
        let tree = Planted::new()
            .member("a", "")
            .file("crates/a/src/reply.rs", code);
        assert_eq!(shown(&tree.judge(check, &rows)), Vec::<String>::new());
        let empty = Planted::new().member("a", "");
        assert_eq!(empty.judge(check, &rows).len(), 1);
    }
}
