//! The own rules of `check`, one module each. Each is a function from the tree and the architecture to findings.

mod clippy_rows;
mod edges;
mod environment;
mod exhaustive;
mod files;
mod internal_names;
mod manifests;
mod module_edges;
mod processes;
mod purity;
mod timers;
mod unsafe_code;
mod words;

use super::architecture::Architecture;
use super::finding::Finding;
use super::workspace::Workspace;

/// A rule: what it finds in a tree.
pub(crate) type Rule = fn(&Workspace, &Architecture) -> Vec<Finding>;

/// Every rule with the name that its findings carry, in the order of the report.
pub(crate) const RULES: [(&str, Rule); 13] = [
    ("edges", edges::check),
    ("manifests", manifests::check),
    ("module edges", module_edges::check),
    ("purity", purity::check),
    ("unsafe", unsafe_code::check),
    ("timers", timers::check),
    ("environment", environment::check),
    ("processes", processes::check),
    ("files", files::check),
    ("exhaustive", exhaustive::check),
    ("internal names", internal_names::check),
    ("clippy rows", clippy_rows::check),
    ("words", words::check),
];
