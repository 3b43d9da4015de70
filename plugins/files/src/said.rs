//! Answers of the tools: a text in the reference server's form, and notes about it in blocks of their own. The text is not sent a second
//! time as structured content: some clients would then show a model only that.

use wharf_sdk::{Content, IntoTool, Result, ToolOutcome};

/// The text of an answer, and what is to be said about it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Said {
    pub text: String,
    /// Sentences, which are shown in brackets.
    pub notes: Vec<String>,
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Self { text, notes: Vec::new() }
    }
}

impl Said {
    /// Returns the text with the notes as its last lines, for an answer that contains several.
    pub fn in_one(self) -> String {
        self.notes.iter().fold(self.text, |text, note| format!("{text}\n[{note}]"))
    }
}

impl IntoTool for Said {
    fn into_tool(self) -> Result<ToolOutcome> {
        if self.notes.is_empty() {
            return Ok(ToolOutcome::Text(self.text));
        }
        let notes = self.notes.iter().map(|note| Content::Text(format!("[{note}]")));
        std::iter::once(Content::Text(self.text)).chain(notes).collect::<Vec<_>>().into_tool()
    }
}
