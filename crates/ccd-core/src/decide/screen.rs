//! Captures: stability, and everything that a stable screen may be evidence for. A single capture decides nothing.

use alloc::sync::Arc;

use ccd_model::{
    event::{Alert, DomainEvent},
    intent::{IoOp, Key, KeyGuard},
    screen::{ScreenFacts, Surface},
};

use crate::{
    cx::Cx,
    deadlines::Row,
    decide::{close, effects, interrupt, model_calls, session, start, usage},
    evolve::SessionChange,
    input_policy::jobs,
    state::{Domain, OpKind},
};

/// How long the key that closes a menu may be tried, milliseconds.
const DISMISS_KEY_MS: u32 = 500;

/// A capture that differs from the one before.
pub(crate) fn changed(cx: &mut Cx<'_>, facts: &ScreenFacts) {
    cx.session(SessionChange::Screen(facts.clone()));
    session::mode(cx, facts.mode.as_ref());
    model_calls::banner(cx, &facts.status_line);
    looked(cx, true);
}

/// The same frame once more.
pub(crate) fn same(cx: &mut Cx<'_>) {
    if cx.session(SessionChange::ScreenSame) {
        looked(cx, false);
    }
}

fn looked(cx: &mut Cx<'_>, changed: bool) {
    start::check(cx);
    jobs::on_screen(cx, changed);
    interrupt::review(cx, Some(changed));
    effects::review(cx);
    close::on_screen(cx);
    dismiss_menu(cx);
    unreported(cx);
}

/// The usage-limit menu opens by itself: Escape closes it, once for each appearance.
fn dismiss_menu(cx: &mut Cx<'_>) {
    let appeared = cx
        .s()
        .screen
        .as_ref()
        .is_some_and(|seen| seen.equal == 2 && seen.facts.surface == Surface::UsageLimitMenu);
    if appeared && !cx.s().over() {
        usage::menu_came(cx);
        cx.io(
            OpKind::Dismiss,
            IoOp::Key {
                key: Key::Escape,
                guard: KeyGuard::NoDialog,
                within_ms: DISMISS_KEY_MS,
            },
        );
    }
}

/// Text of a dialog that waits for a person.
pub(crate) fn waiting_dialog(surface: &Surface) -> Option<&Arc<str>> {
    match surface {
        Surface::PermissionDialog { text, .. }
        | Surface::QuestionDialog { text }
        | Surface::PlanDialog { text }
        | Surface::UnknownModal { text } => Some(text),
        Surface::Blank
        | Surface::WrongRenderer
        | Surface::Main
        | Surface::StartupGate { .. }
        | Surface::UsageLimitMenu
        | Surface::ExitDialog
        | Surface::Modal { .. } => None,
    }
}

/// Whether a dialog stands that no open request explains.
fn stands_alone(d: &Domain) -> bool {
    d.surface()
        .is_some_and(|surface| waiting_dialog(surface).is_some())
        && d.open_permissions.is_empty()
        && !d.over()
}

fn unreported(cx: &mut Cx<'_>) {
    if stands_alone(cx.s()) {
        if cx.s().session.alerted.as_ref() != cx.s().surface() {
            cx.arm_once(Row::Unreported, 0);
        }
    } else {
        cx.disarm(Row::Unreported, 0);
        let other = cx.s().surface() != cx.s().session.alerted.as_ref();
        if other && cx.s().session.alerted.is_some() {
            cx.session(SessionChange::Alerted(None));
        }
    }
}

/// A dialog has stood for long enough, and no hook has reported it.
pub(crate) fn unreported_deadline(cx: &mut Cx<'_>) {
    if !stands_alone(cx.s()) || !cx.s().screen_stable() {
        return;
    }
    let surface = cx.s().surface().cloned();
    if let Some(text) = surface.as_ref().and_then(waiting_dialog).cloned() {
        cx.session(SessionChange::Alerted(surface));
        cx.event(DomainEvent::Alert(Alert::UnreportedDialog { text }));
    }
}
