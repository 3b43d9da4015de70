//! The servers that lines name, and the lines that name servers.

#![expect(clippy::disallowed_methods, reason = "looks for the server that the person names")]

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{
    entry,
    line::{Line, Runs},
};
use wharf_base::text;
use wharf_config::config::{
    Positional,
    existing::{ExistingServer, Language, Package, server::folder},
};

/// Returns the server that a line starts.
pub fn started(line: Line) -> Result<ExistingServer> {
    let Line { runs, with, folder: place, args } = line;
    let within = |path: &str| place.as_deref().map_or(PathBuf::from(path), |place| Path::new(place).join(path));
    let server = match runs {
        Runs::Package(package) => ExistingServer::published(package)?,
        Runs::File(file) => ExistingServer::at(&within(&file))?,
        Runs::Module(module) => ExistingServer::at(&module_file(&within(""), &module)?)?,
        Runs::Script(script) => ExistingServer::at(&entry::script(&within(""), &script)?)?,
    };
    if with.is_empty() {
        return Ok(ExistingServer { args, ..server });
    }
    let key = [server.named().as_bytes(), with.join("\n").as_bytes()].join(&0);
    Ok(ExistingServer { folder: folder(&server.id, &key)?, with, args, ..server })
}

/// Returns the line that starts a server from every folder. `words`: the line as it was typed.
pub fn line(server: &ExistingServer, words: &[String]) -> Result<Vec<String>> {
    if server.package.is_some() {
        return Ok(words.to_vec());
    }
    let entry = server.entry.to_str();
    let entry = entry.with_context(|| format!("{}: the path is not UTF-8", text::path(&server.entry)))?.to_owned();
    if server.with.is_empty() && server.args.is_empty() {
        return Ok(vec![entry]);
    }
    // A whole line: behind `--`, arguments could be taken for another one.
    let start: &[&str] = match server.language {
        Language::Python => &["uv", "run"],
        Language::Node => &["node"],
    };
    let with = server.with.iter().map(|one| format!("--with={one}"));
    let start = start.iter().map(|word| (*word).to_owned()).chain(with);
    Ok(start.chain([entry]).chain(server.args.iter().cloned()).collect())
}

/// Returns the server that an argument names, if it names one.
pub fn meant(positional: Positional) -> Result<Option<ExistingServer>> {
    Ok(match positional {
        Positional::Server(path) => Some(ExistingServer::at(&path)?),
        Positional::Published(name) => {
            Some(ExistingServer::published(Package::parse(&name).with_context(|| text::escaped(&name))??)?)
        }
        Positional::Plugin(_) | Positional::Folder(_) => None,
    })
}

/// Returns the file of a module of Python. Which package a module belongs to is not guessed: anybody may publish one of that name.
fn module_file(folder: &Path, module: &str) -> Result<PathBuf> {
    let is_name = module.chars().all(|c| c.is_alphanumeric() || "._".contains(c));
    let path = module.replace('.', "/");
    let files = ["", "src/"].map(|place| [".py", "/__main__.py"].map(|end| format!("{place}{path}{end}")));
    let mut files = files.into_iter().flatten().map(|file| folder.join(file));
    match files.find(|file| is_name && file.is_file()) {
        Some(file) => Ok(file),
        None => bail!(
            "{} has no module {}; wharf installs packages itself, so name the package: wharf run uvx NAME",
            text::path(&std::path::absolute(folder.join("."))?),
            text::escaped(module)
        ),
    }
}
