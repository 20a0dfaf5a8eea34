//! The trace file as a port: lines in, nothing out. The session layer decides what a line says.

use crate::error::PortError;

/// Appends lines to a trace file. Writes are buffered off the caller's thread; a failed write is reported once by `finish`.
pub trait TraceSink: Send {
    /// Appends one line, without its newline.
    fn line(&mut self, line: String);
    /// Writes everything out and closes.
    ///
    /// # Errors
    /// The first write error.
    fn finish(&mut self) -> Result<(), PortError>;
}
