//! The view: the only way out of the state.

use alloc::{sync::Arc, vec::Vec};

use ccd_model::{
    status::TurnStatus,
    view::{AgentView, CallView, PermissionView, ToolView, TurnView, View},
};

use crate::{
    decide::messages,
    state::{Agent, Call, Domain, Permission, Tool, Turn},
    status::derive,
    step::Core,
};

/// Everything a facade may know.
#[must_use]
pub fn view(core: &Core) -> View {
    let d = core.domain();
    let s = &d.session;
    View {
        lifecycle: d.life(),
        status: derive::status(d),
        quiescent: derive::quiescent(d),
        session_id: s.id.clone(),
        generation: s.generation,
        transcript_path: s.transcript_path.clone(),
        claude_pid: s.claude_pid,
        claude_version: s.claude_version.clone(),
        model: s.model.as_ref().map(|model| model.get().clone()),
        mode: Some(s.mode.get().clone()),
        turns: d.turns.values().map(|turn| turn_view(d, turn)).collect(),
        running: d.current().map(|turn| turn.key),
        tools: d.tools.values().map(tool_view).collect(),
        permissions: d
            .permissions
            .values()
            .map(|permission| permission_view(d, permission))
            .collect(),
        agents: d.agents.values().map(agent_view).collect(),
        calls: d.calls.values().map(call_view).collect(),
        background: background(d),
        usage_limit: s.usage_limit,
        diagnostics: d.diagnostics,
        exit: s.exit.clone(),
    }
}

fn turn_view(d: &Domain, turn: &Turn) -> TurnView {
    let streamed = messages::streamed_text(d, turn);
    // What came after the end of a turn that did not complete still belongs to its text; a completed one has Claude's own final text.
    let more = turn.status.get() != TurnStatus::Completed && streamed.starts_with(&*turn.text);
    let text = if turn.status.ended() && !more {
        turn.text.clone()
    } else {
        streamed
    };
    TurnView {
        turn: turn.key,
        prompt_id: turn.prompt_id.clone(),
        origin: turn.origin,
        status: turn.status.get(),
        prompt: turn.prompt.clone(),
        submitted: turn.submitted,
        text,
        outcome: turn.outcome.clone(),
        returned: turn.returned.clone(),
        usage: turn.usage,
        model: turn.model.clone(),
        settled: turn.settled,
        accepted_at: turn.accepted_at,
        ended_at: turn.ended_at,
        tools: turn.tools.clone(),
    }
}

fn tool_view(tool: &Tool) -> ToolView {
    ToolView {
        tool: tool.key,
        tool_use_id: tool.id.clone(),
        turn: tool.turn,
        agent: tool.agent,
        name: tool.name.clone(),
        input: tool.input.clone(),
        status: tool.status.get(),
        confirmed: tool.status.proof().confirms(),
        result: tool.result.clone(),
        duration_ms: tool.duration_ms,
    }
}

fn permission_view(d: &Domain, permission: &Permission) -> PermissionView {
    PermissionView {
        permission: permission.key,
        turn: permission.turn,
        tool: permission.tool,
        tool_use_id: permission
            .tool
            .and_then(|key| d.tools.get(&key))
            .map(|tool| tool.id.clone()),
        agent: permission.agent,
        name: permission.name.clone(),
        input: permission.input.clone(),
        suggestions: permission.suggestions.clone(),
        status: permission.status.get(),
        decision: permission.decision.clone(),
        by: permission.by,
    }
}

fn agent_view(agent: &Agent) -> AgentView {
    AgentView {
        agent: agent.key,
        id: agent.id.clone(),
        kind: agent.kind.clone(),
        status: agent.status.get(),
    }
}

fn call_view(call: &Call) -> CallView {
    CallView {
        call: call.key,
        turn: call.turn,
        status: call.status.get(),
        attempts: call.attempts,
    }
}

fn background(d: &Domain) -> Vec<Arc<str>> {
    let agents = d
        .open_agents
        .iter()
        .filter_map(|key| d.agents.get(key))
        .map(|agent| agent.id.clone())
        .filter(|id| !d.background.contains_key(id));
    d.background.keys().cloned().chain(agents).collect()
}
