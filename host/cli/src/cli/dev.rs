//! `wharf dev`: builds the plugin in a folder whenever its sources change, and serves the last successful build.
//!
//! The component is served from a copy in a temporary folder, with a generated config. Clients are notified of a new build as of any
//! plugin file that is replaced.

#![expect(clippy::disallowed_methods, reason = "copies the component into a temporary folder")]

use std::{
    cell::RefCell,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use tempfile::TempDir;
use tokio::sync::watch;

use super::{
    arguments::{Dev, grants},
    file::{PRIVATE_MODE, replace},
    serve::{Transports, serve_all},
};
use crate::authoring::dev_target::{DevTarget, Served as Built};
use wharf_app::operator::Setup;
use wharf_base::{
    below::{Below, CopyLimits},
    text::escaped,
};
use wharf_config::config::{CommandLine, PluginSource};
use wharf_plugins::{
    observe::record::{Action, CallRecord, Ended, Observer},
    plugins::making::{BuildOutcome, Maker, Making},
};
use wharf_sandbox::Effort;

pub(super) async fn run(command: Dev) -> Result<ExitCode> {
    let developed = DevTarget::open(&command.project.folder, command.server()?, command.project.setup).await?;
    let _protected = developed.protect();
    if let Some(prefix) = developed.prefix() {
        tracing::info!(
            "clients see its tools and prompts with the prefix `{prefix}`; `prefix = \"\"` in [dev] of plugin.toml leaves it out"
        );
    }
    let (told, first) = watch::channel(None);
    let mut more = toml::Table::from_iter([("grants".to_owned(), grants(&command.allow).into())]);
    if let Some(instances) = command.instances.how {
        more.insert("instances".to_owned(), instances.as_str().into());
    }
    let served = Folder::new(more, told, developed.reads_source())?;
    served.announce(&developed)?;
    if let Some(built) = developed.built_before() {
        served.put(&developed, built)?;
    }
    let command_line = CommandLine { roots: command.roots, listen: command.listen, ..CommandLine::default() };
    // Clients may start several of these at once, and all of them would listen on the same port.
    let http = (!command.stdio || command_line.listen.is_some()).then(Vec::new);
    let setup = Setup {
        file: Some(served.config()),
        command_line,
        roots_in_home: true,
        observers: vec![Box::new(Calls)],
        making: Making::by(First { component: served.component(), built: first }),
        progress: Some(|text| tracing::info!("{text}")),
        // A change should be heard at once; that calls take longer matters less.
        effort: Effort::Quick,
        ..Setup::default()
    };
    let stdio = command.stdio;
    let transports = Transports { stdio, http, with_parent: stdio, hangup_ends: true, ..Transports::default() };
    tokio::select! {
        ended = serve_all(setup, transports) => ended?,
        ended = follow(developed, &served) => ended?,
    }
    Ok(ExitCode::SUCCESS)
}

/// How long to wait before a build that the previous build may have triggered.
const SELF_TRIGGERED_BUILD_INTERVAL: Duration = Duration::from_secs(3);

/// The limits for the source that a component reads.
const SOURCE_LIMITS: CopyLimits = CopyLimits { entries: 10_000, bytes: 256 << 20 };

/// Builds the plugin, and again whenever a source has changed.
async fn follow(mut developed: DevTarget, served: &Folder) -> Result<()> {
    let mut in_a_row = 0;
    loop {
        match developed.build().await {
            Ok(built) => served.put(&developed, built)?,
            Err(error) => {
                tracing::error!("{error:#}; {}", served.what_is_left());
                served.fail(&error);
            }
        }
        // A source that changed during the build triggers another build.
        if developed.look() {
            in_a_row += 1;
            if in_a_row > 2 {
                // A build that changes its own sources would repeat for ever, and occupy the machine.
                tracing::warn!(
                    "sources change during every build; exclude the files that the build generates from build.watch"
                );
                tokio::time::sleep(SELF_TRIGGERED_BUILD_INTERVAL).await;
            }
        } else {
            in_a_row = 0;
            while !developed.look() {
                developed.changed().await;
            }
        }
        if let Err(error) = developed.read_again() {
            tracing::error!("{error:#}");
        }
    }
}

/// The numbers in the names of what is served.
struct Now {
    component: u64,
    /// None: the component contains the plugin's code.
    source: Option<u64>,
}

/// The temporary folder that is served: a component, the config that names it, and the source that the component reads.
struct Folder {
    folder: TempDir,
    /// What of it is served now.
    now: RefCell<Now>,
    /// What the command line adds to the plugin's table.
    more: toml::Table,
    /// Tells the loader the first build of the component ended.
    first: watch::Sender<BuildOutcome>,
}

impl Folder {
    /// `reads_source`: the component of the first build reads the source. Its folder is in the config from the beginning, so that the component
    /// is loaded only once.
    fn new(more: toml::Table, first: watch::Sender<BuildOutcome>, reads_source: bool) -> Result<Self> {
        let folder = TempDir::with_prefix("wharf-dev-").context("there is no folder for temporary files")?;
        let now = Now { component: 0, source: reads_source.then_some(0) };
        if reads_source {
            fs::create_dir(folder.path().join("source-0"))?;
        }
        Ok(Self { folder, now: now.into(), more, first })
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("wharf.toml")
    }

    fn component(&self) -> PathBuf {
        self.numbered(self.now.borrow().component)
    }

    fn numbered(&self, component: u64) -> PathBuf {
        self.folder.path().join(format!("plugin-{component}.wasm"))
    }

    fn source(&self, number: u64) -> PathBuf {
        self.folder.path().join(format!("source-{number}"))
    }

    /// Serves this build from now on.
    fn put(&self, developed: &DevTarget, built: Built) -> Result<()> {
        match built.source {
            None => replace(&self.component(), &built.component, PRIVATE_MODE)?,
            Some(source) => self.put_both(&built.component, &source)?,
        }
        self.announce(developed)?;
        self.first.send_replace(Some(Ok(())));
        Ok(())
    }

    /// Writes a component and the source that it reads. If either is another one, it gets another name, so that the config changes to both at
    /// once.
    fn put_both(&self, component: &[u8], source: &Path) -> Result<()> {
        let before = self.component();
        let is_there = before.exists();
        let number = self.now.borrow().source.map_or(0, |before| before + u64::from(is_there));
        // A copy that failed may have left something.
        fs::remove_dir_all(self.source(number)).ok();
        fs::create_dir(self.source(number))?;
        Below::open(source)?.copy(&self.source(number), &mut { SOURCE_LIMITS })?;
        self.now.borrow_mut().source = Some(number);
        // Instances that start now may still read the source before this one.
        if let Some(old) = number.checked_sub(2) {
            fs::remove_dir_all(self.source(old)).ok();
        }
        if is_there && fs::read(&before)? == component {
            return Ok(());
        }
        if is_there {
            let number = self.now.borrow().component;
            self.now.borrow_mut().component = number + 1;
            // The one before is served until the config is read.
            if let Some(old) = number.checked_sub(1) {
                fs::remove_file(self.numbered(old)).ok();
            }
        }
        replace(&self.component(), component, PRIVATE_MODE)
    }

    /// Writes the config. Requests for what the plugin offers wait from then on for its component.
    fn announce(&self, developed: &DevTarget) -> Result<()> {
        let source = self.now.borrow().source.map(|number| self.source(number));
        let config = developed.config(&self.more, &self.component(), source.as_deref())?;
        if fs::read_to_string(self.config()).ok().as_ref() != Some(&config) {
            replace(&self.config(), config.as_bytes(), PRIVATE_MODE)?;
        }
        Ok(())
    }

    /// Tells clients that wait for the first component that its build failed.
    fn fail(&self, error: &anyhow::Error) {
        if !self.component().exists() {
            self.first.send_replace(Some(Err(Arc::from(format!("{error:#}")))));
        }
    }

    fn what_is_left(&self) -> &'static str {
        if self.component().exists() { "the previous build is still served" } else { "nothing is served yet" }
    }
}

/// The first build, which the first component waits for.
struct First {
    component: PathBuf,
    built: watch::Receiver<BuildOutcome>,
}

impl Maker for First {
    fn begin(&self, source: &PluginSource) -> Option<watch::Receiver<BuildOutcome>> {
        (source.path() == Some(&self.component)).then(|| self.built.clone())
    }
}

/// Logs every call for the author.
struct Calls;

impl Observer for Calls {
    fn ended(&self, record: &CallRecord) {
        let Action::Request { name, .. } = &record.action else { return };
        let (name, ms) = (escaped(name), record.took.as_secs_f64() * 1000.0);
        match record.ended {
            Ended::Done | Ended::Asked => tracing::info!("{name} {} in {ms:.1} ms", record.ended),
            _ => tracing::warn!("{name} {} after {ms:.1} ms", record.error_type().unwrap_or_default()),
        }
        for denial in &record.denials {
            tracing::warn!("{name}: {denial}");
        }
    }
}
