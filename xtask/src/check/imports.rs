//! Names to paths: the `use` items of one module, and what a path in that module means. No rule.

use std::collections::BTreeMap;
use syn::ext::IdentExt;
use syn::visit::{self, Visit};

/// A path as its segments, for example `["std", "time", "Instant"]`. A glob import ends in `*`.
pub(crate) type Segments = Vec<String>;

/// How often an imported name is followed through further imports.
const DEPTH: usize = 4;

/// The imports of one module (a file or an inline `mod`), and where that module is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Imports {
    module: Segments,
    names: BTreeMap<String, Vec<Segments>>,
}

impl Imports {
    /// Collects the imports of a module, also those inside function bodies, not those of inline modules.
    pub(crate) fn of(module: Segments, items: &[syn::Item]) -> Self {
        let mut collector = Collector(Vec::new());
        for item in items {
            collector.visit_item(item);
        }
        let mut names: BTreeMap<String, Vec<Segments>> = BTreeMap::new();
        for (name, path, _) in collector.0 {
            if name != "*" {
                names.entry(name).or_default().push(path);
            }
        }
        Self { module, names }
    }

    /// The module these imports belong to.
    pub(crate) fn module(&self) -> &[String] {
        &self.module
    }

    /// Everything a path may mean in this module; never empty.
    pub(crate) fn resolve(&self, path: &[String], absolute: bool) -> Vec<Segments> {
        let mut found = Vec::new();
        self.follow(path, absolute, DEPTH, &mut found);
        found
    }

    fn follow(&self, path: &[String], absolute: bool, depth: usize, found: &mut Vec<Segments>) {
        let Some(first) = path.first() else {
            return;
        };
        let local = self.names.get(first);
        match (first.as_str(), local) {
            ("self" | "super", _) => {
                let mut base = self.module.clone();
                let mut rest = path;
                while let Some((head, tail)) = rest.split_first() {
                    match head.as_str() {
                        "self" => {}
                        "super" => {
                            if base.len() > 1 {
                                base.pop();
                            }
                        }
                        _ => break,
                    }
                    rest = tail;
                }
                base.extend(rest.iter().cloned());
                found.push(base);
            }
            (_, Some(targets)) if !absolute && depth > 0 => {
                for target in targets {
                    let mut next = target.clone();
                    next.extend(path.iter().skip(1).cloned());
                    if next.first() == Some(first) {
                        found.push(next);
                    } else {
                        self.follow(&next, false, depth - 1, found);
                    }
                }
            }
            _ => found.push(path.to_vec()),
        }
    }
}

/// The text of an identifier without a raw prefix.
pub(crate) fn text(ident: &syn::Ident) -> String {
    ident.unraw().to_string()
}

/// The segments of a path.
pub(crate) fn segments(path: &syn::Path) -> Segments {
    path.segments.iter().map(|s| text(&s.ident)).collect()
}

/// The leaves of a `use` item: local name, full path, line.
pub(crate) fn leaves(item: &syn::ItemUse) -> Vec<(String, Segments, usize)> {
    let mut out = Vec::new();
    flatten(&item.tree, &mut Vec::new(), &mut out);
    out
}

fn flatten(tree: &syn::UseTree, prefix: &mut Segments, out: &mut Vec<(String, Segments, usize)>) {
    match tree {
        syn::UseTree::Path(path) => {
            prefix.push(text(&path.ident));
            flatten(&path.tree, prefix, out);
            prefix.pop();
        }
        syn::UseTree::Name(name) => leaf(&name.ident, &name.ident, prefix, out),
        syn::UseTree::Rename(rename) => leaf(&rename.ident, &rename.rename, prefix, out),
        syn::UseTree::Glob(glob) => {
            let mut full = prefix.clone();
            full.push("*".to_owned());
            let line = glob.star_token.spans.first().map_or(0, |s| s.start().line);
            out.push(("*".to_owned(), full, line));
        }
        syn::UseTree::Group(group) => {
            for tree in &group.items {
                flatten(tree, prefix, out);
            }
        }
    }
}

fn leaf(
    ident: &syn::Ident,
    local: &syn::Ident,
    prefix: &[String],
    out: &mut Vec<(String, Segments, usize)>,
) {
    let line = ident.span().start().line;
    let mut full = prefix.to_vec();
    let mut name = text(local);
    if text(ident) == "self" {
        if name == "self" {
            name = prefix.last().cloned().unwrap_or_default();
        }
    } else {
        full.push(text(ident));
    }
    out.push((name, full, line));
}

struct Collector(Vec<(String, Segments, usize)>);

impl<'ast> Visit<'ast> for Collector {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.0.extend(leaves(item));
    }

    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        if let Some((_, rename)) = &item.rename {
            let line = item.ident.span().start().line;
            self.0.push((text(rename), vec![text(&item.ident)], line));
        }
        visit::visit_item_extern_crate(self, item);
    }
}

/// Whether `path` begins with the path written as `prefix`; a prefix whose last part ends in `*` is a prefix of a name.
/// A glob import counts when it could bring in the prefix.
pub(crate) fn begins_with(path: &[String], prefix: &str) -> bool {
    let wanted: Vec<&str> = prefix.split("::").collect();
    if let Some((star, stem)) = path.split_last()
        && star == "*"
        && !stem.is_empty()
        && stem.len() < wanted.len()
    {
        return stem.iter().zip(&wanted).all(|(a, b)| same(a, b));
    }
    is_under(path, prefix)
}

/// Whether `path` certainly begins with the path written as `prefix`: a glob import counts only when all of it does.
pub(crate) fn is_under(path: &[String], prefix: &str) -> bool {
    let wanted: Vec<&str> = prefix.split("::").collect();
    path.len() >= wanted.len() && path.iter().zip(&wanted).all(|(a, b)| same(a, b))
}

fn same(name: &str, wanted: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(stem) => name.starts_with(stem),
        None => name == wanted,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::{Imports, begins_with, is_under};

    fn imports(code: &str) -> Imports {
        let file = syn::parse_file(code).unwrap();
        Imports::of(vec!["crate".into(), "a".into()], &file.items)
    }

    fn meaning(code: &str, path: &str) -> Vec<String> {
        let path: Vec<String> = path.split("::").map(str::to_owned).collect();
        imports(code)
            .resolve(&path, false)
            .into_iter()
            .map(|p| p.join("::"))
            .collect()
    }

    #[test]
    fn a_rename_is_followed_to_the_original_path() {
        assert_eq!(
            meaning("use std::time::Instant as Clock;", "Clock::now"),
            ["std::time::Instant::now"]
        );
    }

    #[test]
    fn an_import_of_an_import_is_followed() {
        let code = "use tokio::time as t; use t::{sleep as pause};";
        assert_eq!(meaning(code, "pause"), ["tokio::time::sleep"]);
    }

    #[test]
    fn self_and_super_are_paths_of_the_crate() {
        assert_eq!(meaning("", "super::b::C"), ["crate::b::C"]);
        assert_eq!(meaning("", "self::b::C"), ["crate::a::b::C"]);
        assert_eq!(
            meaning("use super::b::C as D;", "D::new"),
            ["crate::b::C::new"]
        );
    }

    #[test]
    fn an_import_inside_a_function_counts() {
        let code = "fn f() { use std::collections::HashMap as M; }";
        assert_eq!(meaning(code, "M"), ["std::collections::HashMap"]);
    }

    #[test]
    fn a_glob_counts_when_it_could_bring_in_the_prefix() {
        let glob: Vec<String> = ["tokio", "time", "*"].map(str::to_owned).to_vec();
        assert!(begins_with(&glob, "tokio::time::sleep"));
        assert!(!begins_with(&glob, "tokio::sync::mpsc"));
        let name: Vec<String> = ["ccd_model", "X"].map(str::to_owned).to_vec();
        assert!(begins_with(&name, "ccd_*"));
        let root: Vec<String> = ["crate", "*"].map(str::to_owned).to_vec();
        assert!(!is_under(&root, "crate::process"));
    }
}
