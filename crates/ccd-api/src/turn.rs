//! One prompt and everything it leads to.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use ccd_runtime::model;
use ccd_types::{Error, Event, EventKind, TurnId, TurnOutcome, TurnStatus};
use futures_core::Stream;
use model::{
    command::Command,
    ids::TurnKey,
    kernel::SessionKernel,
    view::{TurnView, View},
};

use crate::{map_errors, map_events::ended_status, map_state as map, stream::EventStream};

/// A turn: its events as a stream, its receipt, its outcome.
///
/// Dropping it changes nothing: the turn goes on. [`Turn::cancel`] takes back a held prompt.
pub struct Turn {
    kernel: Arc<dyn SessionKernel>,
    key: TurnKey,
    events: EventStream,
    over: bool,
}

impl Turn {
    pub(crate) fn new(kernel: Arc<dyn SessionKernel>, key: TurnKey, events: EventStream) -> Self {
        Self {
            kernel,
            key,
            events,
            over: false,
        }
    }

    /// The turn's id.
    #[must_use]
    pub fn id(&self) -> TurnId {
        map::turn_id(self.key)
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        while !self.over {
            let mapped = match self.events.poll_mapped(cx) {
                Poll::Ready(Some(mapped)) => mapped,
                Poll::Ready(None) => break,
                Poll::Pending => return Poll::Pending,
            };
            let gap = matches!(mapped.event.kind, EventKind::Gap { .. });
            if mapped.turn == Some(self.key) {
                self.over = matches!(mapped.event.kind, EventKind::TurnEnded { .. });
                return Poll::Ready(Some(mapped.event));
            }
            if gap {
                return Poll::Ready(Some(mapped.event));
            }
        }
        self.over = true;
        Poll::Ready(None)
    }

    /// The next event of this turn; `None` after `turn.ended`.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Resolves when the exact text was acknowledged: `true`. `false` when the turn ended without a receipt.
    pub async fn submitted(&self) -> bool {
        let key = self.key;
        let known = self
            .kernel
            .wait_for(Box::new(move |view| {
                find(view, key).is_none_or(|turn| turn.submitted || turn.outcome.is_some())
            }))
            .await;
        let view = known.unwrap_or_else(|| self.kernel.view());
        find(&view, key).is_some_and(|turn| turn.submitted)
    }

    /// Resolves when the turn has ended and the transcript has caught up, or the wait for it is over. Never fails.
    pub async fn done(&self) -> TurnOutcome {
        let key = self.key;
        let known = self
            .kernel
            .wait_for(Box::new(move |view| {
                find(view, key).is_none_or(|turn| turn.outcome.is_some() && turn.settled)
            }))
            .await;
        let view = known.unwrap_or_else(|| self.kernel.view());
        find(&view, key).map_or_else(|| self.lost(), |turn| outcome(&view, turn))
    }

    /// Takes the prompt back while it is still held.
    ///
    /// # Errors
    /// `E_PROMPT_REFUSED` when it is being delivered already or has ended.
    pub async fn cancel(&self) -> Result<(), Error> {
        let answer = self
            .kernel
            .dispatch(Command::Cancel { turn: self.key })
            .await;
        answer
            .map(|_| ())
            .map_err(|refusal| map_errors::refusal(&refusal))
    }

    fn lost(&self) -> TurnOutcome {
        let mut outcome = TurnOutcome::new(self.id(), TurnStatus::Unknown);
        outcome.error = Some(Error::new(
            ccd_types::ErrorCode::TurnUnknown,
            "evicted",
            "the turn is too old to be remembered",
        ));
        outcome
    }
}

impl Stream for Turn {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.poll_event(cx)
    }
}

fn find(view: &View, key: TurnKey) -> Option<&TurnView> {
    view.turns.iter().find(|turn| turn.turn == key)
}

fn outcome(view: &View, turn: &TurnView) -> TurnOutcome {
    let status = turn.outcome.as_ref().map_or(turn.status, ended_status);
    let mut outcome = TurnOutcome::new(map::turn_id(turn.turn), map::turn_status(status));
    outcome.text = turn.text.to_string();
    outcome.tools = turn
        .tools
        .iter()
        .filter_map(|key| view.tools.iter().find(|tool| tool.tool == *key))
        .map(map::tool_run)
        .collect();
    outcome.usage = turn.usage.map(map::usage);
    outcome.model = turn.model.as_ref().map(ToString::to_string);
    outcome.returned = turn.returned.as_ref().map(ToString::to_string);
    outcome.error = match &turn.outcome {
        Some(ended) => map_errors::outcome(ended, view.usage_limit.is_some()),
        None => Some(Error::new(
            ccd_types::ErrorCode::TurnUnknown,
            "not_ended",
            "the session ended first",
        )),
    };
    outcome.duration_ms = turn.ended_at.map_or(0, |end| end.since(turn.accepted_at));
    outcome
}
