//! Questions to a person at the terminal. Every question defaults to "no". Text from plugins is escaped and printed on separate
//! lines, never on the line of a question, so that it cannot be mistaken for a question or for an answer.

use std::io::{BufRead, IsTerminal, Read, Write};

use anyhow::{Context, Result, bail};

/// The longest answer that is read.
const MAX_ANSWER_BYTES: u64 = 4096;
/// How often a question that needs an answer is repeated.
const MAX_ATTEMPTS: usize = 3;

/// A terminal with a person at it.
pub struct Person(());

impl Person {
    /// Returns `None` unless both stdin and stderr are terminals.
    pub fn here() -> Option<Self> {
        (std::io::stdin().is_terminal() && std::io::stderr().is_terminal()).then_some(Self(()))
    }

    pub fn tell(&mut self, line: &str) -> Result<()> {
        writeln!(std::io::stderr(), "{line}").context("the terminal is closed")
    }

    /// Asks a yes-or-no question. Any answer but yes is a no.
    pub fn agrees(&mut self, question: &str) -> Result<bool> {
        let answer = self.answer(&format!("{question} [y/N] "))?;
        Ok(["y", "yes"].contains(&answer.to_ascii_lowercase().as_str()))
    }

    /// Asks until `read` accepts the answer, and prints the error of `read` otherwise. An empty answer is passed to `read`, too.
    pub fn says<T>(&mut self, question: &str, read: impl Fn(&str) -> Result<T>) -> Result<T> {
        for _ in 0..MAX_ATTEMPTS {
            let answer = self.answer(&format!("{question} "))?;
            match read(&answer) {
                Ok(value) => return Ok(value),
                Err(error) => self.tell(&format!("  {error:#}"))?,
            }
        }
        bail!("there was no answer to `{question}`, so nothing was written");
    }

    fn answer(&mut self, question: &str) -> Result<String> {
        let mut terminal = std::io::stderr();
        write!(terminal, "{question}").and_then(|()| terminal.flush()).context("the terminal is closed")?;
        let mut line = String::new();
        let read = std::io::stdin().lock().take(MAX_ANSWER_BYTES).read_line(&mut line);
        read.context("the answer cannot be read, so nothing was written")?;
        // A line without a line break is incomplete: the terminal was closed, or the answer is too long.
        let Some(line) = line.strip_suffix('\n') else { bail!("there was no answer, so nothing was written") };
        let line = line.trim();
        if line.chars().any(char::is_control) {
            bail!("the answer contains control characters, so nothing was written");
        }
        Ok(line.to_owned())
    }
}
