//! The project of a plugin that is made from an existing server: an ordinary `plugin.toml`, the SDK and what the build needs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};

use super::cache::READY;
use crate::authoring::{
    project::{PLUGIN_TOML, Project},
    template::{below, replaced, write},
};
use wharf_base::text;
use wharf_config::config::existing::Language;

/// The file whose existence says that what builds a plugin in Python is installed.
const VENV: &str = ".venv/ready";
/// The Python that builds a plugin.
pub const PYTHON: &str = ".venv/bin/python";
/// The file that lists what builds a plugin in Python.
const BUILD_REQUIREMENTS: &str = "build-requirements.txt";

/// Removes what package managers have fetched, from the home directory that a confined setup has: it has the variable, and a person who runs
/// the setup by hand does not. What is installed takes place enough.
const NO_CACHES: &str = "{ test -z \"$WHARF_BUILDS_APART\" || rm -rf \"$HOME/.cache\" \"$HOME/.npm\"; }";

const ARTIFACT: &str = "dist/plugin.wasm";
/// The folder of what is built for `wharf dev`.
const LIVE: &str = "dist/live";

/// What a project is made for.
pub struct Recipe<'a> {
    pub id: &'a str,
    pub language: Language,
    /// The server, as the commands of the build name it: a path, or a package such as `npm:NAME`.
    pub server: &'a str,
    /// The packages in Python that are installed in addition.
    pub with: &'a [String],
    /// The patterns of the source files.
    pub watch: &'a [String],
    /// The folder of what builds it. `None`: the project has all that it needs.
    pub tools: Option<&'a Path>,
}

/// Writes the project into a folder. Files that are there already are an error.
pub fn make(folder: &Path, recipe: &Recipe<'_>) -> Result<Project> {
    if recipe.tools.is_none() {
        for (path, contents) in tools(recipe.language, Some(recipe.id))? {
            write(&folder.join(path), &contents)?;
        }
    }
    write(&folder.join(PLUGIN_TOML), plugin_toml(recipe)?.as_bytes())?;
    Project::open(folder)
}

/// Returns the files of what builds servers of a language: the SDK, and the list of the packages that [`setup_of_tools`] installs. `project`:
/// what a project is called that has them for itself, with room for the packages of its server.
pub fn tools(language: Language, project: Option<&str>) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let all = wharf_assets::templates()?;
    let mut files = Vec::new();
    let mut copy = |from: &str, to: &str| {
        let before = files.len();
        files.extend(below(&all, from).map(|(path, file)| (Path::new(to).join(path), file.to_vec())));
        ensure!(files.len() > before, "this wharf was built without {from}");
        Ok(())
    };
    let file = |path: &str| {
        let file = all.iter().find(|(name, _)| *name == path).map(|(_, file)| file.as_slice());
        file.with_context(|| format!("this wharf was built without {path}"))
    };
    let (list, packages) = match language {
        Language::Python => {
            copy("sdk-guest/python/", "sdk")?;
            copy("sdk-guest/python-compat/", "compat")?;
            let packages = replaced(file("examples/python/requirements.txt")?, "../../sdk-guest/python", "./sdk");
            (BUILD_REQUIREMENTS, [&packages[..], b"-e ./compat\n"].concat())
        }
        Language::Node => {
            copy("sdk-guest/ts/", "sdk")?;
            let packages = match project {
                Some(name) => {
                    package_json(&replaced(file("examples/ts/package.json")?, "../../sdk-guest/ts", "./sdk"), name)?
                }
                None => packages_of_sdk(file("sdk-guest/ts/package.json")?)?,
            };
            ("package.json", packages.into_bytes())
        }
    };
    files.push((list.into(), packages));
    Ok(files)
}

/// Returns a package.json with the packages that the SDK in TypeScript needs for servers, in the versions that it is made for.
fn packages_of_sdk(manifest: &[u8]) -> Result<String> {
    let mut manifest: Map<String, Value> = serde_json::from_slice(manifest)?;
    let mut packages = manifest.remove("peerDependencies").context("the SDK does not list its packages")?;
    // Servers do not run in this engine.
    packages.as_object_mut().and_then(|packages| packages.remove("componentize-qjs"));
    let overrides = manifest.remove("overrides").unwrap_or_default();
    let package = serde_json::json!({ "private": true, "dependencies": packages, "overrides": overrides });
    Ok(serde_json::to_string_pretty(&package)? + "\n")
}

/// Returns the command that installs what [`tools`] lists.
fn install_tools(language: Language) -> String {
    match language {
        Language::Python => format!(
            "python3 -m venv .venv && ./.venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: \
             -r {BUILD_REQUIREMENTS}"
        ),
        Language::Node => {
            "npm install --ignore-scripts --no-bin-links --git=/bin/false --no-audit --no-fund --loglevel=error"
                .to_owned()
        }
    }
}

/// Returns the command that installs what builds servers, in a folder that all of them share.
pub fn setup_of_tools(language: Language) -> String {
    format!("{} && {NO_CACHES} && touch {READY}", install_tools(language))
}

/// Returns the template's package.json with what builds a plugin alone.
fn package_json(template: &[u8], name: &str) -> Result<String> {
    let mut package: Map<String, Value> = serde_json::from_slice(template)?;
    package.insert("name".into(), name.into());
    package.remove("scripts");
    // All of it is for the build: `dependencies` are the packages of the server, which the setup adds.
    let sdk = package.remove("dependencies").and_then(|mut packages| packages.get_mut("wharf-sdk").map(Value::take));
    let tools = package.get_mut("devDependencies").and_then(Value::as_object_mut);
    let (sdk, tools) = sdk.zip(tools).context("the template's package.json does not list what builds a plugin")?;
    tools.retain(|name, _| ["@bytecodealliance/componentize-js", "esbuild"].contains(&name.as_str()));
    tools.insert("wharf-sdk".into(), sdk);
    Ok(serde_json::to_string_pretty(&package)? + "\n")
}

fn plugin_toml(recipe: &Recipe<'_>) -> Result<String> {
    // Not in node_modules: a dependency of the server could have its name there.
    const NODE_SDK: &str = "sdk/bin/wharf-sdk.js";
    let server = text::shell([recipe.server]);
    let with: String = recipe.with.iter().map(|one| format!(" --with {}", text::shell([one.as_str()]))).collect();
    let of_tools = |path: &str| match recipe.tools {
        Some(tools) => {
            let path = tools.join(path);
            let path = path.to_str().with_context(|| format!("{}: the path is not UTF-8", text::path(&path)))?;
            Ok::<_, anyhow::Error>(text::shell([path]))
        }
        None => Ok(format!("./{path}")),
    };
    let (build, setup) = match recipe.language {
        Language::Python => {
            let python = of_tools(PYTHON)?;
            let setup = format!("{python} -m wharf_compat setup {server}{with}");
            (format!("{python} -m wharf_compat build {server}"), setup)
        }
        Language::Node => {
            // Not by npx: it also finds programs of other packages, with names such as `node`.
            let sdk = of_tools(NODE_SDK)?;
            (format!("node {sdk} build --mcp {server}"), format!("node {sdk} setup --mcp {server}"))
        }
    };
    let installed = install_tools(recipe.language);
    let setup = match (recipe.tools, recipe.language) {
        (Some(_), _) => format!("{setup} && {NO_CACHES} && touch {READY}"),
        (None, Language::Python) => {
            format!("{{ test -e {VENV} || {{ {installed} && touch {VENV}; }}; }} && {setup} && touch {READY}")
        }
        (None, Language::Node) => format!("{installed} && {setup} && touch {READY}"),
    };
    let table = |entries: &[(&str, toml::Value)]| -> toml::Value {
        toml::Table::from_iter(entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone()))).into()
    };
    let needs = recipe.language.needs().into_iter().map(|(program, how)| (program, toml::Value::from(how)));
    let setup = table(&[("command", setup.into()), ("makes", READY.into())]);
    let (artifact, source) = (format!("{LIVE}/plugin.wasm"), format!("{LIVE}/source"));
    let live = format!("{build} -o {artifact} --live {source}");
    let live = table(&[("command", live.into()), ("artifact", artifact.into()), ("source", source.into())]);
    let build = [
        ("command", format!("{build} -o {ARTIFACT}").into()),
        ("artifact", ARTIFACT.into()),
        ("watch", recipe.watch.to_vec().into()),
        ("needs", toml::Table::from_iter(needs).into()),
        ("setup", setup),
        ("live", live),
    ];
    let build = table(&build);
    // Clients know the tools of an existing server by its own names for them.
    let dev = table(&[("prefix", "".into())]);
    Ok(toml::to_string(&table(&[("name", recipe.id.into()), ("build", build), ("dev", dev)]))?)
}

/// Returns the arguments of a server, as they follow the command of its build.
pub fn arguments(language: Language, args: &[String]) -> String {
    match language {
        Language::Python => {
            args.iter().map(|one| format!(" {}", text::shell([format!("--arg={one}").as_str()]))).collect()
        }
        Language::Node if args.is_empty() => String::new(),
        Language::Node => {
            args.iter().fold(" --".to_owned(), |all, one| format!("{all} {}", text::shell([one.as_str()])))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_any_kind_is_one_word_of_the_commands() {
        let server = "/a b/it's $(here)/server.py";
        let shared = Path::new("/a b/it's $(there)");
        for (language, tools) in
            [Language::Python, Language::Node].map(|one| [(one, None), (one, Some(shared))]).concat()
        {
            let watch = ["server.py".to_owned()];
            let text = plugin_toml(&Recipe { id: "x", language, server, with: &[], watch: &watch, tools }).unwrap();
            let place = tempfile::tempdir().unwrap();
            write(&place.path().join(PLUGIN_TOML), text.as_bytes()).unwrap();
            let project = Project::open(place.path()).unwrap();
            let setup = project.build.setup.as_ref().unwrap();
            let live = project.build.live.as_ref().map(|live| &live.command);
            assert!(!setup.command.contains("node_modules"), "no package runs where packages are installed");
            for command in [&project.build.command, &setup.command].into_iter().chain(live) {
                let script = command.split(" && ").find(|command| command.contains("server.py")).unwrap();
                let script = format!("set -- {script}; for word; do echo \"$word\"; done");
                let shown = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
                let shown = String::from_utf8(shown.stdout).unwrap();
                assert!(shown.lines().any(|line| line == server), "{shown}");
                let is_shared = shown.lines().any(|line| Path::new(line).starts_with(shared));
                assert_eq!(is_shared, tools.is_some(), "{shown}");
            }
            let script = format!("set --{}; for word; do echo \"$word\"; done", arguments(language, &[server.into()]));
            let shown = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
            let shown = String::from_utf8(shown.stdout).unwrap();
            assert_eq!(shown.lines().next_back().unwrap().trim_start_matches("--arg="), server);
        }
    }

    #[test]
    fn the_project_in_typescript_has_only_what_the_build_needs() {
        let all = wharf_assets::templates().unwrap();
        let (_, template) = all.iter().find(|(name, _)| *name == "examples/ts/package.json").unwrap();
        let package: Value = serde_json::from_str(&package_json(template, "x").unwrap()).unwrap();
        let names: Vec<&String> = package["devDependencies"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["@bytecodealliance/componentize-js", "esbuild", "wharf-sdk"]);
        assert!(package.get("dependencies").is_none() && package["devDependencies"]["wharf-sdk"].is_string());
        let (_, manifest) = all.iter().find(|(name, _)| *name == "sdk-guest/ts/package.json").unwrap();
        let shared: Value = serde_json::from_str(&packages_of_sdk(manifest).unwrap()).unwrap();
        assert!(shared["dependencies"]["acorn"].is_string() && shared["overrides"].is_object(), "{shared}");
        assert!(shared["dependencies"].get("componentize-qjs").is_none() && shared.get("devDependencies").is_none());
    }
}
