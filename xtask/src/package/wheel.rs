//! Makes a wheel for PyPI with the binary, which `pip`, `pipx` and `uvx` install.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{NAME, Release, copy, registry, used, write};
use crate::{run, say};

/// The script that is installed as the command [`NAME`], because `uvx NAME` starts the command of that name. pip replaces the first line by
/// the interpreter's path.
const COMMAND_SCRIPT: &str = "#!python
import os
import sys

binary = os.path.join(os.path.dirname(os.path.realpath(__file__)), \"wharf\")
os.execv(binary, [binary, *sys.argv[1:]])
";

pub fn make(release: &Release) -> Result<Vec<PathBuf>> {
    let Release { version, .. } = release;
    let name = format!("{}-{version}", NAME.replace('-', "_"));
    let folder = release.work.join("wheel").join(&name);
    let (info, scripts) = (folder.join(format!("{name}.dist-info")), folder.join(format!("{name}.data/scripts")));
    let (url, owned) = match &release.repository {
        Some(at) => {
            (format!("Project-URL: Repository, {at}\n"), format!("\n<!-- mcp-name: {} -->\n", registry::name(at)))
        }
        None => Default::default(),
    };
    let metadata = format!(
        "Metadata-Version: 2.4\nName: {NAME}\nVersion: {version}\nSummary: {}\nLicense-Expression: {}\nLicense-File: LICENSE\n{url}\
         Keywords: mcp,model-context-protocol,wasm,sandbox\nRequires-Python: >=3.8\n\
         Description-Content-Type: text/markdown\n\n{}{owned}",
        release.description,
        release.license,
        fs::read_to_string(release.root.join("README.md"))?
    );
    write(&info.join("METADATA"), metadata.as_bytes())?;
    let tags = release.platform.wheel(&release.binary)?;
    let tags: String = tags.split('.').map(|tag| format!("Tag: py3-none-{tag}\n")).collect();
    let wheel = format!("Wheel-Version: 1.0\nGenerator: wharf\nRoot-Is-Purelib: false\n{tags}");
    write(&info.join("WHEEL"), wheel.as_bytes())?;
    copy(&release.root.join("LICENSE"), &info.join("licenses/LICENSE"))?;
    copy(&release.binary, &scripts.join("wharf"))?;
    write(&scripts.join(NAME), COMMAND_SCRIPT.as_bytes())?;
    fs::set_permissions(scripts.join(NAME), fs::Permissions::from_mode(0o755))?;
    // `wheel pack` writes the list of files with their digests, and the archive with their modes.
    run(Command::new(&release.python)
        .args(["-m", "wheel", "pack"])
        .arg(&folder)
        .arg("--dest-dir")
        .arg(&release.out)
        .stdout(std::io::stderr()))?;
    Ok(vec![release.made(".whl")?])
}

/// Installs and uses the wheel as docs/distribution.md says, with a folder in place of the registry: from an empty home to a file read. Then runs
/// both of its commands.
pub fn try_it(release: &Release, place: &Path) -> Result<()> {
    let began = Instant::now();
    let (bin, documents) = (place.join("wharf/bin"), place.join("home/Documents"));
    write(&documents.join("note.txt"), b"Ship the crane by Friday.")?;
    run(used::command(Path::new("python3"), place).args(["-m", "venv"]).arg(place.join("wharf")))?;
    let mut pip = used::command(&bin.join("pip"), place);
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-index", "--find-links"]);
    run(pip.arg(&release.out).arg(NAME))?;
    let installed = began.elapsed();
    let mut install = used::command(&bin.join("wharf"), place);
    install.args(["install", "claude-desktop", "--builtin", "files"]).arg(&documents);
    run(install.stdout(std::io::stderr()))?;
    let set_up = began.elapsed();
    let config = fs::read(place.join("home/.config/Claude/claude_desktop_config.json"))?;
    let config: Value = serde_json::from_slice(&config)?;
    let server = config.pointer("/mcpServers/files").context("the client's config names no `files`")?;
    let command = server.get("command").and_then(Value::as_str).context("the server `files` has no `command`")?;
    let arguments = server.get("args").and_then(Value::as_array).context("the server `files` has no `args`")?;
    let mut named = used::command(Path::new(command), place);
    named.args(arguments.iter().filter_map(Value::as_str));
    let note = documents.join("note.txt");
    used::call(&mut named, "read_text_file", &json!({ "path": note }), "Ship the crane by Friday.")?;
    say(&format!(
        "from an empty home to a file read: {:.1} s (installed {:.1}, set up {:.1})",
        began.elapsed().as_secs_f32(),
        installed.as_secs_f32(),
        set_up.as_secs_f32()
    ));
    for command in ["wharf", NAME] {
        used::tell_time(used::command(&bin.join(command), place).args(used::BUILT_IN))?;
    }
    Ok(())
}
