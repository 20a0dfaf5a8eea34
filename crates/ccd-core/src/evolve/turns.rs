//! Applies changes of turns and keeps their indexes. No decisions.

use ccd_model::{ids::TurnKey, outcome::Usage, status::TurnStatus};

use super::{TurnChange as C, retention};
use crate::{
    keys::Spent,
    state::{Domain, Turn},
};

pub(super) fn open(d: &mut Domain, turn: Turn) -> bool {
    let key = turn.key;
    d.counters.spend(Spent::TurnKey(key));
    if let Some(id) = &turn.prompt_id {
        d.ids.prompts.insert(id.clone(), key);
    }
    if turn.status.get() == TurnStatus::Queued {
        d.queue.push_back(key);
    } else {
        d.open_turns.insert(key);
    }
    d.turns.insert(key, turn);
    true
}

pub(super) fn apply(d: &mut Domain, key: TurnKey, change: C) -> bool {
    let now = d.now;
    let Some(turn) = d.turns.get_mut(&key) else {
        return false;
    };
    match change {
        C::Advance(to, source) => {
            if !turn.status.advance(to, source) {
                return false;
            }
            if to == TurnStatus::Running && turn.started_at.is_none() {
                turn.started_at = Some(now);
            }
            d.open_turns.insert(key);
            leave_queue(d, key);
        }
        C::PromptId(id) => {
            turn.prompt_id = Some(id.clone());
            turn.host = None;
            d.ids.prompts.insert(id, key);
        }
        C::Prompt(text) => turn.prompt = text,
        C::Origin(origin) => turn.origin = origin,
        C::Submitted => turn.submitted = true,
        C::Output => turn.output = true,
        C::Requested => turn.requested = true,
        C::Stopped(text) => {
            turn.stopped_at = Some(now);
            turn.stop_text = Some(text);
        }
        C::TxText(text) => turn.tx_text = Some(text),
        C::TxError(error) => turn.tx_error = Some(error),
        C::TxDone => turn.tx_done = true,
        C::Host(host) => turn.host = Some(host),
        C::Absorbed => turn.absorbed = true,
        C::Block(message_id, index) => return turn.blocks.insert((message_id, index)),
        C::Usage(message_id, usage) => {
            if !turn.counted.insert(message_id) {
                return false;
            }
            turn.usage = Some(sum(turn.usage.unwrap_or_default(), usage));
        }
        C::Model(model) => turn.model = Some(model),
        C::Text(text) => turn.text = text,
        C::End {
            status,
            source,
            outcome,
            text,
            returned,
        } => {
            if !turn.status.advance(status, source) {
                return false;
            }
            turn.outcome = Some(outcome);
            turn.text = text;
            turn.returned = returned;
            turn.ended_at = Some(now);
            leave_queue(d, key);
            d.open_turns.remove(&key);
            d.ended_turns.push_back(key);
            d.last_ended = Some(key);
            retention::turns(d);
        }
        C::Settled => turn.settled = true,
    }
    true
}

fn leave_queue(d: &mut Domain, key: TurnKey) {
    if d.queue.front() == Some(&key) {
        d.queue.pop_front();
    } else {
        d.queue.retain(|held| *held != key);
    }
}

fn sum(a: Usage, b: Usage) -> Usage {
    Usage {
        input_tokens: a.input_tokens.saturating_add(b.input_tokens),
        output_tokens: a.output_tokens.saturating_add(b.output_tokens),
        cache_creation_input_tokens: a
            .cache_creation_input_tokens
            .saturating_add(b.cache_creation_input_tokens),
        cache_read_input_tokens: a
            .cache_read_input_tokens
            .saturating_add(b.cache_read_input_tokens),
    }
}
