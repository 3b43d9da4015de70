//! Questions to a person at the terminal. The default of every question is no. What others wrote is shown on lines of its own and
//! escaped, never on the line of a question, so that it can neither pass for a question nor for its answer.

use std::io::{BufRead, IsTerminal, Read, Write};

use anyhow::{Context, Result, bail};

/// The longest answer.
const MAX_ANSWER_BYTES: u64 = 4096;
/// How often a question is put for which there is no default.
const ATTEMPTS: usize = 3;

/// A terminal with a person at it.
pub struct Person(());

impl Person {
    /// `None` if there is no terminal on both stdin and stderr.
    pub fn here() -> Option<Self> {
        (std::io::stdin().is_terminal() && std::io::stderr().is_terminal()).then_some(Self(()))
    }

    pub fn tell(&mut self, line: &str) -> Result<()> {
        writeln!(std::io::stderr(), "{line}").context("the terminal is closed")
    }

    /// Asks for a yes. Anything else is a no.
    pub fn agrees(&mut self, question: &str) -> Result<bool> {
        let answer = self.answer(&format!("{question} [y/N] "))?;
        Ok(["y", "yes"].contains(&answer.to_ascii_lowercase().as_str()))
    }

    /// Asks until the answer can be read; the error of `read` is shown. An empty answer is given to `read` as well.
    pub fn says<T>(&mut self, question: &str, read: impl Fn(&str) -> Result<T>) -> Result<T> {
        for _ in 0..ATTEMPTS {
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
        // Without its end, the line is not finished: the terminal was closed, or it goes on.
        let Some(line) = line.strip_suffix('\n') else { bail!("there was no answer, so nothing was written") };
        let line = line.trim();
        if line.chars().any(char::is_control) {
            bail!("there are control characters in the answer, so nothing was written");
        }
        Ok(line.to_owned())
    }
}
