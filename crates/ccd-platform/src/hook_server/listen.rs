//! Accepting connections: bounded in number, in time, and to our own user.
//!
//! What lives here: the listeners, the connection with its read deadline, and what a handler learns of its peer. What
//! never does: HTTP.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use axum::{
    extract::connect_info::Connected,
    serve::{IncomingStream, Listener},
};
use ccd_ports::PortFut;
use rustix::io::Errno;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};

use super::shared::Shared;

/// Most connections open at once on one listener; more wait in its backlog.
const MAX_CONNECTIONS: usize = 128;

/// A request must be complete this long after its connection was accepted, milliseconds.
const READ_DEADLINE_MS: u64 = 30_000;

/// Pause after a failed accept (no free descriptor), milliseconds.
const ACCEPT_PAUSE_MS: u64 = 100;

/// What an accept may report and work again later: a connection that went away, a shortage, trouble of the network.
/// Anything else is the listening socket's own end.
const PASSING: [Errno; 15] = [
    Errno::AGAIN,
    Errno::CONNABORTED,
    Errno::HOSTDOWN,
    Errno::HOSTUNREACH,
    Errno::INTR,
    Errno::MFILE,
    Errno::NETDOWN,
    Errno::NETUNREACH,
    Errno::NFILE,
    Errno::NOBUFS,
    Errno::NOMEM,
    Errno::NOPROTOOPT,
    Errno::PERM,
    Errno::PROTO,
    Errno::TIMEDOUT,
];

/// A connection's peer, as the handler of its request sees it.
#[derive(Clone)]
pub(super) struct Peer(Arc<PeerState>);

struct PeerState {
    shared: Arc<Shared>,
    /// The peer proved to be of our user; anyone else must show the token.
    own_user: bool,
    complete: AtomicBool,
}

impl Peer {
    pub(super) fn own_user(&self) -> bool {
        self.0.own_user
    }

    /// The request is complete: its read deadline is over.
    pub(super) fn request_complete(&self) {
        if !self.0.complete.swap(true, Ordering::AcqRel) {
            self.0.shared.busier();
        }
    }

    fn is_complete(&self) -> bool {
        self.0.complete.load(Ordering::Acquire)
    }
}

/// A listener with a bound on its connections.
pub(super) struct Bounded<L> {
    listener: L,
    slots: Arc<Semaphore>,
    shared: Arc<Shared>,
}

impl<L> Bounded<L> {
    pub(super) fn new(listener: L, shared: Arc<Shared>) -> Self {
        Self {
            listener,
            slots: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            shared,
        }
    }

    async fn slot(&self) -> OwnedSemaphorePermit {
        loop {
            if let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await {
                return slot;
            }
        }
    }

    /// After a failed accept: a pause, or the end of the server when there will be no connection any more.
    async fn failed(&self, error: &io::Error) {
        let passes = Errno::from_io_error(error).is_some_and(|errno| PASSING.contains(&errno));
        if !passes {
            tracing::error!(%error, "a hook listener is dead");
            self.shared.fail();
            return std::future::pending().await;
        }
        tracing::debug!(%error, "a hook connection could not be accepted");
        let clock = &self.shared.clock;
        clock.sleep_until(clock.now().after(ACCEPT_PAUSE_MS)).await;
    }

    fn connection<S>(
        &self,
        stream: S,
        own_user: bool,
        slot: OwnedSemaphorePermit,
    ) -> Connection<S> {
        let clock = &self.shared.clock;
        Connection {
            stream,
            deadline: clock.sleep_until(clock.now().after(READ_DEADLINE_MS)),
            peer: Peer(Arc::new(PeerState {
                shared: Arc::clone(&self.shared),
                own_user,
                complete: AtomicBool::new(false),
            })),
            _slot: slot,
        }
    }
}

impl Listener for Bounded<TcpListener> {
    type Io = Connection<TcpStream>;
    type Addr = ();

    async fn accept(&mut self) -> (Self::Io, ()) {
        let slot = self.slot().await;
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    // Without it an answer may be late, not wrong.
                    let _ = stream.set_nodelay(true);
                    return (self.connection(stream, false, slot), ());
                }
                Err(error) => self.failed(&error).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Listener for Bounded<UnixListener> {
    type Io = Connection<UnixStream>;
    type Addr = ();

    async fn accept(&mut self) -> (Self::Io, ()) {
        let slot = self.slot().await;
        let own = rustix::process::geteuid().as_raw();
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => match stream.peer_cred() {
                    Ok(peer) if peer.uid() == own => {
                        return (self.connection(stream, true, slot), ());
                    }
                    Ok(_) | Err(_) => {
                        tracing::warn!("a hook connection of another user was refused")
                    }
                },
                Err(error) => self.failed(&error).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Connected<IncomingStream<'_, Bounded<TcpListener>>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Bounded<TcpListener>>) -> Self {
        stream.io().peer.clone()
    }
}

impl Connected<IncomingStream<'_, Bounded<UnixListener>>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Bounded<UnixListener>>) -> Self {
        stream.io().peer.clone()
    }
}

/// One connection, for one request.
pub(super) struct Connection<S> {
    stream: S,
    deadline: PortFut<'static, ()>,
    peer: Peer,
    _slot: OwnedSemaphorePermit,
}

impl<S> Drop for Connection<S> {
    fn drop(&mut self) {
        if self.peer.is_complete() {
            self.peer.0.shared.less_busy();
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.peer.is_complete() && self.deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::Error::from(io::ErrorKind::TimedOut)));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
