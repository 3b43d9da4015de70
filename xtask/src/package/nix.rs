//! Makes the flake for Nix, `packaging/flake.nix.in`, with the addresses and digests of the archives.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{Release, archive, output, used};
use crate::{debian, run_in};

/// Two functions of nixpkgs that the flake installs with. Here they copy what they are given.
const FUNCTIONS: &str = "installManPage() { cp -- \"$@\" \"$out\"; }; installShellCompletion() { shift 2; while [ $# -gt 0 ]; do cp -- \"$2\" \
                         \"$out\"; shift 2; done; }";

fn system(platform: &super::platform::Platform) -> String {
    format!("{}-{}", if platform.cpu == "x64" { "x86_64" } else { "aarch64" }, platform.os)
}

pub fn make(release: &Release) -> Result<Vec<PathBuf>> {
    let archives = archive::finished(release)?.into_iter().map(|one| {
        let url = release.download(release.list("flake.nix").0, &one.file);
        let hash = STANDARD.encode(&one.sha256);
        format!(
            "        {} = {{\n          url = \"{url}\";\n          hash = \"sha256-{hash}\";\n        }};",
            system(one.platform)
        )
    });
    release.fill("flake.nix", &[("@ARCHIVES@", &archives.collect::<Vec<_>>().join("\n"))])
}

/// Evaluates the flake with Nix, compares its digests with those that Nix computes of the archives, and runs its phase that installs.
pub fn try_it(release: &Release, place: &Path) -> Result<()> {
    let (repository, flake) = release.list("flake.nix");
    fs::copy(&flake, place.join("flake.nix"))?;
    fs::copy(release.root.join("packaging/check/packages.nix"), place.join("packages.nix"))?;
    let nix = |arguments: &[&str]| {
        let mut nix = debian::program(&release.root, "nix-bin", "usr/bin/nix")?;
        // Nothing is built, so that Nix needs no store.
        nix.env("NIX_STORE_DIR", place.join("store")).env("NIX_STATE_DIR", place.join("state"));
        nix.args(["--extra-experimental-features", "nix-command", "--store", "dummy://"]);
        output(nix.args(arguments).current_dir(place))
    };
    let packages: BTreeMap<String, Value> =
        serde_json::from_str(&nix(&["eval", "--impure", "--json", "--file", "packages.nix"])?)?;
    let archives = archive::finished(release)?;
    ensure!(packages.len() == archives.len(), "{:?} for {} archives", packages.keys(), archives.len());
    for one in archives {
        let package = packages.get(&system(one.platform)).with_context(|| system(one.platform))?;
        let text =
            |at: &str| package.pointer(at).and_then(Value::as_str).with_context(|| format!("no {at}: {package}"));
        let (url, hash) = (text("/src/url")?, text("/src/hash")?);
        ensure!(url == release.download(repository, &one.file), "the flake fetches {url}");
        let found = nix(&["hash", "file", &release.out.join(&one.file).display().to_string()])?;
        ensure!(found.trim() == hash, "the hash of {} in the flake is {hash}, and not {}", one.file, found.trim());
        let unpacked = archive::unpack(release, one.platform, place)?;
        let installed = place.join(format!("{}-installed", one.platform.triple));
        fs::create_dir_all(&installed)?;
        let mut bash = Command::new("bash");
        bash.args(["-euc", &format!("{FUNCTIONS}\n{}", text("/installPhase")?)]).env("out", &installed);
        run_in(&unpacked, &mut bash).context("the phase of the flake that installs")?;
        ensure!(installed.join("wharf.1").is_file() && installed.join("_wharf").is_file(), "no man page or completion");
        if one.platform.triple == release.platform.triple {
            used::tell_time(used::command(&installed.join("bin/wharf"), place).args(used::BUILT_IN))?;
        }
    }
    Ok(())
}
