//! What the files of a server say of it, for `wharf inspect` of one that is not built. No code of it is run; its build finds more.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::Result;
use regex::Regex;
use serde_json::Value;

use super::{adopt::inside, inputs::Inputs};
use wharf_base::text::{clip, escaped};
use wharf_config::config::existing::{ExistingServer, Language};

/// How many things of one kind are named.
const MAX_NAMED: usize = 40;

/// What a line of source may name: the pattern, and the words around the name.
type Finder = (&'static str, &'static str, &'static str);

const OF_PYTHON: [Finder; 4] = [
    (r#"(?:environ(?:\.get)?|getenv)\s*[\[(]\s*["'](\w+)["']"#, "the variable ", ""),
    (r#"["'](https?://[\w.-]+\.[\w.:-]+)"#, "", ""),
    (
        r"\b(subprocess|os\.system|os\.popen|os\.exec\w+|create_subprocess_\w+)\b",
        "",
        ": a plugin cannot start programs",
    ),
    (r"\b(?:import|from) (socket|multiprocessing)\b", "", ": a plugin has neither sockets nor processes"),
];
const OF_NODE: [Finder; 4] = [
    (r#"process\.env(?:\.|\[["'])(\w+)"#, "the variable ", ""),
    (r#"["'`](https?://[\w.-]+\.[\w.:-]+)"#, "", ""),
    (r#"["'](?:node:)?(child_process)["']"#, "", ": a plugin cannot start programs"),
    (r#"["'](?:node:)?(net|tls|dgram|worker_threads)["']"#, "", ": a plugin has neither sockets nor threads"),
];

/// Returns lines about a server.
pub fn outline(server: &ExistingServer, inputs: &Inputs) -> Result<Vec<String>> {
    let (finders, comments) = match server.language {
        Language::Python => (OF_PYTHON, ["#"].as_slice()),
        Language::Node => (OF_NODE, ["//", "* "].as_slice()),
    };
    let finders = finders.map(|(pattern, before, after)| Regex::new(pattern).map(|pattern| (pattern, before, after)));
    let finders = finders.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut found = vec![BTreeMap::new(); finders.len()];
    let (mut packages, mut more, mut is_server) = (Vec::new(), 0, false);
    for file in &inputs.files {
        let Ok(contents) = inside(&server.root, file) else { continue };
        let contents = String::from_utf8_lossy(&contents);
        let is_entry = server.root.join(file) == server.entry;
        if is_entry || server.language.manifests().iter().any(|manifest| file == Path::new(manifest)) {
            packages.extend(listed(file, &contents));
        }
        is_server |= ["mcp", "modelcontextprotocol"].iter().any(|name| contents.contains(name));
        if Language::of(file).is_none() {
            continue;
        }
        for (number, line) in contents.lines().enumerate() {
            if comments.iter().any(|comment| line.trim_start().starts_with(comment)) {
                continue;
            }
            for ((pattern, ..), found) in finders.iter().zip(&mut found) {
                for name in pattern.captures_iter(line).filter_map(|captures| captures.get(1)) {
                    let name = clip(name.as_str());
                    match found.len() {
                        MAX_NAMED.. if !found.contains_key(&name) => more += 1,
                        _ => drop(found.entry(name).or_insert((file.clone(), number + 1))),
                    }
                }
            }
        }
    }
    packages.sort();
    packages.dedup();
    more += packages.len().saturating_sub(MAX_NAMED);
    packages.truncate(MAX_NAMED);
    let mut lines = vec![format!("language: {}", server.language.title())];
    if !packages.is_empty() {
        lines.push(format!(
            "packages: {}",
            packages.iter().map(|name| escaped(&clip(name))).collect::<Vec<_>>().join(", ")
        ));
    }
    for ((_, before, after), found) in finders.iter().zip(found) {
        let place = |(name, (file, line)): (String, (PathBuf, usize))| {
            let file = escaped(&file.to_string_lossy());
            format!("its source names {before}{} ({file}:{line}){after}", escaped(&name))
        };
        lines.extend(found.into_iter().map(place));
    }
    if !is_server {
        lines.push("none of its files names an SDK for MCP, so it is probably not an MCP server".to_owned());
    }
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    Ok(lines)
}

/// Returns the packages that a manifest lists, or the script itself (PEP 723).
fn listed(file: &Path, contents: &str) -> Vec<String> {
    let texts = |all: Option<&toml::Value>| -> Vec<String> {
        let all = all.and_then(toml::Value::as_array).into_iter().flatten();
        all.filter_map(toml::Value::as_str).map(str::to_owned).collect()
    };
    match file.to_str().unwrap_or_default() {
        "package.json" => {
            let manifest: Value = serde_json::from_str(contents).unwrap_or_default();
            let all = manifest.get("dependencies").and_then(Value::as_object).into_iter().flatten();
            all.map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or_default())).collect()
        }
        "pyproject.toml" => {
            let manifest: toml::Table = contents.parse().unwrap_or_default();
            texts(manifest.get("project").and_then(|project| project.get("dependencies")))
        }
        "requirements.txt" => {
            let lines = contents.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
            lines.filter(|line| !line.is_empty() && !line.starts_with('-')).map(str::to_owned).collect()
        }
        _ => {
            let script = contents.lines().skip_while(|line| line.trim_end() != "# /// script").skip(1);
            let script = script.take_while(|line| line.trim_end() != "# ///");
            let script: Vec<&str> = script.filter_map(|line| line.strip_prefix('#')).collect();
            let script: toml::Table = script.join("\n").parse().unwrap_or_default();
            texts(script.get("dependencies"))
        }
    }
}
