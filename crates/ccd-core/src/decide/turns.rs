//! Turns: acceptance, the one place where a turn ends, settlement with the transcript. How prompts arrive is in `prompts`, how turns stop in `stop`.

use alloc::{boxed::Box, collections::BTreeSet, sync::Arc, vec::Vec};

use ccd_model::{
    command::{Accepted, Refusal},
    event::DomainEvent,
    fact::Source,
    ids::TurnKey,
    lattice::Status,
    outcome::{NotSubmitted, Origin, Outcome},
    status::{Lifecycle, TurnStatus},
};

use crate::{
    closing,
    cx::Cx,
    deadlines::Row,
    decide::{interrupt, messages, prompts, usage},
    evolve::{Change, SessionChange, TurnChange},
    input_policy::{gate, sanitize},
    state::Turn,
};

/// A turn that has just come to be.
pub(crate) fn new_turn(
    cx: &Cx<'_>,
    origin: Origin,
    status: Status<TurnStatus>,
    prompt: Arc<str>,
) -> Turn {
    Turn {
        key: cx.s().counters.turn(),
        prompt_id: None,
        origin,
        status,
        prompt,
        submitted: false,
        started_at: None,
        output: false,
        requested: false,
        stopped_at: None,
        stop_text: None,
        tx_text: None,
        tx_error: None,
        tx_done: false,
        host: None,
        absorbed: false,
        text: Arc::from(""),
        outcome: None,
        returned: None,
        usage: None,
        counted: BTreeSet::new(),
        blocks: BTreeSet::new(),
        model: None,
        settled: false,
        accepted_at: cx.now(),
        ended_at: None,
        tools: Vec::new(),
        permissions: Vec::new(),
        agents: Vec::new(),
        messages: Vec::new(),
        requests: Vec::new(),
    }
}

/// Accepts a prompt: held until the session is free, or delivered at once.
pub(crate) fn send(cx: &mut Cx<'_>, text: &str, as_text: bool) -> Result<Accepted, Refusal> {
    if cx.s().over() {
        return Err(Refusal::SessionOver);
    }
    let nobody_logged_in = cx
        .s()
        .screen
        .as_ref()
        .is_some_and(|seen| seen.facts.logged_out);
    if nobody_logged_in && cx.s().life() == Lifecycle::Ready {
        return Err(Refusal::AuthRequired);
    }
    let normal = sanitize::normalize(text, as_text, &cx.config.vocabulary.exit_words)?;
    let held = Status::new(TurnStatus::Queued, Source::Own);
    let turn = new_turn(cx, Origin::Api, held, normal.text.clone());
    let key = turn.key;
    cx.set(Change::OpenTurn(Box::new(turn)));
    if !normal.changes.is_empty() {
        cx.event(DomainEvent::PromptNormalized {
            turn: key,
            text: normal.text,
            changes: normal.changes,
        });
    }
    gate::pump(cx);
    if cx.s().queue.contains(&key) {
        cx.event(DomainEvent::TurnQueued {
            turn: key,
            origin: Origin::Api,
        });
    }
    Ok(Accepted::Turn { turn: key })
}

/// Takes a held prompt back.
pub(crate) fn cancel(cx: &mut Cx<'_>, key: TurnKey) -> Result<Accepted, Refusal> {
    match cx.s().turn(key).map(|turn| turn.status.get()) {
        Some(TurnStatus::Queued) => {
            end(
                cx,
                key,
                Outcome::NotSubmitted(NotSubmitted::Cancelled),
                None,
            );
            Ok(Accepted::Turn { turn: key })
        }
        Some(TurnStatus::Submitting | TurnStatus::Running | TurnStatus::Stopping) => {
            Err(Refusal::NotHeld)
        }
        Some(
            TurnStatus::Completed
            | TurnStatus::Failed
            | TurnStatus::Interrupted
            | TurnStatus::Withdrawn
            | TurnStatus::NotSubmitted
            | TurnStatus::Aborted
            | TurnStatus::Unknown,
        )
        | None => Err(Refusal::NoSuchEntity),
    }
}

/// The turn runs: its prompt is with the model.
pub(crate) fn run(cx: &mut Cx<'_>, key: TurnKey) {
    let source = cx.source;
    if !cx.turn(key, TurnChange::Advance(TurnStatus::Running, source)) {
        return;
    }
    let Some((origin, prompt)) = cx.s().turn(key).map(|t| (t.origin, t.prompt.clone())) else {
        return;
    };
    cx.event(DomainEvent::TurnStarted {
        turn: key,
        origin,
        prompt,
    });
    interrupt::on_running(cx, key);
}

/// A stopping turn goes on.
pub(crate) fn continue_running(cx: &mut Cx<'_>, key: TurnKey) {
    let stopping = cx
        .s()
        .turn(key)
        .is_some_and(|turn| turn.status.get() == TurnStatus::Stopping && turn.stopped_at.is_some());
    let source = cx.source;
    if stopping && cx.turn(key, TurnChange::Advance(TurnStatus::Running, source)) {
        cx.event(DomainEvent::TurnContinued { turn: key });
    }
}

fn status_of(outcome: &Outcome) -> TurnStatus {
    match outcome {
        Outcome::Completed => TurnStatus::Completed,
        Outcome::Failed { .. } => TurnStatus::Failed,
        Outcome::Interrupted => TurnStatus::Interrupted,
        Outcome::Withdrawn => TurnStatus::Withdrawn,
        Outcome::NotSubmitted(_) => TurnStatus::NotSubmitted,
        Outcome::Aborted { .. } => TurnStatus::Aborted,
        Outcome::Unknown { .. } => TurnStatus::Unknown,
    }
}

/// The text of a turn as far as it is known: the Stop hook's, else the transcript's, else what was streamed.
fn text_of(cx: &Cx<'_>, turn: &Turn) -> Arc<str> {
    turn.stop_text
        .clone()
        .filter(|text| !text.is_empty())
        .or_else(|| turn.tx_text.clone())
        .unwrap_or_else(|| messages::streamed_text(cx.s(), turn))
}

/// Ends a turn. The only place where turns end: closes what it holds, publishes the outcome, lets the transcript catch up.
pub(crate) fn end(cx: &mut Cx<'_>, key: TurnKey, outcome: Outcome, returned: Option<Arc<str>>) {
    let Some(turn) = cx
        .s()
        .turn(key)
        .filter(|turn| !turn.status.ended())
        .cloned()
    else {
        return;
    };
    closing::turn(cx, key, &outcome);
    let text = match outcome {
        Outcome::NotSubmitted(_) | Outcome::Withdrawn => Arc::from(""),
        Outcome::Completed
        | Outcome::Failed { .. }
        | Outcome::Interrupted
        | Outcome::Aborted { .. }
        | Outcome::Unknown { .. } => text_of(cx, &turn),
    };
    let source = cx.source;
    cx.turn(
        key,
        TurnChange::End {
            status: status_of(&outcome),
            source,
            outcome: outcome.clone(),
            text: text.clone(),
            returned: returned.clone(),
        },
    );
    for row in [Row::Quiet, Row::Superseded, Row::Hosted, Row::ComposerFree] {
        cx.disarm(row, key.0);
    }
    cx.event(DomainEvent::TurnEnded {
        turn: key,
        origin: turn.origin,
        outcome: outcome.clone(),
        text,
        returned,
    });
    interrupt::turn_ended(cx, key, &outcome);
    prompts::host_ended(cx, key);
    match outcome {
        Outcome::Completed => {
            cx.session(SessionChange::AuthFailed(false));
            usage::clear(cx);
            settle_or_wait(cx, key, turn.tx_done);
        }
        Outcome::Failed { .. } | Outcome::Interrupted => settle_or_wait(cx, key, turn.tx_done),
        Outcome::Withdrawn | Outcome::NotSubmitted(_) => settle(cx, key, true),
        Outcome::Aborted { .. } | Outcome::Unknown { .. } => settle(cx, key, false),
    }
}

fn settle_or_wait(cx: &mut Cx<'_>, key: TurnKey, caught_up: bool) {
    if caught_up {
        settle(cx, key, true);
    } else {
        cx.arm(Row::Settle, key.0);
    }
}

/// The transcript has caught up with an ended turn, or the wait is over.
pub(crate) fn settle(cx: &mut Cx<'_>, key: TurnKey, complete: bool) {
    let Some(turn) = cx.s().turn(key) else {
        return;
    };
    if turn.settled || !turn.status.ended() {
        return;
    }
    cx.disarm(Row::Settle, key.0);
    messages::finalize_streamed(cx, key);
    let Some(turn) = cx.s().turn(key) else {
        return;
    };
    let (usage, model) = (turn.usage, turn.model.clone());
    cx.turn(key, TurnChange::Settled);
    cx.event(DomainEvent::TurnSettled {
        turn: key,
        usage,
        model,
        complete,
    });
}
