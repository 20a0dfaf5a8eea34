//! What one source file uses, outside its tests: resolved paths, method names, macros, async, `extern crate`.
//! Macro bodies are scanned as tokens. Facts only; the rules judge.

use super::imports::{Imports, Segments, leaves, segments, text};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// A path that the file names.
#[derive(Debug, Clone)]
pub(crate) struct PathUse {
    /// The resolved path. A glob import ends in `*`.
    pub(crate) path: Segments,
    pub(crate) line: usize,
}

/// A name and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct NameUse {
    pub(crate) name: String,
    pub(crate) line: usize,
    /// Inside a `const` item, where it costs nothing at run time.
    pub(crate) in_const: bool,
}

/// Everything a file uses outside `#[cfg(test)]`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usage {
    pub(crate) paths: Vec<PathUse>,
    pub(crate) methods: Vec<NameUse>,
    pub(crate) macros: Vec<NameUse>,
    /// Lines of `async` and `.await`.
    pub(crate) asyncs: Vec<usize>,
    /// `extern crate` items.
    pub(crate) extern_crates: Vec<NameUse>,
    /// Out-of-line modules that exist only in tests.
    pub(crate) test_modules: Vec<String>,
}

impl Usage {
    /// Walks a file that is the module `module`.
    pub(crate) fn of(module: Segments, file: &syn::File) -> Self {
        let mut walker = Walker {
            scopes: vec![Imports::of(module, &file.items)],
            const_depth: 0,
            usage: Self::default(),
        };
        walker.visit_file(file);
        walker.usage
    }
}

/// Whether an item with these attributes exists only in tests.
pub(crate) fn test_only(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|attr| {
        let last = attr.path().segments.last().map(|s| text(&s.ident));
        if last.as_deref() == Some("test") {
            return true;
        }
        attr.path().is_ident("cfg")
            && attr
                .parse_args::<syn::Meta>()
                .is_ok_and(|meta| needs_test(&meta))
    })
}

fn needs_test(meta: &syn::Meta) -> bool {
    if meta.path().is_ident("test") {
        return true;
    }
    let syn::Meta::List(list) = meta else {
        return false;
    };
    let parser = syn::punctuated::Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated;
    let Ok(inner) = list.parse_args_with(parser) else {
        return false;
    };
    if list.path.is_ident("all") {
        inner.iter().any(needs_test)
    } else if list.path.is_ident("any") {
        !inner.is_empty() && inner.iter().all(needs_test)
    } else {
        false
    }
}

/// The attributes of an item.
pub(crate) fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    use syn::Item;
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::ExternCrate(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::ForeignMod(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::TraitAlias(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Union(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        _ => &[],
    }
}

struct Walker {
    scopes: Vec<Imports>,
    const_depth: usize,
    usage: Usage,
}

impl Walker {
    fn path(&mut self, path: &[String], absolute: bool, line: usize) {
        let meanings = match self.scopes.last() {
            Some(scope) => scope.resolve(path, absolute),
            None => vec![path.to_vec()],
        };
        for path in meanings {
            self.usage.paths.push(PathUse { path, line });
        }
    }

    fn name(&self, name: String, line: usize) -> NameUse {
        NameUse {
            name,
            line,
            in_const: self.const_depth > 0,
        }
    }

    fn macro_use(&mut self, path: &[String], line: usize) {
        let mut meanings = match self.scopes.last() {
            Some(scope) => scope.resolve(path, false),
            None => Vec::new(),
        };
        for meaning in &mut meanings {
            if let Some(name) = meaning.pop() {
                let name = self.name(name, line);
                self.usage.macros.push(name);
            }
        }
    }

    fn tokens(&mut self, stream: TokenStream) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Group(group) => {
                    self.tokens(group.stream());
                    at += 1;
                }
                TokenTree::Ident(ident) => at = self.token_path(&tokens, at, ident),
                _ => at += 1,
            }
        }
    }

    /// Reads `a::b::c` from `at`; returns the place after it.
    fn token_path(&mut self, tokens: &[TokenTree], at: usize, first: &syn::Ident) -> usize {
        let line = first.span().start().line;
        let before = at.checked_sub(1).and_then(|i| tokens.get(i));
        let previous = before.and_then(punct);
        let mut path = vec![text(first)];
        let mut next = at + 1;
        while let (Some(':'), Some(':'), Some(TokenTree::Ident(ident))) = (
            tokens.get(next).and_then(punct),
            tokens.get(next + 1).and_then(punct),
            tokens.get(next + 2),
        ) {
            path.push(text(ident));
            next += 3;
        }
        let earlier = at.checked_sub(2).and_then(|i| tokens.get(i));
        let earlier = earlier.and_then(punct);
        let range = earlier == Some('.');
        match previous {
            Some('\'') => return next,
            Some('.') if !range => {
                let name = text(first);
                if name == "await" {
                    self.usage.asyncs.push(line);
                } else {
                    let method = self.name(name, line);
                    self.usage.methods.push(method);
                }
                return next;
            }
            _ => {}
        }
        if path == ["async"] {
            self.usage.asyncs.push(line);
            return next;
        }
        let bang = tokens.get(next).and_then(punct) == Some('!');
        let body = matches!(tokens.get(next + 1), Some(TokenTree::Group(g)) if g.delimiter() != Delimiter::None);
        if bang && body {
            self.macro_use(&path, line);
        } else {
            let absolute = previous == Some(':') && earlier == Some(':');
            self.path(&path, absolute, line);
        }
        next
    }
}

fn punct(token: &TokenTree) -> Option<char> {
    match token {
        TokenTree::Punct(punct) => Some(punct.as_char()),
        _ => None,
    }
}

impl<'ast> Visit<'ast> for Walker {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if test_only(attributes(item)) {
            if let syn::Item::Mod(module) = item
                && module.content.is_none()
            {
                self.usage.test_modules.push(text(&module.ident));
            }
            return;
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !test_only(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let Some((_, items)) = &item.content else {
            return;
        };
        let mut module = match self.scopes.last() {
            Some(scope) => scope.module().to_vec(),
            None => Vec::new(),
        };
        module.push(text(&item.ident));
        self.scopes.push(Imports::of(module, items));
        visit::visit_item_mod(self, item);
        self.scopes.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        for (_, path, line) in leaves(item) {
            self.path(&path, item.leading_colon.is_some(), line);
        }
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        let line = item.ident.span().start().line;
        let name = self.name(text(&item.ident), line);
        self.usage.extern_crates.push(name);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.const_depth += 1;
        visit::visit_item_const(self, item);
        self.const_depth -= 1;
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let line = path
            .segments
            .first()
            .map_or(0, |s| s.ident.span().start().line);
        self.path(&segments(path), path.leading_colon.is_some(), line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        let line = mac
            .path
            .segments
            .first()
            .map_or(0, |s| s.ident.span().start().line);
        self.macro_use(&segments(&mac.path), line);
        self.tokens(mac.tokens.clone());
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let line = call.method.span().start().line;
        let name = self.name(text(&call.method), line);
        self.usage.methods.push(name);
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_await(&mut self, expr: &'ast syn::ExprAwait) {
        self.usage.asyncs.push(expr.await_token.span.start().line);
        visit::visit_expr_await(self, expr);
    }

    fn visit_expr_async(&mut self, expr: &'ast syn::ExprAsync) {
        self.usage.asyncs.push(expr.async_token.span.start().line);
        visit::visit_expr_async(self, expr);
    }

    fn visit_expr_closure(&mut self, expr: &'ast syn::ExprClosure) {
        if let Some(token) = &expr.asyncness {
            self.usage.asyncs.push(token.span.start().line);
        }
        visit::visit_expr_closure(self, expr);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        if let Some(token) = &signature.asyncness {
            self.usage.asyncs.push(token.span.start().line);
        }
        visit::visit_signature(self, signature);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::Usage;

    fn usage(code: &str) -> Usage {
        Usage::of(vec!["crate".into()], &syn::parse_file(code).unwrap())
    }

    fn paths(code: &str) -> Vec<String> {
        usage(code)
            .paths
            .iter()
            .map(|p| p.path.join("::"))
            .collect()
    }

    #[test]
    fn code_of_tests_is_not_seen() {
        for code in [
            "#[cfg(test)] mod t { use std::fs; }",
            "#[cfg(all(test, unix))] fn f() { std::fs::read(); }",
            "#[tokio::test] async fn f() { std::fs::read(); }",
            "struct S; impl S { #[cfg(test)] fn f() { std::fs::read(); } }",
        ] {
            assert!(!paths(code).iter().any(|p| p.starts_with("std")), "{code}");
        }
        for code in [
            "#[cfg(not(test))] mod t { use std::fs; }",
            "#[cfg(any(test, unix))] fn f() { std::fs::read(); }",
        ] {
            assert!(paths(code).iter().any(|p| p.starts_with("std")), "{code}");
        }
    }

    #[test]
    fn macro_bodies_are_seen_through_imports() {
        let code = "use tokio::time as t; fn f() { tokio::select! { _ = t::sleep(d) => {} } }";
        assert!(paths(code).contains(&"tokio::time::sleep".to_owned()));
        let code = "fn f() { vec![rx.recv_timeout(d), 0..end] }";
        let methods: Vec<_> = usage(code).methods.into_iter().map(|m| m.name).collect();
        assert_eq!(methods, ["recv_timeout"]);
    }

    #[test]
    fn macros_inside_macros_are_seen() {
        let names: Vec<_> = usage("fn f() { vec![panic!(\"x\"), std::println!()] }")
            .macros
            .into_iter()
            .map(|m| m.name)
            .collect();
        assert_eq!(names, ["vec", "panic", "println"]);
    }

    #[test]
    fn every_form_of_async_is_seen() {
        for code in [
            "async fn f() {}",
            "trait T { async fn f(); }",
            "fn f() { let _ = async { 1 }; }",
            "fn f() { let _ = async || 1; }",
            "fn f() { x!(async move { y.await }) }",
        ] {
            assert!(!usage(code).asyncs.is_empty(), "{code}");
        }
    }

    #[test]
    fn an_inline_module_has_its_own_imports() {
        let code = "mod a { use std::fs as f; fn g() { f::read(); } } fn h() { f::read(); }";
        let all = paths(code);
        assert!(all.contains(&"std::fs::read".to_owned()));
        assert!(all.contains(&"f::read".to_owned()));
    }

    #[test]
    fn test_files_are_named() {
        assert_eq!(usage("#[cfg(test)] mod tests;").test_modules, ["tests"]);
    }
}
