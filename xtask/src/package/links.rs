//! Makes `links.md`: a link for each client that adds wharf when a person clicks it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::{NAME, Release, bundle, output, used};

/// The arguments of `npx` in each link: what `wharf install` writes for the plugin `files`, after npm's package.
const LINE: [&str; 7] = ["-y", NAME, "run", "--builtin", "files", "--allow", "roots=read-write"];

/// What is encoded in links: all but what no URL encodes.
const ENCODED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

pub fn make(release: &Release) -> Result<Vec<PathBuf>> {
    let (repository, _) = release.list("links.md");
    let encoded = |text: &str| utf8_percent_encode(text, &ENCODED).to_string();
    let config = json!({ "command": "npx", "args": LINE }).to_string();
    let named = json!({ "name": "wharf", "command": "npx", "args": LINE }).to_string();
    let code = format!("vscode:mcp/install?{}", encoded(&named));
    let bundles = bundle::finished(release).into_iter();
    let bundles = bundles.map(|bundle| format!("- [{bundle}]({})", release.download(repository, &bundle)));
    release.fill(
        "links.md",
        &[
            ("@LINE@", &LINE.join(" ")),
            ("@CONFIG@", &encoded(&STANDARD.encode(config))),
            ("@CODE@", &code),
            ("@CODE-ENCODED@", &encoded(&code)),
            ("@ARGUMENTS@", &LINE.map(|word| format!("&arg={}", encoded(word))).concat()),
            ("@ABOUT@", &encoded(&release.description)),
            ("@BUNDLES@", &bundles.collect::<Vec<_>>().join("\n")),
        ],
    )
}

/// Decodes each link as its client does, compares it with the line, looks for the bundles, and starts the line.
pub fn try_it(release: &Release, place: &Path) -> Result<()> {
    let (repository, file) = release.list("links.md");
    let decoded = output(Command::new("node").arg(release.root.join("packaging/check/links.js")).arg(&file))?;
    let decoded: Vec<Value> = serde_json::from_str(&decoded)?;
    let (files, lines): (Vec<_>, Vec<_>) = decoded.iter().partition(|one| one.get("file").is_some());
    ensure!(lines.len() == 5, "five links with a line are expected, not {}", lines.len());
    for line in lines {
        ensure!(*line == json!({ "name": "wharf", "command": "npx", "args": LINE }), "a link starts {line}");
    }
    for link in files {
        let url = link.get("file").and_then(Value::as_str).context("no URL")?;
        let bundle = url.strip_prefix(&release.download(repository, "")).with_context(|| url.to_owned())?;
        fs::metadata(release.out.join(bundle)).with_context(|| format!("{url} is not a file of the release"))?;
    }
    // npm's package is tried with npx; this is the binary in it, with a folder as if the client had opened it.
    let mut wharf = used::command(&release.binary, place);
    used::read_note(wharf.args(LINE.iter().skip(2)).arg("--root"), &place.join("home/notes"))
}
