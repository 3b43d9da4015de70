//! What was found out about the data, in a file beside the database.

use std::{fs, io::ErrorKind, path::Path};

use kept::{Lock, at, beside};
use wharf_sdk::{Error, Result, serde_json};

use crate::database::PATIENCE;

/// The most bytes of all that is kept.
const MAX_BYTES: usize = 1 << 20;

/// Adds something that was found out.
pub fn add(database: &Path, insight: String) -> Result<()> {
    let file = beside(database, ".insights.json");
    let lock = Lock::take(&file, PATIENCE)?;
    let mut insights = all(database)?;
    insights.push(insight);
    let text = serde_json::to_string_pretty(&insights)?;
    if text.len() > MAX_BYTES {
        return Err(Error::failed(format!(
            "the memo has no room for that; delete {} to begin another",
            file.display()
        )));
    }
    lock.replace(&text)
}

/// The memo, as the reference server words it.
pub fn text(database: &Path) -> Result<String> {
    let insights = all(database)?;
    if insights.is_empty() {
        return Ok("No business insights have been discovered yet.".to_owned());
    }
    let list: Vec<String> = insights.iter().map(|insight| format!("- {insight}")).collect();
    let summary = match insights.len() {
        1 => String::new(),
        count => format!(
            "\nSummary:\nAnalysis has revealed {count} key business insights that suggest opportunities for strategic optimization and \
             growth."
        ),
    };
    Ok(format!("📊 Business Intelligence Memo 📊\n\nKey Insights Discovered:\n\n{}{summary}", list.join("\n")))
}

fn all(database: &Path) -> Result<Vec<String>> {
    let file = beside(database, ".insights.json");
    match fs::read(&file) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| {
            Error::failed(format!("{} is not a list of texts in JSON; mend or delete it", file.display()))
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(at(&file, &error)),
    }
}
