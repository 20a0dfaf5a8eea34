//! Rule `manifests`: `public = true` stands only where it is listed, and every crate takes the workspace lints.

use super::edges::line_of;
use crate::check::architecture::Architecture;
use crate::check::finding::Finding;
use crate::check::workspace::{Member, Workspace};
use std::collections::BTreeSet;

const RULE: &str = "manifests";

/// Compares the manifests with `[public_dependencies]` and the common rows.
pub(crate) fn check(ws: &Workspace, arch: &Architecture) -> Vec<Finding> {
    let mut out = Vec::new();
    for name in arch.public_dependencies.keys() {
        if !ws.members.iter().any(|m| m.name == *name) {
            let message = format!("{name} is listed in [public_dependencies] and does not exist");
            out.push(Finding::new(RULE, "architecture.toml", 0, message));
        }
    }
    for member in &ws.members {
        match toml::from_str::<toml::Table>(&member.manifest_text) {
            Ok(manifest) => judge(member, &manifest, arch, &mut out),
            Err(error) => out.push(Finding::new(RULE, &member.manifest, 0, error.to_string())),
        }
    }
    out
}

fn judge(member: &Member, manifest: &toml::Table, arch: &Architecture, out: &mut Vec<Finding>) {
    let mut add = |line: usize, message: String| {
        out.push(Finding::new(RULE, &member.manifest, line, message));
    };
    let lints = manifest
        .get("lints")
        .and_then(|l| l.get("workspace"))
        .and_then(toml::Value::as_bool);
    if lints != Some(true) {
        add(0, "a crate says `[lints] workspace = true`".to_owned());
    }
    let mut public = BTreeSet::new();
    dependencies_marked_public(manifest, &mut public);
    let listed = arch.public_dependencies.get(&member.name);
    for name in &public {
        if !listed.is_some_and(|l| l.contains(name)) {
            let line = line_of(&member.manifest_text, name);
            add(line, format!("`public = true` on {name} is not listed"));
        }
    }
    for name in listed.into_iter().flatten() {
        if !public.contains(name) {
            let line = line_of(&member.manifest_text, name);
            add(
                line,
                format!("{name} is listed as public: say `public = true`"),
            );
        }
    }
}

/// Looks into every dependency table, also those under `[target]`.
fn dependencies_marked_public(table: &toml::Table, out: &mut BTreeSet<String>) {
    for (key, value) in table {
        let Some(inner) = value.as_table() else {
            continue;
        };
        if key.ends_with("dependencies") {
            for (name, dependency) in inner {
                let public = dependency.get("public").and_then(toml::Value::as_bool);
                if public == Some(true) {
                    out.insert(name.clone());
                }
            }
        } else {
            dependencies_marked_public(inner, out);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::check;
    use crate::check::planted::{Planted, shown};

    const ARCH: &str = "[public_dependencies]\na = [\"serde\"]\n";
    const PUBLIC: &str = "[dependencies]\nserde = { version = \"1\", public = true }\n";

    #[test]
    fn the_listed_public_dependency_passes() {
        let tree = Planted::new().member("a", PUBLIC);
        assert_eq!(shown(&tree.judge(check, ARCH)), Vec::<String>::new());
    }

    #[test]
    fn a_public_dependency_that_is_not_listed_is_found() {
        for rest in [
            PUBLIC,
            "[dependencies.serde]\nversion = \"1\"\npublic = true\n",
            "[target.'cfg(unix)'.dependencies]\nserde = { version = \"1\", public = true }\n",
        ] {
            let tree = Planted::new().member("a", PUBLIC).member("b", rest);
            let found = shown(&tree.judge(check, ARCH));
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(
                found.iter().all(|f| f.contains("on serde is not listed")),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_listed_dependency_that_is_not_public_is_found() {
        let tree = Planted::new().member("a", "[dependencies]\nserde = \"1\"\n");
        let found = shown(&tree.judge(check, ARCH));
        assert_eq!(
            found,
            ["crates/a/Cargo.toml:10 serde is listed as public: say `public = true`"]
        );
    }

    #[test]
    fn a_crate_without_the_workspace_lints_is_found() {
        let manifest = "[package]\nname = \"b\"\nversion = \"0.0.0\"\nedition = \"2024\"\n";
        let tree = Planted::new()
            .member("a", PUBLIC)
            .library("b", "")
            .file("crates/b/Cargo.toml", manifest);
        let found = shown(&tree.judge(check, ARCH));
        assert_eq!(
            found,
            ["crates/b/Cargo.toml:0 a crate says `[lints] workspace = true`"]
        );
    }
}
