//! Model calls: opened by the transcript's request lines (one per attempt), moved by streamed text and screen banners, closed by the answer's lines.

use alloc::{string::ToString, sync::Arc};

use ccd_model::{
    event::DomainEvent,
    fact::Source,
    ids::{AgentKey, CallKey, TurnKey},
    lattice::Status,
    screen::StatusLine,
    status::{CallStatus, TurnStatus},
};

use crate::{
    cx::Cx,
    decide::{effects, turns},
    evolve::{CallChange, Change, TurnChange},
    input::DiagnosticKind,
    reconcile::turn_of,
    state::{Call, Request},
};

/// A request line is written so long after its request at the latest, milliseconds: within this time after a Stop it proves nothing.
const LATE_LINE_MS: u64 = 1_000;

/// The open call of the main thread.
fn of_main(cx: &Cx<'_>) -> Option<CallKey> {
    cx.s()
        .calls
        .values()
        .rev()
        .find(|call| call.agent.is_none())
        .map(|call| call.key)
}

/// A model request left, retries included.
pub(crate) fn request(
    cx: &mut Cx<'_>,
    agent: Option<&Arc<str>>,
    id: &Arc<str>,
    retry_of: Option<&Arc<str>>,
) {
    if cx.s().ids.requests.contains_key(id) || cx.s().tombs.has(id) {
        cx.diag(DiagnosticKind::Duplicate, id.clone());
        return;
    }
    let agent_key = agent.and_then(|id| cx.s().ids.agents.get(id).copied());
    if agent.is_some() && agent_key.is_none() {
        return;
    }
    let retried = retry_of
        .and_then(|id| cx.s().ids.requests.get(id))
        .and_then(|request| request.call)
        .filter(|call| cx.s().calls.contains_key(call));
    if let Some(call) = retried {
        cx.call(call, CallChange::Attempt(id.clone()));
        moves_on(cx, call, CallStatus::Waiting);
        return;
    }
    effects::next_step(cx, agent_key);
    match agent_key {
        Some(agent) => {
            let running = cx.s().agents.get(&agent).filter(|a| !a.status.ended());
            if let Some(turn) = running.map(|agent| agent.turn) {
                close_open(cx, |call| call.agent == Some(agent));
                start(cx, id, turn, Some(agent));
            }
        }
        None => main_request(cx, id),
    }
}

fn main_request(cx: &mut Cx<'_>, id: &Arc<str>) {
    let Some(key) = turn_of::for_line(cx.s()) else {
        cx.diag(DiagnosticKind::Unmatched, id.clone());
        return;
    };
    let Some(turn) = cx.s().turn(key) else {
        return;
    };
    let (status, stopped_at) = (turn.status.get(), turn.stopped_at);
    cx.turn(key, TurnChange::Requested);
    let late = stopped_at.is_some_and(|at| cx.now().since(at) < LATE_LINE_MS);
    match status {
        TurnStatus::Running => {
            close_open(cx, |call| call.agent.is_none());
            start(cx, id, Some(key), None);
        }
        TurnStatus::Stopping if stopped_at.is_some() && !late => {
            turns::continue_running(cx, key);
            start(cx, id, Some(key), None);
        }
        TurnStatus::Stopping
        | TurnStatus::Queued
        | TurnStatus::Submitting
        | TurnStatus::Completed
        | TurnStatus::Failed
        | TurnStatus::Interrupted
        | TurnStatus::Withdrawn
        | TurnStatus::NotSubmitted
        | TurnStatus::Aborted
        | TurnStatus::Unknown => {
            cx.set(Change::Request(
                id.clone(),
                Request {
                    turn: Some(key),
                    call: None,
                },
            ));
        }
    }
}

fn start(cx: &mut Cx<'_>, id: &Arc<str>, turn: Option<TurnKey>, agent: Option<AgentKey>) {
    let key = cx.s().counters.call();
    cx.set(Change::OpenCall(
        Call {
            key,
            turn,
            agent,
            status: Status::new(CallStatus::Started, cx.source),
            attempts: 1,
            retry: None,
        },
        id.clone(),
    ));
    cx.event(DomainEvent::CallStarted {
        call: key,
        turn,
        agent,
    });
}

/// The next request of the same thread leaves: the one before it has been answered.
fn close_open(cx: &mut Cx<'_>, of: impl Fn(&Call) -> bool) {
    let open: alloc::vec::Vec<CallKey> = cx
        .s()
        .calls
        .values()
        .filter(|call| of(call))
        .map(|call| call.key)
        .collect();
    for key in open {
        end(cx, key, CallStatus::Ended);
    }
}

/// Ends a call. The only place where calls end.
pub(crate) fn end(cx: &mut Cx<'_>, key: CallKey, to: CallStatus) {
    let source = cx.source;
    if cx.call(key, CallChange::Advance(to, source)) {
        cx.event(DomainEvent::CallEnded {
            call: key,
            ended_well: to == CallStatus::Ended,
        });
    }
}

/// A line of the answer is in the transcript.
pub(crate) fn answered(cx: &mut Cx<'_>, request: Option<&Arc<str>>, finished: bool, aborted: bool) {
    let call = request
        .and_then(|id| cx.s().ids.requests.get(id))
        .and_then(|request| request.call);
    let Some(call) = call else {
        return;
    };
    if aborted {
        end(cx, call, CallStatus::Aborted);
    } else if finished {
        end(cx, call, CallStatus::Ended);
    }
}

/// Leaves a retry or a stall.
fn moves_on(cx: &mut Cx<'_>, key: CallKey, to: CallStatus) {
    let Some(now) = cx.s().calls.get(&key).map(|call| call.status.get()) else {
        return;
    };
    let source = cx.source;
    let held_up = matches!(now, CallStatus::Retrying | CallStatus::Stalled);
    if cx.call(key, CallChange::Advance(to, source)) && held_up {
        cx.event(DomainEvent::CallResumed { call: key });
    }
}

/// Text of the turn arrives.
pub(crate) fn streaming(cx: &mut Cx<'_>, turn: TurnKey) {
    let call =
        of_main(cx).filter(|key| cx.s().calls.get(key).is_some_and(|c| c.turn == Some(turn)));
    if let Some(call) = call {
        moves_on(cx, call, CallStatus::Streaming);
    }
}

/// What the screen says about the open call of the main thread.
pub(crate) fn banner(cx: &mut Cx<'_>, line: &StatusLine) {
    let Some(key) = of_main(cx) else {
        return;
    };
    let Some((status, retry)) = cx
        .s()
        .calls
        .get(&key)
        .map(|call| (call.status.get(), call.retry.clone()))
    else {
        return;
    };
    match line {
        StatusLine::Retrying {
            reason,
            seconds,
            attempt,
            max,
        } => {
            let announced = (*attempt, *max, reason.clone());
            cx.call(
                key,
                CallChange::Advance(CallStatus::Retrying, Source::Screen),
            );
            let new = retry.as_ref().is_none_or(|known| known.0 != *attempt);
            cx.call(
                key,
                CallChange::Retry(announced.0, announced.1, announced.2),
            );
            if new {
                cx.event(DomainEvent::CallRetrying {
                    call: key,
                    attempt: *attempt,
                    max: *max,
                    delay_s: *seconds,
                    reason: reason.clone(),
                });
            }
        }
        StatusLine::Stalled { text } => {
            if cx.call(
                key,
                CallChange::Advance(CallStatus::Stalled, Source::Screen),
            ) {
                cx.event(DomainEvent::CallStalled {
                    call: key,
                    evidence: Arc::from(text.to_string()),
                });
            }
        }
        StatusLine::Spinner if matches!(status, CallStatus::Retrying | CallStatus::Stalled) => {
            moves_on(cx, key, CallStatus::Waiting);
        }
        StatusLine::Spinner
        | StatusLine::None
        | StatusLine::Done
        | StatusLine::WaitingForAgents => {}
    }
}
