//! Rule `exhaustive`: mappers name every case, and the enums that they map stay closed.

use crate::check::architecture::Architecture;
use crate::check::finding::Finding;
use crate::check::usage::{attributes, test_only};
use crate::check::workspace::Workspace;
use syn::visit::{self, Visit};

const RULE: &str = "exhaustive";

/// Looks for catch-all arms in `[exhaustive_mappers]` and open enums in `[exhaustive_enums]`.
pub(crate) fn check(ws: &Workspace, arch: &Architecture) -> Vec<Finding> {
    let mut out = Vec::new();
    let mappers = &arch.exhaustive_mappers;
    for file in mappers.files.iter().chain(&mappers.planned) {
        let planned = mappers.planned.contains(file);
        let Some(source) = ws.sources().find(|s| s.file == *file) else {
            if !planned {
                let message = format!("the mapper {file} does not exist");
                out.push(Finding::new(RULE, "architecture.toml", 0, message));
            }
            continue;
        };
        if planned {
            let message = format!("the mapper {file} exists: move it from `planned` to `files`");
            out.push(Finding::note(RULE, "architecture.toml", 0, message));
        }
        let mut arms = Arms(Vec::new());
        arms.visit_file(&source.ast);
        for line in arms.0 {
            let message = "a catch-all arm in a mapper: name every case";
            out.push(Finding::new(RULE, file, line, message));
        }
    }
    for source in ws.sources_of(&arch.exhaustive_enums.crates) {
        let mut enums = Enums(Vec::new());
        enums.visit_file(&source.ast);
        for line in enums.0 {
            let message = "a `#[non_exhaustive]` enum: the mappers could miss a case";
            out.push(Finding::new(RULE, &source.file, line, message));
        }
    }
    out
}

struct Arms(Vec<usize>);

impl<'ast> Visit<'ast> for Arms {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !test_only(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some(line) = catch_all(&arm.pat) {
            self.0.push(line);
        }
        visit::visit_arm(self, arm);
    }
}

/// The line of a pattern that takes everything: `_`, or a plain name.
fn catch_all(pattern: &syn::Pat) -> Option<usize> {
    match pattern {
        syn::Pat::Wild(wild) => Some(wild.underscore_token.spans.first()?.start().line),
        syn::Pat::Ident(name) if name.subpat.is_none() => {
            let lower = name
                .ident
                .to_string()
                .starts_with(|c: char| !c.is_uppercase());
            lower.then(|| name.ident.span().start().line)
        }
        syn::Pat::Ident(name) => catch_all(&name.subpat.as_ref()?.1),
        syn::Pat::Or(or) => or.cases.iter().find_map(catch_all),
        syn::Pat::Paren(inner) => catch_all(&inner.pat),
        syn::Pat::Reference(inner) => catch_all(&inner.pat),
        _ => None,
    }
}

struct Enums(Vec<usize>);

impl<'ast> Visit<'ast> for Enums {
    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        for attr in &item.attrs {
            let conditional = attr.path().is_ident("cfg_attr")
                && attr
                    .meta
                    .require_list()
                    .is_ok_and(|list| list.tokens.to_string().contains("non_exhaustive"));
            if conditional || attr.path().is_ident("non_exhaustive") {
                self.0.push(item.ident.span().start().line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::check;
    use crate::check::planted::{Planted, shown};

    const ARCH: &str = "[exhaustive_mappers]\nfiles = [\"crates/a/src/lib.rs\"]\nplanned = [\"crates/a/src/later.rs\"]\n[exhaustive_enums]\ncrates = [\"m\"]\n";

    fn mapper(arms: &str) -> usize {
        let code = format!("fn f(x: E) -> u8 {{ match x {{ {arms} }} }}");
        let tree = Planted::new().library("a", &code);
        tree.judge(check, ARCH).len()
    }

    #[test]
    fn named_cases_pass() {
        assert_eq!(
            mapper("E::A => 1, E::B { .. } => 2, E::C(_) => 3, NONE => 4"),
            0
        );
    }

    #[test]
    fn catch_all_arms_are_found() {
        for arms in [
            "E::A => 1, _ => 2",
            "E::A => 1, other => 2",
            "E::A | _ => 1",
            "E::A => match y { F::A => 1, _ => 2 }, E::B => 3",
        ] {
            assert_eq!(mapper(arms), 1, "{arms}");
        }
    }

    #[test]
    fn a_mapper_that_does_not_exist_is_found() {
        let tree = Planted::new().member("b", "");
        let found = shown(&tree.judge(check, ARCH));
        assert_eq!(
            found,
            ["architecture.toml:0 the mapper crates/a/src/lib.rs does not exist"]
        );
    }

    #[test]
    fn a_planned_mapper_that_exists_is_judged_and_noted() {
        let code = "//! L.\nfn f(x: E) { match x { _ => {} } }\n";
        let tree = Planted::new()
            .member("a", "")
            .file("crates/a/src/later.rs", code);
        let found = tree.judge(check, ARCH);
        assert_eq!(found.iter().filter(|f| f.note).count(), 1);
        assert_eq!(found.iter().filter(|f| !f.note).count(), 1);
    }

    #[test]
    fn an_open_enum_in_a_closed_crate_is_found() {
        for attr in ["#[non_exhaustive]", "#[cfg_attr(all(), non_exhaustive)]"] {
            let tree = Planted::new()
                .member("a", "")
                .library("m", &format!("{attr} pub enum E {{ A }}"));
            assert_eq!(tree.judge(check, ARCH).len(), 1, "{attr}");
        }
        let tree = Planted::new()
            .library("a", "#[non_exhaustive] pub enum E { A }")
            .library("m", "#[non_exhaustive] pub struct S;");
        assert_eq!(shown(&tree.judge(check, ARCH)), Vec::<String>::new());
    }
}
