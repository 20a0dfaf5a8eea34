//! Messages of the main thread: streamed lines from hooks in index order, final text and usage from the transcript.

use alloc::{collections::BTreeMap, string::String, sync::Arc};

use ccd_model::{
    event::DomainEvent,
    ids::{AgentKey, MessageKey, TurnKey},
    observation::AssistantBlock,
    outcome::Usage,
    status::TurnStatus,
};

use crate::{
    cx::Cx,
    decide::{model_calls, prompts, session, tools, turns},
    evolve::{Change, MessageChange, TurnChange},
    input::DiagnosticKind,
    reconcile::{text_match, turn_of},
    state::{Domain, Message, Turn},
};

/// A streamed chunk.
pub(crate) struct Delta<'a> {
    pub(crate) message_id: &'a Arc<str>,
    pub(crate) index: u32,
    pub(crate) last: bool,
    pub(crate) text: &'a Arc<str>,
    pub(crate) prompt_id: Option<&'a Arc<str>>,
}

/// An assistant block of the transcript.
pub(crate) struct Line<'a> {
    pub(crate) agent: Option<&'a Arc<str>>,
    pub(crate) message_id: &'a Arc<str>,
    pub(crate) request: Option<&'a Arc<str>>,
    pub(crate) index: u32,
    pub(crate) block: &'a AssistantBlock,
    pub(crate) stop_reason: Option<&'a Arc<str>>,
    pub(crate) usage: Option<Usage>,
    pub(crate) model: &'a Arc<str>,
    pub(crate) aborted: bool,
}

/// What was streamed of a turn's last message.
pub(crate) fn streamed_text(d: &Domain, turn: &Turn) -> Arc<str> {
    turn.messages
        .iter()
        .rev()
        .filter_map(|key| d.messages.get(key))
        .find(|message| !message.text.is_empty())
        .map_or_else(|| Arc::from(""), |message| Arc::from(message.text.as_str()))
}

fn open(cx: &mut Cx<'_>, id: Option<Arc<str>>, turn: TurnKey, text: &str) -> MessageKey {
    let key = cx.s().counters.message();
    cx.set(Change::OpenMessage(Message {
        key,
        id,
        turn: Some(turn),
        text: String::from(text),
        next_index: 0,
        early: BTreeMap::new(),
        complete: false,
        finalized: false,
    }));
    key
}

/// MessageDisplay.
pub(crate) fn delta(cx: &mut Cx<'_>, delta: &Delta<'_>) {
    let key = match cx.s().ids.messages.get(delta.message_id).copied() {
        Some(key) => key,
        None if cx.s().tombs.has(delta.message_id) => {
            return cx.diag(DiagnosticKind::Late, delta.message_id.clone());
        }
        None => {
            let turn = match delta.prompt_id {
                Some(id) => prompts::turn_of_hook(cx, id, true),
                None => cx.s().current().map(|turn| turn.key),
            };
            let Some(turn) = turn else {
                return cx.diag(DiagnosticKind::Unmatched, delta.message_id.clone());
            };
            // A new message under a prompt that was stopping: another Stop hook let it go on.
            turns::continue_running(cx, turn);
            open(cx, Some(delta.message_id.clone()), turn, "")
        }
    };
    let Some((next, turn)) = cx.s().messages.get(&key).map(|m| (m.next_index, m.turn)) else {
        return;
    };
    if delta.index < next {
        return cx.diag(DiagnosticKind::Duplicate, delta.message_id.clone());
    }
    cx.message(
        key,
        MessageChange::Early(delta.index, delta.text.clone(), delta.last),
    );
    if let Some(turn) = turn {
        if !delta.text.is_empty() {
            cx.turn(turn, TurnChange::Output);
        }
        model_calls::streaming(cx, turn);
    }
    while let Some((index, text, last)) = due(cx, key) {
        cx.message(key, MessageChange::Delta(text.clone(), last));
        if !text.is_empty() {
            cx.event(DomainEvent::MessageDelta {
                message: key,
                turn,
                index,
                text,
            });
        }
    }
}

fn due(cx: &Cx<'_>, key: MessageKey) -> Option<(u32, Arc<str>, bool)> {
    let message = cx.s().messages.get(&key)?;
    let (text, last) = message.early.get(&message.next_index)?;
    Some((message.next_index, text.clone(), *last))
}

/// The turn of a main-thread line.
fn turn_of_line(cx: &Cx<'_>, line: &Line<'_>) -> Option<TurnKey> {
    let by_request = line
        .request
        .and_then(|id| cx.s().ids.requests.get(id))
        .and_then(|request| request.turn);
    let by_tool = || match line.block {
        AssistantBlock::ToolUse { id, .. } => cx
            .s()
            .ids
            .tools
            .get(id)
            .and_then(|key| cx.s().tools.get(key))
            .and_then(|tool| tool.turn),
        AssistantBlock::Text { .. } | AssistantBlock::Thinking { .. } => None,
    };
    by_request
        .or_else(by_tool)
        .or_else(|| turn_of::for_line(cx.s()))
}

/// An assistant block of the transcript. Taken in once for each message id and block index.
pub(crate) fn in_transcript(cx: &mut Cx<'_>, line: &Line<'_>) {
    model_calls::answered(cx, line.request, line.stop_reason.is_some(), line.aborted);
    if let Some(id) = line.agent {
        let agent = cx.s().ids.agents.get(id).copied();
        agent_line(cx, line, agent);
        return;
    }
    let Some(turn) = turn_of_line(cx, line) else {
        cx.diag(DiagnosticKind::Unmatched, line.message_id.clone());
        return;
    };
    let block = TurnChange::Block(line.message_id.clone(), line.index);
    if !cx.turn(turn, block) {
        cx.diag(DiagnosticKind::Duplicate, line.message_id.clone());
        return;
    }
    if let Some(usage) = line.usage {
        cx.turn(turn, TurnChange::Usage(line.message_id.clone(), usage));
    }
    cx.turn(turn, TurnChange::Model(line.model.clone()));
    session::model(cx, line.model);
    match line.block {
        AssistantBlock::Text { text } => text_block(cx, turn, text, line.stop_reason.is_some()),
        AssistantBlock::Thinking { text } => {
            if !text.is_empty() {
                cx.event(DomainEvent::ThinkingFinal {
                    turn: Some(turn),
                    text: text.clone(),
                });
            }
        }
        AssistantBlock::ToolUse { id, name, input } => {
            tools::proposed(cx, id, name, input, Some(turn), None);
        }
    }
}

fn agent_line(cx: &mut Cx<'_>, line: &Line<'_>, agent: Option<AgentKey>) {
    let turn = agent
        .and_then(|key| cx.s().agents.get(&key))
        .filter(|agent| !agent.status.ended())
        .map(|agent| agent.turn);
    if let (AssistantBlock::ToolUse { id, name, input }, Some(turn)) = (line.block, turn) {
        tools::proposed(cx, id, name, input, turn, agent);
    }
}

fn text_block(cx: &mut Cx<'_>, turn: TurnKey, text: &Arc<str>, finished: bool) {
    let message = match text_match::streamed(cx.s(), turn, text) {
        Some(key) => {
            cx.message(key, MessageChange::Text(text.clone()));
            key
        }
        None => open(cx, None, turn, text),
    };
    cx.message(message, MessageChange::Finalized);
    cx.turn(turn, TurnChange::TxText(text.clone()));
    cx.event(DomainEvent::MessageFinal {
        message,
        turn: Some(turn),
        text: text.clone(),
        confirmed: true,
    });
    let Some(ended) = cx.s().turn(turn).filter(|turn| turn.status.ended()) else {
        return;
    };
    let completed = ended.status.get() == TurnStatus::Completed;
    if ended.text.is_empty() && completed {
        cx.turn(turn, TurnChange::Text(text.clone()));
    }
    let caught_up = cx
        .s()
        .turn(turn)
        .is_some_and(|turn| turn.text.trim() == text.trim());
    if completed && finished && caught_up {
        turns::settle(cx, turn, true);
    }
}

/// The transcript did not confirm these any more: they are final as they were streamed.
pub(crate) fn finalize_streamed(cx: &mut Cx<'_>, turn: TurnKey) {
    let Some(keys) = cx.s().turn(turn).map(|turn| turn.messages.clone()) else {
        return;
    };
    for key in keys {
        let text = cx
            .s()
            .messages
            .get(&key)
            .filter(|message| !message.finalized && !message.text.is_empty())
            .map(|message| Arc::<str>::from(message.text.as_str()));
        if let Some(text) = text {
            cx.message(key, MessageChange::Finalized);
            cx.event(DomainEvent::MessageFinal {
                message: key,
                turn: Some(turn),
                text,
                confirmed: false,
            });
        }
    }
}
