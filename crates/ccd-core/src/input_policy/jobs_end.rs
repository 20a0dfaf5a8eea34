//! How an input job ends: receipt, failure with its reason, cancellation, the clean composer. Every prompt job ends its turn or hands it over exactly once.

use alloc::sync::Arc;

use ccd_model::{
    event::StartFailure,
    intent::{Intent, KeyHeld},
    outcome::{NotSubmitted, Outcome},
};

use crate::{
    cx::Cx,
    decide::{close, start, turns},
    evolve::SessionChange,
    input_policy::jobs::{self, CLEARS, INJECTS},
    state::{Job, JobWhat, Phase, Then},
};

/// Ends the job itself: nothing of it is armed any more.
pub(crate) fn drop_job(cx: &mut Cx<'_>) {
    jobs::enter_phase(cx, Phase::Receipt);
    cx.job(None);
}

/// Ends the job and takes the guard back.
pub(crate) fn drop_and_disarm(cx: &mut Cx<'_>) {
    let guarded = cx
        .s()
        .job
        .as_ref()
        .is_some_and(|job| matches!(job.what, JobWhat::Prompt(_) | JobWhat::SelfTest));
    drop_job(cx);
    if guarded {
        cx.intent(Intent::Disarm);
    }
}

/// The exact text arrived: the job is done. A second injection that is under way is withdrawn.
pub(crate) fn received(cx: &mut Cx<'_>) {
    let Some(job) = cx.s().job.clone() else {
        return;
    };
    if job.staged.is_some() {
        jobs::withdraw(cx);
        cx.session(SessionChange::Dirty(true));
    }
    drop_and_disarm(cx);
}

/// What a job's failure means for what it was for.
pub(super) fn failure(job: &Job, why: NotSubmitted, self_test: &'static str) -> Then {
    match job.what {
        JobWhat::Prompt(_) => Then::End(why),
        JobWhat::SelfTest => Then::SelfTestFailed(self_test),
        JobWhat::Exit | JobWhat::Clear => Then::Done,
    }
}

/// Why the composer was not free.
pub(super) fn busy(held: Option<KeyHeld>) -> NotSubmitted {
    let what = match held {
        Some(KeyHeld::Dialog) => "a dialog",
        Some(KeyHeld::NotPainted) => "the composer was not painted",
        None => return NotSubmitted::EditorSilent,
    };
    NotSubmitted::ComposerBusy {
        what: Arc::from(what),
    }
}

/// The editor did not take the text, and it never will.
pub(super) fn editor_failed(cx: &mut Cx<'_>) {
    let Some(job) = cx.s().job.clone() else {
        return;
    };
    if job.cancelled {
        return finish(cx, Then::End(NotSubmitted::Cancelled));
    }
    match job.then.clone() {
        Some(then) if job.clears < CLEARS => jobs::clear(cx, then),
        Some(_) => give_clearing_up(cx),
        None if job.injects < INJECTS => jobs::inject(cx),
        None => {
            let then = failure(&job, busy(job.held), "the editor never took the text");
            finish(cx, then);
        }
    }
}

/// The composer was seen empty twice.
pub(super) fn cleared(cx: &mut Cx<'_>) {
    cx.session(SessionChange::Dirty(false));
    let then = cx.s().job.as_ref().and_then(|job| job.then.clone());
    finish(cx, then.unwrap_or(Then::Done));
}

/// Text stands in the composer after it was cleared.
pub(super) fn not_cleared(cx: &mut Cx<'_>) {
    let Some(job) = cx.s().job.clone() else {
        return;
    };
    match job.then {
        Some(then) if job.clears < CLEARS => jobs::clear(cx, then),
        Some(_) | None => give_clearing_up(cx),
    }
}

/// The composer could not be cleared: what stands there is treated as foreign from now on, unless a prompt job leaves it behind.
pub(super) fn give_clearing_up(cx: &mut Cx<'_>) {
    let Some(job) = cx.s().job.clone() else {
        return;
    };
    cx.session(SessionChange::Dirty(job.what != JobWhat::Clear));
    let then = match job.then {
        Some(Then::Reinject) => failure(
            &job,
            NotSubmitted::ComposerBusy {
                what: Arc::from("text that could not be cleared"),
            },
            "the composer could not be cleared",
        ),
        Some(Then::SelfTested) => Then::SelfTestFailed("the composer could not be cleared"),
        Some(then) => then,
        None => Then::Done,
    };
    finish(cx, then);
}

/// The text left the composer and nothing acknowledged it. The guard stays armed: a later receipt is told of, never submitted again.
pub(super) fn no_receipt_at_all(cx: &mut Cx<'_>, job: &Job) {
    match job.what {
        JobWhat::Prompt(turn) => {
            drop_job(cx);
            let reason =
                Arc::from("Enter was pressed, the text left the composer, no receipt came");
            turns::end(cx, turn, Outcome::Unknown { reason }, None);
        }
        JobWhat::SelfTest => finish(cx, Then::SelfTestFailed("no receipt")),
        JobWhat::Exit | JobWhat::Clear => drop_job(cx),
    }
}

/// The composer is clean, or as clean as it gets: what was to follow follows.
pub(super) fn finish(cx: &mut Cx<'_>, then: Then) {
    let Some(job) = cx.s().job.clone() else {
        return;
    };
    match then {
        Then::Reinject => jobs::inject(cx),
        Then::End(why) => {
            drop_and_disarm(cx);
            if let Some(turn) = jobs::prompt_of(&job) {
                turns::end(cx, turn, Outcome::NotSubmitted(why), None);
            }
        }
        Then::SelfTested => {
            drop_and_disarm(cx);
            cx.session(SessionChange::SelfTested);
            start::ready(cx);
        }
        Then::SelfTestFailed(reason) => {
            drop_and_disarm(cx);
            let reason = Arc::from(reason);
            start::fail(cx, StartFailure::SelfTest { reason });
        }
        Then::Done => {
            drop_job(cx);
            if job.what == JobWhat::Exit {
                close::exit_command_failed(cx);
            }
        }
    }
}

/// The caller wants the prompt back. `true`: it will not be submitted; `false`: Enter may have been pressed already.
pub(crate) fn cancel(cx: &mut Cx<'_>) -> bool {
    let Some(job) = cx.s().job.clone() else {
        return false;
    };
    match job.phase {
        Phase::Editor if job.then.is_none() => {
            jobs::update(cx, |job| job.cancelled = true);
            jobs::unstage(cx);
            true
        }
        Phase::Unstaging if job.then.is_none() => {
            jobs::update(cx, |job| job.cancelled = true);
            true
        }
        Phase::Editor | Phase::Unstaging | Phase::AwaitReturn | Phase::ClearSeen => {
            jobs::update(cx, |job| {
                if job.then == Some(Then::Reinject) {
                    job.then = Some(Then::End(NotSubmitted::Cancelled));
                }
            });
            true
        }
        Phase::Enter | Phase::Receipt | Phase::Judge | Phase::LateReceipt => {
            jobs::update(cx, |job| job.cancelled = true);
            false
        }
    }
}
