//! What a named policy answers to a permission request. Fails closed: whatever no row allows is denied.

use alloc::{sync::Arc, vec::Vec};

use ccd_model::{
    json::RawJson,
    permission::{DecidedBy, Decision, Policy},
};
use serde_json::Value;

use crate::config::{CoreConfig, PathField};

/// What is to be done about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Answer it.
    Decide(Decision, DecidedBy),
    /// The caller's handler decides.
    Ask,
    /// Deny it together with the turn.
    Interrupt,
}

fn deny(message: &str, by: DecidedBy) -> Verdict {
    Verdict::Decide(Decision::deny(message), by)
}

/// Applies the policy. `ambiguous`: the request cannot be told apart from another one.
pub(crate) fn verdict(
    config: &CoreConfig,
    name: &Arc<str>,
    input: &RawJson,
    ambiguous: bool,
) -> Verdict {
    if config.vocabulary.question_tools.contains(name) {
        return deny(
            "Questions and plans are not supported in this session. Decide yourself and go on.",
            DecidedBy::Unsupported,
        );
    }
    match config.policy {
        Policy::Deny => deny("Denied by the session's policy.", DecidedBy::Policy),
        Policy::Ask => Verdict::Ask,
        Policy::AllowRead | Policy::DangerouslyAllowAll if ambiguous => deny(
            "The request cannot be told apart from another one.",
            DecidedBy::Ambiguous,
        ),
        Policy::DangerouslyAllowAll => Verdict::Decide(Decision::allow(), DecidedBy::Policy),
        Policy::AllowRead if reads_inside(config, name, input) => {
            Verdict::Decide(Decision::allow(), DecidedBy::Policy)
        }
        Policy::AllowRead => deny(
            "The session's policy allows only reading inside the workspace.",
            DecidedBy::Policy,
        ),
    }
}

fn reads_inside(config: &CoreConfig, name: &Arc<str>, input: &RawJson) -> bool {
    let Some(tool) = config
        .read_only_tools
        .iter()
        .find(|tool| tool.name == *name)
    else {
        return false;
    };
    let Some(Value::Object(input)) = input.value() else {
        return false;
    };
    tool.paths
        .iter()
        .all(|field| match input.get(&*field.field) {
            None | Some(Value::Null) => !field.required,
            Some(Value::String(path)) => inside(config, field, path),
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => false,
        })
}

/// Whether a path lies in a workspace root, by its letters: links are not followed.
fn inside(config: &CoreConfig, field: &PathField, path: &str) -> bool {
    if steps(path).any(|step| step == "..") || path.contains('\\') || path.starts_with('~') {
        return false;
    }
    if !path.starts_with('/') {
        return field.relative;
    }
    let steps_of_path: Vec<&str> = steps(path).collect();
    config.workspace_roots.iter().any(|root| {
        let root: Vec<&str> = steps(root).collect();
        !root.is_empty() && steps_of_path.starts_with(&root)
    })
}

fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter(|step| !step.is_empty() && *step != ".")
}
