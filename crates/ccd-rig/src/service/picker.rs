//! The progress of a script: which reply the next request gets.
//!
//! What lives here: queues and how often each reply was given. What never does: the wire.

use super::canned;
use super::classify::{self, RequestClass};
use super::log::{Picked, Queue, Request};
use super::reply::Reply;
use super::scenario::{Matcher, Scenario, Scripted};
use std::collections::HashMap;

pub(super) struct Script {
    scenario: Scenario,
    given: HashMap<(Queue, usize), u32>,
}

impl Script {
    pub(super) fn new(scenario: Scenario) -> Self {
        Self {
            scenario,
            given: HashMap::new(),
        }
    }

    pub(super) fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Adds a reply at the end of the main or subagent queue, or of a side kind's queue.
    pub(super) fn add(&mut self, queue: Queue, scripted: Scripted) {
        match queue {
            Queue::Main => self.scenario.main.push(scripted),
            Queue::Subagent => self.scenario.subagent.push(scripted),
            Queue::Side(kind) => self.scenario.side.entry(kind).or_default().push(scripted),
        }
    }

    fn queue(&self, queue: Queue) -> &[Scripted] {
        match queue {
            Queue::Main => &self.scenario.main,
            Queue::Subagent => &self.scenario.subagent,
            Queue::Side(kind) => self.scenario.side.get(&kind).map_or(&[], Vec::as_slice),
        }
    }

    fn left(&self, queue: Queue, index: usize, scripted: &Scripted) -> bool {
        let given = self.given.get(&(queue, index)).copied().unwrap_or(0);
        scripted.times.is_none_or(|times| given < times)
    }

    /// Picks and uses up the reply for a request; `None` = it is for no queue (an endpoint).
    pub(super) fn pick(&mut self, request: &Request) -> Option<(Picked, Reply)> {
        let queue = match request.class {
            RequestClass::Main => Queue::Main,
            RequestClass::Subagent => Queue::Subagent,
            RequestClass::Side(kind) => Queue::Side(kind),
            RequestClass::CountTokens | RequestClass::Endpoint => return None,
        };
        let found = self
            .queue(queue)
            .iter()
            .enumerate()
            .find(|(index, scripted)| {
                self.left(queue, *index, scripted) && fits(&scripted.when, request)
            })
            .map(|(index, scripted)| (index, scripted.reply.clone()));
        if let Some((index, reply)) = found {
            let given = self.given.entry((queue, index)).or_insert(0);
            *given = given.saturating_add(1);
            return Some((Picked::Scripted { queue, index }, reply));
        }
        Some(match queue {
            Queue::Main => (Picked::Otherwise, self.scenario.otherwise.clone()),
            Queue::Subagent => (Picked::Otherwise, self.scenario.otherwise_subagent.clone()),
            Queue::Side(kind) => (Picked::Canned, canned::reply(kind, &request.body)),
        })
    }

    /// Replies that were given less often than the script says (those given for ever count as used after once).
    pub(super) fn unused(&self) -> Vec<(Queue, usize)> {
        let sides = self.scenario.side.keys().map(|kind| Queue::Side(*kind));
        [Queue::Main, Queue::Subagent]
            .into_iter()
            .chain(sides)
            .flat_map(|queue| {
                self.queue(queue)
                    .iter()
                    .enumerate()
                    .filter(move |(index, scripted)| {
                        let given = self.given.get(&(queue, *index)).copied().unwrap_or(0);
                        given < scripted.times.unwrap_or(1)
                    })
                    .map(move |(index, _)| (queue, index))
            })
            .collect()
    }
}

fn fits(when: &Matcher, request: &Request) -> bool {
    let Matcher {
        last_text,
        any_text,
        last_message,
        session,
        tool_result,
        stream,
    } = when;
    last_text.as_ref().is_none_or(|text| {
        request
            .last_user_text()
            .is_some_and(|last| last.contains(text.as_str()))
    }) && any_text.as_ref().is_none_or(|text| {
        request
            .human_texts
            .iter()
            .any(|written| written.contains(text.as_str()))
    }) && last_message
        .as_ref()
        .is_none_or(|text| classify::last_message(&request.body).contains(text.as_str()))
        && session
            .as_ref()
            .is_none_or(|id| request.session_id() == Some(id.as_str()))
        && tool_result.as_ref().is_none_or(|text| {
            request
                .tool_results()
                .iter()
                .any(|result| result.text.contains(text.as_str()))
        })
        && stream.is_none_or(|stream| request.wants_stream() == stream)
}
