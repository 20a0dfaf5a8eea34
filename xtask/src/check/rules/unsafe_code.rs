//! Rule `unsafe`: every crate forbids unsafe code, except in the listed folders.

use crate::check::architecture::{Architecture, covers};
use crate::check::finding::Finding;
use crate::check::workspace::Workspace;
use proc_macro2::{TokenStream, TokenTree};

const RULE: &str = "unsafe";

/// Compares crate roots and tokens with `[unsafe_code]`.
pub(crate) fn check(ws: &Workspace, arch: &Architecture) -> Vec<Finding> {
    let mut out = Vec::new();
    for member in &ws.members {
        let folders = arch.unsafe_code.get(&member.name);
        for source in &member.sources {
            if let Some(folders) = folders {
                if !folders.iter().any(|f| covers(f, &source.file)) {
                    for line in unsafe_lines(&source.text) {
                        let message = format!("`unsafe` outside {}", folders.join(", "));
                        out.push(Finding::new(RULE, &source.file, line, message));
                    }
                }
            } else if member.roots.contains(&source.file) && !forbids(&source.ast) {
                let message = "a crate root says `#![forbid(unsafe_code)]`";
                out.push(Finding::new(RULE, &source.file, 1, message));
            }
        }
    }
    out
}

fn forbids(file: &syn::File) -> bool {
    file.attrs.iter().any(|attr| {
        attr.path().is_ident("forbid")
            && attr
                .parse_args_with(
                    syn::punctuated::Punctuated::<syn::Path, syn::Token![,]>::parse_terminated,
                )
                .is_ok_and(|lints| lints.iter().any(|l| l.is_ident("unsafe_code")))
    })
}

fn unsafe_lines(text: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    if let Ok(stream) = text.parse::<TokenStream>() {
        collect(stream, &mut lines);
    }
    lines
}

fn collect(stream: TokenStream, lines: &mut Vec<usize>) {
    for token in stream {
        match token {
            TokenTree::Group(group) => collect(group.stream(), lines),
            TokenTree::Ident(ident) if ident == "unsafe" => {
                lines.push(ident.span().start().line);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::check;
    use crate::check::planted::{Planted, shown};

    const ARCH: &str = "[unsafe_code]\np = [\"crates/p/src/sys\"]\n";

    #[test]
    fn unsafe_in_the_listed_folder_passes() {
        let tree = Planted::new()
            .member("a", "")
            .library("p", "mod sys;")
            .file("crates/p/src/sys/mod.rs", "//! S.\nunsafe fn f() {}\n");
        assert_eq!(shown(&tree.judge(check, ARCH)), Vec::<String>::new());
    }

    #[test]
    fn a_crate_root_that_does_not_forbid_is_found() {
        for code in ["", "#![deny(unsafe_code)]", "#![forbid(missing_docs)]"] {
            let tree = Planted::new().library("a", code);
            let found = shown(&tree.judge(check, ARCH));
            let message = "crates/a/src/lib.rs:1 a crate root says `#![forbid(unsafe_code)]`";
            assert_eq!(found, [message], "{code}");
        }
    }

    #[test]
    fn a_program_is_a_crate_root_too() {
        let tree = Planted::new()
            .member("a", "")
            .file("crates/a/src/bin/x.rs", "//! X.\nfn main() {}\n");
        let found = shown(&tree.judge(check, ARCH));
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn unsafe_outside_the_folder_is_found() {
        for code in ["fn f() { unsafe { g() } }", "m! { unsafe fn g() {} }"] {
            let tree = Planted::new().library("p", code);
            let found = shown(&tree.judge(check, ARCH));
            assert_eq!(
                found,
                ["crates/p/src/lib.rs:2 `unsafe` outside crates/p/src/sys"]
            );
        }
    }
}
