//! Distinguishes two kinds of errors of a command: the operator's input is wrong, or the input is right and the command failed. Exit
//! codes distinguish them too, for scripts.

use std::{error, fmt};

use anyhow::{Error, Result};

/// An error that the command line and the config did not cause. All other errors of a command are about one of these two.
#[derive(Debug)]
struct Failed(Error);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The whole chain of causes, since `source` does not return them.
        write!(f, "{:#}", self.0)
    }
}

impl error::Error for Failed {}

/// Marks an error as a failure of the command.
pub fn failed(error: impl Into<Error>) -> Error {
    Error::new(Failed(error.into()))
}

/// Whether the command failed although the operator's input is right.
pub fn is_failed(error: &Error) -> bool {
    error.chain().any(|cause| cause.is::<Failed>())
}

/// [`failed`], for results.
pub trait OrFailed<T> {
    fn or_failed(self) -> Result<T>;
}

impl<T, E: Into<Error>> OrFailed<T> for Result<T, E> {
    fn or_failed(self) -> Result<T> {
        self.map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn what_was_marked_is_known_by_it_and_reads_as_before() {
        let plain = anyhow!("the cause").context("what was done");
        assert!(!is_failed(&plain));
        let marked = failed(plain).context("where");
        assert!(is_failed(&marked));
        assert_eq!(format!("{marked:#}"), "where: what was done: the cause");
        let result: Result<()> = Err(anyhow!("the cause")).or_failed().context("where");
        assert!(is_failed(&result.unwrap_err()));
    }
}
