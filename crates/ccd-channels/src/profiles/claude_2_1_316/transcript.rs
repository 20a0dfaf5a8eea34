//! Transcript entries of 2.1.316: types, subtypes, attachment types and fields, and what each means.

use std::sync::Arc;

use ccd_model::{
    observation::{ApiError, AssistantBlock, Observation, PromptOrigin},
    outcome::Usage,
};
use serde_json::value::RawValue;

use super::{
    TASK_NOTIFICATION,
    blocks::result_text,
    entry::{Attachment, Block, Entry, Message, Origin, PromptEnding, QuotaLimits},
};
use crate::{
    channels::FileRole,
    text::{Unreadable, arc, raw_json},
    transcript::LineContext,
};

type Reader = fn(&Entry<'_>, &mut LineContext<'_>) -> Result<(), Unreadable>;

/// Entry types that say something.
const TYPES: [(&str, Reader); 7] = [
    ("user", user),
    ("assistant", assistant),
    ("system", system),
    ("attachment", attachment),
    ("api-request", api_request),
    ("queue-operation", queue_operation),
    ("last-prompt", last_prompt),
];

/// Known entry types of no interest.
const IGNORED_TYPES: &[&str] = &[
    "progress",
    "file-history-snapshot",
    "file-history-delta",
    "continued-in",
    "content-replacement",
    "api-request-shape",
    "api-request-blob",
    "fork-context-ref",
    "frame-link",
    "summary",
    "custom-title",
    "ended-by-model",
    "ai-title",
    "tag",
    "relocated",
    "agent-name",
    "agent-color",
    "agent-setting",
    "pr-link",
    "artifact-comment-monitor",
    "artifact-autoreact-ledger",
    "bridge-session",
    "history-suppression",
    "attribution-snapshot",
    "mode",
    "permission-mode",
    "isolation-latch",
    "dev-mods",
    "memory-mode",
    "atis-latch",
    "tools-used",
    "worktree-state",
    "cost-state",
    "observer-ref",
];

/// System subtypes that say something.
const SUBTYPES: [(&str, Reader); 3] = [
    ("turn_duration", turn_duration),
    ("informational", informational),
    ("compact_boundary", compact_boundary),
];

const IGNORED_SUBTYPES: &[&str] = &[
    "local_command",
    "stop_hook_summary",
    "api_error",
    "away_summary",
    "memory_saved",
    "agents_killed",
    "scheduled_task_fire",
    "model_fallback",
    "model_refusal_fallback",
    "model_refusal_no_fallback",
    "model_consent_fallback",
    "bridge_status",
    "cloud_session_status",
    "file_snapshot",
    "rewind_stand_in",
];

const PERMISSION_DECISION: &str = "hook_permission_decision";
const PERMISSION_EVENT: &str = super::hooks::PERMISSION_EVENT;
const ALLOW: &str = "allow";

const IGNORED_ATTACHMENTS: &[&str] = &[
    "agent_listing_delta",
    "async_hook_response",
    "auto_mode",
    "auto_mode_exit",
    "credential_org",
    "date",
    "deferred_tools_delta",
    "edited_text_file",
    "environment",
    "file",
    "hook_additional_context",
    "hook_blocking_error",
    "hook_cancelled",
    "hook_deferred_tool",
    "hook_error_during_execution",
    "hook_non_blocking_error",
    "hook_stopped_continuation",
    "hook_success",
    "hook_system_message",
    "invoked_skills",
    "max_turns_reached",
    "mcp_instructions_delta",
    "model",
    "nested_memory",
    "plan_mode",
    "plan_mode_exit",
    "plan_mode_reentry",
    "prompt_snapshot",
    "queued_command",
    "relevant_memories",
    "remote_session_change",
    "session_context",
    "skill_listing",
    "structured_output",
    "task_reminder",
    "task_status",
    "teammate_mailbox",
    "todo_reminder",
    "ultra_effort_enter",
    "ultra_effort_exit",
];

/// Interrupt markers: the text, and whether tools were cut.
const INTERRUPTS: [(&str, bool); 2] = [
    ("[Request interrupted by user]", false),
    ("[Request interrupted by user for tool use]", true),
];

/// Origin words of prompt lines.
const ORIGINS: [(&str, PromptOrigin); 3] = [
    ("human", PromptOrigin::Human),
    ("task-notification", PromptOrigin::TaskNotification),
    ("auto-continuation", PromptOrigin::AutoContinue),
];

const SYNTHETIC_MODEL: &str = "<synthetic>";
const BLOCKED_BY_HOOK: &str = "blocked_by_hook";
const ABSORBED: &str = "absorbed_mid_turn";
const NO_LEAF: &str = "00000000-0000-0000-0000-000000000000";

/// Assistant blocks of no interest.
const IGNORED_BLOCKS: &[&str] = &[
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
];

pub(super) fn read(line: &str, context: &mut LineContext<'_>) -> Result<(), Unreadable> {
    let entry: Entry<'_> = serde_json::from_str(line)?;
    if let Some(session) = &entry.session_id {
        context.session = Some(Arc::clone(session));
    }
    if entry.forked_from.is_some() {
        // History copied from another session, reported there.
        return Ok(());
    }
    dispatch(
        &TYPES,
        IGNORED_TYPES,
        "type",
        &entry.kind.clone(),
        &entry,
        context,
    )
}

/// Runs the row of `word`, or notes that no table knows it.
fn dispatch(
    rows: &[(&str, Reader)],
    ignored: &[&str],
    what: &str,
    word: &str,
    entry: &Entry<'_>,
    context: &mut LineContext<'_>,
) -> Result<(), Unreadable> {
    if let Some((_, reader)) = rows.iter().find(|(known, _)| *known == word) {
        return reader(entry, context);
    }
    if !ignored.contains(&word) {
        context.unknown = Some(format!("{what} {word}"));
    }
    Ok(())
}

fn need<T>(value: Option<T>, field: &str) -> Result<T, Unreadable> {
    value.ok_or_else(|| Unreadable::new(format!("no field {field}")))
}

/// The subagent whose conversation the line belongs to; `None` on the main thread. A side line without an id is an agent's.
fn agent(entry: &Entry<'_>, context: &LineContext<'_>) -> Option<Arc<str>> {
    let of_file = match context.role {
        Some(FileRole::Agent { agent_id }) => Some(Arc::clone(agent_id)),
        Some(FileRole::Main { .. }) | None => None,
    };
    entry
        .agent_id
        .clone()
        .or(of_file)
        .or_else(|| (entry.is_sidechain == Some(true)).then(|| arc("")))
}

fn text_of(raw: &RawValue) -> Option<Arc<str>> {
    serde_json::from_str(raw.get()).ok()
}

fn user(entry: &Entry<'_>, context: &mut LineContext<'_>) -> Result<(), Unreadable> {
    let message: Message<'_> = serde_json::from_str(need(entry.message, "message")?.get())?;
    if message.content.get().starts_with('"') {
        let text: Arc<str> = serde_json::from_str(message.content.get())?;
        return prompt(entry, text, context);
    }
    let blocks: Vec<Block<'_>> = serde_json::from_str(message.content.get())?;
    if let [block] = blocks.as_slice()
        && let Some(text) = &block.text
        && let Some((_, for_tool)) = INTERRUPTS.iter().find(|(marker, _)| *marker == &**text)
    {
        context.found.push(Observation::TxInterrupted {
            file: context.file,
            agent: agent(entry, context),
            prompt_id: entry.prompt_id.clone(),
            for_tool: *for_tool,
            message_id: entry.interrupted_message_id.clone(),
        });
        return Ok(());
    }
    let mut texts = Vec::new();
    for block in blocks {
        match (&*block.kind, block.tool_use_id) {
            ("tool_result", Some(tool_use_id)) => {
                let text = block
                    .content
                    .map_or_else(|| arc(""), |raw| arc(&result_text(raw)));
                context.found.push(Observation::TxToolResult {
                    file: context.file,
                    agent: agent(entry, context),
                    prompt_id: entry.prompt_id.clone(),
                    tool_use_id,
                    is_error: block.is_error.unwrap_or(false),
                    text,
                    denial: entry.tool_denial_kind.clone(),
                });
            }
            _ => texts.extend(block.text),
        }
    }
    if texts.is_empty() {
        return Ok(());
    }
    prompt(entry, texts.join("\n").into(), context)
}

fn prompt(
    entry: &Entry<'_>,
    text: Arc<str>,
    context: &mut LineContext<'_>,
) -> Result<(), Unreadable> {
    let meta = entry.is_meta == Some(true) || entry.is_compact_summary == Some(true);
    let origin = if text.starts_with(TASK_NOTIFICATION) {
        PromptOrigin::TaskNotification
    } else {
        // Commands, shell lines and their output carry no origin.
        entry
            .origin
            .and_then(|raw| serde_json::from_str::<Origin<'_>>(raw.get()).ok())
            .and_then(|origin| ORIGINS.into_iter().find(|(word, _)| *word == origin.kind))
            .map_or(PromptOrigin::Other, |(_, origin)| origin)
    };
    let uuid = need(entry.uuid.clone(), "uuid")?;
    if !meta {
        context.state.prompt_id.clone_from(&entry.prompt_id);
        context.state.withdrawn = false;
    }
    context.found.push(Observation::TxPrompt {
        file: context.file,
        uuid,
        prompt_id: entry.prompt_id.clone(),
        text,
        origin,
        meta,
    });
    Ok(())
}

fn assistant(entry: &Entry<'_>, context: &mut LineContext<'_>) -> Result<(), Unreadable> {
    let message: Message<'_> = serde_json::from_str(need(entry.message, "message")?.get())?;
    let model = message.model.unwrap_or_else(|| arc(""));
    if entry.is_api_error_message == Some(true) {
        context.found.push(Observation::TxApiError {
            file: context.file,
            prompt_id: entry
                .prompt_id
                .clone()
                .or_else(|| context.state.prompt_id.clone()),
            error: ApiError {
                error: entry.error.and_then(text_of).unwrap_or_else(|| arc("")),
                status: entry.api_error_status,
                text: arc(&result_text(message.content)),
                resets_at: entry
                    .quota_limits
                    .and_then(|raw| serde_json::from_str::<QuotaLimits>(raw.get()).ok())
                    .and_then(|limits| limits.resets_at),
            },
        });
        return Ok(());
    }
    if &*model == SYNTHETIC_MODEL {
        return Ok(());
    }
    let message_id = need(message.id, "message.id")?;
    let usage = message.usage.map(|tokens| Usage {
        input_tokens: tokens.input_tokens.unwrap_or(0),
        output_tokens: tokens.output_tokens.unwrap_or(0),
        cache_creation_input_tokens: tokens.cache_creation_input_tokens.unwrap_or(0),
        cache_read_input_tokens: tokens.cache_read_input_tokens.unwrap_or(0),
    });
    let blocks: Vec<Block<'_>> = serde_json::from_str(message.content.get())?;
    let first = entry.api_block_index.unwrap_or(0);
    for (at, block) in (0_u32..).zip(blocks) {
        let block = match &*block.kind {
            "text" => AssistantBlock::Text {
                text: block.text.unwrap_or_else(|| arc("")),
            },
            "thinking" | "redacted_thinking" => AssistantBlock::Thinking {
                text: block.thinking.unwrap_or_else(|| arc("")),
            },
            "tool_use" => AssistantBlock::ToolUse {
                id: need(block.id, "id")?,
                name: need(block.name, "name")?,
                input: raw_json(need(block.input, "input")?),
            },
            other => {
                if !IGNORED_BLOCKS.contains(&other) {
                    context.unknown = Some(format!("assistant block {other}"));
                }
                continue;
            }
        };
        context.found.push(Observation::TxAssistant {
            file: context.file,
            agent: agent(entry, context),
            message_id: Arc::clone(&message_id),
            request_ref: entry.request_ref.clone(),
            index: first.saturating_add(at),
            block,
            stop_reason: message.stop_reason.clone(),
            usage,
            model: Arc::clone(&model),
            aborted: entry.is_aborted_mid_stream.unwrap_or(false),
        });
    }
    Ok(())
}

fn system(entry: &Entry<'_>, context: &mut LineContext<'_>) -> Result<(), Unreadable> {
    let subtype = need(entry.subtype.as_deref(), "subtype")?;
    dispatch(
        &SUBTYPES,
        IGNORED_SUBTYPES,
        "system",
        subtype,
        entry,
        context,
    )
}

fn turn_duration(entry: &Entry<'_>, context: &mut LineContext<'_>) -> Result<(), Unreadable> {
    context.found.push(Observation::TxTurnDuration {
        file: context.file,
        duration_ms: need(entry.duration_ms, "durationMs")?,
        pending_agents: entry.pending_background_agent_count.unwrap_or(0),
    });
    Ok(())
}

fn informational(entry: &Entry<'_>, context: &mut LineContext<'_>) -> Result<(), Unreadable> {
    let Some(raw) = entry.prompt_submit_ending else {
        return Ok(());
    };
    let ending = serde_json::from_str::<PromptEnding<'_>>(raw.get())?.ending;
    if ending.kind == BLOCKED_BY_HOOK {
        context.found.push(Observation::TxPromptBlocked {
            file: context.file,
            reason: ending.reason.unwrap_or_else(|| arc("")),
        });
    }
    Ok(())
}

fn compact_boundary(_: &Entry<'_>, context: &mut LineContext<'_>) -> Result<(), Unreadable> {
    context
        .found
        .push(Observation::TxCompacted { file: context.file });
    Ok(())
}

fn attachment(entry: &Entry<'_>, context: &mut LineContext<'_>) -> Result<(), Unreadable> {
    let attachment: Attachment<'_> =
        serde_json::from_str(need(entry.attachment, "attachment")?.get())?;
    if attachment.kind != PERMISSION_DECISION {
        if !IGNORED_ATTACHMENTS.contains(&&*attachment.kind) {
            context.unknown = Some(format!("attachment {}", attachment.kind));
        }
        return Ok(());
    }
    if attachment.hook_event.as_deref() == Some(PERMISSION_EVENT) {
        let decision = attachment.decision.and_then(text_of);
        context.found.push(Observation::TxPermissionDecision {
            file: context.file,
            tool_use_id: need(attachment.tool_use_id, "toolUseID")?,
            allow: decision.as_deref() == Some(ALLOW),
        });
    }
    Ok(())
}

fn api_request(entry: &Entry<'_>, context: &mut LineContext<'_>) -> Result<(), Unreadable> {
    let id = need(entry.id.clone(), "id")?;
    let adds_nothing = entry.tail.is_some_and(|raw| {
        serde_json::from_str::<Vec<&RawValue>>(raw.get()).is_ok_and(|tail| tail.is_empty())
    });
    let retry_of = entry.base.clone().filter(|base| {
        adds_nothing
            && entry.request_digest.is_some()
            && context.state.digest(base) == entry.request_digest.as_deref()
    });
    if let Some(digest) = &entry.request_digest {
        context.state.request(&id, Arc::clone(digest));
    }
    context.found.push(Observation::TxApiRequest {
        file: context.file,
        agent: agent(entry, context),
        id,
        retry_of,
    });
    Ok(())
}

fn queue_operation(entry: &Entry<'_>, context: &mut LineContext<'_>) -> Result<(), Unreadable> {
    context.found.push(Observation::TxQueue {
        file: context.file,
        operation: need(entry.operation.clone(), "operation")?,
        content: entry.content.map(|raw| arc(&result_text(raw))),
        absorbed: entry.reason.as_deref() == Some(ABSORBED),
    });
    Ok(())
}

fn last_prompt(entry: &Entry<'_>, context: &mut LineContext<'_>) -> Result<(), Unreadable> {
    let left = entry.explicit == Some(true) && entry.leaf_uuid.as_deref() == Some(NO_LEAF);
    if left && !context.state.withdrawn {
        context.state.withdrawn = true;
        context
            .found
            .push(Observation::TxWithdrawn { file: context.file });
    }
    Ok(())
}
