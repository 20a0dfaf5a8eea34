//! What the hook thread and its handle share.
//!
//! What lives here: the armed guard, the held requests, the queue of records, the stop signal; every change is made
//! under a lock, from any thread. What never does: the wire.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::body::Bytes;
use ccd_model::{
    ids::HoldId, intent::PromptGuard, json::RawJson, observation::Verdict, time::Mono,
};
use ccd_ports::{
    clock::Clock,
    raw::{HookRecord, Raw},
    session::{HookReplies, HookSpec, Hooks},
};
use tokio::sync::{
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    oneshot, watch,
};

use super::guard::{self, Ruling};

/// What the model is told when nobody decided in time, and when the session ends first.
const NO_ANSWER: &str = "Nobody answered this permission request in time, so it was denied.";
const ENDING: &str = "The session is ending, so this permission request was denied.";

/// A hook call whose body was not looked at yet.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) event: Arc<str>,
    pub(super) hold: Option<HoldId>,
    pub(super) verdict: Option<Verdict>,
    pub(super) denied_by: Option<Arc<str>>,
    pub(super) claude_pid: Option<u32>,
    pub(super) body: Bytes,
}

/// One record on its way to the inbox, in order of arrival.
#[derive(Debug)]
pub(super) enum Record {
    Call(Call),
    Other(Raw),
}

impl Record {
    /// Looks at the body: invalid UTF-8 in it is repaired.
    pub(super) fn into_raw(self) -> Raw {
        match self {
            Self::Other(raw) => raw,
            Self::Call(call) => Raw::Hook(HookRecord {
                event: call.event,
                hold: call.hold,
                verdict: call.verdict,
                denied_by: call.denied_by,
                claude_pid: call.claude_pid,
                body: RawJson::new(String::from_utf8_lossy(&call.body)),
            }),
        }
    }
}

/// A held request: where its answer arrives.
pub(super) struct Held {
    pub(super) hold: HoldId,
    pub(super) answer: oneshot::Receiver<String>,
}

#[derive(Debug, Default)]
struct Holds {
    last: u32,
    open: BTreeMap<HoldId, oneshot::Sender<String>>,
    closed: bool,
}

pub(super) struct Shared {
    pub(super) token: String,
    pub(super) replies: HookReplies,
    pub(super) deny: Vec<ccd_ports::session::DenyRule>,
    pub(super) permission_deadline_ms: u64,
    pub(super) clock: Arc<dyn Clock>,
    guard: Mutex<Option<PromptGuard>>,
    /// Whether a guard is armed, for those who wait until none is.
    armed: watch::Sender<bool>,
    holds: Mutex<Holds>,
    records: UnboundedSender<(Mono, Record)>,
    stopping: watch::Sender<bool>,
    /// A listener is dead: calls are not answered any more.
    failed: watch::Sender<bool>,
    /// Connections whose request is complete and whose answer may not be.
    busy: watch::Sender<usize>,
}

impl Shared {
    pub(super) fn new(
        spec: HookSpec,
        clock: Arc<dyn Clock>,
    ) -> (Self, UnboundedReceiver<(Mono, Record)>) {
        let (records, queue) = unbounded_channel();
        let shared = Self {
            token: spec.token,
            replies: spec.replies,
            deny: spec.deny,
            permission_deadline_ms: spec.permission_deadline_ms,
            clock,
            guard: Mutex::new(None),
            armed: watch::Sender::new(false),
            holds: Mutex::new(Holds::default()),
            records,
            stopping: watch::Sender::new(false),
            failed: watch::Sender::new(false),
            busy: watch::Sender::new(0),
        };
        (shared, queue)
    }

    pub(super) fn record(&self, at: Mono, record: Record) {
        // The queue ends only with the thread, whose loss is reported.
        let _ = self.records.send((at, record));
    }

    // ---- the prompt guard ----

    fn set_guard(&self, guard: Option<PromptGuard>) {
        let mut slot = lock(&self.guard);
        self.armed.send_replace(guard.is_some());
        *slot = guard;
    }

    /// Rules on a prompt and uses the guard up where the ruling says so. Without a guard the prompt is not read.
    pub(super) fn rule(&self, prompt: impl FnOnce() -> Option<String>) -> Ruling {
        let mut slot = lock(&self.guard);
        let prompt = slot.as_ref().and_then(|_| prompt());
        let ruling = guard::rule(
            slot.as_ref(),
            prompt.as_deref(),
            &self.replies.internal_prompt_prefixes,
        );
        if ruling.disarm {
            *slot = None;
            self.armed.send_replace(false);
        }
        ruling
    }

    /// Resolves when no guard is armed, or the server stops.
    pub(super) async fn unarmed(&self) {
        let (mut armed, mut stopping) = (self.armed.subscribe(), self.stopping.subscribe());
        tokio::select! {
            _ = armed.wait_for(|armed| !armed) => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    }

    // ---- held requests ----

    /// Opens a hold; `None` when the server stops.
    pub(super) fn hold(&self) -> Option<Held> {
        let mut holds = lock(&self.holds);
        if holds.closed {
            return None;
        }
        holds.last = holds.last.saturating_add(1);
        let hold = HoldId(holds.last);
        let (answer, receiver) = oneshot::channel();
        holds.open.insert(hold, answer);
        Some(Held {
            hold,
            answer: receiver,
        })
    }

    /// Takes a hold away without an answer; tells whether it was still open.
    pub(super) fn take(&self, hold: HoldId) -> bool {
        lock(&self.holds).open.remove(&hold).is_some()
    }

    /// The denial for a request that nobody answered in time.
    pub(super) fn denial_at_deadline(&self) -> String {
        fill(&self.replies.deny_permission, "{message}", NO_ANSWER)
    }

    /// The denial for a request at the end of the session.
    pub(super) fn denial_at_end(&self) -> String {
        fill(&self.replies.deny_permission, "{message}", ENDING)
    }

    // ---- stop ----

    /// Begins the stop: everything held is denied, nothing new is held.
    pub(super) fn stop(&self) {
        let open = {
            let mut holds = lock(&self.holds);
            holds.closed = true;
            std::mem::take(&mut holds.open)
        };
        for (_, answer) in open {
            // A caller that is gone needs no answer.
            let _ = answer.send(self.denial_at_end());
        }
        self.stopping.send_replace(true);
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    pub(super) async fn stopped(&self) {
        // The sender is in `self`: the wait cannot fail.
        let _ = self
            .stopping
            .subscribe()
            .wait_for(|stopping| *stopping)
            .await;
    }

    // ---- failure ----

    pub(super) fn fail(&self) {
        self.failed.send_replace(true);
    }

    pub(super) async fn failed(&self) {
        let _ = self.failed.subscribe().wait_for(|failed| *failed).await;
    }

    // ---- answers on their way ----

    pub(super) fn busier(&self) {
        self.busy.send_modify(|busy| *busy = busy.saturating_add(1));
    }

    pub(super) fn less_busy(&self) {
        self.busy.send_modify(|busy| *busy = busy.saturating_sub(1));
    }

    /// Resolves when every complete request is answered.
    pub(super) async fn all_answered(&self) {
        let _ = self.busy.subscribe().wait_for(|busy| *busy == 0).await;
    }
}

/// The handle of the hook server, for the session loop. It outlives the server harmlessly.
pub(super) struct Handle(pub(super) Arc<Shared>);

impl Hooks for Handle {
    fn arm(&mut self, guard: PromptGuard) {
        self.0.set_guard(Some(guard));
    }

    fn disarm(&mut self) {
        self.0.set_guard(None);
    }

    fn answer(&mut self, hold: HoldId, reply: RawJson) {
        let open = lock(&self.0.holds).open.remove(&hold);
        if let Some(answer) = open {
            let _ = answer.send(reply.get().to_owned());
        }
    }
}

/// Puts `text` into a reply template as a JSON string.
pub(super) fn fill(template: &str, slot: &str, text: &str) -> String {
    template.replacen(slot, &serde_json::Value::from(text).to_string(), 1)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics while it holds one of these locks; the data is whole either way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_template_is_filled_with_a_json_string() {
        let filled = fill(
            "{\"reason\":{reason},\"x\":\"{reason}\"}",
            "{reason}",
            "a \"b\"\n{reason}",
        );
        assert_eq!(
            filled,
            "{\"reason\":\"a \\\"b\\\"\\n{reason}\",\"x\":\"{reason}\"}"
        );
    }
}
