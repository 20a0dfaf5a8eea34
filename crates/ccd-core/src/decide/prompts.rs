//! How prompts arrive: receipts for our own, prompts of others, prompts that Claude queued, and the binding of prompt ids to turns.

use alloc::{boxed::Box, format, string::ToString, sync::Arc, vec::Vec};

use ccd_model::{
    event::{Alert, DomainEvent},
    ids::TurnKey,
    lattice::Status,
    observation::{PromptOrigin, Verdict},
    outcome::{NotSubmitted, Origin, Outcome},
    status::{Lifecycle, TurnStatus},
};

use crate::{
    cx::Cx,
    deadlines::Row,
    decide::{agents, stop, turns},
    evolve::{Change, SessionChange, TurnChange},
    input::DiagnosticKind,
    input_policy::{jobs, jobs_end},
    reconcile::turn_of::{self, Known},
    state::{JobWhat, Phase, Then},
};

/// A submitted prompt as the hook names it.
pub(crate) struct Prompt<'a> {
    pub(crate) id: &'a Arc<str>,
    pub(crate) text: &'a Arc<str>,
    pub(crate) task_notification: bool,
}

/// UserPromptSubmit, with the hook thread's verdict.
pub(crate) fn seen(cx: &mut Cx<'_>, prompt: &Prompt<'_>, verdict: Verdict) {
    match verdict {
        Verdict::Exact => exact(cx, prompt),
        Verdict::SelfTest => self_test(cx),
        Verdict::MismatchBlocked => mismatch(cx),
        Verdict::Foreign => foreign(cx, prompt),
    }
}

/// The turn that is being delivered with exactly this text, when a receipt can be for it.
fn awaiting(cx: &Cx<'_>, text: &str) -> Option<TurnKey> {
    cx.s()
        .job
        .as_ref()
        .filter(|job| *job.text == *text)
        .and_then(jobs::prompt_of)
}

fn exact(cx: &mut Cx<'_>, prompt: &Prompt<'_>) {
    if let Some(turn) = awaiting(cx, prompt.text) {
        return receipt(cx, turn, prompt.id);
    }
    match turn_of::by_prompt(cx.s(), prompt.id) {
        Known::Open(_) | Known::Ended(_) => cx.diag(DiagnosticKind::Duplicate, "a receipt"),
        Known::Gone => cx.diag(DiagnosticKind::Late, "a receipt"),
        Known::New => late_receipt(cx, prompt.id, prompt.text),
    }
}

/// The exact text was acknowledged.
fn receipt(cx: &mut Cx<'_>, key: TurnKey, id: &Arc<str>) {
    let known = turn_of::by_prompt(cx.s(), id);
    jobs_end::received(cx);
    cx.session(SessionChange::AuthFailed(false));
    cx.turn(key, TurnChange::Submitted);
    let submitted = DomainEvent::TurnSubmitted {
        turn: key,
        prompt_id: id.clone(),
    };
    match known {
        Known::New => {
            supersede_current(cx);
            cx.turn(key, TurnChange::PromptId(id.clone()));
            cx.event(submitted);
            turns::run(cx, key);
        }
        // Claude queued it behind a turn that slipped in: it runs there, or later under an id of its own.
        Known::Open(host) if host != key => {
            cx.turn(key, TurnChange::Host(host));
            cx.event(submitted);
        }
        Known::Open(_) | Known::Ended(_) | Known::Gone => {
            cx.event(submitted);
            turns::run(cx, key);
        }
    }
}

/// A receipt for a prompt that was given up: it is with the model after all. Told of, never submitted again.
fn late_receipt(cx: &mut Cx<'_>, id: &Arc<str>, text: &Arc<str>) {
    let given_up = cx
        .s()
        .ended_turns
        .iter()
        .rev()
        .filter_map(|key| cx.s().turn(*key))
        .find(|turn| turn.prompt_id.is_none() && turn.prompt == *text)
        .map(|turn| turn.key);
    let what = match given_up {
        Some(turn) => format!("turn {turn} was given up, and its prompt was submitted later"),
        None => "a receipt for a prompt that is not being delivered".to_string(),
    };
    cx.diag(DiagnosticKind::Conflict, what.as_str());
    cx.event(DomainEvent::Alert(Alert::Conflict {
        what: Arc::from(what),
    }));
    open(cx, Some(id), text, Origin::Api);
}

fn self_test(cx: &mut Cx<'_>) {
    let running = cx
        .s()
        .job
        .as_ref()
        .is_some_and(|job| job.what == JobWhat::SelfTest && job.then.is_none());
    if !running {
        cx.diag(DiagnosticKind::Duplicate, "a self-test receipt");
        return;
    }
    cx.session(SessionChange::BlockOwed);
    jobs::blocked(cx, Then::SelfTested);
}

/// Another text than the one sent was blocked at the hook: cleared, delivered once more, then given up with an alert.
fn mismatch(cx: &mut Cx<'_>) {
    let Some(job) = cx.s().job.clone() else {
        cx.session(SessionChange::BlockOwed);
        cx.session(SessionChange::Dirty(true));
        cx.diag(
            DiagnosticKind::Unmatched,
            "a blocked prompt without a delivery",
        );
        return;
    };
    if job.then.is_some() {
        cx.diag(DiagnosticKind::Duplicate, "a blocked prompt");
        return;
    }
    cx.session(SessionChange::BlockOwed);
    let again = job.mismatches == 0 && !job.cancelled;
    let then = match job.what {
        JobWhat::Prompt(_) if job.cancelled => Then::End(NotSubmitted::Cancelled),
        JobWhat::Prompt(_) | JobWhat::SelfTest if again => Then::Reinject,
        JobWhat::Prompt(turn) => {
            cx.event(DomainEvent::Alert(Alert::Mismatch { turn }));
            Then::End(NotSubmitted::Mismatch)
        }
        JobWhat::SelfTest => Then::SelfTestFailed("another text arrived"),
        JobWhat::Exit | JobWhat::Clear => Then::Done,
    };
    jobs::note_mismatch(cx);
    jobs::blocked(cx, then);
}

fn foreign(cx: &mut Cx<'_>, prompt: &Prompt<'_>) {
    if prompt.task_notification {
        agents::notified(cx, prompt.text);
    }
    match turn_of::by_prompt(cx.s(), prompt.id) {
        // Queued inside the turn that runs: no turn of its own until a new id appears.
        Known::Open(turn) => turns::continue_running(cx, turn),
        Known::Ended(_) | Known::Gone => cx.diag(DiagnosticKind::Late, "a prompt of an ended turn"),
        Known::New => {
            let ours = turn_of::unbound(cx.s())
                .filter(|key| cx.s().turn(*key).is_some_and(|t| t.prompt == *prompt.text));
            match ours {
                Some(key) => bind(cx, key, prompt.id),
                None => {
                    let origin = if prompt.task_notification {
                        Origin::TaskNotification
                    } else {
                        Origin::Attached
                    };
                    open(cx, Some(prompt.id), prompt.text, origin);
                }
            }
        }
    }
}

fn supersede_current(cx: &mut Cx<'_>) {
    let running: Vec<TurnKey> = cx
        .s()
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
        .collect();
    for key in running {
        stop::supersede(cx, key);
    }
}

/// Opens a turn that runs already.
fn open(cx: &mut Cx<'_>, id: Option<&Arc<str>>, text: &Arc<str>, origin: Origin) -> TurnKey {
    supersede_current(cx);
    let running = Status::new(TurnStatus::Running, cx.source);
    let mut turn = turns::new_turn(cx, origin, running, text.clone());
    turn.prompt_id = id.cloned();
    turn.submitted = true;
    turn.started_at = Some(cx.now());
    let key = turn.key;
    cx.set(Change::OpenTurn(Box::new(turn)));
    cx.event(DomainEvent::TurnStarted {
        turn: key,
        origin,
        prompt: text.clone(),
    });
    key
}

/// Binds a prompt id to an acknowledged turn; one that waited inside Claude's queue runs now.
fn bind(cx: &mut Cx<'_>, key: TurnKey, id: &Arc<str>) {
    cx.turn(key, TurnChange::PromptId(id.clone()));
    cx.disarm(Row::Hosted, key.0);
    if cx
        .s()
        .turn(key)
        .is_some_and(|turn| turn.status.get() == TurnStatus::Submitting)
    {
        supersede_current(cx);
        turns::run(cx, key);
    }
}

/// The turn of a hook event. With `main`, an unknown id is bound to the turn that waits for one, or is itself the news of a turn.
pub(crate) fn turn_of_hook(cx: &mut Cx<'_>, id: &Arc<str>, main: bool) -> Option<TurnKey> {
    match turn_of::by_prompt(cx.s(), id) {
        Known::Open(turn) | Known::Ended(turn) => Some(turn),
        Known::Gone => None,
        Known::New if !main || cx.s().life() != Lifecycle::Ready => None,
        Known::New => match turn_of::unbound(cx.s()) {
            Some(key) => {
                bind(cx, key, id);
                Some(key)
            }
            None => Some(open(cx, Some(id), &Arc::from(""), Origin::Attached)),
        },
    }
}

/// The turn of a Stop hook. An unknown id is only bound, never the news of a turn.
pub(crate) fn turn_of_stop(cx: &mut Cx<'_>, id: &Arc<str>) -> Known {
    let known = turn_of::by_prompt(cx.s(), id);
    if known == Known::New
        && let Some(key) = turn_of::unbound(cx.s())
    {
        bind(cx, key, id);
        return Known::Open(key);
    }
    known
}

/// A prompt line of the transcript.
pub(crate) fn in_transcript(
    cx: &mut Cx<'_>,
    id: Option<&Arc<str>>,
    text: &Arc<str>,
    origin: PromptOrigin,
    meta: bool,
) {
    let Some(id) = id.filter(|id| !meta && !id.is_empty()) else {
        return;
    };
    let key = match turn_of::by_prompt(cx.s(), id) {
        Known::Open(key) | Known::Ended(key) => key,
        Known::Gone => return cx.diag(DiagnosticKind::Late, "a prompt line"),
        Known::New => match unknown_line(cx, id, text, origin) {
            Some(key) => key,
            None => return,
        },
    };
    let Some(turn) = cx.s().turn(key) else {
        return;
    };
    let no_text = turn.prompt.is_empty();
    let attached = turn.origin == Origin::Attached;
    if no_text {
        cx.turn(key, TurnChange::Prompt(text.clone()));
    }
    match origin {
        PromptOrigin::AutoContinue if attached => {
            cx.turn(key, TurnChange::Origin(Origin::AutoContinue));
        }
        PromptOrigin::TaskNotification if attached => {
            cx.turn(key, TurnChange::Origin(Origin::TaskNotification));
        }
        PromptOrigin::AutoContinue
        | PromptOrigin::TaskNotification
        | PromptOrigin::Human
        | PromptOrigin::Other => {}
    }
    if cx.s().session.tx_turn.is_none_or(|last| last < key) {
        cx.session(SessionChange::TxTurn(key));
    }
}

/// A prompt line with an unknown id: a receipt by the transcript, the id of a queued prompt, or the news of a turn.
fn unknown_line(
    cx: &mut Cx<'_>,
    id: &Arc<str>,
    text: &Arc<str>,
    origin: PromptOrigin,
) -> Option<TurnKey> {
    if cx.s().life() != Lifecycle::Ready {
        return None;
    }
    let origin = match origin {
        PromptOrigin::Other => return None,
        PromptOrigin::Human => Origin::Attached,
        PromptOrigin::TaskNotification => Origin::TaskNotification,
        PromptOrigin::AutoContinue => Origin::AutoContinue,
    };
    let entered = cx.s().job.as_ref().is_some_and(|job| {
        matches!(
            job.phase,
            Phase::Enter | Phase::Receipt | Phase::Judge | Phase::LateReceipt
        )
    });
    if let Some(key) = awaiting(cx, text).filter(|_| entered) {
        receipt(cx, key, id);
        return Some(key);
    }
    let ours = turn_of::unbound(cx.s())
        .filter(|key| cx.s().turn(*key).is_some_and(|turn| turn.prompt == *text));
    if let Some(key) = ours {
        bind(cx, key, id);
        return Some(key);
    }
    Some(open(cx, Some(id), text, origin))
}

/// Claude's own queue: a prompt was taken into the turn that runs.
pub(crate) fn queue_line(cx: &mut Cx<'_>, content: Option<&Arc<str>>, absorbed: bool) {
    let hosted = cx
        .s()
        .submitting()
        .filter(|turn| turn.host.is_some() && Some(&turn.prompt) == content)
        .map(|turn| turn.key);
    if absorbed && let Some(key) = hosted {
        cx.turn(key, TurnChange::Absorbed);
    }
}

/// A turn has ended: prompts that wait inside it must show up soon.
pub(crate) fn host_ended(cx: &mut Cx<'_>, host: TurnKey) {
    let hosted = cx
        .s()
        .submitting()
        .filter(|turn| turn.host == Some(host))
        .map(|turn| turn.key);
    if let Some(key) = hosted {
        cx.arm(Row::Hosted, key.0);
    }
}

/// A prompt inside an ended turn did not show up as a turn of its own.
pub(crate) fn hosted_deadline(cx: &mut Cx<'_>, key: TurnKey) {
    let Some(turn) = cx.s().turn(key).filter(|turn| !turn.status.ended()) else {
        return;
    };
    let host = turn.host.and_then(|host| cx.s().turn(host));
    let outcome = host
        .filter(|_| turn.absorbed)
        .and_then(|host| host.outcome.clone())
        .unwrap_or_else(|| Outcome::Unknown {
            reason: Arc::from("Claude queued the prompt and it did not run as a turn of its own"),
        });
    let text = host.filter(|_| turn.absorbed).map(|host| host.text.clone());
    if let Some(text) = text {
        cx.turn(key, TurnChange::TxText(text));
    }
    turns::end(cx, key, outcome, None);
}

/// The transcript says that a hook blocked a prompt: our own hook for its blocks, else a hook of the user for the prompt that waits.
pub(crate) fn blocked_in_transcript(cx: &mut Cx<'_>, reason: &Arc<str>) {
    if cx.s().session.blocks_owed > 0 {
        cx.session(SessionChange::BlockPaid);
        return;
    }
    let blocked = cx
        .s()
        .current()
        .filter(|turn| !turn.output && !turn.requested && turn.stopped_at.is_none())
        .map(|turn| (turn.key, turn.origin));
    let Some((key, origin)) = blocked else {
        cx.diag(DiagnosticKind::Unmatched, "a blocked prompt");
        return;
    };
    let why = NotSubmitted::BlockedByHook {
        message: reason.clone(),
    };
    turns::end(cx, key, Outcome::NotSubmitted(why), None);
    if origin == Origin::Api && cx.s().job.is_none() && !cx.s().over() {
        cx.session(SessionChange::Dirty(true));
        jobs::start_clear(cx);
    }
}
