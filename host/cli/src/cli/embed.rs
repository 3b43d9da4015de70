//! `wharf embed`: writes the grants that a component wants, and instructions for models, into custom sections of the component. Wharf
//! reads them without running the component.

#![expect(clippy::disallowed_methods, reason = "reads the files that the user names")]

use std::{path::Path, process::ExitCode};

use anyhow::{Context, Result, bail};
use wharf_sandbox::{
    Outside,
    sections::{INSTRUCTIONS, WANTS},
    with_section,
};

use super::{
    arguments::Embed,
    file::{SHARED_MODE, component, replace},
    load::print,
};
use wharf_base::text;
use wharf_policy::access::wants::parse;

pub fn run(command: &Embed) -> Result<ExitCode> {
    let (wants, plugin) = match command.files.as_slice() {
        [plugin] => (None, plugin),
        [wants, plugin] => (Some(wants), plugin),
        _ => bail!("name the file with the wants, then the component"),
    };
    let (mut bytes, _) = component(plugin)?;
    let unwritten = || text::path(plugin);
    if wants.is_none() && command.instructions.is_none() {
        bail!("nothing to embed: name a file with wants before the component, or give --instructions");
    }
    if let Some(wants) = wants {
        let text = read(wants)?;
        // The error of a malformed line begins with its number.
        let (_, json) = parse::toml(&text).map_err(|error| anyhow::anyhow!("{}:{error:#}", text::path(wants)))?;
        bytes = with_section(&bytes, WANTS, &json).with_context(unwritten)?;
    }
    if let Some(instructions) = &command.instructions {
        let text = match instructions.strip_prefix('@') {
            Some(file) => read(Path::new(file))?,
            None => instructions.clone(),
        };
        bytes = with_section(&bytes, INSTRUCTIONS, text.trim()).with_context(unwritten)?;
    }
    let out = command.out.as_deref().unwrap_or(plugin);
    replace(out, &bytes, SHARED_MODE)?;
    print(&format!("wrote {}, sha256 {}", text::path(out), Outside::of(&bytes)?.sha256))?;
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{}: cannot be read", text::path(path)))
}
