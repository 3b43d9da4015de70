//! Makes an MCP bundle (`.mcpb`). A desktop client that opens it asks for a folder and starts wharf with that folder.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{
    NAME, Release, copy,
    platform::{self, Platform},
    used, write,
};
use crate::run;

const PLUGINS: [&str; 2] = ["files", "time"];

pub fn make(release: &Release) -> Result<Vec<PathBuf>> {
    let folder = release.work.join("mcpb");
    let mut args = vec!["run".to_owned(), "--allow".into(), "roots=${user_config.access}".into()];
    args.extend(PLUGINS.map(|plugin| format!("${{__dirname}}/plugins/{plugin}.wasm")));
    args.push("${user_config.folder}".into());
    let manifest = json!({
        "manifest_version": "0.3",
        "name": NAME,
        "display_name": "wharf",
        "version": release.version,
        "description": "Reads and writes the files of a folder that you choose, in a sandbox",
        "long_description": "Every call runs in a WebAssembly sandbox of its own, which reaches the folder you choose and nothing else.",
        "author": { "name": "The wharf authors" },
        "license": release.license,
        "keywords": ["files", "sandbox", "wasm"],
        "server": {
            "type": "binary",
            "entry_point": "wharf",
            "mcp_config": { "command": "${__dirname}/wharf", "args": args, "env": {} },
        },
        "tools_generated": true,
        "compatibility": { "platforms": [release.platform.os] },
        "user_config": {
            "folder": {
                "type": "directory",
                "title": "Folder",
                "description": "The folder that is open to the assistant",
                "required": true,
            },
            "access": {
                "type": "string",
                "title": "Access",
                "description": "read, or read-write",
                "default": "read",
                "required": false,
            },
        },
    });
    write(&folder.join("manifest.json"), &serde_json::to_vec_pretty(&manifest)?)?;
    copy(&release.binary, &folder.join("wharf"))?;
    copy(&release.root.join("LICENSE"), &folder.join("LICENSE"))?;
    for plugin in PLUGINS {
        copy(&release.plugin(plugin), &folder.join("plugins").join(format!("{plugin}.wasm")))?;
    }
    let bundle = release.out.join(name(release, release.platform));
    mcpb(release, |mcpb| mcpb.arg("validate").arg(folder.join("manifest.json")))?;
    mcpb(release, |mcpb| mcpb.arg("pack").arg(&folder).arg(&bundle))?;
    Ok(vec![bundle])
}

fn name(release: &Release, platform: &Platform) -> String {
    format!("wharf-{}-{}.mcpb", release.version, platform.name())
}

/// Returns the names of the finished bundles.
pub fn finished(release: &Release) -> Vec<String> {
    let names = platform::ALL.iter().map(|platform| name(release, platform));
    names.filter(|name| release.out.join(name).is_file()).collect()
}

fn mcpb(release: &Release, arguments: impl FnOnce(&mut Command) -> &mut Command) -> Result<()> {
    let mut command = Command::new(release.node_modules.join(".bin/mcpb"));
    run(arguments(&mut command).stdout(std::io::stderr()))
}

/// Uses the bundle as a desktop client does: unpacks it, and starts the command in the manifest with a chosen folder.
pub fn try_it(release: &Release, place: &Path) -> Result<()> {
    let unpacked = place.join("unpacked");
    let bundle = release.made(".mcpb")?;
    mcpb(release, |mcpb| mcpb.arg("unpack").arg(&bundle).arg(&unpacked))?;
    let manifest: Value = serde_json::from_slice(&fs::read(unpacked.join("manifest.json"))?)?;
    let folder = place.join("home/notes");
    let config = manifest.pointer("/server/mcp_config").context("no mcp_config")?;
    let fill = |text: &Value| -> Result<String> {
        let text = text.as_str().context("no text")?.replace("${__dirname}", &unpacked.display().to_string());
        let text = text.replace("${user_config.folder}", &folder.display().to_string());
        let access = manifest.pointer("/user_config/access/default").and_then(Value::as_str).context("no default")?;
        let text = text.replace("${user_config.access}", access);
        ensure!(!text.contains("${"), "the manifest has an unknown variable: {text}");
        Ok(text)
    };
    let mut wharf = used::command(Path::new(&fill(config.get("command").context("no command")?)?), place);
    let arguments = config.get("args").and_then(Value::as_array).context("no args")?;
    let (last, others) = arguments.split_last().context("no args")?;
    for argument in others {
        wharf.arg(fill(argument)?);
    }
    ensure!(Path::new(&fill(last)?) == folder, "the last argument is {last}, and not the folder");
    used::read_note(&mut wharf, &folder)
}
