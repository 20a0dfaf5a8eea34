//! Rule `purity`: the pure crates have no clock, randomness, I/O, async or panic.

use crate::check::architecture::{Architecture, Pure};
use crate::check::finding::Finding;
use crate::check::imports::begins_with;
use crate::check::workspace::{Source, Workspace};

const RULE: &str = "purity";

/// Compares each crate of `[[pure]]` with its row.
pub(crate) fn check(ws: &Workspace, arch: &Architecture) -> Vec<Finding> {
    let mut out = Vec::new();
    for pure in &arch.pure {
        let Some(member) = ws.members.iter().find(|m| m.name == pure.krate) else {
            let message = format!("{} is listed as pure and does not exist", pure.krate);
            out.push(Finding::new(RULE, "architecture.toml", 0, message));
            continue;
        };
        for source in &member.sources {
            if member.roots.contains(&source.file) {
                let no_std = source.ast.attrs.iter().any(|a| a.path().is_ident("no_std"));
                if !no_std {
                    let message = "a pure crate says `#![no_std]`";
                    out.push(Finding::new(RULE, &source.file, 1, message));
                }
            }
            judge(pure, source, &mut out);
        }
    }
    out
}

fn judge(pure: &Pure, source: &Source, out: &mut Vec<Finding>) {
    let mut add = |line: usize, message: String| {
        out.push(Finding::new(RULE, &source.file, line, message));
    };
    let usage = &source.usage;
    for name in usage.extern_crates.iter().filter(|n| n.name == "std") {
        add(name.line, "`extern crate std` outside tests".to_owned());
    }
    for line in &usage.asyncs {
        add(*line, "async code".to_owned());
    }
    for used in &usage.paths {
        let shown = used.path.join("::");
        let named = used.path.iter().find(|part| pure.names.contains(part));
        if pure.paths.iter().any(|p| begins_with(&used.path, p)) {
            add(used.line, format!("`{shown}`"));
        } else if let Some(name) = named {
            add(used.line, format!("`{name}` (as `{shown}`)"));
        }
    }
    for name in &usage.macros {
        let checked_by_the_compiler = name.in_const && name.name.starts_with("assert");
        if pure.macros.contains(&name.name) && !checked_by_the_compiler {
            add(name.line, format!("`{}!`", name.name));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::check;
    use crate::check::planted::{Planted, shown};

    const ARCH: &str = "[[pure]]\ncrate = \"a\"\npaths = [\"std\"]\nnames = [\"Instant\", \"HashMap\", \"f64\"]\nmacros = [\"println\", \"panic\", \"assert\"]\n";

    fn found(code: &str) -> Vec<String> {
        let tree = Planted::new().library("a", &format!("#![no_std]\n{code}"));
        shown(&tree.judge(check, ARCH))
    }

    #[test]
    fn pure_code_and_its_tests_pass() {
        let code = "extern crate alloc; use alloc::vec::Vec; const _: () = assert!(1 == 1); fn f(x: u64) -> Vec<u64> { alloc::vec![x] } #[cfg(test)] mod t { extern crate std; use std::collections::HashMap; #[test] fn g() { panic!(); } }";
        assert_eq!(found(code), Vec::<String>::new());
    }

    #[test]
    fn every_effect_is_found() {
        for (code, message) in [
            ("extern crate std;", "`extern crate std` outside tests"),
            (
                "extern crate std as s; fn f() { s::fs::read(); }",
                "`std::fs::read`",
            ),
            ("use std::time::Duration;", "`std::time::Duration`"),
            ("async fn f() {}", "async code"),
            ("fn f() { x!(y.await) }", "async code"),
            (
                "use time::Instant as T; fn f(t: T) {}",
                "`Instant` (as `time::Instant`)",
            ),
            (
                "use hashbrown::HashMap;",
                "`HashMap` (as `hashbrown::HashMap`)",
            ),
            ("struct S { x: f64 }", "`f64` (as `f64`)"),
            ("fn f() { vec![0 as f64] }", "`f64` (as `f64`)"),
            ("fn f() { println!(\"x\") }", "`println!`"),
            ("fn f() { core::panic!(\"x\") }", "`panic!`"),
            ("fn f() { assert!(true) }", "`assert!`"),
        ] {
            let wanted = format!("crates/a/src/lib.rs:3 {message}");
            assert!(found(code).contains(&wanted), "{code}: {:?}", found(code));
        }
    }

    #[test]
    fn a_pure_crate_with_std_is_found() {
        let tree = Planted::new().library("a", "");
        let found = shown(&tree.judge(check, ARCH));
        assert_eq!(
            found,
            ["crates/a/src/lib.rs:1 a pure crate says `#![no_std]`"]
        );
    }

    #[test]
    fn a_row_without_its_crate_is_found() {
        let tree = Planted::new().library("b", "");
        assert_eq!(tree.judge(check, ARCH).len(), 1);
    }
}
