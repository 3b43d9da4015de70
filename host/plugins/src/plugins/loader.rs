//! Loads and compiles the code of plugins, and caches the result until the source file changes. Several plugins can load at once.

use std::{collections::HashMap, fs::File, sync::Arc, time::Duration};

use parking_lot::Mutex;
use wharf_sandbox::{Code, Sandbox};

use super::{
    making::Making,
    status::{Problem, Stage},
};
use wharf_base::{guard, text};
use wharf_config::config::{Located, PluginConfig, PluginSource, SourceState};

/// How long a load may take before it is reported through `progress`.
const PROGRESS_GRACE: Duration = Duration::from_millis(300);

pub struct Loader {
    sandbox: Arc<Sandbox>,
    making: Making,
    cache: Mutex<HashMap<PluginSource, Cached>>,
    /// Called with a message when a load takes long.
    progress: fn(&str),
}

/// The result of loading a source.
#[derive(Clone)]
struct Cached {
    /// The state of the source just before it was read.
    state: SourceState,
    code: Result<Code, Problem>,
}

impl Loader {
    pub fn new(sandbox: Arc<Sandbox>, making: Making, progress: fn(&str)) -> Self {
        Self { sandbox, making, cache: Mutex::default(), progress }
    }

    /// Removes all sources from the cache for which `keep` returns false.
    pub fn retain(&self, keep: impl Fn(&PluginSource) -> bool) {
        self.cache.lock().retain(|source, _| keep(source));
    }

    /// Returns the code of a plugin, and compiles it if the source has changed since it was last read. `slow` is called once if that
    /// takes long.
    pub async fn code(&self, config: &PluginConfig, slow: impl Fn()) -> Result<Code, Problem> {
        let problem = |stage, text: String| Problem::new(stage, text);
        let located = config.source.locate().map_err(|error| problem(Stage::Read, format!("{error:#}")))?;
        let made = self.making.wait(&config.source, &slow).await;
        made.map_err(|error| problem(Stage::Build, error.to_string()))?;
        if let Some(path) = located.path() {
            guard::check_trusted_file(path, "plugin").map_err(|error| problem(Stage::Read, format!("{error:#}")))?;
        }
        let unreadable = |error: std::io::Error| problem(Stage::Read, format!("{}: {error}", config.source));
        let state = located.state().map_err(unreadable)?;
        let known = self.cache.lock().get(&config.source).filter(|cached| cached.state == state).cloned();
        let code = match known {
            Some(cached) => cached.code,
            None => {
                let kept = match located.digest() {
                    Some(digest) => self.sandbox.kept(digest).await.map_err(|error| Problem::new(Stage::Load, error)),
                    None => Ok(None),
                };
                let code = match kept.transpose() {
                    Some(code) => code,
                    None => self.load(&config.id, located.open().map_err(unreadable)?, slow).await,
                };
                // `state` was taken before the file was read, so a change during the read causes another read.
                self.cache.lock().insert(config.source.clone(), Cached { state, code: code.clone() });
                code
            }
        }?;
        if let Located::File { digest: Some(expected), path } = &located
            && expected != code.digest()
        {
            let path = text::path(path);
            let text = format!(
                "{path} has the SHA-256 {}, which is not its name; `wharf lock fetch` fetches it again",
                code.digest()
            );
            return Err(problem(Stage::Verify, text));
        }
        match &config.sha256 {
            Some(expected) if expected != code.digest() => Err(problem(
                Stage::Verify,
                format!(
                    "the file's SHA-256 is {}, not the `sha256` in the config; if you trust the file, write this one there",
                    code.digest()
                ),
            )),
            _ => Ok(code),
        }
    }

    async fn load(&self, id: &str, file: File, slow: impl Fn()) -> Result<Code, Problem> {
        let mut work = std::pin::pin!(self.sandbox.load(file, slow));
        let loaded = match tokio::time::timeout(PROGRESS_GRACE, &mut work).await {
            Ok(loaded) => loaded,
            Err(_) => {
                (self.progress)(&format!("compiling {id} …"));
                work.await
            }
        };
        loaded.map_err(|error| Problem::new(Stage::Load, error))
    }
}
