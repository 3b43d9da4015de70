//! The machines that a binary of wharf runs on, by the names that npm, PyPI and desktop clients have for them.

use std::env::consts::{ARCH, OS};

use anyhow::{Context, Result, bail};

/// The machines that the binary of this process runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// npm's name of the system, which is MCPB's as well.
    pub os: &'static str,
    /// npm's name of the processor.
    pub cpu: &'static str,
    /// npm's name of the C library; on Linux only.
    pub libc: Option<&'static str>,
    /// The platform tag of a wheel.
    pub wheel: String,
}

impl Machine {
    /// Finds out where this binary runs.
    pub fn of(binary: &[u8]) -> Result<Self> {
        let cpu = match ARCH {
            "x86_64" => "x64",
            "aarch64" => "arm64",
            other => bail!("there are no packages for the processor {other}"),
        };
        let is_musl = cfg!(target_env = "musl");
        let (os, libc, wheel) = match OS {
            "macos" if cpu == "x64" => ("darwin", None, "macosx_10_12_x86_64".to_owned()),
            "macos" => ("darwin", None, "macosx_11_0_arm64".to_owned()),
            // A binary with musl is linked statically, so any Linux will do.
            "linux" if is_musl => ("linux", None, format!("manylinux_2_17_{ARCH}.musllinux_1_1_{ARCH}")),
            "linux" => {
                let (major, minor) = glibc(binary).context("the binary of wharf names no version of glibc")?;
                ("linux", Some("glibc"), format!("manylinux_{major}_{minor}_{ARCH}"))
            }
            other => bail!("there are no packages for the system {other}"),
        };
        Ok(Self { os, cpu, libc, wheel })
    }

    /// The name in file names of packages, such as `linux-x64`.
    pub fn name(&self) -> String {
        let musl = if self.os == "linux" && self.libc.is_none() { "-musl" } else { "" };
        format!("{}-{}{musl}", self.os, self.cpu)
    }
}

/// Returns the newest version of glibc whose symbols a binary uses.
fn glibc(binary: &[u8]) -> Option<(u32, u32)> {
    let version = |at: usize| {
        let rest = binary.get(at..)?;
        let end = rest.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b'.'))?;
        let mut parts = std::str::from_utf8(rest.get(..end)?).ok()?.split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    const MARK: &[u8] = b"GLIBC_";
    let marks = binary.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    marks.filter_map(|(at, _)| version(at + MARK.len())).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_glibc_counts() {
        assert_eq!(glibc(b"\0GLIBC_2.2.5\0GLIBC_2.28\0GLIBC_2.9\0GLIBC_PRIVATE\0"), Some((2, 28)));
        assert_eq!(glibc(b"GLIBC_"), None);
    }
}
