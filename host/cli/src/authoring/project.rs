//! A plugin project: a folder with a `plugin.toml`, which says how the plugin is built, and which grants it has during development.
//! Other servers of the plugin do not read `plugin.toml`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Deserialize;

use super::{
    confinement::Confined,
    pack::package::{self, Package},
    repository,
};
use wharf_base::{below::Below, explain, paths::resolved, program, text};
use wharf_config::config;
use wharf_policy::access::{protected::Protected, registry::Entered};

/// The file name of a project's manifest.
pub const PLUGIN_TOML: &str = "plugin.toml";
/// The largest `plugin.toml` that is read.
const MAX_PLUGIN_TOML_BYTES: u64 = 1 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    build: WrittenBuild,
    #[serde(default)]
    dev: toml::Table,
    #[serde(default)]
    secrets: toml::Table,
    package: Option<package::Written>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenBuild {
    command: String,
    artifact: String,
    #[serde(default)]
    watch: Vec<String>,
    #[serde(default)]
    needs: BTreeMap<String, String>,
    setup: Option<WrittenSetup>,
    live: Option<WrittenLive>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLive {
    command: String,
    artifact: String,
    source: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSetup {
    command: String,
    makes: String,
}

/// A plugin's folder, and the contents of its `plugin.toml`.
#[derive(Debug)]
pub struct Project {
    /// Absolute.
    pub folder: PathBuf,
    /// The plugin's id during development.
    pub name: String,
    pub build: Build,
    /// What packages of the plugin are called, if `plugin.toml` says so.
    pub package: Option<Package>,
    /// The contents of `[plugins.NAME]` in the development config.
    dev: toml::Table,
    /// The contents of `[secrets]` in the development config.
    secrets: toml::Table,
    /// What confines the builds. `None`: the plugin is the person's own.
    pub confined: Option<Confined>,
}

/// How the plugin is built.
#[derive(Debug)]
pub struct Build {
    /// The shell command that builds the plugin.
    pub command: String,
    /// The absolute path of what the command creates: a component, or a core module that is turned into one.
    pub artifact: PathBuf,
    /// The source files, by their paths in the folder. `None` if all files are sources.
    pub watch: Option<GlobSet>,
    /// The required programs, and how to install each. `a|b` requires one of the two.
    pub needs: BTreeMap<String, String>,
    pub setup: Option<Setup>,
    /// The build for `wharf dev`, if the language has one.
    pub live: Option<Live>,
    /// The words after the command of a build. They may be somebody's secrets, so they are never shown.
    pub arguments: String,
}

/// A build for development: the component contains everything but the plugin's own code, which each instance reads when it starts. So a
/// changed line needs no new component.
#[derive(Debug)]
pub struct Live {
    /// The shell command.
    pub command: String,
    /// The absolute path of the component that the command creates.
    pub artifact: PathBuf,
    /// The absolute path of the folder to which the command copies the plugin's code.
    pub source: PathBuf,
}

/// The setup that is run once, before the first build.
#[derive(Debug)]
pub struct Setup {
    /// The shell command.
    pub command: String,
    /// The absolute path of what the command creates. The setup is done if it exists.
    pub makes: PathBuf,
}

impl Project {
    /// Protects from the plugins of all wharfs of this user what a build executes, until what this returns is dropped: the repository of the
    /// project, and the folders in which programs are found.
    pub fn protect(&self) -> Entered {
        let mut all = Protected::default();
        // `plugin.toml` may name a script or a crate next to the project.
        all.tree(repository::of(&resolved(&self.folder)));
        all.files(program::on_path());
        let (entered, done) = config::registry().enter(&all);
        if let Err(error) = done {
            tracing::info!(
                "plugins of other wharfs of this user may write this project, since that cannot be entered: {error:#}"
            );
        }
        entered
    }

    /// Returns a project that has no `plugin.toml`, and whose builds are confined.
    pub fn confined(folder: PathBuf, name: String, build: Build, confined: Confined) -> Self {
        let (dev, secrets) = Default::default();
        Self { folder, name, build, package: None, dev, secrets, confined: Some(confined) }
    }

    /// Reads the `plugin.toml` of a folder. A missing file is an error.
    pub fn open(folder: &Path) -> Result<Self> {
        let project = Self::find(folder)?;
        project.with_context(|| {
            let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
            format!(
                "{} has no {PLUGIN_TOML}; name the folder of a plugin project, or create one with `wharf new NAME`",
                text::path(&folder)
            )
        })
    }

    /// Reads the `plugin.toml` of a folder. Returns `None` if there is no such file.
    pub fn find(folder: &Path) -> Result<Option<Self>> {
        let folder = std::path::absolute(folder)?;
        let Some(text) = Below::open(&folder)?.read(Path::new(PLUGIN_TOML), MAX_PLUGIN_TOML_BYTES)? else {
            return Ok(None);
        };
        let file = folder.join(PLUGIN_TOML);
        let project = Self::parse(&text, folder).map_err(|error| anyhow::anyhow!("{}:{error:#}", text::path(&file)));
        project.map(Some)
    }

    /// Parses a `plugin.toml`. The error begins with the line number, or with a space if it has none.
    fn parse(text: &str, folder: PathBuf) -> Result<Self> {
        let Written { name, build, mut dev, secrets, package } = explain::toml(text).map_err(anyhow::Error::msg)?;
        config::check_id(&name).context(" name")?;
        let WrittenBuild { command, artifact, watch, needs, setup, live } = build;
        ensure!(
            !command.trim().is_empty(),
            " build.command is empty; set it to the shell command that creates {artifact}"
        );
        let inside = |path: &str, key: &str| {
            let relative = Path::new(path);
            let plain = relative.components().all(|part| matches!(part, std::path::Component::Normal(_)));
            ensure!(plain && !path.is_empty(), " {key}: {path:?} is not a path below the folder of {PLUGIN_TOML}");
            Ok(folder.join(relative))
        };
        let watch = patterns(&watch).context(" build.watch")?;
        let artifact = inside(&artifact, "build.artifact")?;
        let setup = setup.map(|WrittenSetup { command, makes }| {
            anyhow::Ok(Setup { command, makes: inside(&makes, "build.setup.makes")? })
        });
        let setup = setup.transpose()?;
        let live = live.map(|WrittenLive { command, artifact, source }| {
            ensure!(
                !command.trim().is_empty(),
                " build.live.command is empty; set it to the shell command of that build, or remove [build.live]"
            );
            let (artifact, source) = (inside(&artifact, "build.live.artifact")?, inside(&source, "build.live.source")?);
            anyhow::Ok(Live { command, artifact, source })
        });
        let live = live.transpose()?;
        for key in ["path", "sha256"] {
            ensure!(!dev.contains_key(key), " [dev] has the key `{key}`, which wharf sets from [build]; remove it");
        }
        make_absolute(&mut dev, &folder);
        let package = package.map(|package| Package::check(package, &name)).transpose()?;
        let build = Build { command, artifact, watch, needs, setup, live, arguments: String::new() };
        Ok(Self { folder, package, name, build, dev, secrets, confined: None })
    }

    /// Returns the contents of `[plugins.NAME]` in the development config.
    pub fn dev(&self) -> &toml::Table {
        &self.dev
    }

    /// Returns a config that serves this component as the plugin, with the grants of `[dev]`. Wrong keys in `[dev]` are reported when the
    /// config is parsed.
    pub fn config(&self, component: &Path) -> Result<String> {
        config_of(&self.name, self.dev.clone(), &self.secrets, component)
    }

    /// Returns the same config with more grants.
    pub fn config_with(&self, more: &toml::Table, component: &Path) -> Result<String> {
        config_of(&self.name, with(self.dev.clone(), more), &self.secrets, component)
    }
}

/// Returns a config with one plugin. `plugin`: the contents of its table.
pub fn config_of(name: &str, mut plugin: toml::Table, secrets: &toml::Table, component: &Path) -> Result<String> {
    let component = component.to_str().context("the path of the component is not UTF-8")?;
    plugin.insert("path".to_owned(), component.into());
    let plugins = toml::Table::from_iter([(name.to_owned(), plugin.into())]);
    let secrets = ("secrets".to_owned(), secrets.clone().into());
    Ok(toml::to_string(&toml::Table::from_iter([secrets, ("plugins".to_owned(), plugins.into())]))?)
}

/// Adds entries to the table of a plugin: lists and tables grow, and other values are replaced.
pub fn with(mut plugin: toml::Table, more: &toml::Table) -> toml::Table {
    for (key, value) in more {
        match (plugin.get_mut(key), value) {
            (Some(toml::Value::Array(own)), toml::Value::Array(more)) => own.extend(more.iter().cloned()),
            (Some(toml::Value::Table(own)), toml::Value::Table(more)) => *own = with(std::mem::take(own), more),
            // The parser of the config refuses a value where it expects a table.
            (Some(_), toml::Value::Table(_)) => {}
            _ => drop(plugin.insert(key.clone(), value.clone())),
        }
    }
    plugin
}

/// Compiles the patterns of `watch`. Returns `None` if there are no patterns, so that all files are sources.
fn patterns(watch: &[String]) -> Result<Option<GlobSet>> {
    if watch.is_empty() {
        return Ok(None);
    }
    let mut all = GlobSetBuilder::new();
    for pattern in watch {
        all.add(GlobBuilder::new(pattern).literal_separator(true).build()?);
    }
    Ok(Some(all.build()?))
}

/// Makes the paths of granted folders absolute, since the generated config is in another folder.
fn make_absolute(dev: &mut toml::Table, folder: &Path) {
    let dirs = dev.get_mut("grants").and_then(|grants| grants.get_mut("dirs")).and_then(toml::Value::as_array_mut);
    for dir in dirs.into_iter().flatten() {
        if let Some(toml::Value::String(host)) = dir.get_mut("host")
            && !host.starts_with('~')
            && let Some(absolute) = folder.join(&*host).to_str()
        {
            *host = absolute.to_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Project> {
        Project::parse(text, "/p".into())
    }

    const SMALLEST: &str = "name = 'a'\n[build]\ncommand = 'make'\nartifact = 'dist/a.wasm'\n";

    #[test]
    fn a_project_becomes_a_config() {
        let text = format!(
            "{SMALLEST}[secrets.t]\nenv = 'T'\n[dev]\nconfig = {{ unit = 'C' }}\n[dev.grants]\nroots = 'read'\ndirs = [{{ host = 'data', guest = '/d', access = 'read' }}]\n"
        );
        let project = parse(&text).unwrap();
        assert_eq!(project.build.artifact, Path::new("/p/dist/a.wasm"));
        let written = project.config(Path::new("/t/a.wasm")).unwrap();
        assert!(written.contains("path = \"/t/a.wasm\"") && written.contains("\"/p/data\""), "{written}");
        let config = config::from_text(&written, None, &config::CommandLine::default()).unwrap();
        assert_eq!(config.plugins[0].id, "a");
        assert!(config.egress.secrets.contains_key("t"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, expected) in [
            ("name = 'a'", "missing field `build`"),
            ("name = 'a'\n[build]\ncomand = 'x'", "3: unknown key `comand`; did you mean `command`?"),
            ("name = 'a'\n[build]\ncommand = ' '\nartifact = 'a'", "build.command is empty"),
            ("name = 'a'\n[build]\ncommand = 'x'\nartifact = '../a'", "build.artifact: \"../a\" is not a path below"),
            ("name = 'a'\n[build]\ncommand = 'x'\nartifact = 'a'\nwatch = ['src/{']", "build.watch"),
            (
                &format!("{SMALLEST}[build.live]\ncommand = 'x'\nartifact = 'a'\nsource = '/s'"),
                "build.live.source: \"/s\"",
            ),
            (
                &format!("{SMALLEST}[build.live]\ncommand = ''\nartifact = 'a'\nsource = 's'"),
                "build.live.command is empty",
            ),
            ("name = 'A b'\n[build]\ncommand = 'x'\nartifact = 'a'", "name"),
            (&format!("{SMALLEST}[dev]\npath = 'x'"), "[dev] has the key `path`"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }
}
