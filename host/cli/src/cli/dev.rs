//! `wharf dev`: builds the plugin in a folder whenever its sources change, and serves the last successful build.
//!
//! The component is served from a copy in a temporary folder, with a generated config. Clients are notified of a new build as of any
//! plugin file that is replaced.

#![expect(clippy::disallowed_methods, reason = "copies the component into a temporary folder")]

use std::{fs, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::{
    arguments::Dev,
    file::{PRIVATE_MODE, replace},
    serve::{Transports, serve_all},
};
use crate::authoring::{
    build::{self, Built, Until},
    project::Project,
    sources::Sources,
};
use wharf_app::operator::Setup;
use wharf_base::text::escaped;
use wharf_config::config::CommandLine;
use wharf_plugins::observe::record::{Action, CallRecord, Ended, Observer};

pub(super) async fn run(command: Dev) -> Result<ExitCode> {
    let project = Project::open(&command.project.folder)?;
    build::ready(&project, command.project.setup).await?;
    let served = Served::new()?;
    let command_line = CommandLine { roots: command.roots, listen: command.listen, ..CommandLine::default() };
    let setup = Setup {
        file: Some(served.config()),
        command_line,
        roots_in_home: true,
        observers: vec![Box::new(Calls)],
        progress: Some(|text| tracing::info!("{text}")),
        ..Setup::default()
    };
    let transports = Transports {
        stdio: command.stdio,
        profile: None,
        http: Some(Vec::new()),
        with_parent: command.stdio,
        hangup_ends: true,
        named: Vec::new(),
    };
    let sources = Sources::watch(&project);
    tokio::select! {
        ended = serve_all(setup, transports) => ended?,
        ended = follow(project, sources, &served) => ended?,
    }
    Ok(ExitCode::SUCCESS)
}

/// How long to wait before a build that the previous build may have triggered.
const SELF_TRIGGERED_BUILD_INTERVAL: Duration = Duration::from_secs(3);

/// Builds the plugin, and again whenever a source has changed.
async fn follow(mut project: Project, mut sources: Sources, served: &Served) -> Result<()> {
    let mut in_a_row = 0;
    loop {
        match build::build(&project, Until::Dropped).await {
            Ok(built) => {
                let (seconds, size) = (built.took.as_secs_f64(), built.component.len().div_ceil(1024));
                tracing::info!("built in {seconds:.1} s, {size} KiB");
                served.put(&project, &built)?;
            }
            Err(error) => tracing::error!("{error:#}; {}", served.what_is_left()),
        }
        // A source that changed during the build triggers another build.
        if sources.look(&project) {
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
            while !sources.look(&project) {
                sources.changed().await;
            }
        }
        match Project::open(&project.folder) {
            Ok(changed) => project = changed,
            Err(error) => tracing::error!("{error:#}"),
        }
    }
}

/// The temporary folder that is served: a component, and the config that names it.
struct Served(TempDir);

impl Served {
    fn new() -> Result<Self> {
        let folder = TempDir::with_prefix("wharf-dev-").context("there is no folder for temporary files")?;
        let served = Self(folder);
        fs::write(served.config(), "")?;
        Ok(served)
    }

    fn config(&self) -> PathBuf {
        self.0.path().join("wharf.toml")
    }

    fn component(&self) -> PathBuf {
        self.0.path().join("plugin.wasm")
    }

    /// Serves this build from now on.
    fn put(&self, project: &Project, built: &Built) -> Result<()> {
        replace(&self.component(), &built.component, PRIVATE_MODE)?;
        let config = project.config(&self.component())?;
        if fs::read_to_string(self.config())? != config {
            replace(&self.config(), config.as_bytes(), PRIVATE_MODE)?;
        }
        Ok(())
    }

    fn what_is_left(&self) -> &'static str {
        if self.component().exists() { "the previous build is still served" } else { "nothing is served yet" }
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
