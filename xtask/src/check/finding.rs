//! What a rule reports. No rule and no printing order.

use std::fmt;

/// One difference between the tree and a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// The name of the rule.
    pub(crate) rule: &'static str,
    /// The file, relative to the root of the workspace.
    pub(crate) file: String,
    /// The line, from 1; 0 where the finding is about the whole file.
    pub(crate) line: usize,
    /// What is wrong and what is right.
    pub(crate) message: String,
    /// A note is printed and does not fail the check.
    pub(crate) note: bool,
}

impl Finding {
    /// A finding that fails the check.
    pub(crate) fn new(
        rule: &'static str,
        file: impl Into<String>,
        line: usize,
        message: impl Into<String>,
    ) -> Self {
        Self {
            rule,
            file: file.into(),
            line,
            message: message.into(),
            note: false,
        }
    }

    /// A finding that is only printed.
    pub(crate) fn note(
        rule: &'static str,
        file: impl Into<String>,
        line: usize,
        message: impl Into<String>,
    ) -> Self {
        Self {
            note: true,
            ..Self::new(rule, file, line, message)
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.note { "note" } else { "error" };
        write!(f, "{kind}[{}] {}", self.rule, self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}", self.message)
    }
}
