//! The test matrix names only scenarios that exist, and every scenario that exists.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeSet, fs, path::Path};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// `module::test` for each test of the real suite that is not ignored.
fn scenarios() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(root().join("crates/ccd-rig/tests/real")).unwrap() {
        let path = entry.unwrap().path();
        let module = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let mut attributes = Vec::new();
        for line in text.lines().map(str::trim) {
            if line.starts_with("#[") {
                attributes.push(line.to_owned());
                continue;
            }
            let name = line
                .strip_prefix("async fn ")
                .or_else(|| line.strip_prefix("fn "));
            let is_test = attributes
                .iter()
                .any(|a| a.contains("test]") || a.contains("test("));
            let ignored = attributes.iter().any(|a| a.starts_with("#[ignore"));
            if let Some(name) = name.filter(|_| is_test && !ignored) {
                found.insert(format!("{module}::{}", name.split('(').next().unwrap()));
            }
            attributes.clear();
        }
    }
    found
}

/// Every `module::test` between backticks.
fn named() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("docs/TEST-MATRIX.md")).unwrap();
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| is_name(word))
        .map(str::to_owned)
        .collect()
}

fn is_name(word: &str) -> bool {
    word.split_once("::").is_some_and(|(module, test)| {
        !test.is_empty()
            && [module, test]
                .iter()
                .all(|part| part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
    })
}

#[test]
fn the_matrix_and_the_real_suite_name_the_same_scenarios() {
    let (scenarios, named) = (scenarios(), named());
    assert!(
        scenarios.len() > 15,
        "only {} scenarios were found",
        scenarios.len()
    );
    let missing: Vec<_> = named.difference(&scenarios).collect();
    assert!(missing.is_empty(), "named, but not there: {missing:#?}");
    let unnamed: Vec<_> = scenarios.difference(&named).collect();
    assert!(unnamed.is_empty(), "there, but not named: {unnamed:#?}");
}
