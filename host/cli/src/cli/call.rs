//! `wharf call`: calls one tool, with the grants that a client's call would have.

use std::{io::Write, path::Path, process::ExitCode, sync::Arc};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;
use wharf_protocol::{
    Object,
    model::{Content, ToolResult},
};

use super::{
    arguments::{Call, Parts, tell_of_servers},
    load::{load, print},
};
use crate::authoring::{build::Until, existing::make::make};
use wharf_app::{Call as ToolCall, operator::Operator};
use wharf_base::{
    explain,
    failed::failed,
    paths::{FileId, is_folder},
    text::escaped,
};
use wharf_config::config::{self, CommandLine, Named, PluginConfig, PluginSource, Positional};
use wharf_plugins::plugins::{
    snapshot::{OfferedEntry, PluginStatus},
    status::Status,
};

pub(super) async fn run(command: Call) -> Result<ExitCode> {
    let Parts { plugin, folders, tool: wanted, arguments: given } = command.parts()?;
    let server = plugin.server().cloned();
    let opened = command.opened(&plugin, folders);
    let command_line = command.granted.command_line(&opened)?;
    tell_of_servers(server.as_deref().map_or(&[], std::slice::from_ref), &command_line, 0);
    config::builtin::make_folders(&command_line)?;
    let file = command.config.file(&command_line)?;
    // The plugin itself is added below, so that the config's grants for it apply.
    let command_line = CommandLine { plugins: Vec::new(), ..command_line };
    let mut config = config::load(file.as_deref(), &command_line)?;
    let mut here = config.on_command_line(&plugin, &command_line)?;
    // If the config that -c names has the same file or built-in plugin, its grants and limits apply.
    let known = |other: &PluginSource| match (other.path(), &plugin) {
        (Some(path), Named::File(named)) => same_file(path, named),
        _ => *other == here.source,
    };
    if let Some(configured) = config.plugins.iter().find(|plugin| known(&plugin.source)) {
        here = PluginConfig::clone(configured);
    }
    ensure!(
        command.granted.roots.is_empty() || here.grants.roots.0.is_some(),
        "--root opens a folder to plugins that are granted roots, and {} is not: add --allow roots=read or --allow roots=read-write",
        here.id
    );
    let is_built_in = here.source.is_built_in();
    config.plugins = vec![Arc::new(here)];
    config.plugin_dir = None;
    if let Some(server) = &server {
        // A build takes a minute, so mistakes in the arguments are told first.
        split(wanted, given)?;
        make(server, Until::Interrupted).await?;
    }
    let operator = load(config).await?;
    let plugins = operator.wharf.plugins();
    for PluginStatus { subject, status, .. } in &plugins {
        if let Status::Failed { problem, .. } = status {
            let problem = format!("the plugin {subject} does not load ({}): {}", problem.stage, problem.text);
            return Err(failed(anyhow!(problem)));
        }
    }
    let tools: Vec<&OfferedEntry> =
        plugins.iter().filter_map(|one| one.serving.as_ref()).flat_map(|one| &one.tools).collect();
    let Some(tool) = tools.iter().find(|tool| tool.own_name == wanted || tool.name == wanted) else {
        let names: Vec<&str> = tools.iter().map(|tool| tool.own_name.as_str()).collect();
        let passed = server.iter().flat_map(|server| &server.args).map(String::as_str).collect::<Vec<_>>().join(" ");
        let passed =
            if passed.is_empty() { passed } else { format!("; what the server got as its arguments is: {passed}") };
        let is_tool = |word: &String| names.contains(&word.as_str());
        let (follows, all) = (given.first().is_some_and(is_tool), names.join(", "));
        // Short names are similar by chance.
        let long = names.iter().copied().filter(|name| name.len().min(wanted.len()) > 3);
        let meant = explain::nearest(long, wanted).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        match (is_folder(Path::new(&wanted)), command.read_only && is_built_in) {
            (true, _) => bail!("`{wanted}` is a folder, and a tool has to follow it: {all}"),
            (false, _) if follows => bail!("there is no folder `{wanted}`"),
            (false, true) => bail!(
                "the plugin has no tool `{wanted}` with --read-only, which leaves out those that write; it has: {all}{meant}"
            ),
            (false, false) => bail!("the plugin has no tool `{wanted}`; it has: {all}{passed}{meant}"),
        }
    };
    let arguments = arguments(tool, given)?;
    let called = operator.call(ToolCall::tool(&tool.name).arguments(arguments).approved(command.yes)).await;
    let lacks = operator.wharf.plugins().into_iter().filter_map(|one| one.serving).flat_map(|one| one.lacks);
    operator.wharf.stop().await;
    let succeeded = match called {
        Ok(result) => show(&operator, result)?,
        Err(error) => {
            print(&format!("error: {}", escaped(&error.to_string())))?;
            false
        }
    };
    if succeeded {
        return Ok(ExitCode::SUCCESS);
    }
    for lack in lacks {
        // If stderr is closed, nobody reads it.
        writeln!(std::io::stderr(), "note: {}", escaped(&lack)).ok();
    }
    Ok(ExitCode::FAILURE)
}

fn same_file(one: &Path, other: &Path) -> bool {
    FileId::at(one).is_some_and(|id| FileId::at(other) == Some(id))
}

/// The arguments of a tool, before its schema is known.
enum Split<'a> {
    Json(Value),
    Pairs(Vec<(&'a str, &'a str)>),
}

/// Reads one JSON object, or `key=value` pairs.
fn split<'a>(tool: &str, given: &'a [String]) -> Result<Split<'a>> {
    if let [only] = given
        && only.trim_start().starts_with('{')
    {
        return serde_json::from_str(only).map(Split::Json).context("the arguments are not JSON");
    }
    let pair = |pair: &'a String| {
        pair.split_once('=').with_context(|| match Positional::tell(Path::new(pair)) {
            Ok(Positional::Folder(_)) => {
                format!("`{pair}` is a folder, which stands after the plugin and before the tool: {tool}")
            }
            _ => format!("`{pair}` is neither key=value nor a JSON object"),
        })
    };
    given.iter().map(pair).collect::<Result<_>>().map(Split::Pairs)
}

/// Returns the arguments for a tool. The value of a pair is parsed as JSON, unless it is not JSON or the schema requires a string.
fn arguments(tool: &OfferedEntry, given: &[String]) -> Result<Value> {
    let pairs = match split(&tool.own_name, given)? {
        Split::Json(object) => return Ok(object),
        Split::Pairs(pairs) => pairs,
    };
    let schema: Value = serde_json::from_str(tool.schema.as_deref().unwrap_or("{}"))?;
    let mut object = Object::new();
    for (key, value) in pairs {
        let is_text = schema.pointer(&format!("/properties/{key}/type")).is_some_and(|kind| kind == "string");
        let value = match serde_json::from_str(value) {
            Ok(parsed) if !is_text => parsed,
            _ => Value::from(value),
        };
        object.insert(key.to_owned(), value);
    }
    Ok(Value::Object(object))
}

/// Prints what a tool answered. Returns whether it succeeded.
fn show(operator: &Operator, result: ToolResult) -> Result<bool> {
    let nothing_else = result.content.is_empty();
    for content in result.content {
        match content {
            Content::Text(text) => print(&text.lines().map(escaped).collect::<Vec<_>>().join("\n"))?,
            other => print(&escaped(&operator.block(other).to_string()))?,
        }
    }
    if let Some(structured) = result.structured.filter(|_| nothing_else) {
        print(&escaped(&structured.to_string()))?;
    }
    Ok(!result.is_error)
}
