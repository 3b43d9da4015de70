//! What `wharf dev` works on: a plugin project, or an existing MCP server, whose project is in the cache.

#![expect(clippy::disallowed_methods, reason = "reads the component that was built")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{
    build::{self, Built, Output, Until},
    existing::{inputs::Inputs, make},
    project::{self, Project},
    sources::Sources,
};
use wharf_base::folders::Folders;
use wharf_config::config::existing::ExistingServer;
use wharf_policy::access::registry::Entered;

/// Where a plugin that was built for development finds its code. The SDKs know this path.
const LIVE: &str = "/.wharf-live";

/// What is served of a build.
pub struct Served {
    pub component: Vec<u8>,
    /// The folder of the plugin's code, if the component reads it.
    pub source: Option<PathBuf>,
}

pub enum DevTarget {
    Project(Box<Project>, Sources),
    Server(Box<ExistingServer>, Watched),
}

/// The watched source of a server.
pub struct Watched {
    folders: Folders,
    inputs: Inputs,
}

impl DevTarget {
    /// Opens a server, or else a project, and runs its setup if `set_up`.
    pub async fn open(path: &Path, server: Option<ExistingServer>, set_up: bool) -> Result<Self> {
        if let Some(server) = server {
            let inputs = make::admit(&server)?;
            let mut folders = Folders::new(|_| false, |_| ());
            folders.follow(inputs.folders(&server).into_iter().collect());
            return Ok(Self::Server(Box::new(server), Watched { folders, inputs }));
        }
        let project = Project::open(path)?;
        // Nothing is served yet, so no signal handlers are installed.
        build::ready(&project, set_up, (Until::Interrupted, Output::Passed)).await?;
        let sources = Sources::watch(&project);
        Ok(Self::Project(Box::new(project), sources))
    }

    /// Protects what builds execute, for as long as what this returns exists. What is built of a server is protected with the server.
    pub fn protect(&self) -> Option<Entered> {
        let Self::Project(project, _) = self else { return None };
        Some(project.protect())
    }

    /// Returns the component of an earlier build, if no source is newer.
    pub fn built_before(&self) -> Option<Served> {
        let component = match self {
            Self::Project(project, sources) if sources.are_built(project) => build::component(project).ok(),
            Self::Server(server, watched) if make::is_built(server, &watched.inputs) => {
                fs::read(server.component()).ok()
            }
            _ => None,
        };
        component.map(|component| Served { component, source: None })
    }

    /// Whether the builds are components that read the plugin's code.
    pub fn reads_source(&self) -> bool {
        match self {
            Self::Project(project, _) => project.build.live.is_some(),
            Self::Server(..) => true,
        }
    }

    /// Returns the prefix that tools and prompts have during development, unless the author has chosen one.
    pub fn prefix(&self) -> Option<String> {
        match self {
            Self::Project(project, _) if !project.dev().contains_key("prefix") => Some(format!("{}_", project.name)),
            _ => None,
        }
    }

    /// Builds the component, and the folder of the code that it reads if the language has such a build.
    pub async fn build(&self) -> Result<Served> {
        match self {
            Self::Project(project, _) => {
                let how = (Until::Dropped, Output::Passed);
                let live = project.build.live.as_ref();
                let Built { component, took } = match live {
                    Some(live) => build::build_live(project, live, how).await?,
                    None => build::build(project, how).await?,
                };
                tracing::info!("built in {:.1} s, {} KiB", took.as_secs_f64(), component.len().div_ceil(1024));
                Ok(Served { component, source: live.map(|live| live.source.clone()) })
            }
            Self::Server(server, _) => {
                let (built, source) = make::make_live(server, Until::Dropped).await?;
                tracing::info!("built in {:.1} s", built.took.as_secs_f64());
                Ok(Served { component: built.component, source: Some(source) })
            }
        }
    }

    /// Reads the state of the sources again. Returns whether they have changed since the last call.
    pub fn look(&mut self) -> bool {
        match self {
            Self::Project(project, sources) => sources.look(project),
            Self::Server(server, Watched { folders, inputs }) => {
                // A file that is gone at this moment may be one that an editor is about to replace, which is another change.
                let Ok(now) = Inputs::of(server) else { return false };
                folders.follow(now.folders(server).into_iter().collect());
                let changed = now != *inputs;
                *inputs = now;
                changed
            }
        }
    }

    /// Waits until the sources may have changed.
    pub async fn changed(&mut self) {
        match self {
            Self::Project(_, sources) => sources.changed().await,
            Self::Server(_, watched) => watched.folders.changed().await,
        }
    }

    /// Reads the manifest of the project again.
    pub fn read_again(&mut self) -> Result<()> {
        if let Self::Project(project, _) = self {
            **project = Project::open(&project.folder)?;
        }
        Ok(())
    }

    /// Returns a config that serves this component as the project says and `more`, a table of a plugin with grants. `source`: the folder of
    /// the code that it reads.
    pub fn config(&self, more: &toml::Table, component: &Path, source: Option<&Path>) -> Result<String> {
        let mut more = more.clone();
        if let Some(source) = source {
            let host = source.to_str().context("the path of the folder for temporary files is not UTF-8")?;
            let entries = [("host", host), ("guest", LIVE), ("access", "read")];
            let opened = toml::Table::from_iter(entries.map(|(key, value)| (key.to_owned(), value.into())));
            let dirs = toml::Table::from_iter([("dirs".to_owned(), toml::Value::Array(vec![opened.into()]))]);
            // Comes last, because a relative path of a plugin begins at the first folder.
            more = project::with(more, &toml::Table::from_iter([("grants".to_owned(), dirs.into())]));
        }
        match self {
            Self::Project(project, _) => project.config_with(&more, component),
            Self::Server(server, _) => {
                let own = toml::Table::from_iter([("prefix".to_owned(), "".into())]);
                project::config_of(&server.id, project::with(own, &more), &toml::Table::new(), component)
            }
        }
    }
}
