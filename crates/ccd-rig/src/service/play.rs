//! Plays the actions of a reply on a connection, step by step, and logs what became of it.
//!
//! What lives here: writing, waiting, faults. What never does: the order of events (see `plan`).

use super::clock::Stamp;
use super::http::{self, Conn};
use super::log::{ClientEnd, Disconnect, Mark, Outcome};
use super::plan::{Action, Head};
use super::reply::{Drip, Step};
use super::shared::Shared;
use super::sse;
use super::transport::Transport;
use serde_json::Value;
use std::future::pending;
use std::time::Duration;
use tokio::time::sleep;

/// What becomes of the connection after a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    KeepAlive,
    Close,
    Reset,
}

/// Why a reply ended before its last action.
enum Stop {
    Gone(ClientEnd),
    Reset,
    Eof,
    Cut,
    SseError,
}

impl From<ClientEnd> for Stop {
    fn from(end: ClientEnd) -> Self {
        Self::Gone(end)
    }
}

/// The facts of one reply that hold for all of its actions.
pub(super) struct Setting<'a> {
    pub(super) shared: &'a Shared,
    /// The request's position in the log.
    pub(super) position: usize,
    /// Headers behind content type and length.
    pub(super) headers: Vec<(String, String)>,
    pub(super) drip: Option<Drip>,
    /// The connection closes after the reply.
    pub(super) close: bool,
    /// The request was `HEAD`: no body.
    pub(super) head_only: bool,
    pub(super) received: Stamp,
}

/// Plays a reply to its end, whichever it is.
pub(super) async fn play<T: Transport>(
    conn: &mut Conn<T>,
    setting: &Setting<'_>,
    actions: Vec<Action>,
) -> After {
    let mut player = Player {
        conn,
        setting,
        chunked: false,
        head_written: false,
        last_write: setting.received,
        events: 0,
    };
    let end = player.run(actions).await;
    let (outcome, after) = match end {
        Ok(()) | Err(Stop::SseError) => {
            let outcome = if end.is_ok() {
                Outcome::Complete
            } else {
                Outcome::SseError
            };
            match player.end_of_body().await {
                Ok(()) if setting.close => (outcome, After::Close),
                Ok(()) => (outcome, After::KeepAlive),
                Err(how) => player.gone(how),
            }
        }
        Err(Stop::Eof) => match player.end_of_body().await {
            Ok(()) => (Outcome::Eof, After::Close),
            Err(how) => player.gone(how),
        },
        Err(Stop::Cut) => (Outcome::Cut, After::Close),
        Err(Stop::Reset) => (Outcome::Reset, After::Reset),
        Err(Stop::Gone(how)) => player.gone(how),
    };
    let finished = Stamp::now();
    setting.shared.exchange(setting.position, |exchange| {
        exchange.outcome = outcome;
        exchange.finished = Some(finished);
    });
    after
}

struct Player<'a, 'b, T> {
    conn: &'a mut Conn<T>,
    setting: &'a Setting<'b>,
    chunked: bool,
    head_written: bool,
    last_write: Stamp,
    events: usize,
}

impl<T: Transport> Player<'_, '_, T> {
    async fn run(&mut self, actions: Vec<Action>) -> Result<(), Stop> {
        for action in actions {
            match action {
                Action::Headers(head) => self.head(&head).await?,
                Action::Event { name, data } => self.event(name, &data).await?,
                Action::Gap { ms } => self.pause(ms).await?,
                Action::Body(bytes) => {
                    if !self.setting.head_only && !bytes.is_empty() {
                        self.write(&bytes).await?;
                    }
                }
                Action::Step(step) => self.step(step).await?,
            }
        }
        Ok(())
    }

    async fn head(&mut self, head: &Head) -> Result<(), Stop> {
        let mut headers = vec![("content-type".to_owned(), head.content_type.clone())];
        headers.extend(self.setting.headers.iter().cloned());
        let connection = if self.setting.close {
            "close"
        } else {
            "keep-alive"
        };
        headers.push(("connection".to_owned(), connection.to_owned()));
        self.chunked = head.length.is_none();
        self.head_written = true;
        let bytes = http::response_head(head.status, head.length, &headers);
        let now = Stamp::now();
        self.setting
            .shared
            .exchange(self.setting.position, |exchange| {
                exchange.status = Some(head.status);
                exchange.first_byte = Some(now);
            });
        self.write(&bytes).await
    }

    async fn event(&mut self, name: &str, data: &Value) -> Result<(), Stop> {
        let bytes = format!("event: {name}\ndata: {data}\n\n").into_bytes();
        match self.setting.drip {
            None => self.timed_event(&bytes).await,
            Some(drip) => {
                for piece in bytes.chunks(drip.bytes.max(1)) {
                    self.pause(drip.gap_ms).await?;
                    self.timed_event(piece).await?;
                }
                Ok(())
            }
        }?;
        self.events += 1;
        let events = self.events;
        self.setting
            .shared
            .exchange(self.setting.position, |exchange| exchange.events = events);
        Ok(())
    }

    async fn timed_event(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let chunk = http::chunk(bytes);
        let now = Stamp::now();
        self.setting
            .shared
            .exchange(self.setting.position, |exchange| {
                exchange.last_event = Some(now);
            });
        self.write(&chunk).await
    }

    async fn step(&mut self, step: Step) -> Result<(), Stop> {
        match step {
            Step::Delay { ms } => self.pause(ms).await,
            Step::Gate { name } => {
                self.mark(&name);
                let shared = self.setting.shared;
                Ok(self.conn.while_there(shared.gate(&name)).await?)
            }
            Step::Mark { name } => {
                self.mark(&name);
                Ok(())
            }
            Step::Pings { count, gap_ms } => {
                let mut sent = 0;
                while self.chunked && count.is_none_or(|count| sent < count) {
                    self.pause(gap_ms.max(1)).await?;
                    self.event("ping", &sse::ping()).await?;
                    sent = sent.saturating_add(1);
                }
                Ok(())
            }
            Step::Stall => Ok(self.conn.while_there(pending::<()>()).await?),
            Step::Reset => Err(Stop::Reset),
            Step::Eof => Err(Stop::Eof),
            Step::Cut => Err(Stop::Cut),
            Step::SseError { kind, message } => {
                if self.chunked {
                    self.event("error", &sse::error(&kind, &message)).await?;
                }
                Err(Stop::SseError)
            }
        }
    }

    fn mark(&self, name: &str) {
        let mark = Mark {
            name: name.to_owned(),
            request: self.setting.position,
            at: Stamp::now(),
        };
        self.setting
            .shared
            .update(|state| state.log.marks.push(mark));
    }

    async fn pause(&mut self, ms: u64) -> Result<(), Stop> {
        if ms > 0 {
            self.conn
                .while_there(sleep(Duration::from_millis(ms)))
                .await?;
        }
        Ok(())
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.conn.write(bytes).await?;
        self.last_write = Stamp::now();
        Ok(())
    }

    async fn end_of_body(&mut self) -> Result<(), ClientEnd> {
        if self.chunked && self.head_written {
            self.conn.write(http::LAST_CHUNK).await?;
        }
        Ok(())
    }

    fn gone(&self, how: ClientEnd) -> (Outcome, After) {
        let at = Stamp::now();
        let position = self.setting.position;
        let after = at.since(self.last_write);
        let events = self.events;
        self.setting.shared.update(|state| {
            let Some(request) = state.log.requests.get(position).cloned() else {
                return;
            };
            state.log.disconnects.push(Disconnect {
                request: position,
                class: request.class,
                connection: request.connection,
                at,
                after,
                events,
                how,
            });
        });
        (Outcome::ClientGone, After::Close)
    }
}
