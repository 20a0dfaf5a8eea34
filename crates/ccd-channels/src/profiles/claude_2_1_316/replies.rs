//! Reply texts of 2.1.316. An allow of a question or a plan without `updatedInput` is ignored and its dialog stays.

use ccd_ports::session::HookReplies;

use super::{
    TASK_NOTIFICATION,
    hooks::{PERMISSION_EVENT, PROMPT_EVENT, PROMPT_FIELD, TOOL_EVENT},
};
use crate::replies::{AllowInput, ReplyTable};

pub(super) static REPLIES: ReplyTable = ReplyTable {
    permission: (
        r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":"#,
        "}}",
    ),
    allow: r#"{"behavior":"allow""#,
    updated_input: r#","updatedInput":"#,
    updated_permissions: r#","updatedPermissions":"#,
    deny: r#"{"behavior":"deny","message":"#,
    interrupt: r#","interrupt":true"#,
    end: "}",
    allow_needs_input: &[
        ("AskUserQuestion", AllowInput::Original),
        ("ExitPlanMode", AllowInput::Fixed("{}")),
    ],
    malformed: "The answer to this permission request was malformed.",
    hooks,
};

fn hooks() -> HookReplies {
    HookReplies {
        block_prompt: concat!(
            r#"{"decision":"block","reason":"Not submitted by the session driver.","#,
            r#""hookSpecificOutput":{"hookEventName":"UserPromptSubmit","suppressOriginalPrompt":true}}"#,
        )
        .to_owned(),
        deny_tool: concat!(
            r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","#,
            r#""permissionDecisionReason":{reason}}}"#,
        )
        .to_owned(),
        deny_permission: concat!(
            r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","#,
            r#""decision":{"behavior":"deny","message":{message}}}}"#,
        )
        .to_owned(),
        prompt_field: PROMPT_FIELD.to_owned(),
        permission_event: PERMISSION_EVENT.to_owned(),
        prompt_event: PROMPT_EVENT.to_owned(),
        tool_event: TOOL_EVENT.to_owned(),
        internal_prompt_prefixes: vec![TASK_NOTIFICATION.to_owned()],
    }
}
