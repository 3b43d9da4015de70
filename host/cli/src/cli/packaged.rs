//! `wharf packaged`: serves the plugin of a package. What it may do is what its user has answered by environment variables, and the folders
//! that they have named: no config is read.

#![expect(clippy::disallowed_methods, reason = "looks whether the folders exist that the user names")]

use std::env;

use anyhow::{Context, Result, ensure};
use toml::{Table, Value};

use super::{
    add::wants,
    arguments::Packaged,
    file::component,
    serve::{Transports, serve_all},
};
use crate::authoring::pack::answers;
use wharf_app::operator::Setup;
use wharf_base::text;
use wharf_config::config::{self, CommandLine};

pub(super) async fn run(command: &Packaged) -> Result<()> {
    let path = std::path::absolute(&command.plugin)?;
    let id = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    config::check_id(id).with_context(|| text::path(&path))?;
    let (_, outside) = component(&path)?;
    let wants = wants(&outside)?.unwrap_or_default();
    let folders = command.folders.iter().map(|folder| {
        let folder = std::path::absolute(folder)?;
        ensure!(folder.is_dir(), "{}: this folder does not exist", text::path(&folder));
        Ok(folder.to_str().context("the path of a folder is not UTF-8")?.to_owned())
    });
    let folders = folders.collect::<Result<Vec<String>>>()?;
    ensure!(
        folders.is_empty() || answers::folders(&wants).is_some(),
        "the plugin {id} does not want folders, so none can be opened to it"
    );
    let given = answers::given(id, &wants, !folders.is_empty(), &|name| env::var(name).ok())?;
    let mut plugin = given.plugin;
    plugin.insert("path".to_owned(), path.to_str().context("the path of the component is not UTF-8")?.into());
    // It is the only plugin, so its tools need no prefix to be told from others.
    plugin.insert("prefix".to_owned(), "".into());
    plugin.insert("sha256".to_owned(), outside.sha256.clone().into());
    // The client's own folders are not the user's answer, so they do not count.
    let fixed = folders.into_iter().map(Value::from).collect::<Vec<_>>();
    let roots = Table::from_iter([("fixed".to_owned(), Value::from(fixed)), ("from".to_owned(), "operator".into())]);
    let config = Table::from_iter([
        ("roots".to_owned(), Value::from(roots)),
        ("secrets".to_owned(), given.secrets.into()),
        ("plugins".to_owned(), Table::from_iter([(id.to_owned(), plugin.into())]).into()),
    ]);
    let config = config::from_text(&toml::to_string(&config)?, None, &CommandLine::default())?;
    let setup = Setup { resolved: Some(config), progress: Some(|text| tracing::info!("{text}")), ..Setup::default() };
    let named = vec![id.to_owned()];
    let transports = Transports { stdio: true, with_parent: true, named, ..Transports::default() };
    serve_all(setup, transports).await
}
