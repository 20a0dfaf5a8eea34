//! Rule `edges`: which crate depends on which, from the declared dependencies.

use crate::check::architecture::Architecture;
use crate::check::finding::Finding;
use crate::check::workspace::{Member, Workspace};
use std::collections::{BTreeMap, BTreeSet};

const RULE: &str = "edges";

/// Compares the declared dependencies with `[layers]`, `[dev_only]` and `[external]`, and finds cycles.
pub(crate) fn check(ws: &Workspace, arch: &Architecture) -> Vec<Finding> {
    let mut out = Vec::new();
    for member in &ws.members {
        declared(member, arch, &mut out);
    }
    let names: BTreeSet<&str> = ws.members.iter().map(|m| m.name.as_str()).collect();
    for name in arch.layers.keys().chain(arch.external.keys()) {
        if !names.contains(name.as_str()) {
            let message = format!("{name} is listed and is not a crate of the workspace");
            out.push(Finding::new(RULE, "architecture.toml", 0, message));
        }
    }
    cycles(ws, &mut out);
    out
}

fn declared(member: &Member, arch: &Architecture, out: &mut Vec<Finding>) {
    let name = &member.name;
    let mut add = |dependency: &str, message: String| {
        let line = line_of(&member.manifest_text, dependency);
        out.push(Finding::new(RULE, &member.manifest, line, message));
    };
    let layer = arch.layers.get(name);
    let external = arch.external.get(name);
    if layer.is_none() {
        add(name, format!("{name} is missing from [layers]"));
    }
    if external.is_none() {
        add(name, format!("{name} is missing from [external]"));
    }
    let for_tests = arch.dev_only.crates.contains(name);
    for dependency in &member.dependencies {
        let other = &dependency.name;
        if dependency.renamed {
            add(other, format!("{name} renames {other}: rules see names"));
        }
        if !dependency.shipped {
            continue;
        }
        if dependency.internal && arch.dev_only.crates.contains(other) && !for_tests {
            add(other, format!("{other} may only be a dev-dependency"));
        } else if dependency.internal && !permits(layer, other) {
            add(other, format!("{name} may not depend on {other}"));
        } else if !dependency.internal && !permits(external, other) {
            add(
                other,
                format!("{name} may not depend on the third-party crate {other}"),
            );
        }
    }
}

fn permits(list: Option<&Vec<String>>, name: &str) -> bool {
    list.is_none_or(|list| list.iter().any(|entry| entry == "*" || entry == name))
}

/// The line of a manifest that names a dependency; 0 when none does.
pub(crate) fn line_of(manifest: &str, name: &str) -> usize {
    let at = manifest.lines().position(|line| {
        let line = line.trim_start().trim_start_matches("[dependencies.");
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with([' ', '=', '.', ']']))
    });
    at.map_or(0, |index| index + 1)
}

fn cycles(ws: &Workspace, out: &mut Vec<Finding>) {
    let graph: BTreeMap<&str, Vec<&str>> = ws
        .members
        .iter()
        .map(|m| {
            let edges = m.dependencies.iter().filter(|d| d.internal && d.shipped);
            (m.name.as_str(), edges.map(|d| d.name.as_str()).collect())
        })
        .collect();
    let mut done = BTreeSet::new();
    for name in graph.keys() {
        walk(name, &graph, &mut Vec::new(), &mut done, out);
    }
}

fn walk<'a>(
    name: &'a str,
    graph: &BTreeMap<&'a str, Vec<&'a str>>,
    trail: &mut Vec<&'a str>,
    done: &mut BTreeSet<&'a str>,
    out: &mut Vec<Finding>,
) {
    if let Some(start) = trail.iter().position(|t| *t == name) {
        let mut ring: Vec<&str> = trail.iter().skip(start).copied().collect();
        ring.push(name);
        let message = format!("crates depend on each other: {}", ring.join(" -> "));
        out.push(Finding::new(RULE, "Cargo.toml", 0, message));
        return;
    }
    if !done.insert(name) {
        return;
    }
    trail.push(name);
    for next in graph.get(name).into_iter().flatten() {
        walk(next, graph, trail, done, out);
    }
    trail.pop();
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::check;
    use crate::check::planted::{Planted, shown};

    const ARCH: &str = "[layers]\na = []\nb = [\"a\"]\nt = [\"*\"]\n[external]\na = []\nb = [\"serde\"]\nt = [\"*\"]\n[dev_only]\ncrates = [\"t\"]\n";

    fn three(a: &str, b: &str, t: &str) -> Vec<String> {
        let tree = Planted::new().member("a", a).member("b", b).member("t", t);
        shown(&tree.judge(check, ARCH))
    }

    #[test]
    fn the_listed_edges_pass() {
        let b = "[dependencies]\na = { path = \"../a\" }\nserde = \"1\"\n[dev-dependencies]\nt = { path = \"../t\" }\nregex = \"1\"\n";
        let t = "[dependencies]\na = { path = \"../a\" }\nregex = \"1\"\n";
        assert_eq!(three("", b, t), Vec::<String>::new());
    }

    #[test]
    fn an_edge_outside_the_table_is_found() {
        let found = three("[dependencies]\nb = { path = \"../b\" }\n", "", "");
        assert_eq!(found, ["crates/a/Cargo.toml:10 a may not depend on b"]);
    }

    #[test]
    fn a_test_crate_as_a_normal_dependency_is_found() {
        let found = three("", "[dependencies]\nt = { path = \"../t\" }\n", "");
        assert_eq!(
            found,
            ["crates/b/Cargo.toml:10 t may only be a dev-dependency"]
        );
    }

    #[test]
    fn a_third_party_crate_outside_the_list_is_found() {
        let found = three("[build-dependencies]\nserde = \"1\"\n", "", "");
        assert_eq!(
            found,
            ["crates/a/Cargo.toml:10 a may not depend on the third-party crate serde"]
        );
    }

    #[test]
    fn a_cycle_is_found() {
        let found = three(
            "[dependencies]\nb = { path = \"../b\" }\n",
            "[dependencies]\na = { path = \"../a\" }\n",
            "",
        );
        assert!(
            found.contains(&"Cargo.toml:0 crates depend on each other: a -> b -> a".to_owned()),
            "{found:?}"
        );
    }

    #[test]
    fn a_crate_outside_the_table_is_found() {
        let tree = Planted::new().member("a", "").member("new", "");
        let found = shown(&tree.judge(check, "[layers]\na = []\n[external]\na = []\n"));
        assert_eq!(
            found,
            [
                "crates/new/Cargo.toml:0 new is missing from [layers]",
                "crates/new/Cargo.toml:0 new is missing from [external]"
            ]
        );
    }

    #[test]
    fn a_table_row_without_a_crate_is_found() {
        let tree = Planted::new().member("a", "");
        let found = shown(&tree.judge(check, "[layers]\na = []\ngone = []\n[external]\na = []\n"));
        assert_eq!(
            found,
            ["architecture.toml:0 gone is listed and is not a crate of the workspace"]
        );
    }

    #[test]
    fn a_renamed_dependency_is_found() {
        let found = three(
            "",
            "[dependencies]\ns = { package = \"serde\", version = \"1\" }\n",
            "",
        );
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found.iter().all(|f| f.contains("b renames serde")),
            "{found:?}"
        );
    }
}
