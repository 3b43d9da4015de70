//! Puts the plugins of this repository into the library, as built-ins. They are WebAssembly, which cargo does not build with the
//! library: `cargo xtask build` builds them first and names their folder in `WHARF_BUILTINS`. Without that variable there are none.

#![expect(clippy::disallowed_methods, reason = "the components are read here")]

use std::{
    env, fs,
    io::{Error, ErrorKind, Result},
    path::PathBuf,
};

/// The plugins that need nothing but what a command line can grant, and a config can narrow.
const NAMES: [&str; 6] = ["fetch", "files", "git", "memory", "sequentialthinking", "time"];

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=WHARF_BUILTINS");
    let to = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| Error::from(ErrorKind::NotFound))?);
    let mut all = String::from("[\n");
    if let Some(from) = env::var_os("WHARF_BUILTINS").filter(|from| !from.is_empty()).map(PathBuf::from) {
        let (there, missing): (Vec<_>, Vec<_>) =
            NAMES.into_iter().partition(|name| from.join(format!("{name}.wasm")).is_file());
        if !missing.is_empty() {
            // It may be that not all of them are wanted, as for the demo. Whatever comes into the folder is noticed.
            println!("cargo::warning=not in the binary, since {} has none: {}", from.display(), missing.join(", "));
            println!("cargo::rerun-if-changed={}", from.display());
        }
        for name in there {
            let component = from.join(format!("{name}.wasm"));
            println!("cargo::rerun-if-changed={}", component.display());
            let bytes =
                fs::read(&component).map_err(|error| Error::other(format!("{}: {error}", component.display())))?;
            // A third of the size, and a few milliseconds to take apart again.
            fs::write(to.join(format!("{name}.deflated")), miniz_oxide::deflate::compress_to_vec(&bytes, 9))?;
            all += &format!(
                "    ({name:?}, include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}.deflated\")).as_slice()),\n"
            );
        }
    }
    fs::write(to.join("builtins.rs"), all + "]\n")
}
