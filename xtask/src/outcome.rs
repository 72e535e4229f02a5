//! The error of a task: one message for a person. No code depends on its kind, so it is text.

use std::fmt;
use std::path::Path;

/// The reason why a task stopped.
#[derive(Debug)]
pub(crate) struct Failure(String);

/// Result of a task or of a step of one.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// A failure with that message.
pub(crate) fn fail<T>(message: impl Into<String>) -> Outcome<T> {
    Err(Failure(message.into()))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Adds the operation and the file to an error that does not contain them.
pub(crate) trait During<T> {
    /// `cannot VERB PATH: reason`.
    fn during(self, verb: &str, path: &Path) -> Outcome<T>;
}

impl<T, E: fmt::Display> During<T> for Result<T, E> {
    fn during(self, verb: &str, path: &Path) -> Outcome<T> {
        self.map_err(|error| Failure(format!("cannot {verb} {}: {error}", path.display())))
    }
}
