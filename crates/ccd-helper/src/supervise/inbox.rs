//! The owner's commands as they arrive on stdin.
//!
//! What lives here: bytes and passed descriptors into commands. What never does: acting on a command.

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::owner::MAX_LISTENERS;
use crate::report::{MessageError, OwnerCommand};

/// Longest command line, in bytes.
const MAX_LINE: usize = 256;

/// What one read found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Received {
    /// Bytes, or nothing yet.
    Data,
    /// The owner's end is closed.
    Closed,
}

/// Bytes without a line end yet, and sockets without a command yet.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    sockets: VecDeque<OwnedFd>,
}

impl Inbox {
    /// Reads what is there, without waiting. Passed descriptors are close-on-exec from the start.
    pub(super) fn receive(&mut self, stdin: BorrowedFd<'_>) -> Received {
        let mut bytes = [0; 1024];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_LISTENERS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let read = recvmsg(
            stdin,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut control,
            flags,
        );
        let len = match read {
            Ok(message) => message.bytes,
            Err(Errno::INTR | Errno::AGAIN) => return Received::Data,
            Err(_) => return Received::Closed,
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(sockets) = message {
                self.sockets.extend(sockets);
            }
        }
        // What nobody claims is not kept for ever.
        while self.sockets.len() > MAX_LISTENERS {
            self.sockets.pop_front();
        }
        if len == 0 {
            return Received::Closed;
        }
        self.bytes.extend(bytes.iter().take(len));
        Received::Data
    }

    /// The next whole line as a command.
    pub(super) fn next_command(&mut self) -> Option<Result<OwnerCommand, MessageError>> {
        let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') else {
            if self.bytes.len() > MAX_LINE {
                self.bytes.clear();
                return Some(Err(MessageError::Malformed("a line too long".to_owned())));
            }
            return None;
        };
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        Some(OwnerCommand::parse(&String::from_utf8_lossy(&line)))
    }

    /// Exactly the `count` sockets that came with a command; `None` (and none are kept) if there are others.
    pub(super) fn take_sockets(&mut self, count: usize) -> Option<Vec<OwnedFd>> {
        let sockets: Vec<OwnedFd> = self.sockets.drain(..).collect();
        (count > 0 && sockets.len() == count).then_some(sockets)
    }
}
