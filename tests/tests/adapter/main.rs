//! Components that were not made for wharf: functions as tools, commands as tools, core modules, MCP servers over HTTP.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod commands;
mod functions;
mod modules;
mod servers;

use e2e::{Folder, Pipe, Value, json};

/// Starts a wharf on a pipe that serves the plugins in the folder's config.
pub async fn pipe(folder: &Folder) -> Pipe {
    let mut pipe = Pipe::start(folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe
}

/// Returns the tools, by name.
pub async fn tools(pipe: &mut Pipe) -> Vec<(String, Value)> {
    let listed = pipe.request("tools/list", json!({})).await.unwrap();
    let tools = listed["tools"].as_array().unwrap();
    tools.iter().map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool.clone())).collect()
}

pub fn names(tools: &[(String, Value)]) -> Vec<&str> {
    tools.iter().map(|(name, _)| name.as_str()).collect()
}
