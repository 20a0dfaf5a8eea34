//! The core and its one function: due deadlines, gating by launch and generation, and the dispatch over inputs. Decisions are in `decide`.

use alloc::{format, sync::Arc};

use ccd_model::{
    command::{Accepted, Command, Refusal},
    event::DomainEvent,
    fact::Source,
    intent::Intent,
    observation::{Observation as O, Observed},
    status::Lifecycle,
    time::Stamp,
};

use crate::{
    config::CoreConfig,
    cx::Cx,
    deadlines::Row,
    decide::{
        agents, close, interrupt, messages, model_calls, permissions, prompts, screen, session,
        start, stop, tools, turns, usage,
    },
    evolve::{Change, SessionChange, Store},
    input::{DiagnosticKind, Input, Step},
    input_policy::{gate, jobs},
    state::Domain,
    status::{cadence, derive},
};

/// One session's state and every rule about it.
#[derive(Debug, Clone)]
pub struct Core {
    config: CoreConfig,
    store: Store,
}

impl Core {
    /// The core of a session that is about to be launched.
    #[must_use]
    pub fn new(config: CoreConfig) -> Self {
        let store = Store::new(config.mode);
        Self { config, store }
    }

    /// The state, for the selectors.
    pub(crate) fn domain(&self) -> &Domain {
        &self.store
    }
}

/// Takes one input. Deadlines that are due at its time fire first, in order; then the input itself.
///
/// Total and deterministic: the same inputs in the same order give the same output. `out` is cleared first.
pub fn step(core: &mut Core, input: &Input, out: &mut Step) {
    out.clear();
    let stamp = input.stamp();
    let Core { config, store } = core;
    let mut cx = Cx::new(store, config, out);
    while let Some((at, row, id)) = cx.s().deadlines.next().filter(|due| due.0 <= stamp.at) {
        cx.session(SessionChange::Time(at));
        cx.set(Change::Disarm(row, id));
        fire(&mut cx, row, id);
    }
    cx.session(SessionChange::Input(stamp));
    match input {
        Input::Saw { observed, .. } => saw(&mut cx, stamp, observed),
        Input::Asked {
            ticket, command, ..
        } => {
            cx.source = Source::Own;
            let reply = asked(&mut cx, command);
            out.replies.push((*ticket, reply));
            cx = Cx::new(store, config, out);
        }
    }
    cx.source = Source::Own;
    gate::pump(&mut cx);
    publish_derived(&mut cx);
    out.wake = store.deadlines.next().map(|(at, _, _)| at);
}

fn publish_derived(cx: &mut Cx<'_>) {
    let status = derive::status(cx.s());
    if cx.s().shown.status.as_ref() != Some(&status) {
        cx.session(SessionChange::ShownStatus(status.clone()));
        cx.event(DomainEvent::StatusChanged { status });
    }
    let quiescent = derive::quiescent(cx.s());
    if cx.s().shown.quiescent != quiescent {
        cx.session(SessionChange::ShownQuiescent(quiescent));
        cx.event(DomainEvent::QuiescentChanged { quiescent });
    }
    if cx.s().session.launched.is_some() {
        let wanted = cadence::wanted(cx.s());
        if cx.s().shown.cadence != Some(wanted) {
            cx.session(SessionChange::ShownCadence(wanted));
            cx.intent(Intent::Cadence(wanted));
        }
    }
}

fn fire(cx: &mut Cx<'_>, row: Row, id: u32) {
    cx.source = Source::Own;
    match row {
        Row::Start => start::timed_out(cx),
        Row::CloseTerm => close::escalate_term(cx),
        Row::CloseKill => close::escalate_kill(cx),
        Row::ExitEvidence => close::no_exit_evidence(cx),
        Row::Editor
        | Row::Unstage
        | Row::EnterEnd
        | Row::Receipt
        | Row::Judge
        | Row::LateReceipt
        | Row::TextReturn
        | Row::ClearSeen => jobs::on_deadline(cx, row, id),
        Row::ComposerFree => gate::composer_never_free(cx, id),
        Row::Settle => turns::settle(cx, ccd_model::ids::TurnKey(id), false),
        Row::Quiet => stop::quiet(cx, ccd_model::ids::TurnKey(id)),
        Row::Superseded => stop::superseded(cx, ccd_model::ids::TurnKey(id)),
        Row::Hosted => prompts::hosted_deadline(cx, ccd_model::ids::TurnKey(id)),
        Row::ToolStart => tools::start_deadline(cx, ccd_model::ids::ToolKey(id)),
        Row::Effect => {
            crate::decide::effects::deadline(cx, ccd_model::ids::PermissionKey(id));
        }
        Row::Unreported => screen::unreported_deadline(cx),
        Row::Interrupt => interrupt::deadline(cx),
        Row::EscapeGap => interrupt::gap_is_over(cx),
        Row::AgentGone => agents::gone_deadline(cx),
        Row::UsageWake => usage::clear(cx),
        // Whether the composer is free is looked at after every step.
        Row::Menu => {}
    }
}

fn asked(cx: &mut Cx<'_>, command: &Command) -> Result<Accepted, Refusal> {
    match command {
        Command::Send { text, as_text } => turns::send(cx, text, *as_text),
        Command::Cancel { turn } => turns::cancel(cx, *turn),
        Command::Interrupt => interrupt::ask(cx),
        Command::Decide {
            permission,
            decision,
        } => permissions::decided_by_handler(cx, *permission, decision),
        Command::HandlerFailed {
            permission,
            failure,
        } => permissions::handler_failed(cx, *permission, *failure),
        Command::Close { how } => close::ask(cx, *how),
        Command::Abandon { reason } => close::abandon(cx, reason),
    }
}

/// Whether the input is an echo of an earlier start of the process.
fn old_launch(cx: &Cx<'_>, stamp: Stamp, what: &O) -> bool {
    cx.s().session.launch.is_some_and(|launch| {
        stamp.launch < launch || (stamp.launch == launch && matches!(what, O::Launched(_)))
    })
}

fn saw(cx: &mut Cx<'_>, stamp: Stamp, observed: &Observed) {
    cx.source = observed.source;
    let what = &observed.what;
    if old_launch(cx, stamp, what) {
        cx.diag(
            DiagnosticKind::OldLaunch,
            format!("launch {}", stamp.launch.0),
        );
        return;
    }
    if cx.s().life() == Lifecycle::Exited {
        if !matches!(
            what,
            O::Tick | O::ScreenSame | O::Screen { .. } | O::OpEnded { .. }
        ) {
            cx.diag(DiagnosticKind::Late, "the session is over");
        }
        return;
    }
    if !session::of_this_generation(cx, observed) {
        cx.diag(
            DiagnosticKind::OldGeneration,
            observed.session.clone().unwrap_or_else(|| Arc::from("")),
        );
        return;
    }
    dispatch(cx, stamp, what);
}

#[rustfmt::skip]
fn dispatch(cx: &mut Cx<'_>, stamp: Stamp, what: &O) {
    match what {
        // hooks
        O::SessionStarted { start, transcript_path, model, claude_pid } => start::session_started(cx, *start, transcript_path, model.as_ref(), *claude_pid),
        O::SessionEnded { reason } => session::ended(cx, reason),
        O::PromptSeen { prompt_id, text, verdict, mode, task_notification } => {
            session::mode(cx, mode.as_ref());
            prompts::seen(cx, &prompts::Prompt { id: prompt_id, text, task_notification: *task_notification }, *verdict);
        }
        O::ToolPre { tool_use_id, name, input, agent, prompt_id, mode, denied_by_us } => {
            session::mode(cx, mode.as_ref());
            tools::pre(cx, &tools::Call { id: tool_use_id, name, agent: agent.as_ref(), prompt_id }, input, denied_by_us.as_ref());
        }
        O::PermissionAsked { hold, name, input, agent, prompt_id, suggestions } => permissions::asked(cx, *hold, &permissions::Request { name, input, agent: agent.as_ref(), prompt_id, suggestions: suggestions.as_ref() }),
        O::PermissionGone { hold } => permissions::gone(cx, *hold),
        O::PermissionExpired { hold } => permissions::expired(cx, *hold),
        O::ToolPost { tool_use_id, name, input, result, agent, prompt_id, duration_ms, background_id, agent_id } => {
            let call = tools::Call { id: tool_use_id, name, agent: agent.as_ref(), prompt_id };
            tools::post(cx, &call, input, result, *duration_ms, &tools::Started { background: background_id.as_ref(), agent: agent_id.as_ref() });
        }
        O::ToolFailed { tool_use_id, name, error, agent, prompt_id, duration_ms } => tools::failed(cx, &tools::Call { id: tool_use_id, name, agent: agent.as_ref(), prompt_id }, error, *duration_ms),
        O::ToolBatch { calls, agent, .. } => tools::batch(cx, calls, agent.as_ref()),
        O::ToolRefusedByMode { tool_use_id, reason } => tools::refused_by_mode(cx, tool_use_id, reason),
        O::MessageDelta { turn_id: _, message_id, index, last, delta, prompt_id } => messages::delta(cx, &messages::Delta { message_id, index: *index, last: *last, text: delta, prompt_id: prompt_id.as_ref() }),
        O::Stopped { prompt_id, text, stop_hook_active, background, mode } => {
            session::mode(cx, mode.as_ref());
            stop::stopped(cx, prompt_id, text, *stop_hook_active, background);
        }
        O::StopFailed { prompt_id, error, text, agent } => stop::failed(cx, prompt_id, error, text, agent.as_ref()),
        O::AgentStarted { agent, prompt_id } => agents::started(cx, agent, prompt_id),
        O::AgentStopped { agent, text } => agents::stopped(cx, agent, text),
        O::Notified { .. } => {}
        O::CompactionStarted { trigger } => session::compaction_started(cx, trigger),
        O::CompactionEnded { .. } | O::TxCompacted { .. } => session::compaction_ended(cx),
        O::ModelSwitched { to } => session::model(cx, to),
        // transcript
        O::TxPrompt { prompt_id, text, origin, meta, .. } => prompts::in_transcript(cx, prompt_id.as_ref(), text, *origin, *meta),
        O::TxAssistant { agent, message_id, request_ref, index, block, stop_reason, usage, model, aborted, .. } => messages::in_transcript(cx, &messages::Line { agent: agent.as_ref(), message_id, request: request_ref.as_ref(), index: *index, block, stop_reason: stop_reason.as_ref(), usage: *usage, model, aborted: *aborted }),
        O::TxApiError { prompt_id, error, .. } => stop::error_in_transcript(cx, prompt_id.as_ref(), error),
        O::TxToolResult { tool_use_id, is_error, text, denial, .. } => tools::result_in_transcript(cx, tool_use_id, *is_error, text, denial.as_ref()),
        O::TxInterrupted { agent, prompt_id, .. } => interrupt::marker(cx, agent.as_ref(), prompt_id.as_ref()),
        O::TxApiRequest { agent, id, retry_of, .. } => model_calls::request(cx, agent.as_ref(), id, retry_of.as_ref()),
        O::TxTurnDuration { pending_agents, .. } => stop::duration(cx, *pending_agents),
        O::TxQueue { content, absorbed, .. } => prompts::queue_line(cx, content.as_ref(), *absorbed),
        O::TxPromptBlocked { reason, .. } => prompts::blocked_in_transcript(cx, reason),
        O::TxPermissionDecision { tool_use_id, allow, .. } => crate::decide::effects::in_transcript(cx, tool_use_id, *allow),
        O::TxWithdrawn { .. } => interrupt::withdrawn_in_transcript(cx),
        O::TxGap { reason, .. } => session::gap(cx, reason),
        // registry
        O::Registry { pid, version, status } => session::registry(cx, *pid, version, status.as_ref()),
        O::RegistryGone => {}
        // screen
        O::Screen { facts } => screen::changed(cx, facts),
        O::ScreenSame => screen::same(cx),
        // process and own
        O::Launched(launched) => start::launched(cx, stamp.launch, launched),
        O::LastScreen { text } => { cx.session(SessionChange::LastScreen(text.clone())); }
        O::Exited { pid, code, signal } => close::exited(cx, *pid, *code, *signal),
        O::OpEnded { op, end } => jobs::on_op(cx, *op, end),
        O::Lost { part } => close::lost(cx, *part),
        O::Tick => {}
        O::Drift { row, .. } => session::drift(cx, row),
        // Typed, and of no effect on any entity: the raw records stand in the trace.
        O::Scheduled { .. } | O::CommandExpanded { .. } | O::ModelSwitching { .. } | O::SetUp { .. } | O::TeammateIdle { .. } | O::TaskCreated { .. }
        | O::TaskCompleted { .. } | O::ElicitationAsked { .. } | O::ElicitationAnswered { .. } | O::ConfigChanged { .. } | O::WorktreeCreated { .. }
        | O::WorktreeRemoved { .. } | O::InstructionsLoaded { .. } | O::CwdChanged { .. } | O::FileChanged { .. } | O::DirectoryAdded { .. }
        | O::TxTitle { .. } | O::TxMode { .. } | O::TxCost { .. } | O::TxCommand { .. } | O::TxNotice { .. } | O::TxStopHooks { .. }
        | O::TxHookNote { .. } | O::TxModelFallback { .. } | O::TxAbsorbed { .. } | O::TxPlan { .. } | O::TxContinuedIn { .. }
        | O::AgentMeta(_) | O::StatusReport(_) | O::Tunnel { .. } => {}
        O::Unrecognized { channel, what } => cx.diag(DiagnosticKind::Unrecognized, format!("{channel}: {what}")),
    }
}
