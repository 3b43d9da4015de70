//! Calls that a person has to approve: the real binary, with clients of both eras, and clients that cheat.

#![expect(clippy::disallowed_methods, reason = "tests write what wharf is to read; what they spawn ends with them")]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod cheating;
mod remembered;
mod rmcp_client;
mod said;

use std::sync::{Arc, Mutex};

use e2e::{Folder, Pipe, Value, json};

/// A config with the plugin `files`, which may write in `project`. `confirm` is a line of its table; `more` precedes the table.
pub fn files(folder: &Folder, confirm: &str, more: &str) {
    folder.plugin("files");
    let project = folder.join("project");
    std::fs::create_dir_all(&project).unwrap();
    folder.config(&format!(
        "{more}\n[roots]\nfixed = [{project:?}]\n[plugins.files]\npath = \"../../plugins/files.wasm\"\nprefix = \"\"\n{confirm}\n\
         [plugins.files.grants]\nroots = \"read-write\"\n"
    ));
}

/// Starts a legacy client of a wharf with that config, which can ask its user.
pub async fn asking(confirm: &str, revision: &str) -> (Folder, Pipe) {
    let folder = Folder::new();
    files(&folder, confirm, "");
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy(revision, can_ask()).await;
    (folder, pipe)
}

/// Changes the config of a wharf that serves one plugin, and waits until the plugin is served for the `nth` time.
pub async fn renew(folder: &Folder, pipe: &Pipe, nth: usize, change: impl FnOnce(String) -> String) {
    let config = std::fs::read_to_string(folder.join("config/wharf/wharf.toml")).unwrap();
    folder.config(&change(config));
    served(pipe, nth).await;
}

/// Waits until a wharf with one plugin serves it for the `nth` time. The first time is when wharf starts.
pub async fn served(pipe: &Pipe, nth: usize) {
    pipe.wait_for_nth_log(" serving", nth).await;
}

/// The arguments that write this text into a file of the project.
pub fn write(folder: &Folder, name: &str, text: &str) -> Value {
    json!({ "path": folder.join("project").join(name).display().to_string(), "content": text })
}

/// Returns the contents of a file of the project, if it exists.
pub fn written(folder: &Folder, name: &str) -> Option<String> {
    std::fs::read_to_string(folder.join("project").join(name)).ok()
}

pub fn can_ask() -> Value {
    json!({ "elicitation": {} })
}

pub fn accept(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

/// Returns the questions that a client was asked.
#[derive(Clone, Default)]
pub struct Questions(Arc<Mutex<Vec<Value>>>);

impl Questions {
    /// Makes a client answer every question in this way, and records the questions.
    pub fn answered(pipe: &mut Pipe, answer: Value) -> Self {
        let questions = Self::default();
        let asked = questions.clone();
        pipe.answer_with(move |method, params| {
            assert_eq!(method, "elicitation/create");
            asked.0.lock().unwrap().push(params.clone());
            Some(answer.clone())
        });
        questions
    }

    pub fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub fn last(&self) -> Value {
        self.0.lock().unwrap().last().expect("a question").clone()
    }
}

/// Calls a tool for the first time with a modern client. Returns the question and the sealed state.
pub fn asked(answer: &Value) -> (Value, String) {
    assert_eq!(answer["resultType"], "input_required", "{answer}");
    let question = answer["inputRequests"]["wharf.approve"].clone();
    assert_eq!(question["method"], "elicitation/create", "{answer}");
    (question["params"].clone(), answer["requestState"].as_str().expect("sealed state").to_owned())
}

/// Returns the durations that the person may choose in the form of the question.
pub fn choices(question: &Value) -> Vec<String> {
    let choices = question["requestedSchema"]["properties"]["remember"].clone();
    let value = |one: &Value| one["const"].as_str().or(one.as_str()).unwrap().to_owned();
    let all = choices["oneOf"].as_array().or(choices["enum"].as_array());
    all.into_iter().flatten().map(value).collect()
}

/// Returns the parameters of a modern call that answers the question.
pub fn answering(tool: &str, arguments: &Value, state: &str, answer: &Value) -> Value {
    json!({ "name": tool, "arguments": arguments, "requestState": state, "inputResponses": { "wharf.approve": answer } })
}
