//! Internal view and decisions to public ones, and back. Exhaustive, so that a new internal state cannot be forgotten.

use ccd_runtime::model;
use ccd_types::{
    AgentId, AgentStatus, CallPhase, ExitInfo, Json, Lifecycle, NormalizationChange,
    PermissionDecision, PermissionId, PermissionRequest, State, ToolId, ToolRun, ToolRunStatus,
    TurnId, TurnOrigin, TurnState, TurnStatus, Usage,
};
use model::{
    json::RawJson,
    outcome::{Normalization, Origin},
    permission::Decision,
    status,
    view::{ExitView, PermissionView, ToolView, View},
};

pub(crate) fn json(raw: &RawJson) -> Json {
    raw.value()
        .unwrap_or_else(|| Json::String(raw.get().to_owned()))
}

pub(crate) fn turn_id(key: model::ids::TurnKey) -> TurnId {
    TurnId::new(key.to_string())
}

pub(crate) fn tool_id(key: model::ids::ToolKey) -> ToolId {
    ToolId::new(key.to_string())
}

pub(crate) fn agent_id(key: model::ids::AgentKey) -> AgentId {
    AgentId::new(key.to_string())
}

pub(crate) const fn origin(origin: Origin) -> TurnOrigin {
    match origin {
        Origin::Api => TurnOrigin::Api,
        Origin::Attached => TurnOrigin::Attached,
        Origin::TaskNotification => TurnOrigin::TaskNotification,
        Origin::AutoContinue => TurnOrigin::AutoContinue,
    }
}

pub(crate) const fn turn_status(status: status::TurnStatus) -> TurnStatus {
    match status {
        status::TurnStatus::Queued => TurnStatus::Queued,
        status::TurnStatus::Submitting => TurnStatus::Submitting,
        status::TurnStatus::Running => TurnStatus::Running,
        status::TurnStatus::Stopping => TurnStatus::Stopping,
        status::TurnStatus::Completed => TurnStatus::Completed,
        status::TurnStatus::Failed => TurnStatus::Failed,
        status::TurnStatus::Interrupted => TurnStatus::Interrupted,
        status::TurnStatus::Withdrawn => TurnStatus::Withdrawn,
        status::TurnStatus::NotSubmitted => TurnStatus::NotSubmitted,
        status::TurnStatus::Aborted => TurnStatus::Aborted,
        status::TurnStatus::Unknown => TurnStatus::Unknown,
    }
}

pub(crate) const fn tool_status(status: status::ToolStatus) -> ToolRunStatus {
    match status {
        status::ToolStatus::Proposed => ToolRunStatus::Proposed,
        status::ToolStatus::Pending => ToolRunStatus::Pending,
        status::ToolStatus::AwaitingPermission => ToolRunStatus::AwaitingPermission,
        status::ToolStatus::Running => ToolRunStatus::Running,
        status::ToolStatus::Launched => ToolRunStatus::Launched,
        status::ToolStatus::Succeeded => ToolRunStatus::Succeeded,
        status::ToolStatus::Failed => ToolRunStatus::Failed,
        status::ToolStatus::Denied => ToolRunStatus::Denied,
        status::ToolStatus::Interrupted => ToolRunStatus::Interrupted,
        status::ToolStatus::Unknown => ToolRunStatus::Unknown,
    }
}

pub(crate) fn agent_status(status: &status::AgentStatus) -> AgentStatus {
    match status {
        status::AgentStatus::Exited => AgentStatus::Exited,
        status::AgentStatus::Starting => AgentStatus::Starting,
        status::AgentStatus::AwaitingPermission => AgentStatus::AwaitingPermission,
        status::AgentStatus::AwaitingInput => AgentStatus::AwaitingInput,
        status::AgentStatus::Interrupting => AgentStatus::Interrupting,
        status::AgentStatus::AuthRequired => AgentStatus::AuthRequired,
        status::AgentStatus::UsageLimited => AgentStatus::UsageLimited,
        status::AgentStatus::Compacting => AgentStatus::Compacting,
        status::AgentStatus::RunningTools => AgentStatus::RunningTools,
        status::AgentStatus::Writing => AgentStatus::Writing,
        status::AgentStatus::ModelRequest { phase } => AgentStatus::ModelRequest {
            phase: call_phase(phase),
        },
        status::AgentStatus::Working => AgentStatus::Working,
        status::AgentStatus::Idle => AgentStatus::Idle,
        status::AgentStatus::Unknown => AgentStatus::Unknown,
    }
}

fn call_phase(phase: &status::CallPhase) -> CallPhase {
    match phase {
        status::CallPhase::Waiting => CallPhase::Waiting,
        status::CallPhase::Streaming => CallPhase::Streaming,
        status::CallPhase::Retrying {
            attempt,
            max,
            reason,
        } => CallPhase::Retrying {
            attempt: *attempt,
            max_attempts: *max,
            reason: reason.to_string(),
        },
        status::CallPhase::Stalled => CallPhase::Stalled,
    }
}

pub(crate) const fn normalization(change: Normalization) -> NormalizationChange {
    match change {
        Normalization::TrailingSpace => NormalizationChange::TrailingSpace,
        Normalization::LineEndings => NormalizationChange::LineEndings,
        Normalization::ControlCharacters => NormalizationChange::ControlCharacters,
        Normalization::InvisibleCharacters => NormalizationChange::InvisibleCharacters,
        Normalization::BidiMarks => NormalizationChange::BidiMarks,
        Normalization::AsText => NormalizationChange::AsText,
    }
}

pub(crate) const fn usage(usage: model::outcome::Usage) -> Usage {
    Usage::new(
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_creation_input_tokens,
        usage.cache_read_input_tokens,
    )
}

pub(crate) fn decision(decision: &Decision) -> PermissionDecision {
    match decision {
        Decision::Allow {
            updated_input,
            updated_permissions,
        } => PermissionDecision::Allow {
            updated_input: updated_input.as_ref().map(json),
            updated_permissions: updated_permissions.as_ref().map(json),
        },
        Decision::Deny { message, interrupt } => PermissionDecision::Deny {
            message: message.to_string(),
            interrupt: *interrupt,
        },
    }
}

pub(crate) fn internal_decision(decision: &PermissionDecision) -> Decision {
    match decision {
        PermissionDecision::Allow {
            updated_input,
            updated_permissions,
        } => Decision::Allow {
            updated_input: updated_input.as_ref().map(RawJson::from),
            updated_permissions: updated_permissions.as_ref().map(RawJson::from),
        },
        PermissionDecision::Deny { message, interrupt } => Decision::Deny {
            message: message.as_str().into(),
            interrupt: *interrupt,
        },
    }
}

pub(crate) fn permission_request(view: &PermissionView) -> PermissionRequest {
    let mut request = PermissionRequest::new(
        PermissionId::new(view.permission.to_string()),
        view.name.to_string(),
        json(&view.input),
    );
    request.turn = view.turn.map(turn_id);
    request.agent = view.agent.map(agent_id);
    request.tool_use_id = view.tool_use_id.as_ref().map(ToString::to_string);
    request.permission_suggestions = view.suggestions.as_ref().map(json);
    request
}

pub(crate) fn tool_run(view: &ToolView) -> ToolRun {
    let mut run = ToolRun::new(
        tool_id(view.tool),
        view.tool_use_id.to_string(),
        view.name.to_string(),
        json(&view.input),
        tool_status(view.status),
    );
    run.result = view.result.as_ref().map(ToString::to_string);
    run.duration_ms = view.duration_ms;
    run
}

pub(crate) fn exit_info(exit: &ExitView) -> ExitInfo {
    ExitInfo::new(exit.code, exit.signal, exit.clean, exit.reason.to_string())
}

pub(crate) fn session_state(view: &View) -> State {
    use model::lattice::Lattice as _;
    let lifecycle = match view.lifecycle {
        status::Lifecycle::Starting => Lifecycle::Starting,
        status::Lifecycle::Ready => Lifecycle::Ready,
        status::Lifecycle::Closing => Lifecycle::Closing,
        status::Lifecycle::Exited => Lifecycle::Exited,
    };
    let mut state = State::new(
        lifecycle,
        agent_status(&view.status),
        view.quiescent,
        view.session_id.to_string(),
    );
    let text = |value: &Option<std::sync::Arc<str>>| value.as_ref().map(ToString::to_string);
    state.transcript_path = text(&view.transcript_path);
    state.claude_pid = view.claude_pid;
    state.claude_version = text(&view.claude_version);
    state.model = text(&view.model);
    state.permission_mode = text(&view.mode);
    state.turns = view
        .turns
        .iter()
        .map(|turn| {
            TurnState::new(
                turn_id(turn.turn),
                origin(turn.origin),
                turn_status(turn.status),
                turn.text.to_string(),
            )
        })
        .collect();
    state.open_tools = view
        .tools
        .iter()
        .filter(|tool| !tool.status.is_terminal())
        .map(tool_run)
        .collect();
    state.pending_permissions = view
        .permissions
        .iter()
        .filter(|permission| permission.status == status::PermissionStatus::Pending)
        .map(permission_request)
        .collect();
    state.running_agents = view
        .agents
        .iter()
        .filter(|agent| agent.status == status::AgentRunStatus::Running)
        .map(|agent| agent_id(agent.agent))
        .collect();
    state.background = view.background.iter().map(ToString::to_string).collect();
    state.exit = view.exit.as_ref().map(exit_info);
    state
}
