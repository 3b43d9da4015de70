//! The platforms that there are packages for, by the names that each registry has for them.

use std::{
    env::consts::{ARCH, OS},
    fs,
    path::Path,
};

use anyhow::{Context, Result};

pub struct Platform {
    /// Rust's target triple.
    pub triple: &'static str,
    /// npm's names. `libc` is set on Linux only.
    pub os: &'static str,
    pub cpu: &'static str,
    pub libc: Option<&'static str>,
    /// Debian's name of the architecture; set only for Linux with glibc.
    pub deb: Option<&'static str>,
}

pub const ALL: [Platform; 6] = [
    linux("x86_64-unknown-linux-gnu", "x64", "glibc", Some("amd64")),
    linux("aarch64-unknown-linux-gnu", "arm64", "glibc", Some("arm64")),
    linux("x86_64-unknown-linux-musl", "x64", "musl", None),
    linux("aarch64-unknown-linux-musl", "arm64", "musl", None),
    Platform { triple: "x86_64-apple-darwin", os: "darwin", cpu: "x64", libc: None, deb: None },
    Platform { triple: "aarch64-apple-darwin", os: "darwin", cpu: "arm64", libc: None, deb: None },
];

const fn linux(triple: &'static str, cpu: &'static str, libc: &'static str, deb: Option<&'static str>) -> Platform {
    Platform { triple, os: "linux", cpu, libc: Some(libc), deb }
}

impl Platform {
    pub fn named(triple: &str) -> Result<&'static Self> {
        ALL.iter().find(|platform| platform.triple == triple).with_context(|| {
            let all: Vec<_> = ALL.iter().map(|platform| platform.triple).collect();
            format!("there are no packages for {triple}; the platforms are {}", all.join(", "))
        })
    }

    /// Returns the platform of this machine; on Linux, the one with glibc.
    pub fn here() -> Result<&'static Self> {
        Self::named(&match OS {
            "macos" => format!("{ARCH}-apple-darwin"),
            _ => format!("{ARCH}-unknown-linux-gnu"),
        })
    }

    /// Returns the name in the file names of packages: `linux-x64`, `linux-x64-musl`.
    pub fn name(&self) -> String {
        let libc = if self.libc == Some("musl") { "-musl" } else { "" };
        format!("{}-{}{libc}", self.os, self.cpu)
    }

    /// Returns the platform tag of a wheel with this binary.
    pub fn wheel(&self, binary: &Path) -> Result<String> {
        let arch = if self.cpu == "x64" { "x86_64" } else { "aarch64" };
        Ok(match (self.os, self.libc) {
            ("darwin", _) if self.cpu == "x64" => "macosx_10_12_x86_64".into(),
            ("darwin", _) => "macosx_11_0_arm64".into(),
            // The binary is linked statically with musl, so any Linux will do.
            (_, Some("musl")) => format!("manylinux_2_17_{arch}.musllinux_1_1_{arch}"),
            _ => {
                let (major, minor) = glibc(binary)?;
                format!("manylinux_{major}_{minor}_{arch}")
            }
        })
    }
}

/// Returns the newest glibc version whose symbols the binary uses.
pub fn glibc(binary: &Path) -> Result<(u32, u32)> {
    let bytes = fs::read(binary)?;
    let version = |part: &[u8]| {
        let end = part.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b'.'))?;
        let (major, minor) = std::str::from_utf8(part.get(..end)?).ok()?.split_once('.')?;
        Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
    };
    const MARK: &[u8] = b"GLIBC_";
    let marks = bytes.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    let versions = marks.filter_map(|(at, _)| version(bytes.get(at + MARK.len()..)?));
    versions.max().with_context(|| format!("{} uses no symbols of glibc", binary.display()))
}
