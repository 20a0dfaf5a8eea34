//! The plain listener on loopback, on a thread and a runtime of its own.
//!
//! What lives here: accepting and shutting down. What never does: HTTP.

use super::connection;
use super::shared::Shared;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// A running listener.
pub(super) struct Running {
    pub(super) address: SocketAddr,
    pub(super) shutdown: oneshot::Sender<()>,
    pub(super) thread: JoinHandle<io::Result<()>>,
}

/// Binds a free port of 127.0.0.1 and serves it.
pub(super) fn start(shared: Arc<Shared>) -> io::Result<Running> {
    let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let (shutdown, stop) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    let thread = thread::Builder::new()
        .name("ccd-rig-service".to_owned())
        .spawn(move || runtime.block_on(accept(listener, shared, stop)))?;
    Ok(Running {
        address,
        shutdown,
        thread,
    })
}

async fn accept(
    listener: StdListener,
    shared: Arc<Shared>,
    mut stop: oneshot::Receiver<()>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    let mut next = 0;
    loop {
        tokio::select! {
            _ = &mut stop => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                // A connection that failed while it was accepted is the client's loss, not the service's end.
                let Ok((stream, _)) = accepted else { continue };
                // Without the option small events would only come later, not wrongly.
                let _ = stream.set_nodelay(true);
                next += 1;
                connections.spawn(connection::serve(stream, next, Arc::clone(&shared)));
            }
        }
    }
    drop(listener);
    connections.shutdown().await;
    Ok(())
}
