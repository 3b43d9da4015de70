//! Builds the plugin of an existing server in the cache, once for each content of its source.
//!
//! Installing packages and building run programs of other authors, in confinement: pip, npm, and whatever of the packages these run. A server
//! that is built and unchanged starts none of them, and needs no network.

#![expect(clippy::disallowed_methods, reason = "keeps the project of the server in the cache")]

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, anyhow};

use super::{
    build_files::{protected, readable},
    cache::{self, READY, gone, make_folder, put, reads},
    inputs::Inputs,
    locks,
    project::{self, Recipe},
    tools::Tools,
};
use crate::authoring::{
    build::{self, Built, Output, Until},
    confinement::Confined,
    project::Project,
};
use wharf_base::{
    below::Below,
    failed::{OrFailed, failed},
    guard, text,
};
use wharf_config::config::{
    self,
    existing::{ExistingServer, server::VARIANT},
};

/// The longest that a build takes, once it has begun: nobody may be there to end it.
const MAX_TIME: Duration = Duration::from_mins(20);
/// The digest of the source that the component was built from.
const BUILT: &str = "built";
/// What was set up: the folder of what builds it, and the digest of what decides which packages are installed.
const SDK: &str = "set-up-sdk";
const PACKAGES: &str = "set-up-packages";

/// Builds the server's component, unless it is there and its source is unchanged.
pub async fn make(server: &ExistingServer, until: Until) -> Result<()> {
    if is_built(server, &admit(server)?) {
        cache::note(&server.folder, None);
        return Ok(());
    }
    let _lock = lock(server).await?;
    // As it is, since `wharf cache` looks whether the file exists.
    let source = server.package.as_ref().map_or_else(|| server.entry.to_string_lossy().into(), ToString::to_string);
    cache::note(&server.folder, Some(&source));
    // Another wharf may have built it meanwhile.
    let inputs = admit(server)?;
    if is_built(server, &inputs) {
        return Ok(());
    }
    let made = async {
        let project = set_up(server, &inputs, until).await?;
        let built = build::build(&project, (until, Output::Quoted)).await?;
        anyhow::Ok((project, built))
    };
    let minutes = MAX_TIME.as_secs() / 60;
    let made = tokio::time::timeout(MAX_TIME, made).await;
    let (project, built) =
        made.map_err(|_| failed(anyhow!("{}: it was not built within {minutes} minutes", server.named())))??;
    let (seconds, size) = (built.took.as_secs_f64(), built.component.len().div_ceil(1024));
    tracing::info!("built {} in {seconds:.1} s, {size} KiB", server.id);
    let component = server.component();
    make_folder(component.parent().unwrap_or(&server.folder))?;
    put(&component, &built.component)?;
    // It would take the same place once more.
    Below::open(&project.folder)?.remove(project.build.artifact.strip_prefix(&project.folder)?)?;
    // Comes last, so that it never says more than is there.
    put(&component.with_file_name(BUILT), &inputs.all)
}

/// Builds the server for development: a component, and the folder of the code that it reads.
pub async fn make_live(server: &ExistingServer, until: Until) -> Result<(Built, PathBuf)> {
    let inputs = admit(server)?;
    let _lock = lock(server).await?;
    let project = set_up(server, &inputs, until).await?;
    let live = project.build.live.as_ref().context("the project of a server has no build for `wharf dev`")?;
    let built = build::build_live(&project, live, (until, Output::Quoted)).await?;
    Ok((built, live.source.clone()))
}

/// Opens the project of a server, and installs its packages if these are not there.
async fn set_up(server: &ExistingServer, inputs: &Inputs, until: Until) -> Result<Project> {
    let tools = Tools::of(server.language)?;
    tools.install(until).await?;
    let project = open(server, inputs, &tools.folder)?;
    if !project.folder.join(READY).exists() {
        tracing::info!(
            "making a plugin of {}: its packages are installed in {}, where package managers and the server's own code run while it is \
             built, without access to your other files",
            server.named(),
            text::path(&server.folder)
        );
    }
    build::ready(&project, true, (until, Output::Quoted)).await?;
    put(&server.folder.join(PACKAGES), &inputs.packages)?;
    Ok(project)
}

/// Opens the project of a server for its build. A project with another SDK, or whose set-up failed or was stopped, is made again: what a
/// package manager leaves then may fail every time.
fn open(server: &ExistingServer, inputs: &Inputs, tools: &Path) -> Result<Project> {
    let folder = &server.folder;
    let sdk = tools.to_str().with_context(|| format!("{}: the path is not UTF-8", text::path(tools)))?.to_owned();
    let is_set_up = reads(&folder.join(SDK)).as_ref() == Some(&sdk) && folder.join(READY).is_file();
    if !is_set_up {
        // A wharf that runs may serve a component until the new one is there.
        let is_served = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(VARIANT) || name.ends_with(".wasm")
        };
        for entry in fs::read_dir(folder).with_context(|| text::path(folder))? {
            let path = entry?.path();
            if is_served(&path) {
                gone(&path.join(BUILT))?;
                continue;
            }
            let gone = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            gone.with_context(|| text::path(&path)).or_failed()?;
        }
        let named = match &server.package {
            Some(package) => package.to_string(),
            None => {
                let entry = server.entry.to_str();
                entry.with_context(|| format!("{}: the path is not UTF-8", text::path(&server.entry)))?.to_owned()
            }
        };
        let (language, with) = (server.language, &server.with);
        project::make(
            folder,
            &Recipe { id: &server.id, language, server: &named, with, watch: &[], tools: Some(tools) },
        )?;
        put(&folder.join(SDK), &sdk)?;
    } else if reads(&folder.join(PACKAGES)).as_ref() != Some(&inputs.packages) {
        gone(&folder.join(READY))?;
    }
    let mut project = Project::open(folder)
        .with_context(|| format!("{}: remove this folder, and start again", text::path(folder)))?;
    project.build.arguments = project::arguments(server.language, &server.args);
    project.confined = Some(Confined::new(folder.clone(), Some(tools.to_owned()), readable(server, inputs)?));
    Ok(project)
}

/// Checks that nobody else can change what is built, and enters what a build may run, into which no plugin of any wharf may write from now
/// on.
pub fn admit(server: &ExistingServer) -> Result<Inputs> {
    let inputs = Inputs::of(server)?;
    // What is built of a package is all in the cache, into which no plugin may write.
    if server.package.is_none() {
        guard::check_trusted_file(&server.entry, "MCP server")?;
        for folder in inputs.folders(server) {
            guard::check_trusted_directory(&folder, "folder of an MCP server")?;
        }
        if let Err(error) = config::registry().keep(&server.entry, &protected(server, &inputs)?) {
            tracing::info!(
                "plugins of other wharfs of this user may write the source of {}, since that cannot be entered: {error:#}; set \
                 XDG_STATE_HOME to a folder that wharf's user may write",
                server.id
            );
        }
    }
    make_folder(&server.folder)?;
    Ok(inputs)
}

pub fn is_built(server: &ExistingServer, inputs: &Inputs) -> bool {
    let component = server.component();
    component.is_file() && reads(&component.with_file_name(BUILT)).as_ref() == Some(&inputs.all)
}

/// Waits until the server can be built. What is returned keeps its folder and a place for a build.
async fn lock(server: &ExistingServer) -> Result<(File, File)> {
    let own = locks::of_folder(&server.folder).await?;
    Ok((own, locks::of_place(server.folder.parent().unwrap_or(&server.folder)).await?))
}
