//! The one way back from the adapters.

use ccd_model::{ids::Launch, time::Mono};

use crate::raw::Raw;

/// Takes raw records from any thread, in order of arrival, without blocking.
pub trait Inbox: Send + Sync {
    /// Hands over one record of launch `launch` that was seen at `at`.
    fn push(&self, launch: Launch, at: Mono, raw: Raw);
}
