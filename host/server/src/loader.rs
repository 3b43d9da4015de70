//! From the file of a plugin to its compiled code, once for each state of the file.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use wharf_sandbox::{Code, LoadError, Sandbox};

use crate::{
    config::{self, PluginConfig},
    paths::Stamp,
};

/// What takes longer than this is said.
const LONG: Duration = Duration::from_millis(300);

pub struct Loader {
    sandbox: Arc<Sandbox>,
    files: HashMap<PathBuf, Read>,
    /// Says on stderr what takes long.
    progress: fn(&str),
}

/// What is known of a file: enough to see that it changed, and what came of it.
#[derive(Clone)]
struct Read {
    stamp: Stamp,
    code: Result<Code, Problem>,
}

/// Why a plugin does not load: at which stage, and in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub stage: &'static str,
    pub text: String,
}

impl Loader {
    pub fn new(sandbox: Arc<Sandbox>, progress: fn(&str)) -> Self {
        Self { sandbox, files: HashMap::new(), progress }
    }

    /// Forgets files that are no plugins any more.
    pub fn forget_all_but(&mut self, keep: impl Fn(&Path) -> bool) {
        self.files.retain(|path, _| keep(path));
    }

    /// The code in a file, compiled if the file is not the one that was read last.
    pub async fn code(&mut self, config: &PluginConfig) -> Result<Code, Problem> {
        let problem = |stage, text: String| Problem { stage, text };
        config::check_trusted_file(&config.path, "plugin").map_err(|error| problem("read", format!("{error:#}")))?;
        let path = config.path.clone();
        let unreadable = |error: std::io::Error| problem("read", format!("{}: {error}", config.path.display()));
        let stamp = Stamp::of(&path).map_err(unreadable)?;
        let known = self.files.get(&path).filter(|read| read.stamp == stamp);
        let code = match known {
            Some(read) => read.code.clone(),
            None => {
                let code = self.compile(&config.id, path.clone(), stamp.length).await;
                // Stamped as before it was read: if it changed meanwhile, it will be read again.
                self.files.insert(path, Read { stamp, code: code.clone() });
                code
            }
        }?;
        match &config.sha256 {
            Some(expected) if expected != code.digest() => Err(problem(
                "verify",
                format!(
                    "the file's SHA-256 is {}, not the one in the config; if you trust the file, put it there",
                    code.digest_hex()
                ),
            )),
            _ => Ok(code),
        }
    }

    async fn compile(&self, id: &str, path: PathBuf, length: u64) -> Result<Code, Problem> {
        let load = |error: LoadError| Problem { stage: "load", text: error.to_string() };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > wharf_sandbox::MAX_COMPONENT_BYTES {
            return Err(load(LoadError::TooLarge(length)));
        }
        let _turn = self.sandbox.compile_turn().await;
        let sandbox = Arc::clone(&self.sandbox);
        let work = tokio::task::spawn_blocking(move || {
            let bytes = std::fs::read(&path)
                .map_err(|error| Problem { stage: "read", text: format!("{}: {error}", path.display()) })?;
            sandbox.compile(&bytes).map_err(load)
        });
        let mut work = std::pin::pin!(work);
        let joined = match tokio::time::timeout(LONG, &mut work).await {
            Ok(joined) => joined,
            Err(_) => {
                (self.progress)(&format!("compiling {id} …"));
                work.await
            }
        };
        joined.unwrap_or_else(|_| Err(Problem { stage: "load", text: "the compiler failed on this component".into() }))
    }
}
