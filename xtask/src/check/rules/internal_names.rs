//! Rule `internal names`: internal types stay out of the `pub` items of the public crates.

use crate::check::architecture::Architecture;
use crate::check::finding::Finding;
use crate::check::imports::{Imports, leaves, segments, text};
use crate::check::usage::{attributes, test_only};
use crate::check::workspace::Workspace;
use syn::visit::{self, Visit};

const RULE: &str = "internal names";

/// Compares public signatures with `[internal_names]`.
pub(crate) fn check(ws: &Workspace, arch: &Architecture) -> Vec<Finding> {
    let mut out = Vec::new();
    for source in ws.sources_of(&arch.internal_names.crates) {
        let mut surface = Surface {
            names: &arch.internal_names.names,
            scopes: Vec::new(),
            found: Vec::new(),
        };
        surface.module(source.module.clone(), &source.ast.items);
        for (line, name) in surface.found {
            let message = format!("the internal name `{name}` shows in a `pub` item");
            out.push(Finding::new(RULE, &source.file, line, message));
        }
    }
    out
}

struct Surface<'a> {
    names: &'a [String],
    scopes: Vec<Imports>,
    found: Vec<(usize, String)>,
}

impl Surface<'_> {
    fn module(&mut self, module: Vec<String>, items: &[syn::Item]) {
        self.scopes.push(Imports::of(module, items));
        for item in items {
            if !test_only(attributes(item)) {
                self.item(item);
            }
        }
        self.scopes.pop();
    }

    fn item(&mut self, item: &syn::Item) {
        use syn::Item;
        match item {
            Item::Mod(i) => {
                if let Some((_, items)) = &i.content {
                    let mut module = match self.scopes.last() {
                        Some(scope) => scope.module().to_vec(),
                        None => Vec::new(),
                    };
                    module.push(text(&i.ident));
                    self.module(module, items);
                }
            }
            Item::Impl(i) => self.implementation(i),
            Item::Use(i) if public(&i.vis) => {
                for (name, path, line) in leaves(i) {
                    self.name(&name, line);
                    self.resolved(&path, i.leading_colon.is_some(), line);
                }
            }
            Item::Fn(i) if public(&i.vis) => {
                self.ident(&i.sig.ident);
                self.visit_signature(&i.sig);
            }
            Item::Struct(i) if public(&i.vis) => {
                self.ident(&i.ident);
                self.visit_generics(&i.generics);
                for field in i.fields.iter().filter(|f| public(&f.vis)) {
                    self.visit_type(&field.ty);
                }
            }
            Item::Union(i) if public(&i.vis) => {
                self.ident(&i.ident);
                for field in i.fields.named.iter().filter(|f| public(&f.vis)) {
                    self.visit_type(&field.ty);
                }
            }
            Item::Enum(i) if public(&i.vis) => {
                self.ident(&i.ident);
                self.visit_item_enum(i);
            }
            Item::Type(i) if public(&i.vis) => {
                self.ident(&i.ident);
                self.visit_item_type(i);
            }
            Item::Trait(i) if public(&i.vis) => {
                self.ident(&i.ident);
                self.visit_item_trait(i);
            }
            Item::TraitAlias(i) if public(&i.vis) => {
                self.ident(&i.ident);
                self.visit_item_trait_alias(i);
            }
            Item::Const(i) if public(&i.vis) => self.visit_type(&i.ty),
            Item::Static(i) if public(&i.vis) => self.visit_type(&i.ty),
            _ => {}
        }
    }

    fn implementation(&mut self, item: &syn::ItemImpl) {
        let of_trait = item.trait_.is_some();
        if of_trait {
            self.visit_generics(&item.generics);
            self.visit_type(&item.self_ty);
            if let Some((path, _)) = &item.trait_ {
                self.visit_path(path);
            }
        }
        for inner in &item.items {
            match inner {
                syn::ImplItem::Fn(f) if (of_trait || public(&f.vis)) && !test_only(&f.attrs) => {
                    self.visit_signature(&f.sig);
                }
                syn::ImplItem::Type(t) if of_trait || public(&t.vis) => self.visit_type(&t.ty),
                syn::ImplItem::Const(c) if of_trait || public(&c.vis) => self.visit_type(&c.ty),
                _ => {}
            }
        }
    }

    fn ident(&mut self, ident: &syn::Ident) {
        self.name(&text(ident), ident.span().start().line);
    }

    fn name(&mut self, name: &str, line: usize) {
        let internal = self.names.iter().any(|n| match n.strip_suffix('*') {
            Some(stem) => name.starts_with(stem),
            None => name == n,
        });
        if internal {
            self.found.push((line, name.to_owned()));
        }
    }

    fn resolved(&mut self, path: &[String], absolute: bool, line: usize) {
        let meanings = match self.scopes.last() {
            Some(scope) => scope.resolve(path, absolute),
            None => Vec::new(),
        };
        let before = self.found.len();
        for name in meanings.iter().flatten() {
            if self.found.len() == before {
                self.name(name, line);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Surface<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let line = path
            .segments
            .first()
            .map_or(0, |s| s.ident.span().start().line);
        self.resolved(&segments(path), path.leading_colon.is_some(), line);
        visit::visit_path(self, path);
    }

    fn visit_block(&mut self, _: &'ast syn::Block) {}

    fn visit_expr(&mut self, _: &'ast syn::Expr) {}

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

fn public(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Public(_))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::check;
    use crate::check::planted::{Planted, shown};

    const ARCH: &str =
        "[internal_names]\ncrates = [\"a\"]\nnames = [\"Observation\", \"Fact\", \"Tmux*\"]\n";

    fn found(code: &str) -> Vec<String> {
        let tree = Planted::new().library("a", code);
        shown(&tree.judge(check, ARCH))
    }

    #[test]
    fn an_internal_name_in_any_public_position_is_found() {
        for code in [
            "pub fn f(o: Observation) {}",
            "use m::Observation as Seen; pub fn f(o: &Seen) {}",
            "pub fn f() -> Option<Fact<u8>> { None }",
            "pub struct S { pub x: m::TmuxPane }",
            "pub struct S(pub Observation);",
            "pub struct S<T: AsRef<Observation>>(T);",
            "pub enum E { A(Observation), B }",
            "pub enum E { A { x: Observation } }",
            "pub type T = Vec<Observation>;",
            "pub trait T { fn f(&self) -> Observation; }",
            "pub use m::Observation;",
            "pub use m::Observation as Renamed;",
            "pub struct S; impl S { pub fn f(&self, o: Observation) {} }",
            "pub struct S; impl From<Observation> for S { fn from(o: u8) -> S { S } }",
            "pub mod x { pub const C: Option<super::Observation> = None; }",
            "pub struct TmuxHandle;",
        ] {
            assert!(!found(code).is_empty(), "{code}");
        }
    }

    #[test]
    fn private_positions_bodies_and_other_names_pass() {
        for code in [
            "use m::Observation; pub fn f() { let o: Observation = g(); }",
            "pub(crate) fn f(o: Observation) {}",
            "pub struct S { x: Observation }",
            "pub struct S; impl S { fn f(o: Observation) {} }",
            "pub fn f(o: Factory, p: ObservationCount) {}",
            "#[cfg(test)] pub mod t { pub fn f(o: Observation) {} }",
        ] {
            assert_eq!(found(code), Vec::<String>::new(), "{code}");
        }
    }
}
