//! When a held prompt may be delivered, and what happens while the composer is not free. How it is delivered is in `jobs`.

use alloc::sync::Arc;

use ccd_model::{
    fact::Source,
    ids::TurnKey,
    observation::RegistryStatus,
    outcome::{NotSubmitted, Outcome},
    screen::{Composer, Surface},
    status::{Lifecycle, TurnStatus},
};

use crate::{
    cx::Cx,
    deadlines::Row,
    decide::turns,
    evolve::{SessionChange, TurnChange},
    input_policy::jobs,
    state::{Domain, JobWhat},
};

/// Delivers the oldest held prompt if it may be delivered now.
pub(crate) fn pump(cx: &mut Cx<'_>) {
    if clean_again(cx.s()) {
        cx.session(SessionChange::Dirty(false));
    }
    let Some(front) = cx.s().queue.front().copied() else {
        return;
    };
    if !session_is_free(cx.s()) {
        cx.disarm(Row::ComposerFree, front.0);
        return;
    }
    match composer_state(cx.s()) {
        Free::Yes => {
            cx.disarm(Row::ComposerFree, front.0);
            deliver(cx, front);
        }
        Free::Ours => {
            cx.disarm(Row::ComposerFree, front.0);
            jobs::start_clear(cx);
        }
        Free::No(_) => cx.arm_once(Row::ComposerFree, front.0),
    }
}

/// The composer was not free for as long as a held prompt may wait.
pub(crate) fn composer_never_free(cx: &mut Cx<'_>, id: u32) {
    let front = TurnKey(id);
    if cx.s().queue.front() != Some(&front) || !session_is_free(cx.s()) {
        return;
    }
    if let Free::No(what) = composer_state(cx.s()) {
        let why = NotSubmitted::ComposerBusy {
            what: Arc::from(what),
        };
        turns::end(cx, front, Outcome::NotSubmitted(why), None);
    }
}

fn deliver(cx: &mut Cx<'_>, key: TurnKey) {
    let Some(text) = cx.s().turn(key).map(|turn| turn.prompt.clone()) else {
        return;
    };
    cx.turn(
        key,
        TurnChange::Advance(TurnStatus::Submitting, Source::Own),
    );
    jobs::start(cx, JobWhat::Prompt(key), text);
}

/// The composer was seen empty twice, and for the last time after it may have become dirty.
fn clean_again(d: &Domain) -> bool {
    d.session.dirty.is_some_and(|since| {
        d.job.is_none()
            && d.composer() == Some(&Composer::Empty)
            && d.screen_stable()
            && d.screen.as_ref().is_some_and(|seen| seen.at > since)
    })
}

/// Whether nothing runs, is asked, or is being typed. One prompt is one turn.
fn session_is_free(d: &Domain) -> bool {
    d.life() == Lifecycle::Ready
        && d.job.is_none()
        && d.interrupt.is_none()
        && d.current().is_none()
        && d.submitting().is_none()
        && d.open_permissions.is_empty()
        && !d.deadlines.armed(Row::Menu, 0)
        && !busy_without_a_turn(d)
}

/// A turn ended without evidence, and Claude still works: most likely on that very prompt.
fn busy_without_a_turn(d: &Domain) -> bool {
    let unknown = d
        .last_ended
        .and_then(|key| d.turn(key))
        .is_some_and(|turn| turn.status.get() == TurnStatus::Unknown);
    unknown
        && d.open_agents.is_empty()
        && matches!(
            d.registry_status(),
            Some(RegistryStatus::Busy | RegistryStatus::Waiting { .. })
        )
}

enum Free {
    Yes,
    Ours,
    No(&'static str),
}

fn composer_state(d: &Domain) -> Free {
    match d.surface() {
        None | Some(Surface::Blank) => Free::No("the screen is blank"),
        Some(Surface::WrongRenderer) => Free::No("the screen cannot be read"),
        Some(Surface::PermissionDialog { .. }) => Free::No("a permission dialog"),
        Some(Surface::QuestionDialog { .. }) => Free::No("a question"),
        Some(Surface::PlanDialog { .. }) => Free::No("a plan"),
        Some(Surface::StartupGate { .. }) => Free::No("a start-up dialog"),
        Some(Surface::UsageLimitMenu) => Free::No("the usage-limit menu"),
        Some(Surface::ExitDialog) => Free::No("the exit dialog"),
        Some(Surface::Modal { .. } | Surface::UnknownModal { .. }) => Free::No("a dialog"),
        Some(Surface::Main) => match d.composer() {
            Some(Composer::Empty) if d.session.dirty.is_some() => {
                Free::No("a composer that may have changed since it was seen")
            }
            Some(Composer::Empty) => Free::Yes,
            // What cannot be read may be a text of ours that is taller than the pane.
            Some(Composer::Text { .. } | Composer::Unknown) if d.session.dirty.is_some() => {
                Free::Ours
            }
            Some(Composer::Text { .. }) => Free::No("text that is not ours"),
            Some(Composer::Shell) => Free::No("shell mode"),
            Some(Composer::Unknown) | None => Free::No("a composer that cannot be read"),
        },
    }
}
