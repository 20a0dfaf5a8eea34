//! The one error type of the tasks: a message for a person and the exit code. No decision about what to do next.

use std::fmt;

/// Why a task stopped.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What went wrong and, where there is one, the next thing to do.
    pub(crate) message: String,
    /// The exit code of the process: 1 the task failed, 2 it was not asked for in the right way or is not available.
    pub(crate) code: u8,
}

impl Failure {
    /// The task ran and failed.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code: 1,
        }
    }

    /// The request itself is wrong, or names something that is not there yet.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code: 2,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Adds what was being done to the text of an error.
pub(crate) fn during<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> Failure {
    move |error| Failure::new(format!("{what}: {error}"))
}

/// The result of a task.
pub(crate) type Outcome<T> = Result<T, Failure>;
