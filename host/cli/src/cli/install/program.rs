//! How a client is to start this wharf: by the path of its binary, or by the package runner that started it.

#![expect(clippy::disallowed_methods, reason = "looks where this binary lies, and what `npx` was asked to run")]

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::setup::server::PACKAGE;

/// What a client is to start.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    pub command: String,
    /// The words before the arguments for wharf.
    pub before: Vec<String>,
}

impl Program {
    /// Returns how this process was started. The folders of package runners are emptied at any time, so such a client is to use the
    /// package runner as well.
    pub fn here() -> Result<Self> {
        let own = std::env::current_exe().context("the path of this program cannot be determined")?;
        if let Some(runner) = Self::runner(&own) {
            return Ok(runner);
        }
        let path = on_path(own).into_os_string().into_string();
        let command = path.map_err(|path| anyhow::anyhow!("{}: the path is not UTF-8", path.display()))?;
        Ok(Self { command, before: Vec::new() })
    }

    /// Returns the package runner to whose folder a binary belongs, if it belongs to one.
    fn runner(binary: &Path) -> Option<Self> {
        let fetched = |command: &str, before: &[&str]| Self {
            command: command.to_owned(),
            before: before.iter().map(|&word| word.to_owned()).collect(),
        };
        let parts: Vec<&str> = binary.iter().filter_map(|part| part.to_str()).collect();
        if let Some(at) = parts.iter().position(|part| *part == "_npx") {
            let folder: PathBuf = parts.get(..at + 2)?.iter().collect();
            return Some(fetched("npx", &["-y", &asked_of_npx(&folder).unwrap_or_else(|| PACKAGE.to_owned())]));
        }
        let of_uv = |part: &&str| part.starts_with("archive-v") || part.starts_with("environments-v");
        parts.iter().any(of_uv).then(|| fetched("uvx", &[PACKAGE]))
    }

    /// Returns why the program may soon be gone.
    pub fn short_lived(&self) -> Option<&'static str> {
        let is_temporary = Path::new(&self.command).starts_with(std::env::temp_dir());
        is_temporary.then_some("is in the folder for temporary files")
    }
}

/// Returns the package as it was named to npx, with its version if one was named. npx writes it into the folder of the package.
fn asked_of_npx(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join("package.json")).ok()?;
    let about: Value = serde_json::from_str(&text).ok()?;
    let asked = about.pointer("/_npx/packages/0")?.as_str()?;
    let version = asked.strip_prefix(PACKAGE)?.strip_prefix('@')?;
    let is_version = version.chars().all(|c| c.is_ascii_alphanumeric() || ".-+^~".contains(c));
    is_version.then(|| asked.to_owned())
}

/// Returns the path of this binary. A path through `PATH` is preferred, since it stays the same when a package manager updates wharf.
fn on_path(own: PathBuf) -> PathBuf {
    let real = own.canonicalize().unwrap_or_else(|_| own.clone());
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut found =
        std::env::split_paths(&folders).filter(|folder| folder.is_absolute()).map(|folder| folder.join("wharf"));
    found.find(|path| path.canonicalize().is_ok_and(|path| path == real)).unwrap_or(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_package_runner_started_is_started_by_it_again() {
        let folder = tempfile::tempdir().unwrap();
        let npx = folder.path().join("_npx/0a1b");
        let binary = npx.join("node_modules/@wharf-mcp/cli-linux-x64/wharf");
        let line = || {
            let runner = Program::runner(&binary).unwrap();
            format!("{} {}", runner.command, runner.before.join(" "))
        };
        std::fs::create_dir_all(&npx).unwrap();
        for (asked, expected) in [
            ("", "npx -y wharf-mcp"),
            ("{ \"_npx\": { \"packages\": [\"wharf-mcp\"] } }", "npx -y wharf-mcp"),
            ("{ \"_npx\": { \"packages\": [\"wharf-mcp@0.3.1\"] } }", "npx -y wharf-mcp@0.3.1"),
            ("{ \"_npx\": { \"packages\": [\"wharf-mcp@file:../a b\"] } }", "npx -y wharf-mcp"),
            ("{ \"_npx\": { \"packages\": [\"wharf-mcpp@1\"] } }", "npx -y wharf-mcp"),
        ] {
            std::fs::write(npx.join("package.json"), asked).unwrap();
            assert_eq!(line(), expected, "{asked}");
        }
        let uv = Program::runner(Path::new("/home/me/.cache/uv/archive-v0/x1/bin/wharf")).unwrap();
        assert_eq!((uv.command.as_str(), uv.before.join(" ").as_str()), ("uvx", "wharf-mcp"));
        for own in ["/usr/bin/wharf", "/home/me/.local/share/uv/tools/wharf-mcp/bin/wharf"] {
            assert_eq!(Program::runner(Path::new(own)), None, "{own}");
        }
    }
}
