//! The owner's end of the supervisor's command socket.
//!
//! What lives here: what a host must write that is more than a line of text. What never does: reading reports, or
//! starting the supervisor.

/// Most sockets that one `LISTEN` may carry.
pub const MAX_LISTENERS: usize = 64;

#[cfg(unix)]
pub use unix::send_listeners;

#[cfg(unix)]
mod unix {
    //! Passing file descriptors over a unix socket.

    use std::io::{self, IoSlice};
    use std::mem::MaybeUninit;
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::net::UnixStream;

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

    use super::MAX_LISTENERS;
    use crate::report::OwnerCommand;

    /// Sends `LISTEN` with the given listening sockets attached. The caller keeps its own descriptors.
    ///
    /// The call blocks only if the socket's buffer is full, which one line never fills by itself.
    ///
    /// # Errors
    /// `InvalidInput` for no or too many sockets (see [`MAX_LISTENERS`]), else what the socket says.
    pub fn send_listeners(owner: &UnixStream, listeners: &[BorrowedFd<'_>]) -> io::Result<()> {
        if listeners.is_empty() || listeners.len() > MAX_LISTENERS {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let count = u8::try_from(listeners.len())
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let line = OwnerCommand::Listen { count }.to_line();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_LISTENERS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(listeners)) {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let bytes = [IoSlice::new(line.as_bytes())];
        loop {
            match sendmsg(owner.as_fd(), &bytes, &mut control, SendFlags::empty()) {
                // A line this short is taken whole or not at all.
                Ok(sent) if sent == line.len() => return Ok(()),
                Ok(_) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}
