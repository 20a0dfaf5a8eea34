//! `cargo xtask setup`: the programs that tests and demo need, and the pinned Claude Code. Idempotent.

mod claude;
mod integrity;
mod pin;
mod tools;

use crate::failure::Outcome;
use std::path::{Path, PathBuf};

/// Makes everything ready and gives back the path of the pinned Claude Code. Quick when all is there.
pub(crate) fn ensure(root: &Path) -> Outcome<PathBuf> {
    ensure_tools()?;
    claude::ensure(root)
}

/// Makes only the system programs ready.
pub(crate) fn ensure_tools() -> Outcome<()> {
    tools::ensure()
}
