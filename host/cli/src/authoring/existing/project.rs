//! The project of a plugin that is made from an existing server: an ordinary `plugin.toml`, the SDK and what the build needs.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};

use super::language::Language;
use crate::authoring::{
    project::{PLUGIN_TOML, Project},
    template::{below, replaced, write},
};
use wharf_base::text;

/// The file whose existence says that the packages are installed.
pub const READY: &str = ".ready";
/// The file whose existence says that what builds a plugin in Python is installed.
const VENV: &str = ".venv/ready";
/// The file that lists what builds a plugin in Python.
const BUILD_REQUIREMENTS: &str = "build-requirements.txt";

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
}

/// Writes the project into a folder. Files that are there already are an error.
pub fn make(folder: &Path, recipe: &Recipe<'_>) -> Result<Project> {
    let all = wharf_assets::templates()?;
    let copy = |from: &str, to: &str| -> Result<()> {
        let mut files = below(&all, from).peekable();
        ensure!(files.peek().is_some(), "this wharf was built without {from}");
        files.try_for_each(|(path, file)| write(&folder.join(to).join(path), file))
    };
    let example = |path: &str| {
        let file = all.iter().find(|(name, _)| *name == path).map(|(_, file)| file.as_slice());
        file.with_context(|| format!("this wharf was built without {path}"))
    };
    match recipe.language {
        Language::Python => {
            copy("sdk-guest/python/", "sdk")?;
            copy("sdk-guest/python-compat/", "compat")?;
            let packages = replaced(example("examples/python/requirements.txt")?, "../../sdk-guest/python", "./sdk");
            write(&folder.join(BUILD_REQUIREMENTS), &[&packages[..], b"-e ./compat\n"].concat())?;
        }
        Language::Node => {
            copy("sdk-guest/ts/", "sdk")?;
            let package = replaced(example("examples/ts/package.json")?, "../../sdk-guest/ts", "./sdk");
            write(&folder.join("package.json"), package_json(&package, recipe.id)?.as_bytes())?;
        }
    }
    write(&folder.join(PLUGIN_TOML), plugin_toml(recipe)?.as_bytes())?;
    Project::open(folder)
}

/// Returns the template's package.json with what builds a plugin alone.
fn package_json(template: &[u8], id: &str) -> Result<String> {
    let mut package: Map<String, Value> = serde_json::from_slice(template)?;
    package.insert("name".into(), id.into());
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
    let (build, setup, needs) = match recipe.language {
        Language::Python => (
            format!("./.venv/bin/python -m wharf_compat build {server}"),
            format!(
                "{{ test -e {VENV} || {{ python3 -m venv .venv && ./.venv/bin/pip install --quiet --disable-pip-version-check \
                 --only-binary :all: -r {BUILD_REQUIREMENTS} && touch {VENV}; }}; }} && \
                 ./.venv/bin/python -m wharf_compat setup {server}{with} && touch {READY}"
            ),
            vec![("python3", "Python 3.11 or newer, with its module venv: https://www.python.org")],
        ),
        Language::Node => (
            // Not by npx: it also finds programs of other packages, with names such as `node`.
            format!("node {NODE_SDK} build --mcp {server}"),
            format!(
                "npm install --ignore-scripts --no-bin-links --git=/bin/false --no-audit --no-fund --loglevel=error && \
                 node {NODE_SDK} setup --mcp {server} && touch {READY}"
            ),
            vec![
                ("node", "Node.js 20 or newer: https://nodejs.org"),
                ("npm", "it comes with Node.js: https://nodejs.org"),
            ],
        ),
    };
    let needs = needs.iter().map(|(program, how)| ((*program).to_owned(), toml::Value::from(*how)));
    let table = |entries: &[(&str, toml::Value)]| -> toml::Value {
        toml::Table::from_iter(entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone()))).into()
    };
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
        for language in [Language::Python, Language::Node] {
            let watch = ["server.py".to_owned()];
            let text = plugin_toml(&Recipe { id: "x", language, server, with: &[], watch: &watch }).unwrap();
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
    }
}
