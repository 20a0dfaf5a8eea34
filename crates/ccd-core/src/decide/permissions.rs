//! Permission requests: binding, the policy, the handler's answer. Everything fails closed. Whether an answer had its effect is in `effects`.

use alloc::{boxed::Box, sync::Arc, vec::Vec};

use ccd_model::{
    command::{Accepted, Refusal},
    event::DomainEvent,
    fact::Source,
    ids::{HoldId, PermissionKey},
    intent::Intent,
    json::RawJson,
    lattice::Status,
    observation::AgentRef,
    permission::{DecidedBy, Decision, HandlerFailure},
    status::{PermissionStatus, ToolStatus},
};

use crate::{
    cx::Cx,
    deadlines::Row,
    decide::{agents, effects, interrupt, prompts, stop, tools, turns},
    evolve::{Change, PermissionChange, ToolChange},
    input::DiagnosticKind,
    permission_policy::{self, Verdict},
    reconcile::permission_binding::{self, Binding},
    state::Permission,
};

/// A permission request as the hook names it.
pub(crate) struct Request<'a> {
    pub(crate) name: &'a Arc<str>,
    pub(crate) input: &'a RawJson,
    pub(crate) agent: Option<&'a AgentRef>,
    pub(crate) prompt_id: &'a Arc<str>,
    pub(crate) suggestions: Option<&'a RawJson>,
}

/// PermissionRequest, held open by the hook thread.
pub(crate) fn asked(cx: &mut Cx<'_>, hold: HoldId, request: &Request<'_>) {
    if cx.s().ids.holds.contains_key(&hold) || cx.s().tombs.has(&alloc::format!("{hold}")) {
        cx.diag(DiagnosticKind::Duplicate, alloc::format!("hold {hold}"));
        return;
    }
    let main = request.agent.is_none();
    let mut turn = prompts::turn_of_hook(cx, request.prompt_id, main);
    if main
        && let Some(ended) = turn.filter(|key| cx.s().turn(*key).is_none_or(|t| t.status.ended()))
    {
        stop::went_on(cx, ended);
        turn = None;
    }
    let agent = request
        .agent
        .and_then(|agent| agents::ensure(cx, agent, turn));
    if main && let Some(turn) = turn {
        turns::continue_running(cx, turn);
    }
    let binding = permission_binding::bind(cx.s(), request.name, agent, request.input);
    let tool = match binding {
        Binding::One(tool) => Some(tool),
        Binding::None | Binding::Ambiguous => None,
    };
    let verdict = verdict(cx, request, turn, binding);
    let key = cx.s().counters.permission();
    cx.set(Change::OpenPermission(Box::new(Permission {
        key,
        hold,
        turn,
        tool,
        agent,
        name: request.name.clone(),
        input: request.input.clone(),
        suggestions: request.suggestions.cloned(),
        status: Status::new(PermissionStatus::Pending, Source::Hook),
        asks_handler: verdict == Verdict::Ask,
        decision: None,
        by: None,
        decided_at: None,
    })));
    if let Some(tool) = tool {
        cx.disarm(Row::ToolStart, tool.0);
        cx.tool(tool, ToolChange::Permission(Some(key)));
        cx.tool(
            tool,
            ToolChange::Advance(ToolStatus::AwaitingPermission, Source::Hook),
        );
    }
    let tool_use_id = tool
        .and_then(|tool| cx.s().tools.get(&tool))
        .map(|tool| tool.id.clone());
    cx.event(DomainEvent::PermissionRequested {
        permission: key,
        turn,
        tool,
        agent,
        tool_use_id,
        name: request.name.clone(),
        input: request.input.clone(),
        suggestions: request.suggestions.cloned(),
        asks_handler: verdict == Verdict::Ask,
    });
    match verdict {
        Verdict::Ask => cx.intent(Intent::AskHandler { permission: key }),
        Verdict::Interrupt => interrupt::deny(cx, key),
        Verdict::Decide(decision, by) => answer(cx, key, decision, by),
    }
}

/// What is to be done about a request; the first row that applies.
fn verdict(
    cx: &Cx<'_>,
    request: &Request<'_>,
    turn: Option<ccd_model::ids::TurnKey>,
    binding: Binding,
) -> Verdict {
    if cx.s().over() {
        return Verdict::Decide(Decision::deny("The session is closing."), DecidedBy::Close);
    }
    if request.agent.is_none() && interrupt::is_open_for(cx, turn) {
        return Verdict::Interrupt;
    }
    permission_policy::verdict(
        cx.config,
        request.name,
        request.input,
        binding == Binding::Ambiguous,
    )
}

/// Answers a held request, exactly once.
pub(crate) fn answer(cx: &mut Cx<'_>, key: PermissionKey, decision: Decision, by: DecidedBy) {
    let Some(permission) = cx.s().permissions.get(&key) else {
        return;
    };
    if permission.status.get() != PermissionStatus::Pending {
        return;
    }
    let (hold, tool, asks) = (permission.hold, permission.tool, permission.asks_handler);
    let allows = decision.allows();
    cx.intent(Intent::Answer {
        hold,
        decision: decision.clone(),
    });
    if asks && by != DecidedBy::Handler {
        cx.intent(Intent::CancelHandler { permission: key });
    }
    cx.permission(key, PermissionChange::Decide(decision, by));
    cx.permission(
        key,
        PermissionChange::Advance(PermissionStatus::Answered, Source::Own),
    );
    cx.arm(Row::Effect, key.0);
    if allows && let Some(tool) = tool {
        tools::runs(cx, tool, Source::Own);
    }
}

fn pending(cx: &Cx<'_>, key: PermissionKey) -> Result<(), Refusal> {
    let open = cx
        .s()
        .permissions
        .get(&key)
        .is_some_and(|p| p.status.get() == PermissionStatus::Pending && p.asks_handler);
    if open {
        Ok(())
    } else {
        Err(Refusal::NoSuchEntity)
    }
}

/// The handler's answer.
pub(crate) fn decided_by_handler(
    cx: &mut Cx<'_>,
    key: PermissionKey,
    decision: &Decision,
) -> Result<Accepted, Refusal> {
    pending(cx, key)?;
    answer(cx, key, decision.clone(), DecidedBy::Handler);
    Ok(Accepted::Done)
}

/// The handler gave no answer: denied.
pub(crate) fn handler_failed(
    cx: &mut Cx<'_>,
    key: PermissionKey,
    failure: HandlerFailure,
) -> Result<Accepted, Refusal> {
    pending(cx, key)?;
    let message = match failure {
        HandlerFailure::Panicked => "The permission handler failed.",
        HandlerFailure::TimedOut => "The permission handler did not answer in time.",
        HandlerFailure::Dropped => "The permission handler went away.",
        HandlerFailure::Missing => "There is no permission handler.",
    };
    answer(cx, key, Decision::deny(message), DecidedBy::HandlerFailure);
    Ok(Accepted::Done)
}

fn by_hold(cx: &mut Cx<'_>, hold: HoldId) -> Option<PermissionKey> {
    let key = cx.s().ids.holds.get(&hold).copied();
    if key.is_none() {
        cx.diag(DiagnosticKind::Late, alloc::format!("hold {hold}"));
    }
    key
}

/// The held hook's caller went away: a person pressed Escape in the dialog, or the tool was cut off. After our own answer it means nothing.
pub(crate) fn gone(cx: &mut Cx<'_>, hold: HoldId) {
    if let Some(key) = by_hold(cx, hold)
        && cx
            .s()
            .permissions
            .get(&key)
            .is_some_and(|p| p.status.get() == PermissionStatus::Pending)
    {
        let by = if cx.s().over() {
            DecidedBy::Close
        } else {
            DecidedBy::Keyboard
        };
        effects::abandon(cx, key, by);
    }
}

/// The hook thread denied a held request at its deadline.
pub(crate) fn expired(cx: &mut Cx<'_>, hold: HoldId) {
    let Some(key) = by_hold(cx, hold) else {
        return;
    };
    let Some(permission) = cx.s().permissions.get(&key) else {
        return;
    };
    if permission.status.get() != PermissionStatus::Pending {
        return;
    }
    if permission.asks_handler {
        cx.intent(Intent::CancelHandler { permission: key });
    }
    let decision = Decision::deny("No answer in time.");
    cx.permission(key, PermissionChange::Decide(decision, DecidedBy::Deadline));
    cx.permission(
        key,
        PermissionChange::Advance(PermissionStatus::Answered, Source::Hook),
    );
    cx.arm(Row::Effect, key.0);
}

/// Denies every held request.
pub(crate) fn deny_all(cx: &mut Cx<'_>, by: DecidedBy, message: &str) {
    let held: Vec<PermissionKey> = cx
        .s()
        .permissions_open()
        .filter(|p| p.status.get() == PermissionStatus::Pending)
        .map(|p| p.key)
        .collect();
    for key in held {
        answer(cx, key, Decision::deny(message), by);
    }
}
