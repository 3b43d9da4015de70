//! `cargo xtask check signatures`: makes signatures with sigstore's own signing library and authorities that live as long as the command, runs the
//! tests of `host/trust` on them, and asks PyPI's sigstore for a second opinion. With `--record`, the tests' recorded signatures are
//! replaced.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, bail};

use crate::{installed, run, say, tree};

pub fn check(root: &Path, rest: &[String]) -> Result<()> {
    let record = match rest {
        [] => false,
        [one] if one == "--record" => true,
        _ => bail!("the only argument is --record"),
    };
    let (source, target) = (root.join("tests/signatures"), root.join("target/signatures"));
    installed::npm(&source, &target)?;
    let python = installed::python(&source.join("requirements.txt"), &target.join("venv"))?;
    let made = if record { root.join("host/trust/tests/data") } else { target.join("made") };
    if !record && made.exists() {
        fs::remove_dir_all(&made).with_context(|| made.display().to_string())?;
    }
    let mut make = Command::new("node");
    make.arg(source.join("make.mjs")).arg("--modules").arg(target.join("node_modules")).arg("--to").arg(&made);
    run(&mut make).context("no signatures were made, or there is no Node.js 20 or newer")?;
    run(tree::command(["test", "--test", "signatures"])?.env("WHARF_SIGNATURES", &made))?;
    run(Command::new(python).arg(source.join("opinion.py")).arg(&made)).context("PyPI's sigstore disagrees")?;
    if record {
        say(&format!("recorded: {}", made.display()));
    }
    Ok(())
}
