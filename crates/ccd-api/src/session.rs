//! The session handle.

use std::{future::poll_fn, sync::Arc};

use ccd_runtime::{create_kernel, model};
use ccd_types::{Error, ErrorCode, ExitInfo, State};
use model::{
    command::{Accepted, CloseHow, Command},
    event::{DomainEvent, InterruptEnd},
    ids::Seq,
    kernel::{LogItem, SessionKernel},
    status::Lifecycle,
};

use crate::{
    map_errors, map_state as map, options::Options, prompt::Prompt, stream::EventStream, turn::Turn,
};

/// How to close a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Close {
    /// Deny what is held, let Claude leave, escalate on deadlines.
    Graceful,
    /// Terminate at once.
    Kill,
}

/// How an interrupt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InterruptResult {
    /// There is evidence that the turn ended by it.
    Confirmed,
    /// The turn ended by itself first.
    TooLate,
    /// No evidence within the limit. The turn stands as it is.
    Unconfirmed,
}

/// For attaching and inspecting.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Debug {
    /// Our session id.
    pub session: String,
    /// Command line that attaches a terminal read-only.
    pub attach: String,
    /// Trace file.
    pub trace: Option<String>,
    /// Why the trace is incomplete; known once the session is over.
    pub trace_error: Option<String>,
    /// Last screen text.
    pub screen: String,
}

/// One running session of Claude Code. Dropping it starts its close.
pub struct ClaudeSession {
    kernel: Arc<dyn SessionKernel>,
}

impl ClaudeSession {
    /// Starts Claude Code and resolves once it is proven to be ready.
    ///
    /// # Errors
    /// Typed by [`ErrorCode`]; nothing is left behind.
    pub async fn start(options: Options) -> Result<Self, Error> {
        let (spec, handler) = options.to_session_spec()?;
        let kernel = create_kernel(spec, handler)
            .await
            .map_err(map_errors::launch)?;
        Ok(Self { kernel })
    }

    /// Hands over a prompt. Resolves at acceptance; the prompt may be held until the session is idle.
    ///
    /// # Errors
    /// `E_PROMPT_REFUSED` before anything was done, `E_SESSION_EXITED` when the session is over.
    pub async fn send(&self, prompt: impl Into<Prompt>) -> Result<Turn, Error> {
        let Prompt { text, as_text } = prompt.into();
        let events = EventStream::new(&self.kernel, Seq(u64::MAX));
        let command = Command::Send {
            text: text.into(),
            as_text,
        };
        match self
            .kernel
            .dispatch(command)
            .await
            .map_err(|refusal| map_errors::refusal(&refusal))?
        {
            Accepted::Turn { turn } => Ok(Turn::new(Arc::clone(&self.kernel), turn, events)),
            Accepted::Done => Err(Error::new(
                ErrorCode::Internal,
                "no_turn",
                "the prompt was accepted without a turn",
            )),
        }
    }

    /// Interrupts what runs and resolves with the evidence.
    ///
    /// # Errors
    /// `E_PROMPT_REFUSED` when nothing runs, `E_SESSION_EXITED` when the session is over.
    pub async fn interrupt(&self) -> Result<InterruptResult, Error> {
        let mut cursor = self.kernel.events(Seq(u64::MAX));
        self.kernel
            .dispatch(Command::Interrupt)
            .await
            .map_err(|refusal| map_errors::refusal(&refusal))?;
        while let Some(item) = poll_fn(|cx| cursor.poll_next(cx)).await {
            let LogItem::Event(published) = item else {
                continue;
            };
            if let DomainEvent::InterruptEnded { end, .. } = &published.event {
                return Ok(match end {
                    InterruptEnd::Confirmed => InterruptResult::Confirmed,
                    InterruptEnd::TooLate => InterruptResult::TooLate,
                    InterruptEnd::Unconfirmed => InterruptResult::Unconfirmed,
                });
            }
        }
        Ok(InterruptResult::Unconfirmed)
    }

    /// Resolves when no turn and no background work runs, or the session is over.
    pub async fn quiescent(&self) {
        let _view = self
            .kernel
            .wait_for(Box::new(|view| {
                view.quiescent || view.lifecycle == Lifecycle::Exited
            }))
            .await;
    }

    /// The live state.
    #[must_use]
    pub fn state(&self) -> State {
        map::session_state(&self.kernel.view())
    }

    /// Events from position `from` on; 1 is the first that is still remembered.
    #[must_use]
    pub fn events(&self, from: u64) -> EventStream {
        EventStream::new(&self.kernel, Seq(from))
    }

    /// Events from now on.
    #[must_use]
    pub fn events_from_now(&self) -> EventStream {
        EventStream::new(&self.kernel, Seq(u64::MAX))
    }

    /// Our session id, Claude's terminal, the trace file.
    #[must_use]
    pub fn debug(&self) -> Debug {
        let info = self.kernel.debug();
        Debug {
            session: info.session,
            attach: info.attach,
            trace: info.trace,
            trace_error: info.trace_error,
            screen: info.screen.to_string(),
        }
    }

    /// Closes gracefully; resolves when nothing is left.
    pub async fn close(&self) -> ExitInfo {
        self.close_with(Close::Graceful).await
    }

    /// Closes; a kill escalates a graceful close that is under way. Resolves when nothing is left.
    pub async fn close_with(&self, how: Close) -> ExitInfo {
        let how = match how {
            Close::Graceful => CloseHow::Graceful,
            Close::Kill => CloseHow::Kill,
        };
        map::exit_info(&self.kernel.close(how).await)
    }

    /// Resolves when the session is over. Never fails.
    pub async fn exited(&self) -> ExitInfo {
        map::exit_info(&self.kernel.exited().await)
    }
}

impl Drop for ClaudeSession {
    fn drop(&mut self) {
        // The kernel acts on the call itself; the future only tells when it is done.
        drop(self.kernel.close(CloseHow::Graceful));
    }
}
