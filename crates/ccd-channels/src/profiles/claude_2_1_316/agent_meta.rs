//! The meta file beside a subagent's conversation (`subagents/agent-<id>.meta.json`).

use std::sync::Arc;

use ccd_model::observation::{AgentMeta, Observation};
use serde::Deserialize;

use crate::text::{Unreadable, arc};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    agent_type: Option<Arc<str>>,
    description: Option<Arc<str>>,
    tool_use_id: Option<Arc<str>>,
    spawn_depth: Option<u32>,
    request_shape: Option<String>,
    finished: Option<bool>,
}

/// How the file spells that an agent runs beside its turn, or inside.
const SHAPES: [(&str, bool); 2] = [("background", true), ("foreground", false)];

pub(super) fn read(agent_id: &Arc<str>, body: &str) -> Result<Observation, Unreadable> {
    let body: Body = serde_json::from_str(body)?;
    Ok(Observation::AgentMeta(AgentMeta {
        agent_id: Arc::clone(agent_id),
        kind: body.agent_type.unwrap_or_else(|| arc("")),
        description: body.description.unwrap_or_else(|| arc("")),
        tool_use_id: body.tool_use_id,
        depth: body.spawn_depth,
        background: body.request_shape.and_then(|shape| {
            SHAPES
                .into_iter()
                .find(|(word, _)| *word == shape)
                .map(|(_, background)| background)
        }),
        finished: body.finished.unwrap_or(false),
    }))
}
