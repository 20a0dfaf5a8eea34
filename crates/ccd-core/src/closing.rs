//! Closing rules: nothing open outlives its container. Inner things end first; a background agent and its tools outlive the turn that started them.

use alloc::{sync::Arc, vec::Vec};

use ccd_model::{
    ids::{AgentKey, CallKey, PermissionKey, ToolKey, TurnKey},
    outcome::Outcome,
    permission::{DecidedBy, Decision},
    status::{CallStatus, PermissionStatus, ToolStatus, TurnStatus},
};

use crate::{
    cx::Cx,
    decide::{agents, close, effects, model_calls, permissions, tools, turns},
    evolve::SessionChange,
    input_policy::{jobs, jobs_end},
    state::{Call, Permission},
};

/// How open calls of a turn end with it.
fn calls_end(outcome: &Outcome) -> CallStatus {
    match outcome {
        Outcome::Completed => CallStatus::Ended,
        Outcome::Failed { .. } => CallStatus::Failed,
        Outcome::Interrupted | Outcome::Withdrawn | Outcome::Aborted { .. } => CallStatus::Aborted,
        Outcome::NotSubmitted(_) | Outcome::Unknown { .. } => CallStatus::Unknown,
    }
}

fn status_of(outcome: &Outcome) -> TurnStatus {
    match outcome {
        Outcome::Interrupted => TurnStatus::Interrupted,
        Outcome::Withdrawn => TurnStatus::Withdrawn,
        Outcome::Completed
        | Outcome::Failed { .. }
        | Outcome::NotSubmitted(_)
        | Outcome::Aborted { .. }
        | Outcome::Unknown { .. } => TurnStatus::Unknown,
    }
}

/// A turn ends: so do its main-thread tools, requests and calls.
pub(crate) fn turn(cx: &mut Cx<'_>, key: TurnKey, outcome: &Outcome) {
    let ended = status_of(outcome);
    permissions_end(cx, ended == TurnStatus::Interrupted, |p| {
        p.agent.is_none() && p.turn == Some(key)
    });
    let (to, why) = tools::left_open(ended);
    let open: Vec<ToolKey> = cx.s().tools_where(|tool| {
        tool.agent.is_none() && tool.turn == Some(key) && tool.status.get() != ToolStatus::Launched
    });
    for tool in open {
        tools::end(cx, tool, to, why, None);
    }
    calls_close(cx, calls_end(outcome), |call| {
        call.agent.is_none() && call.turn == Some(key)
    });
}

/// A subagent ends: so do its tools, requests and calls.
pub(crate) fn agent(cx: &mut Cx<'_>, key: AgentKey, known: bool) {
    permissions_end(cx, false, |p| p.agent == Some(key));
    let open = cx
        .s()
        .tools_where(|tool| tool.agent == Some(key) && tool.status.get() != ToolStatus::Launched);
    for tool in open {
        tools::end(
            cx,
            tool,
            ToolStatus::Unknown,
            "the agent ended without its result",
            None,
        );
    }
    let to = if known {
        CallStatus::Ended
    } else {
        CallStatus::Unknown
    };
    calls_close(cx, to, |call| call.agent == Some(key));
}

fn calls_close(cx: &mut Cx<'_>, to: CallStatus, of: impl Fn(&Call) -> bool) {
    let open: Vec<CallKey> = cx
        .s()
        .calls
        .values()
        .filter(|call| of(call))
        .map(|call| call.key)
        .collect();
    for call in open {
        model_calls::end(cx, call, to);
    }
}

/// Requests end with their container: a held one is denied, so that nothing stays held; an answered one counts as resolved when the
/// container ended the way that the answer asked for.
fn permissions_end(cx: &mut Cx<'_>, interrupted: bool, of: impl Fn(&Permission) -> bool) {
    let open: Vec<PermissionKey> = cx
        .s()
        .permissions_open()
        .filter(|p| of(p))
        .map(|p| p.key)
        .collect();
    for key in open {
        let Some(permission) = cx.s().permissions.get(&key) else {
            continue;
        };
        match permission.status.get() {
            PermissionStatus::Pending => {
                let decision = Decision::deny("What asked for this has ended.");
                permissions::answer(cx, key, decision, DecidedBy::Close);
                effects::abandon(cx, key, DecidedBy::Close);
            }
            PermissionStatus::Answered | PermissionStatus::DialogOnly => {
                let asked = matches!(
                    permission.decision,
                    Some(Decision::Deny {
                        interrupt: true,
                        ..
                    })
                );
                let to = if interrupted && asked {
                    PermissionStatus::Resolved
                } else {
                    PermissionStatus::Unknown
                };
                effects::end(cx, key, to, DecidedBy::Close);
            }
            PermissionStatus::Resolved
            | PermissionStatus::Abandoned
            | PermissionStatus::Unknown => {}
        }
    }
}

/// The process ends: so does everything. Held requests went away with their callers.
pub(crate) fn session(cx: &mut Cx<'_>, reason: &Arc<str>) {
    let held: Vec<PermissionKey> = cx
        .s()
        .permissions_open()
        .filter(|p| p.status.get() == PermissionStatus::Pending)
        .map(|p| p.key)
        .collect();
    for key in held {
        effects::abandon(cx, key, DecidedBy::Close);
    }
    if let Some(job) = cx.s().job.clone() {
        jobs_end::drop_and_disarm(cx);
        if let Some(turn) = jobs::prompt_of(&job).filter(|_| !job.may_have_entered()) {
            let outcome = close::outcome_at_exit(TurnStatus::Queued, reason);
            turns::end(cx, turn, outcome, None);
        }
    }
    let d = cx.s();
    let open_turns: Vec<TurnKey> = d.open_turns.iter().chain(&d.queue).copied().collect();
    for key in open_turns {
        if let Some(status) = cx.s().turn(key).map(|turn| turn.status.get()) {
            turns::end(cx, key, close::outcome_at_exit(status, reason), None);
        }
    }
    let open_agents: Vec<AgentKey> = cx.s().open_agents.iter().copied().collect();
    for key in open_agents {
        agents::end(cx, key, false, &Arc::from(""));
    }
    permissions_end(cx, false, |_| true);
    for key in cx.s().tools_where(|_| true) {
        tools::end(cx, key, ToolStatus::Unknown, "the process ended", None);
    }
    calls_close(cx, CallStatus::Aborted, |_| true);
    cx.session(SessionChange::Background(
        alloc::collections::BTreeMap::new(),
    ));
    let unsettled: Vec<TurnKey> = cx
        .s()
        .ended_turns
        .iter()
        .filter(|key| cx.s().turn(**key).is_some_and(|turn| !turn.settled))
        .copied()
        .collect();
    for key in unsettled {
        turns::settle(cx, key, false);
    }
}
