//! The byte stream under a connection.
//!
//! What lives here: the one thing beyond reading and writing that the service needs of a stream. What never does: HTTP.

use std::io;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A stream that can be closed with a reset instead of a FIN.
pub(super) trait Transport: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Makes the coming drop of the stream send a reset (linger 0).
    fn arm_reset(&self) -> io::Result<()>;
}

impl Transport for TcpStream {
    fn arm_reset(&self) -> io::Result<()> {
        rustix::net::sockopt::set_socket_linger(self, Some(std::time::Duration::ZERO))?;
        Ok(())
    }
}
