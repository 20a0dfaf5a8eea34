//! Tool runs: hooks make them live, the transcript corroborates, proposes and corrects. A tool runs from the moment it was allowed,
//! or when no permission request followed its PreToolUse within the row `D-TOOL`, or at the latest when its result arrives.

use alloc::{boxed::Box, sync::Arc};

use ccd_model::{
    event::{Alert, DomainEvent},
    fact::Source,
    ids::{AgentKey, ToolKey, TurnKey},
    json::RawJson,
    lattice::Status,
    observation::{AgentRef, BatchCall},
    status::{PermissionStatus, ToolStatus, TurnStatus},
};

use crate::{
    cx::Cx,
    deadlines::Row,
    decide::{agents, effects, prompts, stop, turns},
    evolve::{Change, SessionChange, ToolChange, TurnChange},
    input::DiagnosticKind,
    state::Tool,
};

/// Longest result text kept, bytes.
const RESULT_BYTES: usize = 2_048;

/// A tool call as hooks name it.
pub(crate) struct Call<'a> {
    pub(crate) id: &'a Arc<str>,
    pub(crate) name: &'a Arc<str>,
    pub(crate) agent: Option<&'a AgentRef>,
    pub(crate) prompt_id: &'a Arc<str>,
}

/// What a tool started in the background.
pub(crate) struct Started<'a> {
    pub(crate) background: Option<&'a Arc<str>>,
    pub(crate) agent: Option<&'a Arc<str>>,
}

/// The beginning of a text that may be long.
pub(crate) fn shorten(text: &str) -> Arc<str> {
    if text.len() <= RESULT_BYTES {
        return Arc::from(text);
    }
    let mut end = RESULT_BYTES;
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).map_or_else(|| Arc::from(""), Arc::from)
}

/// A tool that is known, unless it was forgotten (`Err`).
fn known(cx: &Cx<'_>, id: &str) -> Result<Option<ToolKey>, ()> {
    match cx.s().ids.tools.get(id) {
        Some(key) => Ok(Some(*key)),
        None if cx.s().tombs.has(id) => Err(()),
        None => Ok(None),
    }
}

fn status(cx: &Cx<'_>, key: ToolKey) -> Option<ToolStatus> {
    cx.s().tools.get(&key).map(|tool| tool.status.get())
}

struct New<'a> {
    id: &'a Arc<str>,
    name: &'a Arc<str>,
    input: &'a RawJson,
    turn: Option<TurnKey>,
    agent: Option<AgentKey>,
    status: ToolStatus,
}

fn open(cx: &mut Cx<'_>, new: &New<'_>) -> ToolKey {
    let key = cx.s().counters.tool();
    let tool = Tool {
        key,
        id: new.id.clone(),
        turn: new.turn,
        agent: new.agent,
        name: new.name.clone(),
        input: new.input.clone(),
        status: Status::new(new.status, cx.source),
        started: false,
        permission: None,
        launched: None,
        result: None,
        duration_ms: None,
    };
    cx.set(Change::OpenTool(Box::new(tool)));
    if new.agent.is_none()
        && let Some(turn) = new.turn
    {
        cx.turn(turn, TurnChange::Output);
    }
    cx.event(DomainEvent::ToolProposed {
        tool: key,
        turn: new.turn,
        agent: new.agent,
        tool_use_id: new.id.clone(),
        name: new.name.clone(),
        input: new.input.clone(),
    });
    key
}

/// The tool of a hook event: known, or opened because its PreToolUse was lost. `None`: not to be dealt with.
fn of_hook(cx: &mut Cx<'_>, call: &Call<'_>, input: &RawJson) -> Option<ToolKey> {
    if call.agent.is_some_and(agents::is_ghost) {
        return None;
    }
    match known(cx, call.id) {
        Ok(Some(key)) => return Some(key),
        Ok(None) => {}
        Err(()) => {
            cx.diag(DiagnosticKind::Late, call.id.clone());
            return None;
        }
    }
    let main = call.agent.is_none();
    let turn = prompts::turn_of_hook(cx, call.prompt_id, main);
    if main && turn.is_none_or(|key| cx.s().turn(key).is_none_or(|turn| turn.status.ended())) {
        match turn {
            Some(key) => stop::went_on(cx, key),
            None => cx.diag(DiagnosticKind::Unmatched, call.id.clone()),
        }
        return None;
    }
    let agent = call.agent.and_then(|agent| agents::ensure(cx, agent, turn));
    let new = New {
        id: call.id,
        name: call.name,
        input,
        turn,
        agent,
        status: ToolStatus::Pending,
    };
    Some(open(cx, &new))
}

/// PreToolUse.
pub(crate) fn pre(
    cx: &mut Cx<'_>,
    call: &Call<'_>,
    input: &RawJson,
    denied_by_us: Option<&Arc<str>>,
) {
    let before = known(cx, call.id).ok().flatten();
    let Some(key) = of_hook(cx, call, input) else {
        return;
    };
    match before.and_then(|key| status(cx, key)) {
        None => {}
        Some(ToolStatus::Proposed) => {
            cx.tool(key, ToolChange::Advance(ToolStatus::Pending, Source::Hook));
        }
        Some(
            ToolStatus::Pending
            | ToolStatus::AwaitingPermission
            | ToolStatus::Running
            | ToolStatus::Launched
            | ToolStatus::Succeeded
            | ToolStatus::Failed
            | ToolStatus::Denied
            | ToolStatus::Interrupted
            | ToolStatus::Unknown,
        ) => return cx.diag(DiagnosticKind::Duplicate, call.id.clone()),
    }
    if call.agent.is_none()
        && let Some(turn) = cx.s().tools.get(&key).and_then(|tool| tool.turn)
    {
        turns::continue_running(cx, turn);
    }
    match denied_by_us {
        Some(rule) => {
            cx.event(DomainEvent::Alert(Alert::DenyRuleHeld {
                tool: call.name.clone(),
            }));
            end(cx, key, ToolStatus::Denied, rule, None);
        }
        None => cx.arm(Row::ToolStart, key.0),
    }
}

/// No permission request followed.
pub(crate) fn start_deadline(cx: &mut Cx<'_>, key: ToolKey) {
    if status(cx, key) == Some(ToolStatus::Pending) {
        runs(cx, key, Source::Own);
    }
}

/// The tool runs.
pub(crate) fn runs(cx: &mut Cx<'_>, key: ToolKey, proof: Source) {
    cx.tool(key, ToolChange::Advance(ToolStatus::Running, proof));
    started(cx, key);
}

fn started(cx: &mut Cx<'_>, key: ToolKey) {
    cx.disarm(Row::ToolStart, key.0);
    if cx.s().tools.get(&key).is_some_and(|tool| !tool.started) {
        cx.tool(key, ToolChange::Started);
        cx.event(DomainEvent::ToolStarted { tool: key });
    }
}

/// Ends a tool. The only place where tools end.
pub(crate) fn end(
    cx: &mut Cx<'_>,
    key: ToolKey,
    to: ToolStatus,
    result: &str,
    duration_ms: Option<u64>,
) {
    let Some(tool) = cx.s().tools.get(&key).filter(|tool| !tool.status.ended()) else {
        return;
    };
    let permission = tool.permission;
    if matches!(to, ToolStatus::Succeeded | ToolStatus::Failed) {
        started(cx, key);
    }
    cx.disarm(Row::ToolStart, key.0);
    let result = shorten(result);
    cx.tool(key, ToolChange::Result(result.clone(), duration_ms));
    let source = cx.source;
    cx.tool(key, ToolChange::Advance(to, source));
    if let Some(permission) = permission {
        effects::tool_moved(cx, permission);
    }
    cx.event(DomainEvent::ToolEnded {
        tool: key,
        status: to,
        result,
        duration_ms,
    });
}

/// PostToolUse.
pub(crate) fn post(
    cx: &mut Cx<'_>,
    call: &Call<'_>,
    input: &RawJson,
    result: &str,
    duration_ms: Option<u64>,
    launches: &Started<'_>,
) {
    let Some(key) = of_hook(cx, call, input) else {
        return;
    };
    if cx
        .s()
        .tools
        .get(&key)
        .is_none_or(|tool| tool.status.ended() || tool.launched.is_some())
    {
        return cx.diag(DiagnosticKind::Duplicate, call.id.clone());
    }
    let agent_runs = launches.agent.filter(|id| {
        cx.s()
            .ids
            .agents
            .get(&***id)
            .and_then(|key| cx.s().agents.get(key))
            .map_or(!cx.s().tombs.has(id), |agent| !agent.status.ended())
    });
    match launches.background.or(agent_runs) {
        Some(id) => {
            let id = id.clone();
            launched(cx, key, &id);
            if launches.background.is_some() {
                cx.session(SessionChange::BackgroundStarted(id, call.name.clone()));
            }
        }
        None => end(cx, key, ToolStatus::Succeeded, result, duration_ms),
    }
}

fn launched(cx: &mut Cx<'_>, key: ToolKey, id: &Arc<str>) {
    if status(cx, key) == Some(ToolStatus::Proposed) {
        cx.tool(key, ToolChange::Advance(ToolStatus::Pending, Source::Hook));
    }
    started(cx, key);
    cx.tool(key, ToolChange::Advance(ToolStatus::Launched, Source::Hook));
    cx.tool(key, ToolChange::Launched(id.clone()));
    if let Some(permission) = cx.s().tools.get(&key).and_then(|tool| tool.permission) {
        effects::tool_moved(cx, permission);
    }
}

/// PostToolUseFailure.
pub(crate) fn failed(cx: &mut Cx<'_>, call: &Call<'_>, error: &Arc<str>, duration_ms: Option<u64>) {
    let Some(key) = of_hook(cx, call, &RawJson::new("{}")) else {
        return;
    };
    if cx
        .s()
        .tools
        .get(&key)
        .is_none_or(|tool| tool.status.ended())
    {
        return cx.diag(DiagnosticKind::Duplicate, call.id.clone());
    }
    end(cx, key, ToolStatus::Failed, error, duration_ms);
}

/// PostToolBatch: whatever has neither run nor failed was denied. A tool that was allowed and has no result yet gets it from the transcript.
pub(crate) fn batch(cx: &mut Cx<'_>, calls: &[BatchCall], agent: Option<&AgentRef>) {
    if agent.is_some_and(agents::is_ghost) {
        return;
    }
    for call in calls {
        let Ok(Some(key)) = known(cx, &call.tool_use_id) else {
            continue;
        };
        match status(cx, key) {
            Some(ToolStatus::Proposed | ToolStatus::Pending | ToolStatus::AwaitingPermission) => {
                end(cx, key, ToolStatus::Denied, &call.response, None);
            }
            Some(ToolStatus::Running) => {
                if let Some(permission) = cx.s().tools.get(&key).and_then(|tool| tool.permission) {
                    effects::tool_moved(cx, permission);
                }
            }
            Some(
                ToolStatus::Launched
                | ToolStatus::Succeeded
                | ToolStatus::Failed
                | ToolStatus::Denied
                | ToolStatus::Interrupted
                | ToolStatus::Unknown,
            )
            | None => {}
        }
    }
    match agent {
        None => effects::next_step(cx, None),
        Some(agent) => {
            if let Some(key) = cx.s().ids.agents.get(&agent.id).copied() {
                effects::next_step(cx, Some(key));
            }
        }
    }
}

/// Claude's auto mode refused a tool.
pub(crate) fn refused_by_mode(cx: &mut Cx<'_>, id: &Arc<str>, reason: &Arc<str>) {
    match known(cx, id) {
        Ok(Some(key)) => end(cx, key, ToolStatus::Denied, reason, None),
        Ok(None) => cx.diag(DiagnosticKind::Unmatched, id.clone()),
        Err(()) => cx.diag(DiagnosticKind::Late, id.clone()),
    }
}

/// A tool call in the transcript: corroborates, or proposes what no hook has told of.
pub(crate) fn proposed(
    cx: &mut Cx<'_>,
    id: &Arc<str>,
    name: &Arc<str>,
    input: &RawJson,
    turn: Option<TurnKey>,
    agent: Option<AgentKey>,
) {
    match known(cx, id) {
        Ok(Some(_)) => return,
        Ok(None) => {}
        Err(()) => return cx.diag(DiagnosticKind::Late, id.clone()),
    }
    let open_turn = turn.filter(|key| cx.s().turn(*key).is_some_and(|turn| !turn.status.ended()));
    if open_turn.is_none() && agent.is_none() {
        return cx.diag(DiagnosticKind::Late, id.clone());
    }
    open(
        cx,
        &New {
            id,
            name,
            input,
            turn,
            agent,
            status: ToolStatus::Proposed,
        },
    );
}

/// A tool result in the transcript.
pub(crate) fn result_in_transcript(
    cx: &mut Cx<'_>,
    id: &Arc<str>,
    is_error: bool,
    text: &Arc<str>,
    denial: Option<&Arc<str>>,
) {
    let key = match known(cx, id) {
        Ok(Some(key)) => key,
        Ok(None) => return cx.diag(DiagnosticKind::Unmatched, id.clone()),
        Err(()) => return cx.diag(DiagnosticKind::Late, id.clone()),
    };
    let Some(tool) = cx.s().tools.get(&key) else {
        return;
    };
    let now = tool.status.get();
    if tool.status.ended() {
        if denial.is_some() && matches!(now, ToolStatus::Succeeded | ToolStatus::Failed) {
            cx.diag(DiagnosticKind::Conflict, id.clone());
        } else if matches!(now, ToolStatus::Succeeded | ToolStatus::Failed) {
            // The hook told the tool's own response; the transcript tells what the model was given.
            cx.tool(key, ToolChange::Result(shorten(text), None));
        }
        return;
    }
    if now == ToolStatus::Launched {
        return;
    }
    let to = match denial {
        Some(kind) => denial_means(cx, tool, kind),
        None if is_error => ToolStatus::Failed,
        None => ToolStatus::Succeeded,
    };
    end(cx, key, to, text, None);
}

/// A rejection by a person and an interrupt write the same line; what we did and saw tells them apart.
fn denial_means(cx: &Cx<'_>, tool: &Tool, kind: &Arc<str>) -> ToolStatus {
    if !cx.config.vocabulary.user_denials.contains(kind) {
        return ToolStatus::Denied;
    }
    let asked = tool
        .permission
        .and_then(|key| cx.s().permissions.get(&key))
        .is_some_and(|p| {
            p.status.get() == PermissionStatus::Pending
                || p.decision.as_ref().is_some_and(|d| !d.allows())
        });
    if asked || tool.status.get() == ToolStatus::AwaitingPermission {
        ToolStatus::Denied
    } else {
        ToolStatus::Interrupted
    }
}

/// How a turn's end leaves its main-thread tools.
pub(crate) fn left_open(turn: TurnStatus) -> (ToolStatus, &'static str) {
    match turn {
        TurnStatus::Interrupted | TurnStatus::Withdrawn => {
            (ToolStatus::Interrupted, "the turn was interrupted")
        }
        TurnStatus::Queued
        | TurnStatus::Submitting
        | TurnStatus::Running
        | TurnStatus::Stopping
        | TurnStatus::Completed
        | TurnStatus::Failed
        | TurnStatus::NotSubmitted
        | TurnStatus::Aborted
        | TurnStatus::Unknown => (ToolStatus::Unknown, "the turn ended without its result"),
    }
}
