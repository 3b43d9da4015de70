//! What a wharf that serves tells the windows of its user, as lines of JSON on a Unix socket: the state of the process, and the calls that
//! are new or have changed since the line before. All texts are shortened and contain no characters that could deceive a reader; they may
//! contain anything else, such as HTML, which the window has to escape.

use serde::{Deserialize, Serialize};

/// The most bytes of a line.
pub const MAX_LINE_BYTES: usize = 4 << 20;
/// The most calls that a process remembers for a window that is opened later.
pub const MAX_CALLS: usize = 256;
/// The most sessions that a state names.
pub const MAX_SESSIONS: usize = 256;
/// The most plugins that a state names.
pub const MAX_PLUGINS: usize = 512;
/// The most files, requests and refusals of a call.
pub const MAX_PER_CALL: usize = 64;

/// The characters of a path or another text of a guest or client.
pub(crate) const MAX_TEXT_CHARS: usize = 512;

/// One line: the state of a process, complete but for its calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenState {
    /// The process itself.
    pub process: SeenProcess,
    /// The open sessions, at most [`MAX_SESSIONS`].
    pub sessions: Vec<SeenSession>,
    /// How many sessions are open.
    pub open_sessions: usize,
    /// The calls that began or ended since the last line; in the first line all that are remembered. The oldest one first.
    pub calls: Vec<SeenCall>,
    /// How many calls were only counted, since there were too many in a second.
    pub only_counted: u64,
    /// The calls that wait for a person.
    pub questions: Vec<SeenQuestion>,
    /// The plugins, at most [`MAX_PLUGINS`].
    pub plugins: Vec<SeenPlugin>,
}

/// A process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenProcess {
    /// Its number.
    pub pid: u32,
    /// The version of wharf.
    pub version: String,
    /// The words of its command line, without values that could be secret.
    pub command: String,
    /// When it began, in milliseconds since 1970.
    pub began: u64,
    /// Its working folder.
    pub folder: String,
    /// The config file, if there is one.
    pub config: Option<String>,
    /// The bytes of memory that it takes, if the system says so.
    pub resident: Option<u64>,
    /// The bytes that plugins may take in all.
    pub memory_limit: u64,
    /// How many calls have ended, and how many of them were refused or failed.
    pub calls: u64,
    /// How many calls were refused.
    pub refused: u64,
    /// How many calls failed.
    pub failed: u64,
}

/// A session of a client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenSession {
    /// A digest of its id, by which calls name it.
    pub id: String,
    /// The name and version of the client, as it says itself.
    pub client: String,
    /// When it began, in milliseconds since 1970.
    pub began: u64,
    /// The revision of MCP that it speaks.
    pub revision: String,
    /// Who the client is.
    pub principal: String,
    /// The folders that it has open, as far as it was asked for them.
    pub folders: Vec<String>,
}

/// A call of a plugin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenCall {
    /// Its number in this process. It grows.
    pub id: u64,
    /// The session, if it belongs to one.
    pub session: Option<String>,
    /// The plugin; empty if no plugin has that name.
    pub plugin: String,
    /// The name of the tool or prompt, or the URI of the resource.
    pub name: String,
    /// The method, such as `tools/call`.
    pub method: String,
    /// When it began, in milliseconds since 1970.
    pub began: u64,
    /// How long it took, in microseconds, and how it ended. None: it runs.
    pub ended: Option<SeenEnded>,
    /// The bytes of its arguments.
    pub bytes_in: u64,
    /// The files that it opened or changed, the first ones.
    pub files: Vec<SeenFile>,
    /// How many uses of files are not among these.
    pub files_left_out: u64,
    /// The HTTP requests that it made or tried to make, the first ones.
    pub requests: Vec<SeenRequest>,
    /// What it was refused, the first ones.
    pub refusals: Vec<SeenRefusal>,
    /// Who approved it: `client`, `command`, `session`, `always`, `window`, or `refused`.
    pub approval: Option<String>,
}

/// The end of a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenEnded {
    /// How it ended: `done`, `asked`, `failed`, `refused`, `timed_out`, `over_limit`, `crashed`, `revoked` or `cancelled`.
    pub how: String,
    /// The kind of error, if it was refused before it ran.
    pub why: Option<String>,
    /// How long it took, in microseconds.
    pub took: u64,
    /// The bytes of its result.
    pub bytes_out: u64,
}

/// A file that a call used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenFile {
    /// Its path as the plugin sees it.
    pub path: String,
    /// What was done: `read`, `list`, `write`, `make`, `remove` or `move`.
    pub did: String,
}

/// An HTTP request of a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenRequest {
    /// The method.
    pub method: String,
    /// The host and port.
    pub host: String,
    /// The status of the response, if one came.
    pub status: Option<u16>,
    /// The bytes of the response.
    pub bytes_in: u64,
    /// The bytes of the request.
    pub bytes_out: u64,
    /// Whether it was refused.
    pub refused: bool,
}

/// Something that a call was refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenRefusal {
    /// What it was, and why.
    pub text: String,
    /// What would allow it, in words, if anything can.
    pub allow: Option<String>,
    /// The narrowest grant that would allow it, as the option `--allow` takes it, such as `http=https://api.example/v1/`.
    pub grant: Option<String>,
}

/// A call that waits for a person's approval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenQuestion {
    /// Its number in this process.
    pub id: u64,
    /// The session that asks, if there is one.
    pub session: Option<String>,
    /// The plugin.
    pub plugin: String,
    /// The tool.
    pub name: String,
    /// The question with the whole content, in lines.
    pub text: String,
    /// The answers that can be given, the least first.
    pub answers: Vec<SeenChoice>,
    /// When it was asked, in milliseconds since 1970.
    pub asked: u64,
}

/// An answer that can be given to a question.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenChoice {
    /// The word that stands for it: `no`, `once`, `session`, `always`, `session-any` or `always-any`.
    pub word: String,
    /// What it means, for a person.
    pub text: String,
}

/// A plugin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenPlugin {
    /// Its id.
    pub id: String,
    /// Whether it is served.
    pub served: bool,
    /// Why it is not served as configured, if so.
    pub problem: Option<String>,
    /// Its name and version, as it says itself.
    pub version: Option<String>,
    /// The SHA-256 of its component, in hexadecimal.
    pub sha256: Option<String>,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// The approximate number of tokens that a model reads of its tools.
    pub tokens: u64,
    /// What it is granted, a line each.
    pub granted: Vec<String>,
    /// What it wants and is not granted, a line each.
    pub wanted: Vec<String>,
}

/// A line from a window to a process: the answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenAnswer {
    /// The number of the question.
    pub question: u64,
    /// The word of the choice.
    pub word: String,
}

/// Makes a text of a guest or client short and safe to read.
pub fn shown(text: &str) -> String {
    let beginning: String = text.chars().take(MAX_TEXT_CHARS + 1).collect();
    let mut escaped = wharf_base::text::escaped(&beginning);
    if let Some((end, _)) = escaped.char_indices().nth(MAX_TEXT_CHARS) {
        escaped.truncate(end);
        escaped.push('…');
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_guests_are_short_and_deceive_nobody() {
        assert_eq!(shown("a\u{202e}\nb"), "a\\u{202e}\\nb");
        assert_eq!(shown(&"é".repeat(MAX_TEXT_CHARS + 1)).chars().count(), MAX_TEXT_CHARS + 1);
    }
}
