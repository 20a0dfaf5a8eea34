//! The script of a service: which reply goes to which request.
//!
//! What lives here: the queues, the matchers and the check of a script. What never does: the picking (see `picker`).

use super::classify::SideKind;
use super::limits::RateLimits;
use super::log::Queue;
use super::plan;
use super::reply::{Reply, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A script. An empty one answers every main request with the text "ok".
///
/// Main and subagent requests take the first reply of their queue that is not used up and whose matcher fits; side
/// requests (title, classifier, …) never touch those queues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// Replies to main requests.
    pub main: Vec<Scripted>,
    /// Replies to subagent requests.
    pub subagent: Vec<Scripted>,
    /// Replies to side requests, by kind; where none is left, the canned reply of the kind.
    pub side: BTreeMap<SideKind, Vec<Scripted>>,
    /// The reply to a main request when the queue has none.
    pub otherwise: Reply,
    /// The reply to a subagent request when the queue has none.
    pub otherwise_subagent: Reply,
    /// Rate-limit headers of every `/v1/messages` reply that has none of its own.
    pub limits: RateLimits,
    /// Token counts of every message that has none of its own.
    pub usage: Usage,
    /// Replies to other endpoints; they win over the built-in table.
    pub endpoints: Vec<EndpointReply>,
    /// How many of the latest request bodies stay in the log (older ones become `null`).
    pub keep_bodies: usize,
}

/// A reply in a queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scripted {
    /// Which requests it fits.
    #[serde(default)]
    pub when: Matcher,
    /// How often it is given; `None` = for ever.
    #[serde(default = "once")]
    pub times: Option<u32>,
    /// The reply.
    pub reply: Reply,
}

fn once() -> Option<u32> {
    Some(1)
}

/// Conditions on a request; all that are set must hold. The empty matcher fits everything.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Matcher {
    /// The last text a human (or, for a subagent, its caller) wrote contains this.
    pub last_text: Option<String>,
    /// Some human text of the conversation contains this.
    pub any_text: Option<String>,
    /// The last user message as sent contains this, be it a human's, a reminder or a notification (the turn after a
    /// background agent has `<task-notification>`).
    pub last_message: Option<String>,
    /// The session id (header `x-claude-code-session-id`) is this.
    pub session: Option<String>,
    /// A tool result of the last user message contains this.
    pub tool_result: Option<String>,
    /// The request asks for a stream (`true`) or for one JSON body (`false`).
    pub stream: Option<bool>,
}

/// A reply to an endpoint other than `/v1/messages`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointReply {
    /// The method.
    pub method: String,
    /// The path without its query; a `*` stands for any run of characters.
    pub path: String,
    /// The status.
    pub status: u16,
    /// The JSON body.
    pub body: Value,
}

/// A script that cannot be played as written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// A step stands at a point that its reply never reaches: the fault would silently not happen.
    #[error("reply {index} of {queue:?}: step {step} stands at a point the reply never reaches")]
    UnreachablePoint {
        /// The queue.
        queue: Queue,
        /// The reply's index in it.
        index: usize,
        /// The step's index in the reply.
        step: usize,
    },
    /// A reply is given zero times.
    #[error("reply {index} of {queue:?} is given zero times")]
    NeverGiven {
        /// The queue.
        queue: Queue,
        /// The reply's index in it.
        index: usize,
    },
    /// A status outside 100..=599.
    #[error("reply {index} of {queue:?}: {status} is no HTTP status")]
    Status {
        /// The queue.
        queue: Queue,
        /// The reply's index in it.
        index: usize,
        /// The status.
        status: u16,
    },
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            main: Vec::new(),
            subagent: Vec::new(),
            side: BTreeMap::new(),
            otherwise: Reply::text("ok"),
            otherwise_subagent: Reply::text("ok"),
            limits: RateLimits::allowed(),
            usage: Usage::default(),
            endpoints: Vec::new(),
            keep_bodies: 4096,
        }
    }
}

impl Scenario {
    /// An empty script.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A script whose main replies are the given ones, in order.
    #[must_use]
    pub fn of(replies: impl IntoIterator<Item = Reply>) -> Self {
        replies.into_iter().fold(Self::new(), Self::reply)
    }

    /// Adds a main reply, given once.
    #[must_use]
    pub fn reply(self, reply: Reply) -> Self {
        self.times(1, reply)
    }

    /// Adds a main reply, given `times` times.
    #[must_use]
    pub fn times(mut self, times: u32, reply: Reply) -> Self {
        self.main.push(Scripted {
            when: Matcher::default(),
            times: Some(times),
            reply,
        });
        self
    }

    /// Adds a main reply that is given for ever.
    #[must_use]
    pub fn forever(mut self, reply: Reply) -> Self {
        self.main.push(Scripted {
            when: Matcher::default(),
            times: None,
            reply,
        });
        self
    }

    /// Adds a main reply, given once, to a request whose last human text contains `text`.
    #[must_use]
    pub fn reply_to(self, text: &str, reply: Reply) -> Self {
        self.reply_when(Matcher::last_text(text), reply)
    }

    /// Adds a main reply, given once, to a request that fits.
    #[must_use]
    pub fn reply_when(mut self, when: Matcher, reply: Reply) -> Self {
        self.main.push(Scripted {
            when,
            times: Some(1),
            reply,
        });
        self
    }

    /// Adds a subagent reply, given once.
    #[must_use]
    pub fn subagent_reply(self, reply: Reply) -> Self {
        self.subagent_reply_when(Matcher::default(), reply)
    }

    /// Adds a subagent reply, given once, to a request that fits.
    #[must_use]
    pub fn subagent_reply_when(mut self, when: Matcher, reply: Reply) -> Self {
        self.subagent.push(Scripted {
            when,
            times: Some(1),
            reply,
        });
        self
    }

    /// Adds a reply to side requests of a kind, given once.
    #[must_use]
    pub fn side_reply(mut self, kind: SideKind, reply: Reply) -> Self {
        self.side.entry(kind).or_default().push(Scripted {
            when: Matcher::default(),
            times: Some(1),
            reply,
        });
        self
    }

    /// Sets the reply to a main request when the queue has none.
    #[must_use]
    pub fn otherwise(mut self, reply: Reply) -> Self {
        self.otherwise = reply;
        self
    }

    /// Sets the rate-limit headers of every reply that has none of its own.
    #[must_use]
    pub fn with_limits(mut self, limits: RateLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Finds what could not be played as written.
    ///
    /// # Errors
    /// The first fault found: a step at a point that is never reached, a reply given zero times, a false status.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let side = self
            .side
            .iter()
            .map(|(kind, replies)| (Queue::Side(*kind), replies));
        for (queue, replies) in [(Queue::Main, &self.main), (Queue::Subagent, &self.subagent)]
            .into_iter()
            .chain(side)
        {
            for (index, scripted) in replies.iter().enumerate() {
                if scripted.times == Some(0) {
                    return Err(ScenarioError::NeverGiven { queue, index });
                }
                check_reply(&scripted.reply, queue, index)?;
            }
        }
        check_reply(&self.otherwise, Queue::Main, self.main.len())?;
        check_reply(
            &self.otherwise_subagent,
            Queue::Subagent,
            self.subagent.len(),
        )
    }
}

fn check_reply(reply: &Reply, queue: Queue, index: usize) -> Result<(), ScenarioError> {
    if let Some(status) = plan::status(reply).filter(|status| !(100..=599).contains(status)) {
        return Err(ScenarioError::Status {
            queue,
            index,
            status,
        });
    }
    match plan::unreachable_step(reply) {
        Some(step) => Err(ScenarioError::UnreachablePoint { queue, index, step }),
        None => Ok(()),
    }
}

impl Matcher {
    /// The last human text contains `text`.
    #[must_use]
    pub fn last_text(text: &str) -> Self {
        Self {
            last_text: Some(text.to_owned()),
            ..Self::default()
        }
    }

    /// Some human text of the conversation contains `text`: binds a whole conversation of several turns.
    #[must_use]
    pub fn any_text(text: &str) -> Self {
        Self {
            any_text: Some(text.to_owned()),
            ..Self::default()
        }
    }

    /// The last user message as sent, with all the client put into it, contains `text`.
    #[must_use]
    pub fn last_message(text: &str) -> Self {
        Self {
            last_message: Some(text.to_owned()),
            ..Self::default()
        }
    }

    /// The session has this id.
    #[must_use]
    pub fn session(id: &str) -> Self {
        Self {
            session: Some(id.to_owned()),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::service::reply::{Point, Step};

    #[test]
    fn a_step_that_would_never_happen_is_refused() {
        let far = Reply::text("one two").at(
            Point::InBlock {
                block: 0,
                deltas: 9,
            },
            Step::Reset,
        );
        assert_eq!(
            Scenario::of([Reply::text("a"), far]).check(),
            Err(ScenarioError::UnreachablePoint {
                queue: Queue::Main,
                index: 1,
                step: 0
            })
        );
        let in_error = Reply::overloaded().at(Point::AfterStart, Step::Stall);
        assert!(Scenario::of([in_error]).check().is_err());
        assert!(Scenario::new().times(0, Reply::text("a")).check().is_err());
        assert!(Scenario::of([Reply::error(42, "x", "y")]).check().is_err());
    }

    #[test]
    fn a_step_at_every_point_of_a_message_is_accepted() {
        let points = [
            Point::BeforeHeaders,
            Point::AfterHeaders,
            Point::AfterStart,
            Point::BeforeBlock { block: 0 },
            Point::InBlock {
                block: 0,
                deltas: 0,
            },
            Point::InBlock {
                block: 0,
                deltas: 2,
            },
            Point::AfterBlock { block: 0 },
            Point::BeforeEnd,
            Point::BeforeStop,
        ];
        let reply = points
            .into_iter()
            .fold(Reply::text("one two"), |reply, point| {
                reply.at(point, Step::mark("here"))
            });
        assert_eq!(Scenario::of([reply]).check(), Ok(()));
    }

    #[test]
    fn a_scenario_can_be_a_file_and_knows_its_fields() {
        let scenario = Scenario::of([Reply::text("a")])
            .reply_to("b", Reply::overloaded())
            .side_reply(SideKind::Title, Reply::text("{}"));
        let text = serde_json::to_string(&scenario).unwrap();
        assert_eq!(serde_json::from_str::<Scenario>(&text).unwrap(), scenario);
        assert_eq!(
            serde_json::from_str::<Scenario>("{}").unwrap(),
            Scenario::new()
        );
        assert!(serde_json::from_str::<Scenario>(r#"{"mian":[]}"#).is_err());
    }
}
