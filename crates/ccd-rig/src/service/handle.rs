//! The service as tests hold it: start, release gates, ask, wait, stop.
//!
//! What lives here: the public handle. What never does: connections.

use super::clock::Stamp;
use super::listener::{self, Running};
use super::log::{Disconnect, Exchange, Log, Mark, Outcome, Queue, Request};
use super::picker::Script;
use super::reply::Reply;
use super::scenario::{Matcher, Scenario, ScenarioError, Scripted};
use super::shared::{Handler, Shared};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A running fake service. Dropping it stops it.
pub struct Service {
    shared: Arc<Shared>,
    address: SocketAddr,
    running: Option<Running>,
}

/// Why a service could not start or stop.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The script cannot be played.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The listener or its thread could not be made.
    #[error("the service could not start: {0}")]
    Start(#[source] io::Error),
    /// The service's thread ended badly.
    #[error("the service's thread failed: {0}")]
    Thread(String),
}

/// A condition that did not come true in time.
#[derive(Debug, thiserror::Error)]
#[error("waited {waited:?} in vain for {what}; the service saw:\n{summary}")]
pub struct WaitError {
    /// The condition, in words.
    pub what: String,
    /// How long it was waited for.
    pub waited: Duration,
    /// One line per request.
    pub summary: String,
}

/// What a service leaves when it stops.
#[derive(Debug, Clone)]
pub struct StopReport {
    /// All it saw.
    pub log: Log,
    /// Scripted replies that were given less often than scripted.
    pub unused: Vec<(Queue, usize)>,
    /// Connections that were still open.
    pub open_connections: usize,
    /// Exchanges that were still going on.
    pub open_exchanges: usize,
}

impl fmt::Debug for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Service")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Service {
    /// Starts a service on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// The script cannot be played as written, or the listener cannot be made.
    pub fn start(scenario: Scenario) -> Result<Self, ServiceError> {
        Self::launch(scenario, None)
    }

    /// Starts a service whose replies come from `handler` first; where it gives `None`, from the script.
    ///
    /// # Errors
    /// As [`Service::start`].
    pub fn start_with(
        scenario: Scenario,
        handler: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static,
    ) -> Result<Self, ServiceError> {
        Self::launch(scenario, Some(Box::new(handler)))
    }

    fn launch(scenario: Scenario, handler: Option<Handler>) -> Result<Self, ServiceError> {
        scenario.check()?;
        let nonce = Stamp::now().wall_ns ^ (u64::from(std::process::id()) << 40);
        let shared = Arc::new(Shared::new(Script::new(scenario), handler, nonce));
        let running = listener::start(Arc::clone(&shared)).map_err(ServiceError::Start)?;
        Ok(Self {
            shared,
            address: running.address,
            running: Some(running),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The value for `ANTHROPIC_BASE_URL`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Opens a gate for good: replies that wait at it go on, later ones pass it.
    pub fn release(&self, gate: &str) {
        self.shared
            .update(|state| state.released.insert(gate.to_owned()));
    }

    /// Adds a main reply, given once, behind the scripted ones.
    ///
    /// # Errors
    /// The reply cannot be played as written.
    pub fn add_reply(&self, reply: Reply) -> Result<(), ServiceError> {
        self.add(
            Queue::Main,
            Scripted {
                when: Matcher::default(),
                times: Some(1),
                reply,
            },
        )
    }

    /// Adds a reply at the end of a queue.
    ///
    /// # Errors
    /// The reply cannot be played as written.
    pub fn add(&self, queue: Queue, scripted: Scripted) -> Result<(), ServiceError> {
        let alone = Scenario {
            main: vec![scripted.clone()],
            ..Scenario::default()
        };
        alone.check()?;
        self.shared
            .update(|state| state.script.add(queue, scripted));
        Ok(())
    }

    /// A copy of the log.
    #[must_use]
    pub fn log(&self) -> Log {
        self.shared.read(|state| state.log.clone())
    }

    /// The main requests so far.
    #[must_use]
    pub fn main_requests(&self) -> Vec<Arc<Request>> {
        self.shared.read(|state| state.log.main_requests())
    }

    /// The clients that left in mid-exchange so far.
    #[must_use]
    pub fn disconnects(&self) -> Vec<Disconnect> {
        self.shared.read(|state| state.log.disconnects.clone())
    }

    /// Scripted replies that were given less often than scripted so far.
    #[must_use]
    pub fn unused(&self) -> Vec<(Queue, usize)> {
        self.shared.read(|state| state.script.unused())
    }

    /// Blocks the thread until `found` gives something of the log.
    ///
    /// # Errors
    /// It did not within `patience`; the error tells what the service saw.
    pub fn wait_for<R>(
        &self,
        what: &str,
        patience: Duration,
        found: impl FnMut(&Log) -> Option<R>,
    ) -> Result<R, WaitError> {
        self.shared
            .wait(Instant::now() + patience, found)
            .ok_or_else(|| self.in_vain(what, patience))
    }

    /// As [`Service::wait_for`], for a task: it blocks no thread. Needs a tokio runtime with its timer on.
    ///
    /// # Errors
    /// As [`Service::wait_for`].
    pub async fn wait_for_async<R>(
        &self,
        what: &str,
        patience: Duration,
        mut found: impl FnMut(&Log) -> Option<R>,
    ) -> Result<R, WaitError> {
        let mut changes = self.shared.changes();
        let wait = async {
            loop {
                if let Some(result) = self.shared.read(|state| found(&state.log)) {
                    return Some(result);
                }
                changes.changed().await.ok()?;
            }
        };
        match tokio::time::timeout(patience, wait).await {
            Ok(Some(result)) => Ok(result),
            Ok(None) | Err(_) => Err(self.in_vain(what, patience)),
        }
    }

    fn in_vain(&self, what: &str, waited: Duration) -> WaitError {
        WaitError {
            what: what.to_owned(),
            waited,
            summary: self.shared.read(|state| state.log.summary()),
        }
    }

    /// Blocks until at least `count` main requests have come; gives all of them.
    ///
    /// # Errors
    /// As [`Service::wait_for`].
    pub fn wait_for_main_requests(
        &self,
        count: usize,
        patience: Duration,
    ) -> Result<Vec<Arc<Request>>, WaitError> {
        self.wait_for(&format!("{count} main requests"), patience, |log| {
            let found = log.main_requests();
            (found.len() >= count).then_some(found)
        })
    }

    /// Blocks until a reply leaves the mark, or arrives at the gate, of this name.
    ///
    /// # Errors
    /// As [`Service::wait_for`].
    pub fn wait_for_mark(&self, name: &str, patience: Duration) -> Result<Mark, WaitError> {
        self.wait_for(&format!("the mark {name:?}"), patience, |log| {
            log.marks.iter().find(|mark| mark.name == name).cloned()
        })
    }

    /// Blocks until a client has left in mid-exchange.
    ///
    /// # Errors
    /// As [`Service::wait_for`].
    pub fn wait_for_disconnect(&self, patience: Duration) -> Result<Disconnect, WaitError> {
        self.wait_for("a client that leaves", patience, |log| {
            log.disconnects.first().cloned()
        })
    }

    /// Blocks until the exchange of a request is over.
    ///
    /// # Errors
    /// As [`Service::wait_for`].
    pub fn wait_for_end(&self, position: usize, patience: Duration) -> Result<Exchange, WaitError> {
        self.wait_for(&format!("the end of #{position}"), patience, |log| {
            log.exchanges
                .get(position)
                .filter(|exchange| exchange.outcome != Outcome::Open)
                .cloned()
        })
    }

    /// Stops the service: closes the port and every connection, and joins its thread.
    ///
    /// # Errors
    /// The thread ended badly.
    pub fn stop(mut self) -> Result<StopReport, ServiceError> {
        let (open_connections, open_exchanges) = self.shared.read(|state| {
            let open = |exchange: &&Exchange| exchange.outcome == Outcome::Open;
            (
                state.log.open_connections(),
                state.log.exchanges.iter().filter(open).count(),
            )
        });
        self.shut_down()?;
        Ok(StopReport {
            log: self.log(),
            unused: self.unused(),
            open_connections,
            open_exchanges,
        })
    }

    fn shut_down(&mut self) -> Result<(), ServiceError> {
        let Some(running) = self.running.take() else {
            return Ok(());
        };
        // The thread may have ended by itself; joining tells.
        let _ = running.shutdown.send(());
        match running.thread.join() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(ServiceError::Thread(error.to_string())),
            Err(_) => Err(ServiceError::Thread("it panicked".to_owned())),
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Err(error) = self.shut_down() {
            assert!(std::thread::panicking(), "{error}");
        }
    }
}
