//! From the source of a plugin to its compiled code, once for each state of the source. Several at a time.

use std::{collections::HashMap, fs::File, sync::Arc, time::Duration};

use parking_lot::Mutex;
use wharf_sandbox::{Code, Sandbox};

use super::status::{Problem, Stage};
use crate::config::{self, PluginConfig, Source, State};

/// What takes longer than this is said.
const LONG: Duration = Duration::from_millis(300);

pub struct Loader {
    sandbox: Arc<Sandbox>,
    read: Mutex<HashMap<Source, Read>>,
    /// Says on stderr what takes long.
    progress: fn(&str),
}

/// What is known of a source: enough to see that it changed, and what came of it.
#[derive(Clone)]
struct Read {
    state: State,
    code: Result<Code, Problem>,
}

impl Loader {
    pub fn new(sandbox: Arc<Sandbox>, progress: fn(&str)) -> Self {
        Self { sandbox, read: Mutex::default(), progress }
    }

    /// Forgets sources that are no plugins any more.
    pub fn forget_all_but(&self, keep: impl Fn(&Source) -> bool) {
        self.read.lock().retain(|source, _| keep(source));
    }

    /// The code of a plugin, compiled if its source is not as it was when it was read last. `slow` is called once if that takes long.
    pub async fn code(&self, config: &PluginConfig, slow: impl Fn()) -> Result<Code, Problem> {
        let problem = |stage, text: String| Problem { stage, text };
        if let Some(path) = config.source.path() {
            config::check_trusted_file(path, "plugin").map_err(|error| problem(Stage::Read, format!("{error:#}")))?;
        }
        let unreadable = |error: std::io::Error| problem(Stage::Read, format!("{}: {error}", config.source));
        let state = config.source.state().map_err(unreadable)?;
        let known = self.read.lock().get(&config.source).filter(|read| read.state == state).cloned();
        let code = match known {
            Some(read) => read.code,
            None => {
                let file = config.source.open().map_err(unreadable)?;
                let code = self.load(&config.id, file, slow).await;
                // With its state from before it was read: if it changed meanwhile, it will be read again.
                self.read.lock().insert(config.source.clone(), Read { state, code: code.clone() });
                code
            }
        }?;
        match &config.sha256 {
            Some(expected) if expected != code.digest() => Err(problem(
                Stage::Verify,
                format!(
                    "the file's SHA-256 is {}, not the one in the config; if you trust the file, put it there",
                    code.digest_hex()
                ),
            )),
            _ => Ok(code),
        }
    }

    async fn load(&self, id: &str, file: File, slow: impl Fn()) -> Result<Code, Problem> {
        let mut work = std::pin::pin!(self.sandbox.load(file, slow));
        let loaded = match tokio::time::timeout(LONG, &mut work).await {
            Ok(loaded) => loaded,
            Err(_) => {
                (self.progress)(&format!("compiling {id} …"));
                work.await
            }
        };
        loaded.map_err(|error| Problem { stage: Stage::Load, text: error.to_string() })
    }
}
