//! Compiles the code of plugins, once for each state of a source. Several plugins can be loaded at a time.

use std::{collections::HashMap, fs::File, sync::Arc, time::Duration};

use parking_lot::Mutex;
use wharf_sandbox::{Code, Sandbox};

use super::status::{Problem, Stage};
use crate::{
    base::guard,
    config::{PluginConfig, Source, State},
};

/// After how long `progress` is told about a load.
const LONG: Duration = Duration::from_millis(300);

pub struct Loader {
    sandbox: Arc<Sandbox>,
    read: Mutex<HashMap<Source, Read>>,
    /// Called with a message when a load takes long.
    progress: fn(&str),
}

/// What is known about a source: its state when it was read, and the result of loading it.
#[derive(Clone)]
struct Read {
    state: State,
    code: Result<Code, Problem>,
}

impl Loader {
    pub fn new(sandbox: Arc<Sandbox>, progress: fn(&str)) -> Self {
        Self { sandbox, read: Mutex::default(), progress }
    }

    /// Forgets the sources that no plugin has any more.
    pub fn forget_all_but(&self, keep: impl Fn(&Source) -> bool) {
        self.read.lock().retain(|source, _| keep(source));
    }

    /// The code of a plugin. It is compiled if the source has changed since it was read last. `slow` is called once if that
    /// takes long.
    pub async fn code(&self, config: &PluginConfig, slow: impl Fn()) -> Result<Code, Problem> {
        let problem = |stage, text: String| Problem { stage, text };
        if let Some(path) = config.source.path() {
            guard::check_trusted_file(path, "plugin").map_err(|error| problem(Stage::Read, format!("{error:#}")))?;
        }
        let unreadable = |error: std::io::Error| problem(Stage::Read, format!("{}: {error}", config.source));
        let state = config.source.state().map_err(unreadable)?;
        let known = self.read.lock().get(&config.source).filter(|read| read.state == state).cloned();
        let code = match known {
            Some(read) => read.code,
            None => {
                let file = config.source.open().map_err(unreadable)?;
                let code = self.load(&config.id, file, slow).await;
                // The state is from before the file was read, so that a change in the meantime leads to another read.
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
