//! From launch to ready: the evidence that is needed, the self-test, and everything that can fail on the way.

use alloc::{format, string::String, sync::Arc, vec::Vec};

use ccd_model::{
    event::{DomainEvent, StartFailure},
    fact::Source,
    ids::Launch,
    observation::{Launched, StartSource},
    screen::{Composer, Gate, Surface},
    status::Lifecycle,
};

use crate::{
    cx::Cx,
    deadlines::Row,
    decide::{close, session},
    evolve::SessionChange,
    input::DiagnosticKind,
    input_policy::jobs,
    state::{Domain, JobWhat},
};

/// The launcher has started Claude.
pub(crate) fn launched(cx: &mut Cx<'_>, launch: Launch, info: &Launched) {
    if cx.s().life() != Lifecycle::Starting {
        cx.diag(DiagnosticKind::Unmatched, "a launch after the start");
        return;
    }
    cx.session(SessionChange::Launched(launch, info.clone()));
    let ms = cx.config.limits.start_ms;
    cx.arm_for(Row::Start, 0, ms);
    check(cx);
}

/// SessionStart.
pub(crate) fn session_started(
    cx: &mut Cx<'_>,
    _start: StartSource,
    transcript_path: &Arc<str>,
    model: Option<&Arc<str>>,
    claude_pid: Option<u32>,
) {
    cx.session(SessionChange::HookStarted);
    session::path(cx, transcript_path);
    if let Some(model) = model {
        session::model(cx, model);
    }
    if let Some(pid) = claude_pid {
        session::pid(cx, pid);
    }
    check(cx);
}

/// What readiness still needs, in words.
fn missing(d: &Domain) -> Vec<&'static str> {
    let mut missing = Vec::new();
    if d.session.launched.is_none() {
        missing.push("the launch");
    }
    if !d.session.hook_started {
        missing.push("the SessionStart hook");
    }
    if d.session.claude_pid.is_none() {
        missing.push("Claude's pid");
    }
    if d.surface() != Some(&Surface::Main) {
        missing.push("the main screen");
    } else if d.composer() != Some(&Composer::Empty) {
        missing.push("an empty composer");
    } else if !d.screen_stable() {
        missing.push("a stable screen");
    }
    missing
}

/// Looks whether the session is ready, needs its self-test, or stands before a gate.
pub(crate) fn check(cx: &mut Cx<'_>) {
    if cx.s().life() != Lifecycle::Starting || cx.s().job.is_some() {
        return;
    }
    if let Some(failure) = gate(cx.s()) {
        fail(cx, failure);
        return;
    }
    if !missing(cx.s()).is_empty() {
        return;
    }
    let launched = cx.s().session.launched.as_ref();
    let self_test = launched.is_some_and(|launched| launched.self_test && !launched.resume);
    if self_test && !cx.s().session.self_tested {
        let text = Arc::from(format!("ccd self-test {}", cx.s().session.id));
        jobs::start(cx, JobWhat::SelfTest, text);
    } else {
        ready(cx);
    }
}

/// Ready for prompts.
pub(crate) fn ready(cx: &mut Cx<'_>) {
    if !cx.session(SessionChange::Life(Lifecycle::Ready, Source::Own)) {
        return;
    }
    cx.disarm(Row::Start, 0);
    let s = &cx.s().session;
    let event = DomainEvent::SessionReady {
        session_id: s.id.clone(),
        model: s.model.as_ref().map(|model| model.get().clone()),
        self_tested: s.self_tested,
    };
    cx.event(event);
}

/// A screen that keeps the session from ever becoming ready, seen in two equal captures.
fn gate(d: &Domain) -> Option<StartFailure> {
    let seen = d.screen.as_ref().filter(|seen| seen.equal >= 2)?;
    match &seen.facts.surface {
        Surface::StartupGate { gate, text } => Some(StartFailure::Gate {
            gate: Arc::from(gate_row(*gate)),
            text: text.clone(),
        }),
        Surface::WrongRenderer => Some(StartFailure::WrongRenderer),
        Surface::Main if seen.facts.logged_out => Some(StartFailure::LoggedOut),
        Surface::Main
        | Surface::Blank
        | Surface::PermissionDialog { .. }
        | Surface::QuestionDialog { .. }
        | Surface::PlanDialog { .. }
        | Surface::UsageLimitMenu
        | Surface::ExitDialog
        | Surface::Modal { .. }
        | Surface::UnknownModal { .. } => None,
    }
}

/// The name of a gate's table row.
fn gate_row(gate: Gate) -> &'static str {
    match gate {
        Gate::Trust => "trust",
        Gate::Bypass => "bypass",
        Gate::Onboarding => "onboarding",
        Gate::Settings => "settings",
        Gate::ApiKey => "api_key",
        Gate::McpServer => "mcp_server",
        Gate::Imports => "imports",
        Gate::Resume => "resume",
        Gate::Offline => "offline",
    }
}

/// The session cannot become ready: said once, then closed.
pub(crate) fn fail(cx: &mut Cx<'_>, failure: StartFailure) {
    if cx.s().life() != Lifecycle::Starting {
        return;
    }
    cx.disarm(Row::Start, 0);
    cx.event(DomainEvent::SessionStartFailed { failure });
    close::after_failure(cx, "the start failed");
}

/// No readiness within the limit.
pub(crate) fn timed_out(cx: &mut Cx<'_>) {
    let mut missing = missing(cx.s());
    if cx.s().job.is_some() {
        missing.push("the end of the self-test");
    }
    let missing: String = missing.join(", ");
    fail(
        cx,
        StartFailure::Timeout {
            missing: Arc::from(missing),
        },
    );
}
