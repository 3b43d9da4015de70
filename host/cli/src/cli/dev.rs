//! `wharf dev`: builds the plugin in a folder whenever its sources change, and serves the last successful build.
//!
//! The component is served from a copy in a temporary folder, with a generated config. Clients are notified of a new build as of any
//! plugin file that is replaced.

#![expect(clippy::disallowed_methods, reason = "copies the component into a temporary folder")]

use std::{collections::HashMap, fs, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use tempfile::TempDir;
use tokio::sync::watch;

use super::{
    arguments::{Dev, grants},
    file::{PRIVATE_MODE, replace},
    serve::{Transports, serve_all},
};
use crate::authoring::developed::Developed;
use wharf_app::operator::Setup;
use wharf_base::text::escaped;
use wharf_config::config::CommandLine;
use wharf_plugins::{
    observe::record::{Action, CallRecord, Ended, Observer},
    plugins::making::{BuildOutcome, Making},
};

pub(super) async fn run(command: Dev) -> Result<ExitCode> {
    let developed = Developed::open(&command.project.folder, command.project.setup).await?;
    if let Some(prefix) = developed.prefix() {
        tracing::info!(
            "clients see its tools and prompts with the prefix `{prefix}`; `prefix = \"\"` in [dev] of plugin.toml leaves it out"
        );
    }
    let (told, first) = watch::channel(None);
    let served = Served::new(grants(&command.allow), told)?;
    served.announce(&developed)?;
    if let Some(component) = developed.built_before() {
        served.put(&developed, &component)?;
    }
    let command_line = CommandLine { roots: command.roots, listen: command.listen, ..CommandLine::default() };
    // Clients may start several of these at once, and all of them would listen on the same port.
    let http = (!command.stdio || command_line.listen.is_some()).then(Vec::new);
    let setup = Setup {
        file: Some(served.config()),
        command_line,
        roots_in_home: true,
        observers: vec![Box::new(Calls)],
        making: Making::new(HashMap::from([(served.component(), first)])),
        progress: Some(|text| tracing::info!("{text}")),
        ..Setup::default()
    };
    let transports = Transports {
        stdio: command.stdio,
        profile: None,
        http,
        with_parent: command.stdio,
        hangup_ends: true,
        named: Vec::new(),
    };
    tokio::select! {
        ended = serve_all(setup, transports) => ended?,
        ended = follow(developed, &served) => ended?,
    }
    Ok(ExitCode::SUCCESS)
}

/// How long to wait before a build that the previous build may have triggered.
const SELF_TRIGGERED_BUILD_INTERVAL: Duration = Duration::from_secs(3);

/// Builds the plugin, and again whenever a source has changed.
async fn follow(mut developed: Developed, served: &Served) -> Result<()> {
    let mut in_a_row = 0;
    loop {
        match developed.build().await {
            Ok(component) => served.put(&developed, &component)?,
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

/// The temporary folder that is served: a component, and the config that names it.
struct Served {
    folder: TempDir,
    /// The grants of the command line.
    grants: toml::Table,
    /// Tells the loader the first build of the component ended.
    first: watch::Sender<BuildOutcome>,
}

impl Served {
    fn new(grants: toml::Table, first: watch::Sender<BuildOutcome>) -> Result<Self> {
        let folder = TempDir::with_prefix("wharf-dev-").context("there is no folder for temporary files")?;
        Ok(Self { folder, grants, first })
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("wharf.toml")
    }

    fn component(&self) -> PathBuf {
        self.folder.path().join("plugin.wasm")
    }

    /// Serves this component from now on.
    fn put(&self, developed: &Developed, component: &[u8]) -> Result<()> {
        replace(&self.component(), component, PRIVATE_MODE)?;
        self.announce(developed)?;
        self.first.send_replace(Some(Ok(())));
        Ok(())
    }

    /// Writes the config. Requests for what the plugin offers wait from then on for its component.
    fn announce(&self, developed: &Developed) -> Result<()> {
        let config = developed.config(&self.grants, &self.component())?;
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
