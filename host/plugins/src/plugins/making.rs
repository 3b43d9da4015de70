//! Components that are built while wharf already serves: the loader waits until they are there.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::sync::watch;

/// How the build of a component ended: `None` while it runs, else nothing or why it failed.
pub type BuildOutcome = Option<Result<(), Arc<str>>>;

/// The components that are being built, by their paths.
#[derive(Debug, Clone, Default)]
pub struct Making(Arc<HashMap<PathBuf, watch::Receiver<BuildOutcome>>>);

impl Making {
    pub fn new(builds: HashMap<PathBuf, watch::Receiver<BuildOutcome>>) -> Self {
        Self(Arc::new(builds))
    }

    /// Waits until the component at this path is built. `slow` is called if it is not yet. The error says why the build failed.
    pub async fn wait(&self, path: &Path, slow: impl Fn()) -> Result<(), Arc<str>> {
        let Some(build) = self.0.get(path) else { return Ok(()) };
        if build.borrow().is_none() {
            slow();
        }
        let mut build = build.clone();
        // A builder that is gone leaves whatever is at the path.
        build.wait_for(Option::is_some).await.map_or(Ok(()), |ended| ended.clone().unwrap_or(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_load_waits_for_its_own_build_alone() {
        let (tell, build) = watch::channel(None);
        let making = Making::new(HashMap::from([("/a.wasm".into(), build)]));
        let slow = AtomicUsize::new(0);
        let count = || {
            slow.fetch_add(1, Ordering::Relaxed);
        };
        making.wait(Path::new("/other.wasm"), count).await.unwrap();
        assert_eq!(slow.load(Ordering::Relaxed), 0);
        let fail = async { tell.send_replace(Some(Err("it ended".into()))) };
        let (ended, _) = tokio::join!(making.wait(Path::new("/a.wasm"), count), fail);
        assert_eq!((ended.unwrap_err().as_ref(), slow.load(Ordering::Relaxed)), ("it ended", 1));
        tell.send_replace(Some(Ok(())));
        making.wait(Path::new("/a.wasm"), count).await.unwrap();
        assert_eq!(slow.load(Ordering::Relaxed), 1, "what is built is not slow");
    }
}
