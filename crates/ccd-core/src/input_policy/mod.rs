//! Everything about keys: what may be sent, when, and how it gets into the composer and out of it.

pub(crate) mod gate;
pub(crate) mod jobs;
pub(crate) mod jobs_end;
pub(crate) mod sanitize;
