//! Time, waiting and identifiers as ports, so that tests decide both.

use ccd_model::time::{Mono, Wall};

use crate::PortFut;

/// Reads time. The monotonic origin is the construction of the clock; it never goes back and includes time asleep where the system can tell.
pub trait Clock: Send + Sync {
    /// Monotonic now.
    fn now(&self) -> Mono;
    /// Wall-clock now.
    fn wall(&self) -> Wall;
    /// Resolves at or after `at`. Dropping the future cancels the wait.
    fn sleep_until(&self, at: Mono) -> PortFut<'static, ()>;
}

/// Makes identifiers and secrets.
pub trait Ids: Send + Sync {
    /// A random version-4 UUID in lower-case text form.
    fn uuid(&self) -> String;
    /// `bytes` random bytes as lower-case hex.
    fn hex(&self, bytes: usize) -> String;
}
