//! Whether an answer to a permission request had its effect. The answer alone proves nothing: a request is resolved when its effect was seen,
//! and left to the dialog when the dialog still stands.

use alloc::{sync::Arc, vec::Vec};

use ccd_model::{
    event::{Alert, DomainEvent},
    ids::{AgentKey, PermissionKey},
    intent::Intent,
    observation::RegistryStatus,
    permission::DecidedBy,
    screen::Surface,
    status::PermissionStatus,
};

use crate::{
    cx::Cx,
    deadlines::Row,
    evolve::{PermissionChange, ToolChange},
    input::DiagnosticKind,
    state::{Domain, Permission},
};

/// Ends a request. The only place where permission requests end.
pub(crate) fn end(cx: &mut Cx<'_>, key: PermissionKey, to: PermissionStatus, by: DecidedBy) {
    let Some(permission) = cx
        .s()
        .permissions
        .get(&key)
        .filter(|p| !p.status.ended())
        .cloned()
    else {
        return;
    };
    cx.disarm(Row::Effect, key.0);
    if permission.asks_handler && permission.decision.is_none() {
        cx.intent(Intent::CancelHandler { permission: key });
    }
    if let Some(tool) = permission.tool {
        let bound = cx
            .s()
            .tools
            .get(&tool)
            .is_some_and(|tool| tool.permission == Some(key));
        if bound {
            cx.tool(tool, ToolChange::Permission(None));
        }
    }
    let source = cx.source;
    cx.permission(key, PermissionChange::Advance(to, source));
    cx.event(DomainEvent::PermissionResolved {
        permission: key,
        status: to,
        decision: permission.decision,
        by: permission.by.unwrap_or(by),
    });
}

fn resolve(cx: &mut Cx<'_>, key: PermissionKey) {
    end(cx, key, PermissionStatus::Resolved, DecidedBy::Keyboard);
}

/// The request went away without our answer.
pub(crate) fn abandon(cx: &mut Cx<'_>, key: PermissionKey, by: DecidedBy) {
    end(cx, key, PermissionStatus::Abandoned, by);
}

/// The tool of a request moved on: our answer had its effect, or a person chose at the dialog first.
pub(crate) fn tool_moved(cx: &mut Cx<'_>, key: PermissionKey) {
    match cx.s().permissions.get(&key).map(|p| p.status.get()) {
        Some(PermissionStatus::Pending) => abandon(cx, key, DecidedBy::Keyboard),
        Some(PermissionStatus::Answered | PermissionStatus::DialogOnly) => resolve(cx, key),
        Some(
            PermissionStatus::Resolved | PermissionStatus::Abandoned | PermissionStatus::Unknown,
        )
        | None => {}
    }
}

fn answered(d: &Domain, pred: impl Fn(&Permission) -> bool) -> Vec<PermissionKey> {
    d.permissions_open()
        .filter(|p| {
            matches!(
                p.status.get(),
                PermissionStatus::Answered | PermissionStatus::DialogOnly
            ) && pred(p)
        })
        .map(|p| p.key)
        .collect()
}

/// The model goes on (the batch is complete, or a request left): denials and requests without a tool have had their effect.
pub(crate) fn next_step(cx: &mut Cx<'_>, agent: Option<AgentKey>) {
    let settled = answered(cx.s(), |p| {
        p.agent == agent && (p.tool.is_none() || p.decision.as_ref().is_some_and(|d| !d.allows()))
    });
    for key in settled {
        resolve(cx, key);
    }
}

fn dialog(d: &Domain) -> bool {
    matches!(
        d.surface(),
        Some(
            Surface::PermissionDialog { .. }
                | Surface::QuestionDialog { .. }
                | Surface::PlanDialog { .. }
        )
    )
}

/// The registry left `waiting` and the screen shows no dialog, both after the answer: Claude went on.
fn went_on(d: &Domain, permission: &Permission) -> bool {
    let Some(decided_at) = permission.decided_at else {
        return false;
    };
    let registry = d.registry.as_ref().is_some_and(|registry| {
        registry.at > decided_at && registry.status == RegistryStatus::Busy
    });
    let screen = d
        .screen
        .as_ref()
        .is_some_and(|seen| seen.at > decided_at && seen.facts.surface == Surface::Main);
    registry && screen
}

/// A capture or the registry: looks whether an allowed request has had its effect.
pub(crate) fn review(cx: &mut Cx<'_>) {
    if cx.s().open_permissions.is_empty() {
        return;
    }
    let settled = answered(cx.s(), |p| {
        p.decision
            .as_ref()
            .is_some_and(ccd_model::permission::Decision::allows)
            && went_on(cx.s(), p)
    });
    for key in settled {
        resolve(cx, key);
    }
}

/// The answer had no visible effect within the limit.
pub(crate) fn deadline(cx: &mut Cx<'_>, key: PermissionKey) {
    let Some(permission) = cx
        .s()
        .permissions
        .get(&key)
        .filter(|p| p.status.get() == PermissionStatus::Answered)
    else {
        return;
    };
    let decided_at = permission.decided_at;
    let seen_after = cx
        .s()
        .screen
        .as_ref()
        .is_some_and(|seen| Some(seen.at) > decided_at);
    let busy = cx.s().registry_is_busy();
    if seen_after && dialog(cx.s()) && cx.s().screen_stable() {
        let source = cx.source;
        cx.permission(
            key,
            PermissionChange::Advance(PermissionStatus::DialogOnly, source),
        );
        cx.event(DomainEvent::Alert(Alert::AnswerWithoutEffect {
            permission: key,
        }));
    } else if seen_after && busy && cx.s().surface() == Some(&Surface::Main) {
        resolve(cx, key);
    } else {
        end(cx, key, PermissionStatus::Unknown, DecidedBy::Deadline);
    }
}

/// The transcript names the tool of a decision that a hook made.
pub(crate) fn in_transcript(cx: &mut Cx<'_>, tool_use_id: &Arc<str>, allow: bool) {
    let tool = cx.s().ids.tools.get(tool_use_id).copied();
    let name = tool
        .and_then(|tool| cx.s().tools.get(&tool))
        .map(|tool| (tool.name.clone(), tool.agent));
    let bound = answered(cx.s(), |p| p.tool.is_some() && p.tool == tool);
    let unbound = answered(cx.s(), |p| {
        p.tool.is_none() && Some((p.name.clone(), p.agent)) == name
    });
    let key = match (bound.as_slice(), unbound.as_slice()) {
        ([key], _) => *key,
        ([], [key]) => {
            if let Some(tool) = tool {
                cx.permission(*key, PermissionChange::Bind(tool));
            }
            *key
        }
        (_, _) => return,
    };
    let agrees = cx
        .s()
        .permissions
        .get(&key)
        .and_then(|p| p.decision.as_ref())
        .is_some_and(|decision| decision.allows() == allow);
    if agrees {
        resolve(cx, key);
    } else {
        cx.diag(DiagnosticKind::Conflict, tool_use_id.clone());
    }
}
