//! The folder in which a plugin is written. Its `plugin.toml` says how the plugin is built, and what it may touch while its author
//! tries it out. Nothing of it counts once somebody else serves the plugin.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Deserialize;

use crate::{
    base::{below::Below, explain, text},
    config,
};

/// The name of the file.
pub const FILE: &str = "plugin.toml";
/// The largest one.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    build: WrittenBuild,
    #[serde(default)]
    dev: toml::Table,
    #[serde(default)]
    secrets: toml::Table,
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
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSetup {
    command: String,
    makes: String,
}

/// A plugin's folder, and what its `plugin.toml` says.
#[derive(Debug)]
pub struct Project {
    /// Absolute.
    pub folder: PathBuf,
    /// The plugin's id while its author tries it out.
    pub name: String,
    pub build: Build,
    /// What `[plugins.NAME]` would say in a config.
    dev: toml::Table,
    /// What `[secrets]` would say.
    secrets: toml::Table,
}

/// How the plugin is built.
#[derive(Debug)]
pub struct Build {
    /// For the shell.
    pub command: String,
    /// Absolute. What the command makes: a component, or a core module that becomes one.
    pub artifact: PathBuf,
    /// Which files the plugin is made of, by their paths in its folder. None: every file counts.
    pub watch: Option<GlobSet>,
    /// Programs that have to be there, and how to get them. `a|b`: one of the two.
    pub needs: BTreeMap<String, String>,
    pub setup: Option<Setup>,
}

/// What is done once, before the first build.
#[derive(Debug)]
pub struct Setup {
    /// For the shell.
    pub command: String,
    /// Absolute. What is there afterwards.
    pub makes: PathBuf,
}

impl Project {
    /// Reads the `plugin.toml` of a folder.
    pub fn open(folder: &Path) -> Result<Self> {
        let project = Self::find(folder)?;
        project.with_context(|| {
            let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
            format!(
                "{} has no {FILE}; name the folder of a plugin, or make one with `wharf new NAME`",
                text::path(&folder)
            )
        })
    }

    /// Reads the `plugin.toml` of a folder. None: there is no such file.
    pub fn find(folder: &Path) -> Result<Option<Self>> {
        let folder = std::path::absolute(folder)?;
        let Some(text) = Below::open(&folder)?.read(Path::new(FILE), MAX_BYTES)? else { return Ok(None) };
        let file = folder.join(FILE);
        let project = Self::parse(&text, folder).map_err(|error| anyhow::anyhow!("{}:{error:#}", text::path(&file)));
        project.map(Some)
    }

    /// The error begins with the line, where there is one.
    fn parse(text: &str, folder: PathBuf) -> Result<Self> {
        let Written { name, build, mut dev, secrets } = explain::toml(text).map_err(anyhow::Error::msg)?;
        config::check_id(&name).context(" name")?;
        let WrittenBuild { command, artifact, watch, needs, setup } = build;
        ensure!(!command.trim().is_empty(), " build.command is empty; it is the command that makes {artifact}");
        let inside = |path: &str, key: &str| {
            let relative = Path::new(path);
            let plain = relative.components().all(|part| matches!(part, std::path::Component::Normal(_)));
            ensure!(plain && !path.is_empty(), " {key}: {path:?} is not a path below the folder of {FILE}");
            Ok(folder.join(relative))
        };
        let watch = patterns(&watch).context(" build.watch")?;
        let artifact = inside(&artifact, "build.artifact")?;
        let setup = setup.map(|WrittenSetup { command, makes }| {
            anyhow::Ok(Setup { command, makes: inside(&makes, "build.setup.makes")? })
        });
        let setup = setup.transpose()?;
        for key in ["path", "sha256"] {
            ensure!(!dev.contains_key(key), " [dev] has the key `{key}`, which follows from [build]");
        }
        make_absolute(&mut dev, &folder);
        Ok(Self { folder, name, build: Build { command, artifact, watch, needs, setup }, dev, secrets })
    }

    /// What `[plugins.NAME]` would say in a config.
    pub fn dev(&self) -> &toml::Table {
        &self.dev
    }

    /// A config that serves this component as the plugin, with what `[dev]` grants. A wrong key of `[dev]` is found when it is read.
    pub fn config(&self, component: &Path) -> Result<String> {
        let mut plugin = self.dev.clone();
        let component = component.to_str().context("the path of the component is not UTF-8")?;
        plugin.insert("path".to_owned(), component.into());
        let plugins = toml::Table::from_iter([(self.name.clone(), plugin.into())]);
        let secrets = ("secrets".to_owned(), self.secrets.clone().into());
        Ok(toml::to_string(&toml::Table::from_iter([secrets, ("plugins".to_owned(), plugins.into())]))?)
    }
}

/// The patterns of a project. None: it has none, and every file counts.
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

/// Makes the folders that are granted absolute, since the config that they get into lies elsewhere.
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
            ("name = 'A b'\n[build]\ncommand = 'x'\nartifact = 'a'", "name"),
            (&format!("{SMALLEST}[dev]\npath = 'x'"), "[dev] has the key `path`"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }
}
