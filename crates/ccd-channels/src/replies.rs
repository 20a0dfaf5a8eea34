//! Answers to hook calls as exact JSON texts. The shapes and words live in the profile.

use ccd_model::{json::RawJson, permission::Decision};
use ccd_ports::session::HookReplies;
use serde_json::value::RawValue;

/// What a tool needs in an allow that does not say it, to be heard at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowInput {
    /// The input as it was asked for.
    Original,
    /// This JSON text.
    Fixed(&'static str),
}

/// The reply shapes of a profile.
pub(crate) struct ReplyTable {
    /// Text around a decision.
    pub(crate) permission: (&'static str, &'static str),
    /// Beginning of an allow, and of its optional members.
    pub(crate) allow: &'static str,
    pub(crate) updated_input: &'static str,
    pub(crate) updated_permissions: &'static str,
    /// Beginning of a deny up to its message, and the optional member.
    pub(crate) deny: &'static str,
    pub(crate) interrupt: &'static str,
    /// End of a decision.
    pub(crate) end: &'static str,
    /// Tools whose plain allow is ignored.
    pub(crate) allow_needs_input: &'static [(&'static str, AllowInput)],
    /// Message of a deny when an allow cannot be spelled.
    pub(crate) malformed: &'static str,
    pub(crate) hooks: fn() -> HookReplies,
}

/// The answer to a permission request. An allow with a body that is not JSON becomes a deny: it would fail open.
pub(crate) fn permission(
    table: &ReplyTable,
    decision: &Decision,
    tool_name: &str,
    input: &RawJson,
) -> RawJson {
    let decision = match decision {
        Decision::Allow {
            updated_input,
            updated_permissions,
        } => allow(
            table,
            updated_input.as_ref().map(RawJson::get).or_else(|| {
                needed_input(table, tool_name).map(|needed| match needed {
                    AllowInput::Original => input.get(),
                    AllowInput::Fixed(json) => json,
                })
            }),
            updated_permissions.as_ref().map(RawJson::get),
        ),
        Decision::Deny { message, interrupt } => deny(table, message, *interrupt),
    };
    let (before, after) = table.permission;
    RawJson::new(format!("{before}{decision}{after}"))
}

fn needed_input(table: &ReplyTable, tool_name: &str) -> Option<AllowInput> {
    table
        .allow_needs_input
        .iter()
        .find(|(tool, _)| *tool == tool_name)
        .map(|(_, needed)| *needed)
}

fn allow(table: &ReplyTable, input: Option<&str>, permissions: Option<&str>) -> String {
    let mut out = table.allow.to_owned();
    for (member, json) in [
        (table.updated_input, input),
        (table.updated_permissions, permissions),
    ] {
        let Some(json) = json else { continue };
        if !is_json(json) {
            return deny(table, table.malformed, false);
        }
        out.push_str(member);
        out.push_str(json);
    }
    out.push_str(table.end);
    out
}

fn deny(table: &ReplyTable, message: &str, interrupt: bool) -> String {
    let mut out = table.deny.to_owned();
    out.push_str(&string_literal(message));
    if interrupt {
        out.push_str(table.interrupt);
    }
    out.push_str(table.end);
    out
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

/// `text` as a JSON string literal.
fn string_literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
