//! The wheel for PyPI: a module with the plugin, and a command that starts wharf with it.

use anyhow::Result;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

use super::{
    Contents, WHARF,
    archive::{Entry, zip},
    readme::readme,
};

/// The module, in which what this package differs by is filled in.
const SERVER: &str = include_str!("server.py");

/// Makes the wheel: its file name and its bytes.
pub fn make(contents: &Contents<'_>) -> Result<(String, Vec<u8>)> {
    let package = contents.package;
    let module = package.module();
    let info = format!("{module}-{}.dist-info", package.version);
    let (name, version) = WHARF;
    let (tag, program, requires) = match &contents.wharf {
        Some((_, machine)) => (machine.wheel.clone(), "os.path.join(folder, \"wharf\")", String::new()),
        None => {
            let program = "os.path.join(sysconfig.get_path(\"scripts\"), \"wharf\")";
            ("any".to_owned(), program, format!("Requires-Dist: {name}=={version}\n"))
        }
    };
    let mut metadata = format!(
        "Metadata-Version: 2.4\nName: {}\nVersion: {}\nSummary: {}\nAuthor: {}\nKeywords: mcp,mcp-server,model-context-protocol\n\
         Requires-Python: >=3.8\n{requires}",
        package.pypi, package.version, package.description, package.author
    );
    if let Some(license) = &package.license {
        metadata += &format!("License-Expression: {license}\n");
    }
    if let Some(repository) = &package.repository {
        metadata += &format!("Project-URL: Source, {repository}\n");
    }
    if contents.license.is_some() {
        metadata += "License-File: LICENSE\n";
    }
    metadata += &format!("Description-Content-Type: text/markdown\n\n{}", readme(contents, &["uvx", &package.pypi]));
    // A tag for several platforms is one line for each.
    let tags: String = tag.split('.').map(|tag| format!("Tag: py3-none-{tag}\n")).collect();
    let is_pure = contents.wharf.is_none();
    let wheel = format!("Wheel-Version: 1.0\nGenerator: wharf {version}\nRoot-Is-Purelib: {is_pure}\n{tags}");
    let script = SERVER.replace("PROGRAM", program).replace("COMPONENT", &format!("{:?}", contents.file()));
    let mut entries = vec![
        Entry::file(format!("{module}/__init__.py"), script),
        Entry::file(format!("{module}/{}", contents.file()), contents.component),
    ];
    entries.extend(contents.wharf.as_ref().map(|(binary, _)| Entry::program(format!("{module}/wharf"), *binary)));
    entries.extend(contents.license.map(|text| Entry::file(format!("{info}/licenses/LICENSE"), text)));
    entries.extend([
        Entry::file(format!("{info}/METADATA"), metadata),
        Entry::file(format!("{info}/WHEEL"), wheel),
        // `uvx NAME` starts the command of that name, which is the package's. The plugin's own name is the other one.
        Entry::file(format!("{info}/entry_points.txt"), entry_points(contents, &module)),
    ]);
    let record = format!("{info}/RECORD");
    let lines = entries.iter().map(|entry| {
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(&entry.contents));
        format!("{},sha256={digest},{}\n", entry.path, entry.contents.len())
    });
    let lines = lines.collect::<String>() + &format!("{record},,\n");
    entries.push(Entry::file(record, lines));
    Ok((format!("{module}-{}-py3-none-{tag}.whl", package.version), zip(&entries)?))
}

fn entry_points(contents: &Contents<'_>, module: &str) -> String {
    let mut names = vec![contents.package.pypi.as_str(), contents.id];
    names.dedup();
    names.iter().fold("[console_scripts]\n".to_owned(), |text, name| text + &format!("{name} = {module}:main\n"))
}
