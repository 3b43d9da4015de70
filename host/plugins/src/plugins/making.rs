//! Components that are built while wharf already serves: the loader waits until they are there.

use std::{fmt, sync::Arc};

use tokio::{sync::watch, task::spawn_blocking};
use wharf_config::config::PluginSource;

/// How the build of a component ended: `None` while it runs, else nothing or why it failed.
pub type BuildOutcome = Option<Result<(), Arc<str>>>;

/// What builds components.
pub trait Maker: Send + Sync {
    /// Begins to build the component of a source, unless it is built already or being built. `None`: nothing is to be built for this source.
    fn begin(&self, source: &PluginSource) -> Option<watch::Receiver<BuildOutcome>>;
}

/// What builds the components of a wharf that are not there yet, if anything does.
#[derive(Clone, Default)]
pub struct Making(Option<Arc<dyn Maker>>);

impl Making {
    pub fn by(maker: impl Maker + 'static) -> Self {
        Self(Some(Arc::new(maker)))
    }

    /// Waits until the component of this source is built. `slow` is called if it is not yet. The error says why the build failed.
    pub async fn wait(&self, source: &PluginSource, slow: impl Fn()) -> Result<(), Arc<str>> {
        let Some(maker) = self.0.clone() else {
            return match source.server() {
                Some(_) => Err("an existing MCP server is built by the program `wharf` alone".into()),
                None => Ok(()),
            };
        };
        let source = source.clone();
        // It may read the whole source of a server.
        let begun = spawn_blocking(move || maker.begin(&source)).await;
        let Ok(Some(mut build)) = begun else { return Ok(()) };
        if build.borrow().is_none() {
            slow();
        }
        // A maker that is gone leaves whatever is at the path.
        build.wait_for(Option::is_some).await.map_or(Ok(()), |ended| ended.clone().unwrap_or(Ok(())))
    }
}

impl fmt::Debug for Making {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Making")
    }
}

#[cfg(test)]
mod tests {
    use std::{
        path::Path,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    struct One(watch::Receiver<BuildOutcome>);

    impl Maker for One {
        fn begin(&self, source: &PluginSource) -> Option<watch::Receiver<BuildOutcome>> {
            (source.path() == Some(Path::new("/a.wasm"))).then(|| self.0.clone())
        }
    }

    #[tokio::test]
    async fn a_load_waits_for_its_own_build_alone() {
        let (tell, build) = watch::channel(None);
        let making = Making::by(One(build));
        let slow = AtomicUsize::new(0);
        let count = || {
            slow.fetch_add(1, Ordering::Relaxed);
        };
        let [a, other] = ["/a.wasm", "/other.wasm"].map(|path| PluginSource::File(path.into()));
        making.wait(&other, count).await.unwrap();
        assert_eq!(slow.load(Ordering::Relaxed), 0);
        let fail = async {
            while slow.load(Ordering::Relaxed) == 0 {
                tokio::task::yield_now().await;
            }
            tell.send_replace(Some(Err("it ended".into())));
        };
        let (ended, ()) = tokio::join!(making.wait(&a, count), fail);
        assert_eq!(ended.unwrap_err().as_ref(), "it ended");
        tell.send_replace(Some(Ok(())));
        making.wait(&a, count).await.unwrap();
        assert_eq!(slow.load(Ordering::Relaxed), 1, "what is built is not slow");
    }
}
