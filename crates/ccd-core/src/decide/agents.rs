//! Subagents and background tasks. Claude's internal agents (those without a type) are ghosts and stay outside.

use alloc::{collections::BTreeMap, sync::Arc, vec::Vec};

use ccd_model::{
    event::DomainEvent,
    ids::{AgentKey, TurnKey},
    lattice::Status,
    observation::{AgentRef, BackgroundItem},
    status::{AgentRunStatus, ToolStatus},
};

use crate::{
    closing,
    cx::Cx,
    deadlines::Row,
    decide::{prompts, tools},
    evolve::{AgentChange, Change, SessionChange},
    input::DiagnosticKind,
    state::Agent,
};

/// Whether an agent is one of Claude's internal ones.
pub(crate) fn is_ghost(agent: &AgentRef) -> bool {
    agent.kind.is_empty()
}

/// The agent's key; opened when its start was not reported. `None` for ghosts and forgotten agents.
pub(crate) fn ensure(cx: &mut Cx<'_>, agent: &AgentRef, turn: Option<TurnKey>) -> Option<AgentKey> {
    if is_ghost(agent) || cx.s().tombs.has(&agent.id) {
        return None;
    }
    if let Some(key) = cx.s().ids.agents.get(&agent.id) {
        return Some(*key);
    }
    let key = cx.s().counters.agent();
    let status = Status::new(AgentRunStatus::Running, cx.source);
    cx.set(Change::OpenAgent(Agent {
        key,
        id: agent.id.clone(),
        kind: agent.kind.clone(),
        turn,
        status,
    }));
    cx.event(DomainEvent::AgentStarted {
        agent: key,
        turn,
        kind: agent.kind.clone(),
    });
    Some(key)
}

/// SubagentStart.
pub(crate) fn started(cx: &mut Cx<'_>, agent: &AgentRef, prompt_id: &Arc<str>) {
    if is_ghost(agent) {
        return;
    }
    if cx.s().ids.agents.contains_key(&agent.id) || cx.s().tombs.has(&agent.id) {
        cx.diag(DiagnosticKind::Duplicate, agent.id.clone());
        return;
    }
    let turn = prompts::turn_of_hook(cx, prompt_id, false);
    ensure(cx, agent, turn);
}

/// SubagentStop.
pub(crate) fn stopped(cx: &mut Cx<'_>, agent: &AgentRef, text: &Arc<str>) {
    if is_ghost(agent) {
        return;
    }
    if cx.s().tombs.has(&agent.id) {
        cx.diag(DiagnosticKind::Late, agent.id.clone());
        return;
    }
    let current = cx.s().current().map(|turn| turn.key);
    if let Some(key) = ensure(cx, agent, current) {
        end(cx, key, true, text);
    }
}

/// Ends an agent. The only place where agents end.
pub(crate) fn end(cx: &mut Cx<'_>, key: AgentKey, known: bool, text: &Arc<str>) {
    let Some(agent) = cx
        .s()
        .agents
        .get(&key)
        .filter(|agent| !agent.status.ended())
        .cloned()
    else {
        return;
    };
    closing::agent(cx, key, known);
    let to = if known {
        AgentRunStatus::Stopped
    } else {
        AgentRunStatus::Unknown
    };
    let source = cx.source;
    cx.agent(key, AgentChange::Advance(to, source));
    cx.event(DomainEvent::AgentEnded {
        agent: key,
        known,
        text: text.clone(),
    });
    let to = if known {
        ToolStatus::Succeeded
    } else {
        ToolStatus::Unknown
    };
    background_ended(cx, &agent.id, to, text);
    if cx.s().open_agents.is_empty() {
        cx.disarm(Row::AgentGone, 0);
    }
}

/// A background task or agent has ended: so has the tool that launched it.
fn background_ended(cx: &mut Cx<'_>, id: &Arc<str>, to: ToolStatus, text: &str) {
    cx.session(SessionChange::BackgroundEnded(id.clone()));
    for key in cx
        .s()
        .tools_where(|tool| tool.launched.as_ref() == Some(id))
    {
        tools::end(cx, key, to, text, None);
    }
}

/// A Stop hook lists everything that runs in the background.
pub(crate) fn background_listed(cx: &mut Cx<'_>, items: &[BackgroundItem]) {
    let running: BTreeMap<Arc<str>, Arc<str>> = items
        .iter()
        .filter(|item| item.status == cx.config.vocabulary.background_running)
        .filter(|item| !cx.s().tombs.has(&item.id))
        .filter(|item| {
            cx.s()
                .ids
                .agents
                .get(&item.id)
                .and_then(|key| cx.s().agents.get(key))
                .is_none_or(|agent| !agent.status.ended())
        })
        .map(|item| (item.id.clone(), item.kind.clone()))
        .collect();
    let gone: Vec<Arc<str>> = cx
        .s()
        .background
        .keys()
        .filter(|id| !running.contains_key(*id))
        .cloned()
        .collect();
    cx.session(SessionChange::Background(running));
    for id in gone {
        background_ended(cx, &id, ToolStatus::Unknown, "no longer running");
    }
}

/// A task notification names what has ended.
pub(crate) fn notified(cx: &mut Cx<'_>, text: &str) {
    let named: Vec<Arc<str>> = cx
        .s()
        .background
        .keys()
        .filter(|id| text.contains(&***id))
        .cloned()
        .collect();
    for id in named {
        let running_agent = cx.s().ids.agents.get(&id).copied();
        match running_agent {
            Some(agent) => end(cx, agent, true, &Arc::from("")),
            None => background_ended(cx, &id, ToolStatus::Succeeded, ""),
        }
    }
}

/// The registry says that nothing runs; with `shells`, that only background shells do.
pub(crate) fn nothing_runs(cx: &mut Cx<'_>, shells: bool) {
    if !cx.s().open_agents.is_empty() || (!shells && !cx.s().background.is_empty()) {
        cx.arm_once(Row::AgentGone, 0);
    }
}

/// Something runs again.
pub(crate) fn something_runs(cx: &mut Cx<'_>) {
    cx.disarm(Row::AgentGone, 0);
}

/// Nothing runs, and the ends of these were not reported.
pub(crate) fn gone_deadline(cx: &mut Cx<'_>) {
    if !cx.s().registry_idle() {
        return;
    }
    let agents: Vec<AgentKey> = cx.s().open_agents.iter().copied().collect();
    for agent in agents {
        end(cx, agent, false, &Arc::from(""));
    }
    let shells_run = matches!(
        cx.s().registry_status(),
        Some(ccd_model::observation::RegistryStatus::Shell)
    );
    let tasks: Vec<Arc<str>> = cx.s().background.keys().cloned().collect();
    for id in tasks.iter().filter(|_| !shells_run) {
        background_ended(cx, id, ToolStatus::Unknown, "no longer running");
    }
}
