//! Field names of transcript entries of 2.1.316, as they are deserialized. What they mean stands beside the readers.

use std::{borrow::Cow, sync::Arc};

use serde::Deserialize;
use serde_json::value::RawValue;

/// Every field of a line that a reader uses. Bodies stay raw.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) subtype: Option<Cow<'a, str>>,
    pub(super) session_id: Option<Arc<str>>,
    pub(super) is_sidechain: Option<bool>,
    pub(super) agent_id: Option<Arc<str>>,
    #[serde(borrow)]
    pub(super) forked_from: Option<&'a RawValue>,
    pub(super) uuid: Option<Arc<str>>,
    pub(super) prompt_id: Option<Arc<str>>,
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) origin: Option<&'a RawValue>,
    pub(super) is_meta: Option<bool>,
    pub(super) is_compact_summary: Option<bool>,
    pub(super) interrupted_message_id: Option<Arc<str>>,
    pub(super) tool_denial_kind: Option<Arc<str>>,
    pub(super) api_block_index: Option<u32>,
    pub(super) request_ref: Option<Arc<str>>,
    pub(super) is_aborted_mid_stream: Option<bool>,
    pub(super) is_api_error_message: Option<bool>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    pub(super) api_error_status: Option<u16>,
    #[serde(borrow)]
    pub(super) quota_limits: Option<&'a RawValue>,
    pub(super) id: Option<Arc<str>>,
    pub(super) base: Option<Arc<str>>,
    #[serde(borrow)]
    pub(super) tail: Option<&'a RawValue>,
    pub(super) request_digest: Option<Arc<str>>,
    pub(super) duration_ms: Option<u64>,
    pub(super) pending_background_agent_count: Option<u32>,
    #[serde(borrow)]
    pub(super) prompt_submit_ending: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) attachment: Option<&'a RawValue>,
    pub(super) operation: Option<Arc<str>>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) reason: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) leaf_uuid: Option<Cow<'a, str>>,
    pub(super) explicit: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct Message<'a> {
    pub(super) id: Option<Arc<str>>,
    pub(super) model: Option<Arc<str>>,
    pub(super) stop_reason: Option<Arc<str>>,
    pub(super) usage: Option<Tokens>,
    #[serde(borrow)]
    pub(super) content: &'a RawValue,
}

#[derive(Deserialize)]
pub(super) struct Tokens {
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    pub(super) cache_read_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct Block<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    pub(super) text: Option<Arc<str>>,
    pub(super) thinking: Option<Arc<str>>,
    pub(super) id: Option<Arc<str>>,
    pub(super) name: Option<Arc<str>>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    pub(super) tool_use_id: Option<Arc<str>>,
    pub(super) is_error: Option<bool>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Origin<'a> {
    #[serde(borrow)]
    pub(super) kind: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct QuotaLimits {
    pub(super) resets_at: Option<i64>,
}

#[derive(Deserialize)]
pub(super) struct PromptEnding<'a> {
    #[serde(borrow)]
    pub(super) ending: Ending<'a>,
}

#[derive(Deserialize)]
pub(super) struct Ending<'a> {
    #[serde(borrow)]
    pub(super) kind: Cow<'a, str>,
    pub(super) reason: Option<Arc<str>>,
}

#[derive(Deserialize)]
pub(super) struct Attachment<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) decision: Option<&'a RawValue>,
    #[serde(rename = "toolUseID")]
    pub(super) tool_use_id: Option<Arc<str>>,
    #[serde(rename = "hookEvent", borrow)]
    pub(super) hook_event: Option<Cow<'a, str>>,
}
