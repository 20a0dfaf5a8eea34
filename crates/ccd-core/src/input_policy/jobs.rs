//! The input job: how a text gets into the composer and is submitted. One job at a time; keys are only pressed under a guard, a key whose end
//! was lost is never repeated blindly, and a text is never submitted twice. What ends a job is in `jobs_end`.
//!
//! ```text
//! Editor -taken-> Enter -pressed-> Receipt -no receipt-> Judge -text still there-> Editor (once more)
//!   |  not taken                                           |  text gone -> LateReceipt -> unknown
//!   v                                                      |  text still there, twice -> clear -> no_receipt
//! Unstaging -refused-> Editor (once more), then editor_silent
//! another text arrived: AwaitReturn -> clear (Editor with empty text) -> ClearSeen -> Editor (once more), then mismatch
//! ```

use alloc::{format, sync::Arc};

use ccd_model::{
    ids::{OpId, TurnKey},
    intent::{Intent, IoOp, Key, KeyGuard, KeyHeld, PromptGuard},
    observation::OpEnd,
    outcome::NotSubmitted,
    screen::{Composer, Surface},
};

use crate::{
    cx::Cx,
    deadlines::{Row, duration},
    decide::interrupt,
    evolve::{Change, SessionChange},
    input::DiagnosticKind,
    input_policy::jobs_end as end,
    state::{Domain, Job, JobWhat, OpKind, Phase, Then},
};

/// How long the editor key may be tried, milliseconds.
const EDITOR_KEY_MS: u32 = 1_200;
/// How long Enter may be tried, milliseconds: an Enter belongs to a fresh injection, because Claude holds dialogs back only that long.
const ENTER_KEY_MS: u32 = 1_000;
/// One more millisecond of Enter for each so many bytes: a large text takes longer to paint.
const ENTER_BYTES_PER_MS: usize = 512;
/// At most so many more.
const ENTER_EXTRA_MS: u32 = 2_000;
/// From this size on, bytes, Claude takes longer to acknowledge.
const LARGE: usize = 256 * 1_024;
/// The receipt deadline of a large text, milliseconds.
const LARGE_RECEIPT_MS: u64 = 4_000;
/// So long after the editor returned, milliseconds, a capture may still show the text from before.
const CLEAR_PAINT_MS: u64 = 300;
/// From so many painted rows on a text may be taller than the pane. Far below the pane's height: the rows are an estimate.
const TALL_ROWS: usize = 40;
/// Columns of a painted row, cautiously: wide characters take two.
const ROW_CHARS: usize = 120;
/// A text is injected at most so often.
pub(super) const INJECTS: u8 = 2;
/// The composer is cleared at most so often.
pub(super) const CLEARS: u8 = 3;

/// Whether the composer may be taller than the pane with this text in it.
pub(crate) fn is_tall(text: &str) -> bool {
    let rows = text.lines().map(|line| {
        line.chars()
            .count()
            .wrapping_div(ROW_CHARS)
            .saturating_add(1)
    });
    rows.fold(0, usize::saturating_add) >= TALL_ROWS
}

/// Whether the composer shows text: painted, or unreadable where `text` would be too tall to be painted with its mark.
pub(crate) fn holds_text(d: &Domain, text: &str) -> bool {
    match d.composer() {
        Some(Composer::Text { .. }) => true,
        Some(Composer::Unknown) => d.surface() == Some(&Surface::Main) && is_tall(text),
        Some(Composer::Empty | Composer::Shell) | None => false,
    }
}

/// Starts a job that delivers `text`.
pub(crate) fn start(cx: &mut Cx<'_>, what: JobWhat, text: Arc<str>) {
    let job = Job {
        key: cx.s().counters.job(),
        what,
        text,
        phase: Phase::Editor,
        since: cx.now(),
        injects: 0,
        clears: 0,
        mismatches: 0,
        then: None,
        staged: None,
        held: None,
        entered: false,
        taken: false,
        cancelled: false,
        seen: 0,
    };
    cx.job(Some(job));
    inject(cx);
}

/// Starts a job that clears text of ours from the composer.
pub(crate) fn start_clear(cx: &mut Cx<'_>) {
    let key = cx.s().counters.job();
    let since = cx.now();
    cx.job(Some(Job {
        key,
        what: JobWhat::Clear,
        text: Arc::from(""),
        phase: Phase::Editor,
        since,
        injects: 0,
        clears: 0,
        mismatches: 0,
        then: Some(Then::Done),
        staged: None,
        held: None,
        entered: false,
        taken: false,
        cancelled: false,
        seen: 0,
    }));
    clear(cx, Then::Done);
}

/// Changes the job in hand.
pub(super) fn update(cx: &mut Cx<'_>, change: impl FnOnce(&mut Job)) {
    if let Some(mut job) = cx.s().job.clone() {
        change(&mut job);
        cx.job(Some(job));
    }
}

/// Moves the job to `phase` and takes the deadlines of the phase before back.
pub(super) fn enter_phase(cx: &mut Cx<'_>, phase: Phase) {
    let now = cx.now();
    let Some(id) = cx.s().job.as_ref().map(|job| job.key.0) else {
        return;
    };
    for row in [
        Row::Editor,
        Row::Unstage,
        Row::EnterEnd,
        Row::Receipt,
        Row::Judge,
        Row::LateReceipt,
        Row::TextReturn,
        Row::ClearSeen,
    ] {
        cx.disarm(row, id);
    }
    update(cx, |job| {
        job.phase = phase;
        job.since = now;
        job.seen = 0;
    });
}

/// Lays the text out and tries the editor key.
pub(super) fn inject(cx: &mut Cx<'_>) {
    let Some(job) = cx.s().job.clone() else {
        return;
    };
    let guard = match job.what {
        JobWhat::SelfTest => Some(true),
        JobWhat::Prompt(_) => Some(false),
        JobWhat::Exit | JobWhat::Clear => None,
    };
    if let Some(self_test) = guard {
        cx.intent(Intent::Arm(PromptGuard {
            job: job.key,
            text: job.text.clone(),
            self_test,
        }));
    }
    update(cx, |job| {
        job.injects = job.injects.saturating_add(1);
        job.then = None;
        job.entered = false;
    });
    open_editor(cx, laid_out(&job.text));
}

/// What the composer is given: a backslash at the end would turn Enter into a newline, and a blank behind it is trimmed on submission.
fn laid_out(text: &Arc<str>) -> Arc<str> {
    if text.ends_with('\\') {
        Arc::from(format!("{text} "))
    } else {
        text.clone()
    }
}

/// Clears the composer; `then` follows.
pub(super) fn clear(cx: &mut Cx<'_>, then: Then) {
    update(cx, |job| {
        job.clears = job.clears.saturating_add(1);
        job.then = Some(then);
    });
    open_editor(cx, Arc::from(""));
}

fn open_editor(cx: &mut Cx<'_>, text: Arc<str>) {
    enter_phase(cx, Phase::Editor);
    let Some(id) = cx.s().job.as_ref().map(|job| job.key.0) else {
        return;
    };
    // Until a text of ours is in it, the composer has to be empty: a draft that nobody has captured yet is not ours to replace.
    // The editor key has no effect on a dialog.
    let guard = match cx.s().job.as_ref() {
        Some(job) if !job.taken && job.then.is_none() => KeyGuard::EmptyComposer,
        Some(_) | None => KeyGuard::TallComposer,
    };
    let staged = cx.io(OpKind::Stage, IoOp::Stage { text });
    cx.io(
        OpKind::Editor,
        IoOp::Key {
            key: Key::CtrlG,
            guard,
            within_ms: EDITOR_KEY_MS,
        },
    );
    update(cx, |job| job.staged = Some(staged));
    cx.arm(Row::Editor, id);
}

/// Withdraws the staged text: it must not be taken later.
pub(super) fn unstage(cx: &mut Cx<'_>) {
    let Some(job) = cx.s().job.clone() else {
        return;
    };
    let Some(op) = job.staged else {
        return;
    };
    enter_phase(cx, Phase::Unstaging);
    cx.io(OpKind::Unstage, IoOp::Unstage { op });
    cx.arm(Row::Unstage, job.key.0);
}

/// Withdraws the staged text without waiting for it: the job is about to end.
pub(crate) fn withdraw(cx: &mut Cx<'_>) {
    if let Some(op) = cx.s().job.as_ref().and_then(|job| job.staged) {
        cx.io(OpKind::Unstage, IoOp::Unstage { op });
    }
}

fn press_enter(cx: &mut Cx<'_>) {
    let Some(job) = cx.s().job.clone() else {
        return;
    };
    enter_phase(cx, Phase::Enter);
    let extra = u32::try_from(job.text.len().wrapping_div(ENTER_BYTES_PER_MS))
        .unwrap_or(ENTER_EXTRA_MS)
        .min(ENTER_EXTRA_MS);
    let within_ms = ENTER_KEY_MS.saturating_add(extra);
    let guard = if is_tall(&job.text) {
        KeyGuard::TallComposer
    } else {
        KeyGuard::Composer
    };
    cx.io(
        OpKind::Enter,
        IoOp::Key {
            key: Key::Enter,
            guard,
            within_ms,
        },
    );
    let wait = u64::from(within_ms).saturating_add(duration(Row::EnterEnd));
    cx.arm_for(Row::EnterEnd, job.key.0, wait);
}

fn wait_for_receipt(cx: &mut Cx<'_>) {
    update(cx, |job| job.entered = true);
    let Some(job) = cx.s().job.clone() else {
        return;
    };
    enter_phase(cx, Phase::Receipt);
    match job.what {
        JobWhat::Exit => {}
        JobWhat::SelfTest | JobWhat::Prompt(_) | JobWhat::Clear => {
            let wait = if job.text.len() > LARGE {
                LARGE_RECEIPT_MS
            } else {
                duration(Row::Receipt)
            };
            cx.arm_for(Row::Receipt, job.key.0, wait);
        }
    }
}

/// Takes a capture that decides about a missing receipt.
fn judge(cx: &mut Cx<'_>) {
    update(cx, |job| job.entered = true);
    let Some(id) = cx.s().job.as_ref().map(|job| job.key.0) else {
        return;
    };
    enter_phase(cx, Phase::Judge);
    cx.io(OpKind::Capture, IoOp::Capture);
    cx.arm(Row::Judge, id);
}

/// Decides about a missing receipt on what the screen shows.
fn verdict(cx: &mut Cx<'_>) {
    let Some(job) = cx.s().job.clone() else {
        return;
    };
    let fresh = cx
        .s()
        .screen
        .as_ref()
        .is_some_and(|seen| seen.at >= job.since);
    if fresh && holds_text(cx.s(), &job.text) {
        still_there(cx, &job);
    } else {
        enter_phase(cx, Phase::LateReceipt);
        cx.arm(Row::LateReceipt, job.key.0);
    }
}

/// Enter had no effect: the text is still in the composer. A draft that is no longer fresh is injected again before the next Enter.
fn still_there(cx: &mut Cx<'_>, job: &Job) {
    if job.cancelled {
        clear(cx, Then::End(NotSubmitted::Cancelled));
    } else if job.injects < INJECTS {
        inject(cx);
    } else {
        clear(cx, end::failure(job, NotSubmitted::NoReceipt, "no receipt"));
    }
}

/// An operation of the job, or any other, has ended.
pub(crate) fn on_op(cx: &mut Cx<'_>, op: OpId, end: &OpEnd) {
    let Some(what) = cx.s().ops.get(&op).copied() else {
        cx.diag(DiagnosticKind::Unmatched, format!("operation {op}"));
        return;
    };
    cx.set(Change::OpEnded(op));
    match what.kind {
        OpKind::Escape => return interrupt::escape_ended(cx, end),
        OpKind::Dismiss | OpKind::Signal => {
            if !matches!(end, OpEnd::Done) {
                cx.diag(DiagnosticKind::Operation, format!("{op} ended {end:?}"));
            }
            return;
        }
        OpKind::Stage | OpKind::Unstage | OpKind::Editor | OpKind::Enter | OpKind::Capture => {}
    }
    let Some(job) = cx.s().job.clone().filter(|job| what.job == Some(job.key)) else {
        late_op(cx, what.kind, end);
        return;
    };
    match what.kind {
        OpKind::Stage if job.staged == Some(op) => stage_ended(cx, &job, end),
        OpKind::Editor if job.phase == Phase::Editor => editor_key_ended(cx, end),
        OpKind::Enter if job.phase == Phase::Enter => enter_ended(cx, &job, end),
        OpKind::Capture if job.phase == Phase::Judge => verdict(cx),
        OpKind::Stage
        | OpKind::Unstage
        | OpKind::Editor
        | OpKind::Enter
        | OpKind::Capture
        | OpKind::Escape
        | OpKind::Dismiss
        | OpKind::Signal => {}
    }
}

/// A job that is over left an operation behind. A staged text that was taken after all stands in the composer.
fn late_op(cx: &mut Cx<'_>, kind: OpKind, end: &OpEnd) {
    if kind == OpKind::Stage && matches!(end, OpEnd::Taken { .. }) {
        cx.session(SessionChange::Dirty(true));
    }
}

fn stage_ended(cx: &mut Cx<'_>, job: &Job, end: &OpEnd) {
    if !matches!(job.phase, Phase::Editor | Phase::Unstaging) {
        return;
    }
    update(cx, |job| {
        job.staged = None;
        job.taken |= matches!(end, OpEnd::Taken { .. });
    });
    match end {
        OpEnd::Taken { .. } if job.then.is_some() => {
            enter_phase(cx, Phase::ClearSeen);
            cx.arm(Row::ClearSeen, job.key.0);
        }
        OpEnd::Taken { .. } if job.cancelled => clear(cx, Then::End(NotSubmitted::Cancelled)),
        OpEnd::Taken { .. } => press_enter(cx),
        OpEnd::Unknown => {
            cx.session(SessionChange::Dirty(true));
            end::editor_failed(cx);
        }
        OpEnd::Done | OpEnd::Held { .. } | OpEnd::Refused { .. } => end::editor_failed(cx),
    }
}

fn editor_key_ended(cx: &mut Cx<'_>, end: &OpEnd) {
    match end {
        // Pressed, or perhaps pressed: the editor takes the text, or the deadline passes.
        OpEnd::Done | OpEnd::Taken { .. } | OpEnd::Unknown => {}
        OpEnd::Held { held } => {
            let held = *held;
            update(cx, |job| job.held = Some(held));
            unstage(cx);
        }
        OpEnd::Refused { .. } => unstage(cx),
    }
}

fn enter_ended(cx: &mut Cx<'_>, job: &Job, end: &OpEnd) {
    match end {
        OpEnd::Done | OpEnd::Taken { .. } => wait_for_receipt(cx),
        OpEnd::Unknown => judge(cx),
        OpEnd::Held { held } => not_pressed(cx, job, *held),
        OpEnd::Refused { .. } => not_pressed(cx, job, KeyHeld::NotPainted),
    }
}

/// Enter was not pressed. The draft is not fresh any more.
fn not_pressed(cx: &mut Cx<'_>, job: &Job, held: KeyHeld) {
    update(cx, |job| job.held = Some(held));
    if job.cancelled {
        clear(cx, Then::End(NotSubmitted::Cancelled));
    } else if job.injects < INJECTS {
        inject(cx);
    } else {
        clear(
            cx,
            end::failure(job, end::busy(Some(held)), "Enter was held back"),
        );
    }
}

/// The screen was captured: counts equal captures that show what the phase waits for.
pub(crate) fn on_screen(cx: &mut Cx<'_>, changed: bool) {
    let Some(job) = cx.s().job.clone() else {
        return;
    };
    let wanted = match job.phase {
        Phase::AwaitReturn | Phase::LateReceipt => holds_text(cx.s(), &job.text),
        Phase::ClearSeen => cx.s().composer() == Some(&Composer::Empty),
        Phase::Editor | Phase::Unstaging | Phase::Enter | Phase::Receipt | Phase::Judge => return,
    };
    let seen = match (wanted, changed) {
        (true, true) => 1,
        (true, false) => job.seen.saturating_add(1),
        (false, _) => 0,
    };
    update(cx, |job| job.seen = seen);
    match job.phase {
        Phase::AwaitReturn if seen >= 1 => clear(cx, job.then.unwrap_or(Then::Done)),
        Phase::LateReceipt if seen >= 2 => still_there(cx, &job),
        Phase::ClearSeen if seen >= 2 => end::cleared(cx),
        Phase::ClearSeen
            if cx.now().since(job.since) >= CLEAR_PAINT_MS
                && cx.s().screen_stable()
                && holds_text(cx.s(), &job.text) =>
        {
            end::not_cleared(cx);
        }
        Phase::Editor
        | Phase::Unstaging
        | Phase::Enter
        | Phase::Receipt
        | Phase::Judge
        | Phase::LateReceipt
        | Phase::AwaitReturn
        | Phase::ClearSeen => {}
    }
}

/// A deadline of the job has passed.
pub(crate) fn on_deadline(cx: &mut Cx<'_>, row: Row, id: u32) {
    let Some(job) = cx.s().job.clone().filter(|job| job.key.0 == id) else {
        return;
    };
    match row {
        Row::Editor => unstage(cx),
        Row::Unstage => {
            cx.session(SessionChange::Dirty(true));
            update(cx, |job| job.staged = None);
            end::editor_failed(cx);
        }
        Row::EnterEnd | Row::Receipt => judge(cx),
        Row::Judge => verdict(cx),
        Row::LateReceipt => end::no_receipt_at_all(cx, &job),
        Row::TextReturn => clear(cx, job.then.unwrap_or(Then::Done)),
        Row::ClearSeen => end::give_clearing_up(cx),
        Row::Start
        | Row::CloseTerm
        | Row::CloseKill
        | Row::ExitEvidence
        | Row::ComposerFree
        | Row::Settle
        | Row::Quiet
        | Row::Superseded
        | Row::Hosted
        | Row::ToolStart
        | Row::Effect
        | Row::Unreported
        | Row::Interrupt
        | Row::AgentGone
        | Row::UsageWake
        | Row::Menu
        | Row::EscapeGap => {}
    }
}

/// Another text than the job's arrived at the hook and was blocked; it comes back to the composer.
pub(crate) fn blocked(cx: &mut Cx<'_>, then: Then) {
    let Some(id) = cx.s().job.as_ref().map(|job| job.key.0) else {
        return;
    };
    update(cx, |job| job.then = Some(then));
    enter_phase(cx, Phase::AwaitReturn);
    cx.arm(Row::TextReturn, id);
}

/// Another text arrived once more.
pub(crate) fn note_mismatch(cx: &mut Cx<'_>) {
    update(cx, |job| job.mismatches = job.mismatches.saturating_add(1));
}

/// The turn of the prompt job in hand.
pub(crate) fn prompt_of(job: &Job) -> Option<TurnKey> {
    match job.what {
        JobWhat::Prompt(turn) => Some(turn),
        JobWhat::SelfTest | JobWhat::Exit | JobWhat::Clear => None,
    }
}
