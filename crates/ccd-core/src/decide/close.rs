//! How a session ends: the exit command when nothing runs, signals otherwise, escalation by deadline, and the end itself.

use alloc::{sync::Arc, vec::Vec};

use ccd_model::{
    command::{Accepted, CloseHow, Refusal},
    event::{DomainEvent, StartFailure},
    fact::Source,
    ids::TurnKey,
    intent::{Intent, IoOp, Signal},
    observation::LostPart,
    outcome::{NotSubmitted, Outcome},
    permission::DecidedBy,
    screen::{Composer, Surface},
    status::{Lifecycle, TurnStatus},
    view::ExitView,
};

use crate::{
    closing,
    cx::Cx,
    deadlines::Row,
    decide::{permissions, turns},
    evolve::{Change, SessionChange},
    input::DiagnosticKind,
    input_policy::{jobs, jobs_end},
    state::{Closing, JobWhat},
};

/// Close, by the caller. Kill escalates a close that is under way.
pub(crate) fn ask(cx: &mut Cx<'_>, how: CloseHow) -> Result<Accepted, Refusal> {
    match cx.s().life() {
        Lifecycle::Exited => return Err(Refusal::SessionOver),
        Lifecycle::Closing => {}
        Lifecycle::Starting | Lifecycle::Ready => begin(cx, "closed by the caller", true),
    }
    match how {
        CloseHow::Kill => signal(cx, Signal::Kill),
        CloseHow::Graceful => {
            let s = cx.s().session.closing.as_ref();
            let fresh = s.is_some_and(|closing| !closing.term_sent && !closing.kill_sent);
            if fresh && cx.s().job.is_none() {
                leave(cx);
            }
        }
    }
    Ok(Accepted::Done)
}

/// Close because something failed.
pub(crate) fn after_failure(cx: &mut Cx<'_>, reason: &str) {
    if !cx.s().over() {
        begin(cx, reason, false);
        signal(cx, Signal::Term);
    }
}

/// Nothing begins any more: what is held is given back, what is asked is denied.
fn begin(cx: &mut Cx<'_>, reason: &str, asked: bool) {
    cx.session(SessionChange::Life(Lifecycle::Closing, Source::Own));
    cx.session(SessionChange::Closing(Closing {
        reason: Arc::from(reason),
        asked,
        term_sent: false,
        kill_sent: false,
    }));
    cx.disarm(Row::Start, 0);
    let held: Vec<TurnKey> = cx.s().queue.iter().copied().collect();
    for turn in held {
        closed_before_delivery(cx, turn);
    }
    permissions::deny_all(cx, DecidedBy::Close, "The session is closing.");
    if let Some(job) = cx.s().job.clone() {
        if job.staged.is_some() {
            jobs::withdraw(cx);
        }
        jobs_end::drop_and_disarm(cx);
        if let Some(turn) = jobs::prompt_of(&job).filter(|_| !job.may_have_entered()) {
            closed_before_delivery(cx, turn);
        }
    }
    let ms = cx.config.limits.close_ms;
    cx.arm_for(Row::CloseTerm, 0, ms.wrapping_div(2));
    cx.arm_for(Row::CloseKill, 0, ms);
}

fn closed_before_delivery(cx: &mut Cx<'_>, turn: TurnKey) {
    let outcome = Outcome::NotSubmitted(NotSubmitted::SessionClosed);
    turns::end(cx, turn, outcome, None);
}

/// Leaves by the exit command when nothing runs and the composer is clean, else by a signal.
fn leave(cx: &mut Cx<'_>) {
    let clean = cx.s().composer() == Some(&Composer::Empty) && cx.s().session.dirty.is_none();
    let ready = cx.s().session.hook_started && cx.s().open_turns.is_empty() && cx.s().job.is_none();
    if clean && ready && cx.s().background.is_empty() && cx.s().open_agents.is_empty() {
        let text = cx.config.vocabulary.exit_command.clone();
        jobs::start(cx, JobWhat::Exit, text);
    } else {
        signal(cx, Signal::Term);
    }
}

fn signal(cx: &mut Cx<'_>, signal: Signal) {
    let Some(mut closing) = cx.s().session.closing.clone() else {
        return;
    };
    let sent = match signal {
        Signal::Term => &mut closing.term_sent,
        Signal::Kill => &mut closing.kill_sent,
    };
    if core::mem::replace(sent, true) {
        return;
    }
    cx.session(SessionChange::Closing(closing));
    cx.io(crate::state::OpKind::Signal, IoOp::Signal { signal });
    if signal == Signal::Kill {
        cx.disarm(Row::CloseTerm, 0);
        cx.disarm(Row::CloseKill, 0);
        cx.arm(Row::ExitEvidence, 0);
    }
}

/// The exit command did not get through.
pub(crate) fn exit_command_failed(cx: &mut Cx<'_>) {
    escalate_term(cx);
}

/// The first escalation.
pub(crate) fn escalate_term(cx: &mut Cx<'_>) {
    let killed = cx.s().session.closing.as_ref().is_some_and(|c| c.kill_sent);
    if !killed {
        signal(cx, Signal::Term);
    }
}

/// The second escalation.
pub(crate) fn escalate_kill(cx: &mut Cx<'_>) {
    signal(cx, Signal::Kill);
}

/// Nothing reported the end of a killed process.
pub(crate) fn no_exit_evidence(cx: &mut Cx<'_>) {
    let reason = cx.s().session.closing.as_ref().map(|c| c.reason.clone());
    let reason = reason.unwrap_or_else(|| Arc::from("killed"));
    finish(cx, None, None, false, reason);
}

/// Exit was asked for, and a dialog about background work stands in the way.
pub(crate) fn on_screen(cx: &mut Cx<'_>) {
    if cx.s().life() == Lifecycle::Closing && cx.s().surface() == Some(&Surface::ExitDialog) {
        escalate_term(cx);
    }
}

/// Claude ended.
pub(crate) fn exited(cx: &mut Cx<'_>, pid: u32, code: Option<i32>, by_signal: Option<i32>) {
    let s = &cx.s().session;
    let pane = s.launched.as_ref().map(|launched| launched.pane_pid);
    if s.claude_pid.is_some_and(|ours| ours != pid) && pane != Some(pid) {
        cx.diag(DiagnosticKind::Unmatched, "the exit of another process");
        return;
    }
    let (clean, reason) = match (&s.closing, &s.end_reason) {
        (Some(closing), _) => (closing.asked && !closing.kill_sent, closing.reason.clone()),
        (None, Some(reason)) => (false, reason.clone()),
        (None, None) => (false, Arc::from("the process ended")),
    };
    if cx.s().life() == Lifecycle::Starting {
        let screen = start_screen(cx);
        cx.event(DomainEvent::SessionStartFailed {
            failure: StartFailure::Exited {
                code,
                signal: by_signal,
                screen,
            },
        });
    }
    finish(cx, code, by_signal, clean, reason);
}

/// What a start that failed left on the screen, as far as it is known.
fn start_screen(cx: &Cx<'_>) -> Arc<str> {
    if let Some(text) = &cx.s().session.last_screen {
        return text.clone();
    }
    match cx.s().surface() {
        Some(
            Surface::StartupGate { text, .. }
            | Surface::UnknownModal { text }
            | Surface::PermissionDialog { text, .. }
            | Surface::QuestionDialog { text }
            | Surface::PlanDialog { text },
        ) => text.clone(),
        Some(Surface::Modal { title }) => title.clone(),
        Some(
            Surface::Blank
            | Surface::WrongRenderer
            | Surface::Main
            | Surface::UsageLimitMenu
            | Surface::ExitDialog,
        )
        | None => Arc::from(""),
    }
}

/// A part of the machinery was lost. Without hooks, terminal or supervisor a running Claude is not under control: it is killed.
pub(crate) fn lost(cx: &mut Cx<'_>, part: LostPart) {
    let what = match part {
        LostPart::ControlClient => {
            cx.diag(DiagnosticKind::Lost, "the control client");
            return;
        }
        LostPart::TmuxServer => "the tmux server was lost",
        LostPart::HookServer => "the hook server was lost",
        LostPart::Supervisor => "the supervisor was lost",
    };
    cx.diag(DiagnosticKind::Lost, what);
    if cx.s().life() == Lifecycle::Starting {
        cx.event(DomainEvent::SessionStartFailed {
            failure: StartFailure::Lost {
                part: Arc::from(what),
            },
        });
    }
    if !cx.s().over() {
        begin(cx, what, false);
    }
    signal(cx, Signal::Kill);
}

/// The launcher gave up: everything open ends now.
pub(crate) fn abandon(cx: &mut Cx<'_>, reason: &Arc<str>) -> Result<Accepted, Refusal> {
    if cx.s().life() == Lifecycle::Exited {
        return Err(Refusal::SessionOver);
    }
    finish(cx, None, None, false, reason.clone());
    Ok(Accepted::Done)
}

/// The end: nothing open outlives the process.
fn finish(
    cx: &mut Cx<'_>,
    code: Option<i32>,
    by_signal: Option<i32>,
    clean: bool,
    reason: Arc<str>,
) {
    let source = cx.source;
    closing::session(cx, &reason);
    cx.session(SessionChange::Life(Lifecycle::Exited, source));
    cx.session(SessionChange::Exit(ExitView {
        code,
        signal: by_signal,
        clean,
        reason: reason.clone(),
    }));
    cx.set(Change::DisarmAll);
    cx.event(DomainEvent::SessionExited {
        code,
        signal: by_signal,
        clean,
        reason,
    });
    cx.intent(Intent::Finish);
}

/// How a turn ends when the process ends under it.
pub(crate) fn outcome_at_exit(status: TurnStatus, reason: &Arc<str>) -> Outcome {
    match status {
        TurnStatus::Queued => Outcome::NotSubmitted(NotSubmitted::SessionClosed),
        TurnStatus::Submitting
        | TurnStatus::Running
        | TurnStatus::Stopping
        | TurnStatus::Completed
        | TurnStatus::Failed
        | TurnStatus::Interrupted
        | TurnStatus::Withdrawn
        | TurnStatus::NotSubmitted
        | TurnStatus::Aborted
        | TurnStatus::Unknown => Outcome::Aborted {
            reason: reason.clone(),
        },
    }
}
