//! One control client: its process, its greeting, its answers in order.
//!
//! What lives here: lines out, answers in, one at a time; a late answer is dropped by its place in the order. What never
//! does: attaching again, or sending anything twice.

use std::{collections::VecDeque, path::Path, process::Stdio};

use thiserror::Error;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use super::{
    SESSION,
    protocol::{Block, Event, Parser},
    request::{Pending, Reply, Request},
};
use crate::outlet::Outlet;

/// How long the greeting may take, milliseconds.
const GREETING_MS: u64 = 2_000;

/// How long one answer may take, milliseconds.
const ANSWER_MS: u64 = 2_000;

/// How much is read at once, in bytes.
const READ: usize = 32 * 1024;

/// Why there is no client, or no answer.
#[derive(Debug, Error)]
pub(crate) enum ConnectionError {
    /// The client could not be started.
    #[error("the control client cannot be run: {0}")]
    Run(#[from] std::io::Error),
    /// The client or its server ended.
    #[error("the control client ended: {0}")]
    Ended(String),
    /// No answer in time. What was asked may still happen.
    #[error("tmux did not answer in time")]
    TimedOut,
}

/// A control client that has been greeted.
pub(crate) struct Connection {
    child: Child,
    stdin: ChildStdin,
    incoming: Incoming,
}

struct Incoming {
    stdout: ChildStdout,
    parser: Parser,
    events: VecDeque<Event>,
    buffer: Vec<u8>,
    /// Answers that are still to come, in order. The last may be the one that is waited for.
    pending: VecDeque<Pending>,
}

impl Connection {
    /// Attaches and waits until the server has greeted: before that a command may be lost.
    pub(crate) async fn attach(
        tmux: &Path,
        socket: &Path,
        outlet: &Outlet,
    ) -> Result<Self, ConnectionError> {
        let mut command = Command::new(tmux);
        command.arg("-S").arg(socket).args(["-C", "attach-session"]);
        command.args(["-f", "no-output,ignore-size", "-t", SESSION]);
        command.env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // A terminal's Ctrl-C must not reach it.
        command.stderr(Stdio::null()).process_group(0);
        command.kill_on_drop(true);
        let mut child = command.spawn()?;
        let pipe = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let mut connection = Self {
            stdin: child.stdin.take().ok_or_else(pipe)?,
            incoming: Incoming {
                stdout: child.stdout.take().ok_or_else(pipe)?,
                parser: Parser::default(),
                events: VecDeque::new(),
                buffer: vec![0; READ],
                pending: VecDeque::new(),
            },
            child,
        };
        let greeted = outlet
            .within(GREETING_MS, connection.incoming.greeting())
            .await;
        match greeted {
            Some(Ok(())) => Ok(connection),
            Some(Err(error)) => {
                connection.end().await;
                Err(error)
            }
            None => {
                connection.end().await;
                Err(ConnectionError::TimedOut)
            }
        }
    }

    /// Sends one line and waits for its answer.
    ///
    /// After [`ConnectionError::TimedOut`] the answer is dropped when it comes.
    pub(crate) async fn ask(
        &mut self,
        request: &Request,
        outlet: &Outlet,
    ) -> Result<Reply, ConnectionError> {
        let line = self.stdin.write_all(request.line.as_bytes());
        match outlet.within(ANSWER_MS, line).await {
            Some(written) => written?,
            // Half a line may be in the pipe: nothing sensible can follow it.
            None => return Err(ConnectionError::Ended("it takes no input".to_owned())),
        }
        self.incoming.pending.push_back(Pending::new(request.shape));
        outlet
            .within(ANSWER_MS, self.incoming.last_answer())
            .await
            .unwrap_or(Err(ConnectionError::TimedOut))
    }

    /// Reads what comes unasked; resolves only when the client ends. Safe to drop at any point.
    pub(crate) async fn ended(&mut self) -> String {
        loop {
            match self.incoming.block().await {
                Ok(block) => {
                    self.incoming.answer(block);
                }
                Err(error) => return error.to_string(),
            }
        }
    }

    /// Ends the client's process and waits for it.
    pub(crate) async fn end(mut self) {
        drop(self.stdin);
        // An error means that it has ended already.
        let _ = self.child.kill().await;
    }
}

impl Incoming {
    async fn greeting(&mut self) -> Result<(), ConnectionError> {
        let (mut block, mut session) = (false, false);
        while !(block && session) {
            match self.event().await? {
                Event::Block(greeting) if !greeting.own && greeting.ok => block = true,
                Event::Block(refusal) if !refusal.ok => {
                    let said = String::from_utf8_lossy(&refusal.body).trim().to_owned();
                    return Err(ConnectionError::Ended(said));
                }
                Event::Notice { name, .. } if name == "session-changed" => session = true,
                Event::Block(_) | Event::Notice { .. } | Event::Stray => {}
                Event::Exit(_) | Event::Overflow => {}
            }
        }
        Ok(())
    }

    /// The answer to what was sent last.
    async fn last_answer(&mut self) -> Result<Reply, ConnectionError> {
        loop {
            let block = self.block().await?;
            if let Some(reply) = self.answer(block)
                && self.pending.is_empty()
            {
                return Ok(reply);
            }
        }
    }

    /// Gives a block to the oldest answer that is still to come.
    fn answer(&mut self, block: Block) -> Option<Reply> {
        let reply = self.pending.front_mut()?.feed(block)?;
        self.pending.pop_front();
        Some(reply)
    }

    /// The next block that answers this client.
    async fn block(&mut self) -> Result<Block, ConnectionError> {
        loop {
            match self.event().await? {
                Event::Block(block) if block.own => return Ok(block),
                Event::Block(_) | Event::Notice { .. } | Event::Stray => {}
                Event::Exit(_) | Event::Overflow => {}
            }
        }
    }

    /// The next event; an error once nothing can follow. Safe to drop at any point.
    async fn event(&mut self) -> Result<Event, ConnectionError> {
        loop {
            match self.events.pop_front() {
                Some(Event::Exit(reason)) => return Err(ConnectionError::Ended(reason)),
                Some(Event::Overflow) => {
                    return Err(ConnectionError::Ended("too long an answer".to_owned()));
                }
                Some(event) => return Ok(event),
                None => {}
            }
            let len = self.stdout.read(&mut self.buffer).await?;
            if len == 0 {
                return Err(ConnectionError::Ended("end of its output".to_owned()));
            }
            let events = &mut self.events;
            let bytes = self.buffer.get(..len).unwrap_or_default();
            self.parser.push(bytes, |event| events.push_back(event));
        }
    }
}
