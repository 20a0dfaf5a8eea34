//! The session as a whole: generations, mode and model, the registry's word, compaction, gaps.

use alloc::sync::Arc;

use ccd_model::{
    event::{Alert, DomainEvent},
    fact::Source,
    intent::Intent,
    observation::{Observation as O, Observed, RegistryStatus, StartSource},
    status::Lifecycle,
};

use crate::{
    cx::Cx,
    decide::{agents, effects, interrupt, start, stop},
    evolve::SessionChange,
};

/// Whether an observation belongs to the conversation in force, or joins on ids that do not depend on it.
/// An unknown id named by a hook or the registry opens a new generation.
pub(crate) fn of_this_generation(cx: &mut Cx<'_>, observed: &Observed) -> bool {
    let Some(id) = &observed.session else {
        return true;
    };
    if *id == cx.s().session.id || matches!(observed.what, O::Launched(_)) {
        return true;
    }
    if cx.s().session.past_ids.contains(id) {
        let reopened = matches!(
            observed.what,
            O::SessionStarted {
                start: StartSource::Resume,
                ..
            }
        );
        if reopened {
            open_generation(cx, id, &observed.what);
        }
        return reopened || joins_on_ids(&observed.what);
    }
    if cx.s().life() == Lifecycle::Starting {
        let named = matches!(observed.what, O::SessionStarted { .. } | O::Registry { .. });
        if matches!(observed.what, O::SessionStarted { .. }) {
            cx.session(SessionChange::Id(id.clone()));
        }
        return named;
    }
    match observed.source {
        Source::Hook | Source::Registry => {
            open_generation(cx, id, &observed.what);
            true
        }
        Source::Own | Source::Screen | Source::Network | Source::Transcript | Source::Process => {
            joins_on_ids(&observed.what)
        }
    }
}

/// Holds, tools and agents are found by ids of their own; they never start or stop a turn.
fn joins_on_ids(what: &O) -> bool {
    matches!(
        what,
        O::PermissionGone { .. }
            | O::PermissionExpired { .. }
            | O::ToolPost { .. }
            | O::ToolFailed { .. }
            | O::ToolBatch { .. }
            | O::TxToolResult { .. }
            | O::AgentStopped { .. }
            | O::SessionEnded { .. }
            | O::OpEnded { .. }
            | O::Exited { .. }
            | O::Lost { .. }
            | O::Tick
    )
}

fn open_generation(cx: &mut Cx<'_>, id: &Arc<str>, what: &O) {
    cx.session(SessionChange::Generation(id.clone()));
    // Where another observation is first, the path follows with SessionStart.
    let path = if let O::SessionStarted {
        transcript_path, ..
    } = what
    {
        transcript_path.clone()
    } else {
        Arc::from("")
    };
    let generation = cx.s().session.generation;
    cx.event(DomainEvent::GenerationChanged {
        generation,
        session_id: id.clone(),
        transcript_path: path,
    });
}

/// A source names the transcript file.
pub(crate) fn path(cx: &mut Cx<'_>, path: &Arc<str>) {
    if path.is_empty() || cx.s().session.transcript_path.as_ref() == Some(path) {
        return;
    }
    cx.session(SessionChange::Path(path.clone()));
    let session_id = cx.s().session.id.clone();
    cx.intent(Intent::Follow {
        path: path.clone(),
        session_id,
    });
}

/// A source names Claude's own pid.
pub(crate) fn pid(cx: &mut Cx<'_>, pid: u32) {
    if cx.s().session.claude_pid != Some(pid) {
        cx.session(SessionChange::Pid(pid));
        cx.intent(Intent::WatchProcess { pid });
    }
}

/// SessionEnd: the reason why the process is about to end, unless it opens another conversation.
pub(crate) fn ended(cx: &mut Cx<'_>, reason: &Arc<str>) {
    if !cx.config.vocabulary.switching_ends.contains(reason) {
        cx.session(SessionChange::EndReason(reason.clone()));
    }
}

/// A source names the permission mode.
pub(crate) fn mode(cx: &mut Cx<'_>, mode: Option<&Arc<str>>) {
    let Some(mode) = mode.filter(|mode| !mode.is_empty()) else {
        return;
    };
    let source = cx.source;
    if cx.session(SessionChange::Mode(mode.clone(), source)) {
        cx.event(DomainEvent::ModeChanged { mode: mode.clone() });
    }
}

/// A source names the model. The first name is no change.
pub(crate) fn model(cx: &mut Cx<'_>, model: &Arc<str>) {
    if model.is_empty() {
        return;
    }
    let source = cx.source;
    let first = cx.s().session.model.is_none();
    if cx.session(SessionChange::Model(model.clone(), source)) && !first {
        cx.event(DomainEvent::ModelChanged {
            model: model.clone(),
        });
    }
}

/// The registry file.
pub(crate) fn registry(
    cx: &mut Cx<'_>,
    claude_pid: u32,
    version: &Arc<str>,
    status: Option<&RegistryStatus>,
) {
    pid(cx, claude_pid);
    if cx.s().session.claude_version.as_ref() != Some(version) {
        cx.session(SessionChange::Version(version.clone()));
    }
    if let Some(status) = status {
        cx.session(SessionChange::Registry(status.clone()));
        match status {
            RegistryStatus::Idle => {
                interrupt::review(cx, None);
                stop::registry_idle(cx);
                agents::nothing_runs(cx, false);
            }
            RegistryStatus::Shell => {
                interrupt::review(cx, None);
                stop::registry_idle(cx);
                agents::nothing_runs(cx, true);
            }
            RegistryStatus::Busy => {
                stop::registry_busy(cx);
                agents::something_runs(cx);
                effects::review(cx);
            }
            RegistryStatus::Waiting { .. } | RegistryStatus::Other { .. } => {
                stop::registry_busy(cx);
                agents::something_runs(cx);
                interrupt::review(cx, None);
            }
        }
    }
    start::check(cx);
}

/// PreCompact.
pub(crate) fn compaction_started(cx: &mut Cx<'_>, trigger: &Arc<str>) {
    if !cx.s().session.compacting {
        cx.session(SessionChange::Compacting(true));
        cx.event(DomainEvent::CompactionStarted {
            trigger: trigger.clone(),
        });
    }
}

/// PostCompact, or the boundary in the transcript.
pub(crate) fn compaction_ended(cx: &mut Cx<'_>) {
    if cx.s().session.compacting {
        cx.session(SessionChange::Compacting(false));
        cx.event(DomainEvent::CompactionEnded);
    }
}

/// Content may be missing.
pub(crate) fn gap(cx: &mut Cx<'_>, reason: &Arc<str>) {
    cx.event(DomainEvent::Alert(Alert::TranscriptGap {
        reason: reason.clone(),
    }));
}

/// The version profile does not fit what is seen.
pub(crate) fn drift(cx: &mut Cx<'_>, row: &Arc<str>) {
    cx.event(DomainEvent::Alert(Alert::Drift { row: row.clone() }));
}
