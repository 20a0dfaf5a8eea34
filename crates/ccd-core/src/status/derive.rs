//! The derived agent status (first match wins) and quiescence. Both cost the same whatever the number of turns.

use alloc::sync::Arc;

use ccd_model::status::{
    AgentStatus, CallPhase, CallStatus, Lifecycle, PermissionStatus, ToolStatus, TurnStatus,
};

use crate::{
    decide::screen,
    state::{Call, Domain},
};

/// What the agent is doing now.
pub(crate) fn status(d: &Domain) -> AgentStatus {
    match d.life() {
        Lifecycle::Exited => return AgentStatus::Exited,
        Lifecycle::Starting => return AgentStatus::Starting,
        Lifecycle::Ready | Lifecycle::Closing => {}
    }
    let waits = d.permissions_open().any(|p| {
        matches!(
            p.status.get(),
            PermissionStatus::Pending | PermissionStatus::DialogOnly
        )
    });
    if waits {
        return AgentStatus::AwaitingPermission;
    }
    let dialog = d.surface().and_then(screen::waiting_dialog).is_some();
    if dialog && d.screen_stable() && d.open_permissions.is_empty() {
        return AgentStatus::AwaitingInput;
    }
    if d.interrupt.is_some() {
        return AgentStatus::Interrupting;
    }
    let logged_out = d.screen.as_ref().is_some_and(|seen| seen.facts.logged_out);
    if d.session.auth_failed || logged_out {
        return AgentStatus::AuthRequired;
    }
    if d.session.usage_limit.is_some() {
        return AgentStatus::UsageLimited;
    }
    if d.session.compacting {
        return AgentStatus::Compacting;
    }
    working(d)
}

fn working(d: &Domain) -> AgentStatus {
    let tools = d
        .open_tools
        .iter()
        .filter_map(|key| d.tools.get(key))
        .any(|tool| {
            tool.agent.is_none()
                && matches!(
                    tool.status.get(),
                    ToolStatus::Pending | ToolStatus::AwaitingPermission | ToolStatus::Running
                )
        });
    if tools {
        return AgentStatus::RunningTools;
    }
    let Some(turn) = d.current() else {
        return without_turn(d);
    };
    let writing = turn
        .messages
        .last()
        .and_then(|key| d.messages.get(key))
        .is_some_and(|message| !message.complete && !message.finalized && !message.text.is_empty());
    let call = d.calls.values().rev().find(|call| call.agent.is_none());
    let held_up = call.is_some_and(|call| {
        matches!(
            call.status.get(),
            CallStatus::Retrying | CallStatus::Stalled
        )
    });
    match call.and_then(phase) {
        Some(phase) if !writing || held_up => AgentStatus::ModelRequest { phase },
        Some(_) | None if writing => AgentStatus::Writing,
        Some(_) | None => AgentStatus::Working,
    }
}

fn without_turn(d: &Domain) -> AgentStatus {
    if d.submitting().is_some() {
        return AgentStatus::Working;
    }
    let last_unknown = d
        .last_ended
        .and_then(|key| d.turn(key))
        .is_some_and(|turn| turn.status.get() == TurnStatus::Unknown);
    let queued = d.screen.as_ref().is_some_and(|seen| seen.facts.queued) && d.screen_stable();
    if queued || (last_unknown && d.registry_is_busy()) {
        AgentStatus::Unknown
    } else {
        AgentStatus::Idle
    }
}

fn phase(call: &Call) -> Option<CallPhase> {
    match call.status.get() {
        CallStatus::Started | CallStatus::Waiting => Some(CallPhase::Waiting),
        CallStatus::Streaming => Some(CallPhase::Streaming),
        CallStatus::Retrying => {
            let (attempt, max, reason) = call
                .retry
                .clone()
                .unwrap_or_else(|| (call.attempts, 0, Arc::from("")));
            Some(CallPhase::Retrying {
                attempt,
                max,
                reason,
            })
        }
        CallStatus::Stalled => Some(CallPhase::Stalled),
        CallStatus::Ended
        | CallStatus::Aborted
        | CallStatus::Failed
        | CallStatus::Refused
        | CallStatus::Unknown => None,
    }
}

/// Nothing runs, in the foreground or the background, and nothing is held.
pub(crate) fn quiescent(d: &Domain) -> bool {
    d.life() == Lifecycle::Ready
        && d.open_turns.is_empty()
        && d.queue.is_empty()
        && d.open_agents.is_empty()
        && d.background.is_empty()
        && d.job.is_none()
        && d.interrupt.is_none()
}
