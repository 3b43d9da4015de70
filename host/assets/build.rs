//! Embeds the template folders for new plugins, and the SDKs, compressed with deflate.

#![expect(clippy::disallowed_methods, reason = "the files are read here")]

use std::{
    env, fs,
    io::{Error, ErrorKind, Result},
    path::{Path, PathBuf},
};

/// The languages that have a template, and those that have an SDK.
const TEMPLATES: [&str; 6] = ["rust", "ts", "js", "python", "go", "c"];
const SDKS: [&str; 6] = ["rust", "ts", "python", "python-compat", "go", "c"];
/// Folders that are not copied into a template: output of tools, and the SDKs' own tests.
const LEFT_BY_TOOLS: [&str; 5] = ["node_modules", ".venv", "__pycache__", "dist", "target"];
const TESTS: [&str; 2] = ["test", "tests"];

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let to = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| Error::from(ErrorKind::NotFound))?);
    templates(&to)
}

/// Writes all files of the templates, concatenated because similar files compress well together, and a table of their paths and lengths.
fn templates(to: &Path) -> Result<()> {
    let (mut paths, mut contents) = (Vec::new(), Vec::new());
    for language in TEMPLATES {
        below(Path::new("../../examples"), Path::new(language), &LEFT_BY_TOOLS, &mut paths, &mut contents)?;
    }
    let left_out = [LEFT_BY_TOOLS.as_slice(), TESTS.as_slice()].concat();
    for language in SDKS {
        below(Path::new("../../sdk-guest"), Path::new(language), &left_out, &mut paths, &mut contents)?;
    }
    fs::write(to.join("templates.deflated"), miniz_oxide::deflate::compress_to_vec(&contents, 9))?;
    let all = "include_bytes!(concat!(env!(\"OUT_DIR\"), \"/templates.deflated\"))";
    fs::write(to.join("templates.rs"), format!("(&[\n{}], {all})\n", paths.concat()))
}

/// Appends the files of a folder and of its subfolders, sorted by name.
fn below(root: &Path, folder: &Path, left_out: &[&str], paths: &mut Vec<String>, contents: &mut Vec<u8>) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join(folder))? {
        names.push(entry?.file_name().into_string().map_err(|_| Error::from(ErrorKind::InvalidFilename))?);
    }
    names.sort();
    for name in names {
        let path = folder.join(&name);
        if root.join(&path).is_dir() {
            // Only that of Python's tools: the SDK for TypeScript has sources in a folder of this name.
            let built = name == "build" && root.join(folder).join("pyproject.toml").exists();
            if !built && !left_out.contains(&name.as_str()) && !name.ends_with(".egg-info") {
                below(root, &path, left_out, paths, contents)?;
            }
        } else if name != "package-lock.json" && !name.ends_with(".wasm") && !name.ends_with(".new") {
            let file = read(&root.join(&path))?;
            let place = root.file_name().map(Path::new).unwrap_or(root).join(&path);
            paths.push(format!("    ({:?}, {}),\n", place.to_string_lossy(), file.len()));
            contents.extend(file);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    println!("cargo::rerun-if-changed={}", path.display());
    fs::read(path).map_err(|error| Error::new(error.kind(), format!("{}: {error}", path.display())))
}
