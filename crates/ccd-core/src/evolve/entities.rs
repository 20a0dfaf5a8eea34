//! Applies changes of tools, permission requests, subagents, model calls and messages, and keeps their indexes. No decisions.

use alloc::sync::Arc;

use ccd_model::{
    ids::{AgentKey, CallKey, MessageKey, PermissionKey, ToolKey},
    lattice::Lattice,
};

use super::{AgentChange, CallChange, MessageChange, PermissionChange, ToolChange, retention};
use crate::{
    keys::Spent,
    state::{Agent, Call, Domain, Message, Permission, Request, Tool},
};

pub(super) fn open_tool(d: &mut Domain, tool: Tool) -> bool {
    let key = tool.key;
    d.counters.spend(Spent::ToolKey(key));
    d.ids.tools.insert(tool.id.clone(), key);
    if let Some(turn) = tool.turn.and_then(|turn| d.turns.get_mut(&turn)) {
        turn.tools.push(key);
    }
    d.open_tools.insert(key);
    d.tools.insert(key, tool);
    true
}

pub(super) fn tool(d: &mut Domain, key: ToolKey, change: ToolChange) -> bool {
    let Some(tool) = d.tools.get_mut(&key) else {
        return false;
    };
    match change {
        ToolChange::Advance(to, source) => {
            if !tool.status.advance(to, source) {
                return false;
            }
            if to.is_terminal() {
                d.open_tools.remove(&key);
                retention::tool_if_ended(d, key);
            }
        }
        ToolChange::Started => tool.started = true,
        ToolChange::Permission(permission) => tool.permission = permission,
        ToolChange::Launched(id) => tool.launched = Some(id),
        ToolChange::Result(text, duration_ms) => {
            tool.result = Some(text);
            tool.duration_ms = duration_ms.or(tool.duration_ms);
        }
    }
    true
}

pub(super) fn open_permission(d: &mut Domain, permission: Permission) -> bool {
    let key = permission.key;
    d.counters.spend(Spent::PermissionKey(key));
    d.ids.holds.insert(permission.hold, key);
    if let Some(turn) = permission.turn.and_then(|turn| d.turns.get_mut(&turn)) {
        turn.permissions.push(key);
    }
    d.open_permissions.insert(key);
    d.permissions.insert(key, permission);
    true
}

pub(super) fn permission(d: &mut Domain, key: PermissionKey, change: PermissionChange) -> bool {
    let now = d.now;
    let Some(permission) = d.permissions.get_mut(&key) else {
        return false;
    };
    match change {
        PermissionChange::Advance(to, source) => {
            if !permission.status.advance(to, source) {
                return false;
            }
            if to.is_terminal() {
                d.open_permissions.remove(&key);
                retention::permission_if_ended(d, key);
            }
        }
        PermissionChange::Bind(tool) => permission.tool = Some(tool),
        PermissionChange::Decide(decision, by) => {
            permission.decision = Some(decision);
            permission.by = Some(by);
            permission.decided_at = Some(now);
        }
    }
    true
}

pub(super) fn open_agent(d: &mut Domain, agent: Agent) -> bool {
    let key = agent.key;
    d.counters.spend(Spent::AgentKey(key));
    d.ids.agents.insert(agent.id.clone(), key);
    if let Some(turn) = agent.turn.and_then(|turn| d.turns.get_mut(&turn)) {
        turn.agents.push(key);
    }
    d.open_agents.insert(key);
    d.agents.insert(key, agent);
    true
}

pub(super) fn agent(d: &mut Domain, key: AgentKey, change: AgentChange) -> bool {
    let AgentChange::Advance(to, source) = change;
    let moved = d
        .agents
        .get_mut(&key)
        .is_some_and(|agent| agent.status.advance(to, source));
    if moved && to.is_terminal() {
        d.open_agents.remove(&key);
        retention::agent_if_ended(d, key);
    }
    moved
}

pub(super) fn request(d: &mut Domain, id: Arc<str>, request: Request) -> bool {
    if let Some(turn) = request.turn.and_then(|turn| d.turns.get_mut(&turn)) {
        turn.requests.push(id.clone());
        d.ids.requests.insert(id, request);
    } else {
        d.tombs.bury(id);
    }
    true
}

pub(super) fn open_call(d: &mut Domain, call: Call, id: Arc<str>) -> bool {
    let (key, turn) = (call.key, call.turn);
    d.counters.spend(Spent::CallKey(key));
    d.calls.insert(key, call);
    request(
        d,
        id,
        Request {
            turn,
            call: Some(key),
        },
    )
}

pub(super) fn call(d: &mut Domain, key: CallKey, change: CallChange) -> bool {
    let Some(call) = d.calls.get_mut(&key) else {
        return false;
    };
    match change {
        CallChange::Advance(to, source) => {
            if !call.status.advance(to, source) {
                return false;
            }
            if to.is_terminal() {
                d.calls.remove(&key);
            }
        }
        CallChange::Attempt(id) => {
            call.attempts = call.attempts.saturating_add(1);
            let turn = call.turn;
            return request(
                d,
                id,
                Request {
                    turn,
                    call: Some(key),
                },
            );
        }
        CallChange::Retry(attempt, max, reason) => call.retry = Some((attempt, max, reason)),
    }
    true
}

pub(super) fn open_message(d: &mut Domain, message: Message) -> bool {
    let key = message.key;
    d.counters.spend(Spent::MessageKey(key));
    let Some(turn) = message.turn.and_then(|turn| d.turns.get_mut(&turn)) else {
        if let Some(id) = message.id {
            d.tombs.bury(id);
        }
        return false;
    };
    turn.messages.push(key);
    if let Some(id) = &message.id {
        d.ids.messages.insert(id.clone(), key);
    }
    d.messages.insert(key, message);
    true
}

pub(super) fn message(d: &mut Domain, key: MessageKey, change: MessageChange) -> bool {
    let Some(message) = d.messages.get_mut(&key) else {
        return false;
    };
    match change {
        MessageChange::Delta(text, last) => {
            message.early.remove(&message.next_index);
            message.next_index = message.next_index.saturating_add(1);
            message.text.push_str(&text);
            message.complete |= last;
        }
        MessageChange::Early(index, text, last) => {
            message.early.insert(index, (text, last));
        }
        MessageChange::Text(text) => {
            message.text.clear();
            message.text.push_str(&text);
        }
        MessageChange::Finalized => message.finalized = true,
    }
    true
}
