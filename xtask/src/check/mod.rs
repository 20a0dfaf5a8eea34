//! `cargo xtask check`: the own rules, then the tools of the toolchain. Only the order and the report live here.

mod architecture;
mod finding;
mod imports;
#[cfg(test)]
mod planted;
mod rules;
mod tools;
mod usage;
mod workspace;

use crate::failure::{Failure, Outcome};
use architecture::Architecture;
use finding::Finding;
use std::path::Path;
use workspace::Workspace;

/// How one rule or tool ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing to say.
    Ok,
    /// Something is wrong; the details are printed already.
    Fail,
    /// It could not be asked, for this reason; not a failure.
    Skipped(String),
}

/// Runs the check on the workspace at `root`. `fast` leaves out the tools.
pub(crate) fn run(root: &Path, fast: bool) -> Outcome<()> {
    let workspace = Workspace::load(root)?;
    let architecture = Architecture::load(root)?;
    let mut report = vec![("sources", print_all(&workspace.broken))];
    for (name, rule) in rules::RULES {
        let mut findings = rule(&workspace, &architecture);
        findings.sort();
        findings.dedup();
        report.push((name, print_all(&findings)));
    }
    if !fast {
        report.extend(tools::run(&workspace));
    }
    println!();
    for (name, verdict) in &report {
        match verdict {
            Verdict::Ok => println!("  ok       {name}"),
            Verdict::Fail => println!("  FAIL     {name}"),
            Verdict::Skipped(why) => println!("  skipped  {name}: {why}"),
        }
    }
    let failed = report.iter().filter(|(_, v)| *v == Verdict::Fail).count();
    if failed > 0 {
        let message = format!("check: FAILED, {failed} of {} rules", report.len());
        return Err(Failure::new(message));
    }
    let passed = report.iter().filter(|(_, v)| *v == Verdict::Ok).count();
    println!(
        "check: ok, {passed} rules, {} skipped",
        report.len() - passed
    );
    Ok(())
}

fn print_all(findings: &[Finding]) -> Verdict {
    for finding in findings {
        println!("{finding}");
    }
    match findings.iter().any(|f| !f.note) {
        true => Verdict::Fail,
        false => Verdict::Ok,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::planted::Planted;
    use super::{rules, run};

    fn planted(architecture: &str, code: &str) -> Planted {
        let tree = Planted::new()
            .library("a", code)
            .file("architecture.toml", architecture);
        let git = std::process::Command::new("git")
            .args(["init", "--quiet"])
            .current_dir(tree.root())
            .status()
            .unwrap();
        assert!(git.success());
        tree
    }

    const ARCH: &str = "[layers]\na = []\n[external]\na = []\n";

    #[test]
    fn a_clean_tree_passes_and_a_planted_violation_fails() {
        let clean = planted(ARCH, "#![forbid(unsafe_code)]");
        run(clean.root(), true).unwrap();
        let failure = run(planted(ARCH, "").root(), true).unwrap_err();
        assert_eq!(failure.code, 1);
        assert_eq!(failure.message, "check: FAILED, 1 of 14 rules");
    }

    #[test]
    fn a_source_that_does_not_parse_fails() {
        let tree = planted(ARCH, "#![forbid(unsafe_code)]\nfn f( {");
        assert!(run(tree.root(), true).is_err());
    }

    #[test]
    fn an_unknown_key_in_the_table_fails() {
        let tree = planted("[layer]\na = []\n", "#![forbid(unsafe_code)]");
        let message = run(tree.root(), true).unwrap_err().message;
        assert!(message.contains("unknown field `layer`"), "{message}");
    }

    #[test]
    fn rules_carry_their_own_names() {
        let tree = planted("", "use std::env::vars;\nenum E {}").load();
        let architecture = toml::from_str("").unwrap();
        for (name, rule) in rules::RULES {
            for finding in rule(&tree, &architecture) {
                assert_eq!(finding.rule, name);
            }
        }
    }
}
