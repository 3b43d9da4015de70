//! Builds that go on when the client that waits for them goes. Each runs in a process of its own, whose log the wharf that began it repeats. A
//! first build may take a minute, and many clients end a server that does not answer for so long: begun again each time, it would never end.

use std::{
    collections::HashMap,
    io::{self, Read, Write},
    path::PathBuf,
    process::{ExitCode, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncWriteExt, BufReader},
    process::Command,
    sync::watch,
    task::JoinSet,
};

use super::{
    locks,
    make::{admit, is_built, make},
};
use crate::authoring::build::{Until, next_line};
use wharf_base::{
    failed::{OrFailed, failed},
    group::Group,
};
use wharf_config::config::{PluginSource, existing::ExistingServer};
use wharf_plugins::plugins::making::{BuildOutcome, Maker};

/// The arguments with which wharf builds the server that it reads from stdin.
const ARGUMENTS: [&str; 2] = ["inspect", "--server-from-stdin"];
/// How the line begins with which wharf says why it has failed.
const ERROR: &str = "error: ";

/// The shortest time between two builds of a server, of which the first has failed. Each change of another plugin loads all plugins that do
/// not load.
const AGAIN_AFTER: Duration = Duration::from_mins(1);

/// Builds servers in the background, by processes that outlive this.
pub struct Builds {
    /// The options that say how to log.
    log: &'static [&'static str],
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The builds by their components, each with its begin.
    begun: HashMap<PathBuf, (Instant, watch::Receiver<BuildOutcome>)>,
    /// Those of the servers that were admitted before wharf started, until they are first loaded.
    first: HashMap<PathBuf, watch::Receiver<BuildOutcome>>,
    /// They wait for the builds, and repeat what these log. Aborted when this is dropped.
    tasks: JoinSet<()>,
}

impl Builds {
    pub fn new(log: &'static [&'static str]) -> Self {
        Self { log, state: Mutex::default() }
    }

    /// Begins to build a server before wharf starts, which then lets no plugin write into its source. Fails if others could change what is
    /// built. The server's first load does not look at its source again.
    pub fn admit(&self, server: ExistingServer) -> Result<()> {
        let component = server.component();
        let mut state = self.state.lock();
        let build = state.begin(&Arc::new(server), self.log)?;
        state.first.insert(component, build);
        Ok(())
    }
}

impl State {
    /// Begins to build a server that is not built yet. Fails if others could change what is built.
    fn begin(
        &mut self,
        server: &Arc<ExistingServer>,
        log: &'static [&'static str],
    ) -> Result<watch::Receiver<BuildOutcome>> {
        let component = server.component();
        if let Some((begun, build)) = self.begun.get(&component) {
            let is_current = match &*build.borrow() {
                None => true,
                Some(Err(_)) => begun.elapsed() < AGAIN_AFTER,
                Some(Ok(())) => false,
            };
            if is_current {
                return Ok(build.clone());
            }
        }
        let inputs = admit(server)?;
        if is_built(server, &inputs) {
            return Ok(watch::channel(Some(Ok(()))).1);
        }
        let (ended, build): (_, watch::Receiver<BuildOutcome>) = watch::channel(None);
        self.begun.insert(component, (Instant::now(), build.clone()));
        while self.tasks.try_join_next().is_some() {}
        let server = Arc::clone(server);
        self.tasks.spawn(async move {
            let made = build_apart(&server, log).await;
            ended.send_replace(Some(made.map_err(|error| Arc::from(format!("{error:#}")))));
        });
        Ok(build)
    }
}

impl Maker for Builds {
    fn begin(&self, source: &PluginSource) -> Option<watch::Receiver<BuildOutcome>> {
        let server = source.server()?;
        let mut state = self.state.lock();
        if let Some(first) = state.first.remove(&server.component()) {
            return Some(first);
        }
        let begun = state.begin(server, self.log);
        Some(begun.unwrap_or_else(|error| watch::channel(Some(Err(Arc::from(format!("{error:#}"))))).1))
    }
}

/// Builds the server, unless it is there and its source is unchanged. `log`: the options that say how to log.
async fn build_apart(server: &ExistingServer, log: &[&str]) -> Result<()> {
    // One that runs already is waited for here, so that clients that come and go leave one process and not many.
    drop(locks::of_folder(&server.folder).await?);
    if is_built(server, &admit(server)?) {
        return Ok(());
    }
    let program = std::env::current_exe().context("the path of wharf is not known").or_failed()?;
    let mut command = Command::new(program);
    // A group of its own gets no signals of this one's terminal.
    command.args(ARGUMENTS).args(log).process_group(Group::OWN);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut build = command.spawn().context("wharf could not be started to build a server").or_failed()?;
    let (input, output) = build.stdin.take().zip(build.stderr.take()).context("a build has no pipes")?;
    // Not as arguments: those of the server may be secrets, and every user can read the arguments of a process.
    let written = serde_json::to_vec(server).with_context(|| server.named())?;
    { input }.write_all(&written).await.or_failed()?;
    let (mut output, mut error) = (BufReader::new(output), None);
    while let Some(line) = next_line(&mut output).await {
        error.take().iter().for_each(|before: &String| repeat(before));
        // If it is the last one, who waits for the build tells it.
        if line.starts_with(ERROR) {
            error = Some(line);
        } else {
            repeat(&line);
        }
    }
    let status = build.wait().await.or_failed()?;
    match error.as_deref().and_then(|line| line.strip_prefix(ERROR)) {
        _ if status.success() => Ok(()),
        Some(why) => Err(failed(anyhow!("{why}"))),
        None => bail!("the process that builds {} has ended: {status}", server.named()),
    }
}

fn repeat(line: &str) {
    // If stderr is closed, nobody reads it.
    writeln!(io::stderr(), "{line}").ok();
}

/// Builds the server that stdin has, for [`begin`].
pub async fn asked() -> Result<ExitCode> {
    let mut text = Vec::new();
    io::stdin().lock().read_to_end(&mut text).context("stdin cannot be read")?;
    let server: ExistingServer = serde_json::from_slice(&text).context("stdin has no server")?;
    make(&server, Until::Interrupted).await?;
    Ok(ExitCode::SUCCESS)
}
