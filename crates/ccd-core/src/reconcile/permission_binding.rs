//! Binds a permission request, which carries no tool id, to the tool call that it is about: same tool name, same agent, structurally equal input.

use ccd_model::{
    ids::{AgentKey, ToolKey},
    json::{RawJson, canonical_eq},
    status::ToolStatus,
};

use crate::state::Domain;

/// What fits a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binding {
    /// Exactly one tool call.
    One(ToolKey),
    /// None: the call was not reported, or its input was rewritten.
    None,
    /// More than one: the request cannot be told apart and is never allowed automatically.
    Ambiguous,
}

/// Looks for the tool calls that fit.
pub(crate) fn bind(d: &Domain, name: &str, agent: Option<AgentKey>, input: &RawJson) -> Binding {
    let asked = input.value();
    let mut fits = d.open_tools.iter().filter(|key| {
        d.tools.get(key).is_some_and(|tool| {
            matches!(
                tool.status.get(),
                ToolStatus::Proposed
                    | ToolStatus::Pending
                    | ToolStatus::Running
                    | ToolStatus::AwaitingPermission
            ) && *tool.name == *name
                && tool.agent == agent
                && same(&asked, input, &tool.input)
        })
    });
    match (fits.next(), fits.next()) {
        (Some(only), None) => {
            let free = d
                .tools
                .get(only)
                .is_some_and(|tool| tool.permission.is_none());
            if free {
                Binding::One(*only)
            } else {
                Binding::Ambiguous
            }
        }
        (Some(_), Some(_)) => Binding::Ambiguous,
        (None, _) => Binding::None,
    }
}

fn same(asked: &Option<serde_json::Value>, raw: &RawJson, other: &RawJson) -> bool {
    if raw == other {
        return true;
    }
    match (asked, other.value()) {
        (Some(a), Some(b)) => canonical_eq(a, &b),
        (Some(_) | None, _) => false,
    }
}
