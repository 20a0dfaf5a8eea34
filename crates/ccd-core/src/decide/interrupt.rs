//! Interrupts: one Escape, or the answer to a held permission request; and the evidence that decides whether a turn was interrupted, withdrawn,
//! or had ended by itself first. Without evidence the request is unconfirmed and the turn stays as it is.

use alloc::{sync::Arc, vec::Vec};

use ccd_model::{
    command::{Accepted, Refusal},
    event::{DomainEvent, InterruptEnd},
    ids::{PermissionKey, TurnKey},
    intent::{IoOp, Key, KeyGuard, KeyHeld},
    observation::{OpEnd, RegistryStatus},
    outcome::{NotSubmitted, Outcome},
    permission::{DecidedBy, Decision},
    screen::Composer,
    status::{PermissionStatus, TurnStatus},
};

use crate::{
    cx::Cx,
    deadlines::{Row, duration},
    decide::{permissions, turns},
    evolve::{Change, SessionChange, TurnChange},
    input::DiagnosticKind,
    input_policy::{jobs, jobs_end},
    reconcile::{text_match, turn_of},
    state::{Interrupt, Means, OpKind},
};

/// How long the Escape key may be tried, milliseconds.
const ESCAPE_KEY_MS: u32 = 500;
/// What the model is told of a tool that an interrupt denies.
const DENIED: &str = "The user interrupted the turn.";

/// Interrupts what runs. Asked again while it is open, it changes nothing: there is never a second Escape.
pub(crate) fn ask(cx: &mut Cx<'_>) -> Result<Accepted, Refusal> {
    if cx.s().over() {
        return Err(Refusal::SessionOver);
    }
    if let Some(open) = &cx.s().interrupt {
        return Ok(Accepted::Turn { turn: open.turn });
    }
    let target = cx
        .s()
        .current()
        .or_else(|| cx.s().submitting())
        .map(|turn| (turn.key, turn.status.get() == TurnStatus::Submitting));
    let Some((turn, submitting)) = target else {
        return Err(Refusal::NothingToInterrupt);
    };
    put(
        cx,
        Interrupt {
            turn,
            means: Means::Waiting,
            acted_at: None,
            retried: false,
            idle_after: false,
            line_seen: 0,
            text_seen: 0,
        },
    );
    cx.arm(Row::Interrupt, 0);
    if submitting {
        jobs_end::cancel(cx);
    } else {
        act(cx);
    }
    Ok(Accepted::Turn { turn })
}

fn put(cx: &mut Cx<'_>, interrupt: Interrupt) {
    cx.set(Change::Interrupt(Some(interrupt)));
}

fn update(cx: &mut Cx<'_>, change: impl FnOnce(&mut Interrupt)) {
    if let Some(mut interrupt) = cx.s().interrupt.clone() {
        change(&mut interrupt);
        put(cx, interrupt);
    }
}

/// Held requests of the main thread.
fn held(cx: &Cx<'_>) -> Vec<PermissionKey> {
    cx.s()
        .permissions_open()
        .filter(|p| p.agent.is_none() && p.status.get() == PermissionStatus::Pending)
        .map(|p| p.key)
        .collect()
}

fn act(cx: &mut Cx<'_>) {
    let held = held(cx);
    if held.is_empty() {
        escape(cx);
        return;
    }
    for key in held {
        deny(cx, key);
    }
}

/// Denies a held request together with the turn.
pub(crate) fn deny(cx: &mut Cx<'_>, key: PermissionKey) {
    let now = cx.now();
    update(cx, |interrupt| {
        interrupt.means = Means::Answer;
        interrupt.acted_at = Some(now);
    });
    let decision = Decision::Deny {
        message: Arc::from(DENIED),
        interrupt: true,
    };
    permissions::answer(cx, key, decision, DecidedBy::Interrupt);
}

/// Presses Escape, at some distance from one that came too late: two of them in an idle composer would open the rewind menu.
fn escape(cx: &mut Cx<'_>) {
    update(cx, |interrupt| interrupt.means = Means::Escape);
    let gap = duration(Row::EscapeGap);
    let since = cx.s().session.late_escape.map(|late| cx.now().since(late));
    match since.filter(|since| *since < gap) {
        Some(since) => cx.arm_for(Row::EscapeGap, 0, gap.saturating_sub(since)),
        None => press_escape(cx),
    }
}

/// The distance is kept, and the turn still runs.
pub(crate) fn gap_is_over(cx: &mut Cx<'_>) {
    let waits = cx
        .s()
        .interrupt
        .as_ref()
        .is_some_and(|open| open.means == Means::Escape && open.acted_at.is_none());
    if waits {
        press_escape(cx);
    }
}

fn press_escape(cx: &mut Cx<'_>) {
    cx.io(
        OpKind::Escape,
        IoOp::Key {
            key: Key::Escape,
            // An Escape into an idle composer does nothing, but two of them open the rewind menu.
            guard: KeyGuard::Busy,
            within_ms: ESCAPE_KEY_MS,
        },
    );
}

/// The Escape was pressed, or held back.
pub(crate) fn escape_ended(cx: &mut Cx<'_>, end: &OpEnd) {
    let Some(open) = cx
        .s()
        .interrupt
        .clone()
        .filter(|i| i.means == Means::Escape)
    else {
        return;
    };
    let now = cx.now();
    match end {
        OpEnd::Done | OpEnd::Taken { .. } => update(cx, |i| i.acted_at = Some(now)),
        OpEnd::Unknown => {
            update(cx, |i| i.acted_at = Some(now));
            cx.io(OpKind::Capture, IoOp::Capture);
        }
        // It was never pressed, so trying once more is not a second Escape.
        OpEnd::Held {
            held: KeyHeld::NotPainted,
        }
        | OpEnd::Refused { .. }
            if !open.retried =>
        {
            update(cx, |i| i.retried = true);
            escape(cx);
        }
        // A dialog stands: its request is denied when it arrives, or it has arrived already.
        OpEnd::Held {
            held: KeyHeld::Dialog | KeyHeld::NotPainted,
        }
        | OpEnd::Refused { .. } => {
            for key in held(cx) {
                deny(cx, key);
            }
        }
    }
}

/// The prompt that is to be interrupted is with the model now.
pub(crate) fn on_running(cx: &mut Cx<'_>, turn: TurnKey) {
    let waits = cx
        .s()
        .interrupt
        .as_ref()
        .is_some_and(|open| open.turn == turn && open.means == Means::Waiting);
    if waits {
        cx.arm(Row::Interrupt, 0);
        act(cx);
    }
}

/// Whether requests of this turn are denied together with it.
pub(crate) fn is_open_for(cx: &Cx<'_>, turn: Option<TurnKey>) -> bool {
    cx.s()
        .interrupt
        .as_ref()
        .is_some_and(|open| turn.is_none_or(|turn| turn == open.turn))
}

/// The interrupt marker of the transcript. Markers of subagents do not concern the turn.
pub(crate) fn marker(cx: &mut Cx<'_>, agent: Option<&Arc<str>>, prompt_id: Option<&Arc<str>>) {
    if agent.is_some() {
        return;
    }
    let key = match prompt_id.map(|id| turn_of::by_prompt(cx.s(), id)) {
        Some(turn_of::Known::Open(key) | turn_of::Known::Ended(key)) => Some(key),
        Some(turn_of::Known::Gone | turn_of::Known::New) => None,
        None => turn_of::for_line(cx.s()),
    };
    let Some(key) = key else {
        cx.diag(DiagnosticKind::Unmatched, "an interrupt marker");
        return;
    };
    let Some(status) = cx.s().turn(key).map(|turn| turn.status.get()) else {
        return;
    };
    cx.turn(key, TurnChange::TxDone);
    match status {
        TurnStatus::Running | TurnStatus::Stopping => {
            turns::end(cx, key, Outcome::Interrupted, None);
        }
        TurnStatus::Interrupted => turns::settle(cx, key, true),
        TurnStatus::Queued
        | TurnStatus::Submitting
        | TurnStatus::Completed
        | TurnStatus::Failed
        | TurnStatus::Withdrawn
        | TurnStatus::NotSubmitted
        | TurnStatus::Aborted
        | TurnStatus::Unknown => {
            cx.diag(
                DiagnosticKind::Conflict,
                "an interrupt marker of an ended turn",
            );
        }
    }
}

/// The transcript says that a prompt left the conversation: that of the turn that was overtaken without an end, else that of an open interrupt.
pub(crate) fn withdrawn_in_transcript(cx: &mut Cx<'_>) {
    let overtaken = cx
        .s()
        .open_turns
        .iter()
        .filter_map(|key| cx.s().turn(*key))
        .find(|turn| turn.status.get() == TurnStatus::Stopping && turn.stopped_at.is_none())
        .map(|turn| turn.key);
    if let Some(turn) = overtaken {
        turns::end(cx, turn, Outcome::Withdrawn, None);
        return;
    }
    let open = cx.s().interrupt.as_ref().map(|open| open.turn);
    if let Some(turn) = open.filter(|_| !cx.s().registry_is_busy()) {
        withdraw(cx, turn);
    }
}

/// A capture, or the registry: looks whether an open interrupt is decided.
pub(crate) fn review(cx: &mut Cx<'_>, capture: Option<bool>) {
    let Some(open) = cx.s().interrupt.clone() else {
        return;
    };
    let Some(acted_at) = open.acted_at else {
        return;
    };
    if let Some(changed) = capture {
        let line = cx.s().screen.as_ref().is_some_and(|s| s.facts.interrupted);
        let text = text_is_back(cx, open.turn);
        let count = |seen: u8, now: bool| match (now, changed) {
            (true, true) => 1,
            (true, false) => seen.saturating_add(1),
            (false, _) => 0,
        };
        update(cx, |i| {
            i.line_seen = count(i.line_seen, line);
            i.text_seen = count(i.text_seen, text);
        });
    }
    let idle_after =
        cx.s().registry_idle() && cx.s().registry.as_ref().is_some_and(|r| r.at > acted_at);
    update(cx, |i| i.idle_after |= idle_after);
    let Some(open) = cx.s().interrupt.clone() else {
        return;
    };
    let quiet = cx.s().registry.is_some() && !cx.s().registry_is_busy();
    if (open.means == Means::Answer && open.idle_after) || (open.line_seen >= 2 && quiet) {
        turns::end(cx, open.turn, Outcome::Interrupted, None);
    } else if open.text_seen >= 2 && quiet {
        withdraw(cx, open.turn);
    }
}

/// Whether the composer shows the turn's prompt. Any other text is somebody's draft.
fn text_is_back(cx: &Cx<'_>, turn: TurnKey) -> bool {
    let Some(turn) = cx.s().turn(turn) else {
        return false;
    };
    match cx.s().composer() {
        Some(Composer::Text { text }) => text_match::composer_shows(&turn.prompt, text),
        // Too tall to be painted with its mark, and nothing but our prompt can have come back.
        _ => !turn.output && jobs::holds_text(cx.s(), &turn.prompt),
    }
}

fn withdraw(cx: &mut Cx<'_>, key: TurnKey) {
    let Some(prompt) = cx.s().turn(key).map(|turn| turn.prompt.clone()) else {
        return;
    };
    turns::end(cx, key, Outcome::Withdrawn, Some(prompt));
    cx.session(SessionChange::Dirty(true));
    if cx.s().job.is_none() && !cx.s().over() {
        jobs::start_clear(cx);
    }
}

/// A turn has ended: an interrupt of it has its answer.
pub(crate) fn turn_ended(cx: &mut Cx<'_>, turn: TurnKey, outcome: &Outcome) {
    if cx
        .s()
        .interrupt
        .as_ref()
        .is_none_or(|open| open.turn != turn)
    {
        return;
    }
    let end = match outcome {
        Outcome::Interrupted
        | Outcome::Withdrawn
        | Outcome::NotSubmitted(NotSubmitted::Cancelled) => InterruptEnd::Confirmed,
        Outcome::Completed
        | Outcome::Failed { .. }
        | Outcome::NotSubmitted(_)
        | Outcome::Aborted { .. } => InterruptEnd::TooLate,
        Outcome::Unknown { .. } => InterruptEnd::Unconfirmed,
    };
    let escaped = cx
        .s()
        .interrupt
        .as_ref()
        .is_some_and(|open| open.means == Means::Escape);
    if escaped && end == InterruptEnd::TooLate && !cx.s().deadlines.armed(Row::EscapeGap, 0) {
        cx.session(SessionChange::LateEscape);
    }
    close(cx, Some(turn), end);
}

fn close(cx: &mut Cx<'_>, turn: Option<TurnKey>, end: InterruptEnd) {
    cx.disarm(Row::Interrupt, 0);
    cx.disarm(Row::EscapeGap, 0);
    cx.set(Change::Interrupt(None));
    cx.event(DomainEvent::InterruptEnded { turn, end });
}

/// No evidence within the limit.
pub(crate) fn deadline(cx: &mut Cx<'_>) {
    if let Some(open) = cx.s().interrupt.clone() {
        close(cx, Some(open.turn), InterruptEnd::Unconfirmed);
    }
}

impl crate::state::Domain {
    /// Whether the registry says that a turn or an agent runs.
    pub(crate) fn registry_is_busy(&self) -> bool {
        matches!(self.registry_status(), Some(RegistryStatus::Busy))
    }
}
