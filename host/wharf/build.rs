//! Embeds the built-in plugins into the program, each deflated by itself, since a command needs only one of them.
//!
//! They are WebAssembly, which cargo does not build with the program: `cargo xtask` builds them first, into the folder that the environment
//! variable `WHARF_BUILTINS` names (`.cargo/config.toml` sets it). Those that are not there are not built in.

#![expect(clippy::disallowed_methods, reason = "the files are read here")]

#[cfg(feature = "cli")]
fn main() -> std::io::Result<()> {
    program::write()
}

/// A program that embeds wharf has no built-in plugins.
#[cfg(not(feature = "cli"))]
fn main() {}

#[cfg(feature = "cli")]
mod program {
    use std::{
        env, fs,
        io::{Error, ErrorKind, Result},
        path::PathBuf,
    };

    use sha2::{Digest, Sha256};

    /// The built-in plugins: those that need only what a command line can grant and a config can narrow.
    const BUILT_IN: [&str; 6] = ["fetch", "files", "git", "memory", "sequentialthinking", "time"];

    /// Writes the table of built-in plugins to `builtins.rs`.
    pub fn write() -> Result<()> {
        println!("cargo::rerun-if-changed=build.rs");
        println!("cargo::rerun-if-env-changed=WHARF_BUILTINS");
        // Level 0 is that of the build for trying and for tests. It runs the same code, more slowly.
        let level = env::var("OPT_LEVEL").unwrap_or_default();
        println!("cargo::rustc-env=WHARF_OPT_LEVEL={level}");
        let to = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| Error::from(ErrorKind::NotFound))?);
        let from = env::var_os("WHARF_BUILTINS").filter(|from| !from.is_empty()).map(PathBuf::from);
        let (mut table, mut missing) = (String::from("[\n"), Vec::new());
        for name in from.iter().flat_map(|_| BUILT_IN) {
            let file = from.as_ref().map(|from| from.join(format!("{name}.wasm"))).unwrap_or_default();
            if !file.is_file() {
                missing.push(name);
                continue;
            }
            println!("cargo::rerun-if-changed={}", file.display());
            let component = fs::read(&file)?;
            let digest: [u8; 32] = Sha256::digest(&component).into();
            let deflated = miniz_oxide::deflate::compress_to_vec(&component, 9);
            fs::write(to.join(format!("{name}.deflated")), deflated)?;
            table += &format!(
                "    wharf_config::config::BuiltIn {{ name: {name:?}, digest: {digest:?}, deflated: include_bytes!(concat!(env!(\"OUT_DIR\"), \
                 \"/{name}.deflated\")) }},\n"
            );
        }
        if let Some(from) = from.filter(|_| !missing.is_empty()) {
            println!(
                "cargo::warning=not built into wharf, because {} does not contain them: {}; `cargo xtask guests` builds them",
                from.display(),
                missing.join(", ")
            );
            // Cargo runs this script again when a file is added to the folder.
            println!("cargo::rerun-if-changed={}", from.display());
        }
        fs::write(to.join("builtins.rs"), table + "]\n")
    }
}
