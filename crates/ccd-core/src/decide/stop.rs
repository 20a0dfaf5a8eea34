//! How turns stop by themselves: Stop and StopFailure hooks, the duration line, the registry going idle, silence, a turn overtaken by the next.

use alloc::{format, sync::Arc, vec::Vec};

use ccd_model::{
    event::{Alert, DomainEvent},
    ids::TurnKey,
    observation::{AgentRef, ApiError, BackgroundItem},
    outcome::Outcome,
    status::TurnStatus,
};

use crate::{
    cx::Cx,
    deadlines::Row,
    decide::{agents, prompts, turns, usage},
    evolve::{SessionChange, TurnChange},
    input::DiagnosticKind,
    reconcile::turn_of::{self, Known},
};

/// The Stop hook.
pub(crate) fn stopped(
    cx: &mut Cx<'_>,
    prompt_id: &Arc<str>,
    text: &Arc<str>,
    stop_hook_active: bool,
    background: &[BackgroundItem],
) {
    let key = match prompts::turn_of_stop(cx, prompt_id) {
        Known::Open(key) => key,
        Known::Ended(_) => return cx.diag(DiagnosticKind::Duplicate, "a Stop of an ended turn"),
        Known::Gone => return cx.diag(DiagnosticKind::Late, "a Stop of a forgotten turn"),
        Known::New => {
            return cx.diag(
                DiagnosticKind::Unmatched,
                format!("a Stop for the unknown prompt {prompt_id}"),
            );
        }
    };
    agents::background_listed(cx, background);
    if stop_hook_active {
        cx.session(SessionChange::OtherStopHooks);
        turns::continue_running(cx, key);
    }
    let Some(turn) = cx.s().turn(key) else {
        return;
    };
    let (status, again) = (turn.status.get(), turn.stopped_at.is_some());
    let overtaken = cx.s().current().is_some_and(|current| current.key != key);
    let at_once = !cx.s().session.other_stop_hooks || overtaken || turn.tx_done;
    if status == TurnStatus::Stopping && again {
        cx.diag(DiagnosticKind::Duplicate, "a Stop");
        return;
    }
    cx.turn(key, TurnChange::Stopped(text.clone()));
    if at_once {
        turns::end(cx, key, Outcome::Completed, None);
        return;
    }
    let source = cx.source;
    cx.turn(key, TurnChange::Advance(TurnStatus::Stopping, source));
    cx.event(DomainEvent::TurnStopping { turn: key });
}

/// The StopFailure hook. Failures of Claude's internal agents do not concern the turn.
pub(crate) fn failed(
    cx: &mut Cx<'_>,
    prompt_id: &Arc<str>,
    error: &Arc<str>,
    text: &Arc<str>,
    agent: Option<&AgentRef>,
) {
    if agent.is_some() {
        return;
    }
    match prompts::turn_of_stop(cx, prompt_id) {
        Known::Open(key) => fail(cx, key, error, text, None),
        Known::Ended(_) => cx.diag(DiagnosticKind::Duplicate, "a StopFailure of an ended turn"),
        Known::Gone => cx.diag(DiagnosticKind::Late, "a StopFailure of a forgotten turn"),
        Known::New => cx.diag(
            DiagnosticKind::Unmatched,
            format!("a StopFailure for the unknown prompt {prompt_id}"),
        ),
    }
}

fn has(words: &[Arc<str>], word: &str) -> bool {
    words.iter().any(|known| **known == *word)
}

fn fail(
    cx: &mut Cx<'_>,
    key: TurnKey,
    error: &Arc<str>,
    message: &Arc<str>,
    resets_at: Option<i64>,
) {
    let known_reset = cx
        .s()
        .turn(key)
        .and_then(|turn| turn.tx_error.as_ref())
        .and_then(|error| error.resets_at);
    turns::end(
        cx,
        key,
        Outcome::Failed {
            error: error.clone(),
            message: message.clone(),
        },
        None,
    );
    if usage::is_limit(cx, error, message, resets_at.or(known_reset)) {
        usage::reached(cx, resets_at.or(known_reset), message);
        usage::menu_due(cx);
    }
    if has(&cx.config.vocabulary.auth_errors, error) {
        cx.session(SessionChange::AuthFailed(true));
    }
}

/// An API error in the transcript: completes what the hook said, or stands in for a hook that never came.
pub(crate) fn error_in_transcript(cx: &mut Cx<'_>, prompt_id: Option<&Arc<str>>, error: &ApiError) {
    let by_id = prompt_id.map(|id| turn_of::by_prompt(cx.s(), id));
    let key = match by_id {
        Some(Known::Open(key) | Known::Ended(key)) => Some(key),
        Some(Known::Gone | Known::New) => None,
        None => turn_of::for_line(cx.s()),
    };
    let Some(key) = key else {
        cx.diag(DiagnosticKind::Unmatched, "an API error line");
        return;
    };
    cx.turn(key, TurnChange::TxError(error.clone()));
    let failed = cx
        .s()
        .turn(key)
        .is_some_and(|turn| turn.status.get() == TurnStatus::Failed);
    if failed && usage::is_limit(cx, &error.error, &error.text, error.resets_at) {
        usage::reached(cx, error.resets_at, &error.text);
    }
}

/// The duration line: a turn that was not interrupted has ended.
pub(crate) fn duration(cx: &mut Cx<'_>, pending_agents: u32) {
    let Some(key) = turn_of::for_duration(cx.s()) else {
        cx.diag(DiagnosticKind::Unmatched, "a duration line");
        return;
    };
    cx.turn(key, TurnChange::TxDone);
    let Some(turn) = cx.s().turn(key) else {
        return;
    };
    match turn.status.get() {
        TurnStatus::Stopping => ended_by_transcript(cx, key),
        TurnStatus::Running if cx.s().registry_idle() || pending_agents > 0 => {
            ended_by_transcript(cx, key);
        }
        TurnStatus::Running => cx.arm_once(Row::Quiet, key.0),
        TurnStatus::Completed
        | TurnStatus::Failed
        | TurnStatus::Interrupted
        | TurnStatus::Unknown => turns::settle(cx, key, true),
        TurnStatus::Queued
        | TurnStatus::Submitting
        | TurnStatus::Withdrawn
        | TurnStatus::NotSubmitted
        | TurnStatus::Aborted => {}
    }
}

/// The transcript says that the turn is over.
fn ended_by_transcript(cx: &mut Cx<'_>, key: TurnKey) {
    let error = cx.s().turn(key).and_then(|turn| turn.tx_error.clone());
    match error {
        Some(error) => fail(cx, key, &error.error, &error.text, error.resets_at),
        None => turns::end(cx, key, Outcome::Completed, None),
    }
}

fn running(cx: &Cx<'_>) -> Vec<TurnKey> {
    cx.s()
        .open_turns
        .iter()
        .filter(|key| {
            cx.s().turn(**key).is_some_and(|turn| {
                matches!(
                    turn.status.get(),
                    TurnStatus::Running | TurnStatus::Stopping
                )
            })
        })
        .copied()
        .collect()
}

/// The registry says that no turn runs.
pub(crate) fn registry_idle(cx: &mut Cx<'_>) {
    for key in running(cx) {
        let Some(turn) = cx.s().turn(key) else {
            continue;
        };
        let stopped = turn.status.get() == TurnStatus::Stopping && turn.stopped_at.is_some();
        if stopped {
            turns::end(cx, key, Outcome::Completed, None);
        } else if turn.tx_done {
            ended_by_transcript(cx, key);
        } else {
            cx.arm_once(Row::Quiet, key.0);
        }
    }
}

/// The registry says that something runs.
pub(crate) fn registry_busy(cx: &mut Cx<'_>) {
    for key in running(cx) {
        if cx.s().turn(key).is_some_and(|turn| !turn.tx_done) {
            cx.disarm(Row::Quiet, key.0);
        }
    }
}

/// Nothing runs any more, for long, and no end was reported.
pub(crate) fn quiet(cx: &mut Cx<'_>, key: TurnKey) {
    let Some(turn) = cx.s().turn(key).filter(|turn| !turn.status.ended()) else {
        return;
    };
    let (done, stopped) = (turn.tx_done, turn.stopped_at.is_some());
    let registry_idle = cx.s().registry_idle();
    if done {
        ended_by_transcript(cx, key);
    } else if registry_idle && cx.s().screen_idle() {
        let outcome = if stopped {
            Outcome::Completed
        } else {
            Outcome::Unknown {
                reason: Arc::from("nothing runs any more and no end was reported"),
            }
        };
        turns::end(cx, key, outcome, None);
    } else if registry_idle {
        cx.arm(Row::Quiet, key.0);
    }
}

/// Another prompt runs: a turn that was stopping has completed, one that was running has lost its end.
pub(crate) fn supersede(cx: &mut Cx<'_>, key: TurnKey) {
    let Some(turn) = cx.s().turn(key).filter(|turn| !turn.status.ended()) else {
        return;
    };
    let stopped = turn.stopped_at.is_some() && turn.status.get() == TurnStatus::Stopping;
    if stopped {
        turns::end(cx, key, Outcome::Completed, None);
    } else if turn.tx_done {
        ended_by_transcript(cx, key);
    } else {
        let source = cx.source;
        if cx.turn(key, TurnChange::Advance(TurnStatus::Stopping, source)) {
            cx.arm(Row::Superseded, key.0);
        }
    }
}

/// No end was reported for a turn that another one followed.
pub(crate) fn superseded(cx: &mut Cx<'_>, key: TurnKey) {
    let reason = Arc::from("another prompt began and no end was reported");
    turns::end(cx, key, Outcome::Unknown { reason }, None);
}

/// Something of the main thread was reported for a turn that has ended: other Stop hooks exist after all.
pub(crate) fn went_on(cx: &mut Cx<'_>, key: TurnKey) {
    let completed = cx
        .s()
        .turn(key)
        .is_some_and(|turn| turn.status.get() == TurnStatus::Completed);
    if completed && !cx.s().session.other_stop_hooks {
        cx.session(SessionChange::OtherStopHooks);
        cx.event(DomainEvent::Alert(Alert::Conflict {
            what: Arc::from(format!("turn {key} went on after its Stop")),
        }));
    }
    cx.diag(
        DiagnosticKind::Late,
        format!("something of {key}, which has ended"),
    );
}
