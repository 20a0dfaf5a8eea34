//! Standard error: what goes on, for a person. Denials are always told; the rest only on a terminal.

use ccd_api::{Event, EventKind, PermissionDecision};

use crate::output::{self, printable};

/// Prints progress lines.
pub(crate) struct Progress {
    pub(crate) terminal: bool,
}

impl Progress {
    /// Tells about one event, if there is something to tell.
    pub(crate) fn event(&self, event: &Event) {
        let line = match &event.kind {
            EventKind::PermissionResolved {
                tool_name,
                decision: Some(PermissionDecision::Deny { message, .. }),
                ..
            } => Some(format!(
                "denied {}: {}",
                printable(tool_name),
                printable(message)
            )),
            EventKind::AlertRaised { alert, message } => {
                Some(format!("alert {alert:?}: {}", printable(message)))
            }
            EventKind::ModelCallRetrying {
                attempt,
                max_attempts,
                delay_s,
                reason,
                ..
            } => self.if_terminal(|| {
                format!(
                    "retrying in {delay_s} s, attempt {attempt} of {max_attempts}: {}",
                    printable(reason)
                )
            }),
            EventKind::ModelCallStalled { evidence, .. } => {
                self.if_terminal(|| format!("the model call is silent: {}", printable(evidence)))
            }
            EventKind::ToolStarted { name, .. } => {
                self.if_terminal(|| format!("tool {}", printable(name)))
            }
            EventKind::SessionReady { .. } => self.if_terminal(|| "ready".to_owned()),
            _ => None,
        };
        if let Some(line) = line {
            output::tell(&format!("ccd: {line}"));
        }
    }

    fn if_terminal(&self, line: impl FnOnce() -> String) -> Option<String> {
        self.terminal.then(line)
    }
}
