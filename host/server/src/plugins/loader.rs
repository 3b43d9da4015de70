//! From the file of a plugin to its compiled code, once for each state of the file. Several at a time.

use std::{
    collections::HashMap,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use wharf_sandbox::{Code, Sandbox};

use super::status::{Problem, Stage};
use crate::{
    base::paths::Stamp,
    config::{self, PluginConfig},
};

/// What takes longer than this is said.
const LONG: Duration = Duration::from_millis(300);

pub struct Loader {
    sandbox: Arc<Sandbox>,
    files: Mutex<HashMap<PathBuf, Read>>,
    /// Says on stderr what takes long.
    progress: fn(&str),
}

/// What is known of a file: enough to see that it changed, and what came of it.
#[derive(Clone)]
struct Read {
    stamp: Stamp,
    code: Result<Code, Problem>,
}

impl Loader {
    pub fn new(sandbox: Arc<Sandbox>, progress: fn(&str)) -> Self {
        Self { sandbox, files: Mutex::default(), progress }
    }

    /// Forgets files that are no plugins any more.
    pub fn forget_all_but(&self, keep: impl Fn(&Path) -> bool) {
        self.files.lock().retain(|path, _| keep(path));
    }

    /// The code in a file, compiled if the file is not the one that was read last. `slow` is called once if that takes long.
    pub async fn code(&self, config: &PluginConfig, slow: impl Fn()) -> Result<Code, Problem> {
        let problem = |stage, text: String| Problem { stage, text };
        config::check_trusted_file(&config.path, "plugin")
            .map_err(|error| problem(Stage::Read, format!("{error:#}")))?;
        let path = config.path.clone();
        let unreadable = |error: std::io::Error| problem(Stage::Read, format!("{}: {error}", config.path.display()));
        let stamp = Stamp::of(&path).map_err(unreadable)?;
        let known = self.files.lock().get(&path).filter(|read| read.stamp == stamp).cloned();
        let code = match known {
            Some(read) => read.code,
            None => {
                let file = File::open(&path).map_err(unreadable)?;
                let code = self.load(&config.id, file, slow).await;
                // Stamped as before it was read: if it changed meanwhile, it will be read again.
                self.files.lock().insert(path, Read { stamp, code: code.clone() });
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
