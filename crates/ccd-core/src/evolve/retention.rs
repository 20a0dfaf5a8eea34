//! The retention window: the last ended turns are held in full, the ids of older entities are buried.
//! An entity outside a retained turn is forgotten as soon as it has ended.

use alloc::{string::ToString, sync::Arc};

use ccd_model::ids::{AgentKey, PermissionKey, ToolKey, TurnKey};

use crate::state::Domain;

/// How many ended turns are held in full.
pub(crate) const FULL_TURNS: usize = 64;

/// Forgets ended turns beyond the window, with everything of them that has ended.
pub(super) fn turns(d: &mut Domain) {
    while d.ended_turns.len() > FULL_TURNS {
        let Some(oldest) = d.ended_turns.pop_front() else {
            return;
        };
        forget_turn(d, oldest);
    }
}

fn forget_turn(d: &mut Domain, key: TurnKey) {
    let Some(turn) = d.turns.remove(&key) else {
        return;
    };
    if let Some(id) = turn.prompt_id {
        d.ids.prompts.remove(&id);
        d.tombs.bury(id);
    }
    for tool in turn.tools {
        tool_if_ended(d, tool);
    }
    for permission in turn.permissions {
        permission_if_ended(d, permission);
    }
    for agent in turn.agents {
        agent_if_ended(d, agent);
    }
    for message in turn.messages {
        if let Some(id) = d.messages.remove(&message).and_then(|m| m.id) {
            d.ids.messages.remove(&id);
            d.tombs.bury(id);
        }
    }
    for request in turn.requests {
        d.ids.requests.remove(&request);
        d.tombs.bury(request);
    }
    if d.session.tx_turn == Some(key) {
        d.session.tx_turn = None;
    }
}

/// Whether an entity of `turn` is held by a retained turn.
fn held(d: &Domain, turn: Option<TurnKey>) -> bool {
    turn.is_some_and(|key| d.turns.contains_key(&key))
}

/// Forgets a tool that has ended and is not held by a turn.
pub(super) fn tool_if_ended(d: &mut Domain, key: ToolKey) {
    let gone = d
        .tools
        .get(&key)
        .is_some_and(|tool| tool.status.ended() && !held(d, tool.turn));
    if gone && let Some(tool) = d.tools.remove(&key) {
        d.ids.tools.remove(&tool.id);
        d.tombs.bury(tool.id);
    }
}

/// Forgets a permission request that has ended and is not held by a turn.
pub(super) fn permission_if_ended(d: &mut Domain, key: PermissionKey) {
    let gone = d
        .permissions
        .get(&key)
        .is_some_and(|p| p.status.ended() && !held(d, p.turn));
    if gone && let Some(permission) = d.permissions.remove(&key) {
        d.ids.holds.remove(&permission.hold);
        d.tombs.bury(Arc::from(permission.hold.to_string()));
    }
}

/// Forgets a subagent that has ended and is not held by a turn.
pub(super) fn agent_if_ended(d: &mut Domain, key: AgentKey) {
    let gone = d
        .agents
        .get(&key)
        .is_some_and(|agent| agent.status.ended() && !held(d, agent.turn));
    if gone && let Some(agent) = d.agents.remove(&key) {
        d.ids.agents.remove(&agent.id);
        d.tombs.bury(agent.id);
    }
}
