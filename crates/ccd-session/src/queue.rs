//! The one queue of a session: raw records from the adapters and commands from everywhere, in order of arrival.
//!
//! Here live the queue and its two ends. Stamping, normalizing and stepping never do.

use ccd_model::{
    command::{Accepted, Command, Refusal},
    ids::Launch,
    time::Mono,
};
use ccd_ports::{inbox::Inbox, raw::Raw};
use tokio::sync::{mpsc, oneshot};

/// Where the answer to a command goes.
pub(crate) type ReplyTo = oneshot::Sender<Result<Accepted, Refusal>>;

/// One thing to do for the loop.
#[derive(Debug)]
pub(crate) enum Item {
    /// An adapter saw something.
    Raw {
        /// Of which process start.
        launch: Launch,
        /// When, on the platform's clock.
        at: Mono,
        /// What.
        raw: Raw,
    },
    /// Somebody asks for something.
    Command {
        /// What.
        command: Command,
        /// Who wants to know about it; nobody for the session's own commands.
        reply: Option<ReplyTo>,
    },
}

/// The sending end, for any thread.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    sender: mpsc::UnboundedSender<Item>,
}

/// The receiving end, for the loop alone.
pub(crate) type Receiver = mpsc::UnboundedReceiver<Item>;

/// Makes a queue.
pub(crate) fn queue() -> (Queue, Receiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Queue { sender }, receiver)
}

impl Queue {
    /// Asks for `command`. `false`: the loop is gone.
    pub(crate) fn command(&self, command: Command, reply: Option<ReplyTo>) -> bool {
        self.sender.send(Item::Command { command, reply }).is_ok()
    }
}

impl Inbox for Queue {
    fn push(&self, launch: Launch, at: Mono, raw: Raw) {
        // After the end of the loop nobody is left who could care about the record.
        let _ = self.sender.send(Item::Raw { launch, at, raw });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn records_and_commands_keep_their_order() {
        let (queue, mut receiver) = queue();
        queue.push(Launch(1), Mono(5), Raw::Tick);
        assert!(queue.command(Command::Interrupt, None));
        queue.push(Launch(2), Mono(6), Raw::RegistryGone);
        assert!(matches!(
            receiver.try_recv(),
            Ok(Item::Raw {
                launch: Launch(1),
                at: Mono(5),
                raw: Raw::Tick
            })
        ));
        assert!(matches!(
            receiver.try_recv(),
            Ok(Item::Command {
                command: Command::Interrupt,
                ..
            })
        ));
        assert!(matches!(
            receiver.try_recv(),
            Ok(Item::Raw {
                launch: Launch(2),
                ..
            })
        ));
    }

    #[test]
    fn a_command_after_the_end_is_refused() {
        let (queue, receiver) = queue();
        drop(receiver);
        assert!(!queue.command(Command::Interrupt, None));
    }
}
