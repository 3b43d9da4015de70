//! Runs the official MCP conformance suite, in two versions, against the real binary, and then third-party clients.
//!
//! The suite's own verdict is not enough: it ignores warnings and every scenario that it does not score. So each run gets an
//! empty list of expected failures, which makes the suite itself strict, and the results of all checks are added up here.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    installed, say,
    tree::{built, prepare, wharf},
};

pub mod child;
mod tally;

use child::{Server, finish};
use tally::Tally;

/// One run of the suite.
pub struct Run {
    name: &'static str,
    package: &'static str,
    arguments: &'static [&'static str],
    /// The number of checks that have to succeed. Fewer mean that scenarios were left out.
    min_successes: usize,
}

const SUITE: &str = "@modelcontextprotocol/conformance";
/// The suite in the version that npm installs by default.
const OLDER_SUITE: &str = "conformance-0.1";

pub const RUNS: [Run; 5] = [
    Run { name: "2025-11-25", package: SUITE, arguments: &["--requirements", "2025-11-25"], min_successes: 83 },
    Run { name: "2026-07-28", package: SUITE, arguments: &["--requirements", "2026-07-28"], min_successes: 196 },
    Run {
        name: "2025-06-18",
        package: SUITE,
        arguments: &["--suite", "all", "--spec-version", "2025-06-18"],
        min_successes: 56,
    },
    Run { name: "older suite", package: OLDER_SUITE, arguments: &[], min_successes: 39 },
    Run { name: "older suite, all", package: OLDER_SUITE, arguments: &["--suite", "all"], min_successes: 46 },
];

/// The time limit of one run of the suite. It usually takes seconds; the suite itself stops each scenario after half a minute.
const SUITE_TIMEOUT: Duration = Duration::from_secs(300);
/// The time limit of all clients together. The script that runs them also stops each client that takes too long.
const CLIENTS_TIMEOUT: Duration = Duration::from_secs(1800);

/// Builds wharf, installs the suite and the clients, runs them all, and fails at the end if any of them failed.
pub fn check(root: &Path) -> Result<()> {
    prepare(&["embedded"])?;
    let place = Place::set_up(root)?;
    let mut problems = suite(&place, "wharf", &place.config(), &RUNS)?;
    // The newest of each era again, with wharf embedded in another program.
    problems.extend(suite(&place, "embedded", &place.config(), RUNS.get(..2).unwrap_or_default())?);
    if let Err(problem) = clients(&place) {
        problems.push(format!("clients: {problem:#}"));
    }
    if problems.is_empty() { Ok(()) } else { bail!("not conforming:\n  {}", problems.join("\n  ")) }
}

/// The folders that a run of the suite uses.
pub struct Place {
    root: PathBuf,
    /// `tests/conformance`, which has the lockfile and wharf's config.
    source: PathBuf,
    /// `target/conformance`, for installed packages and the output of the runs.
    pub target: PathBuf,
}

impl Place {
    pub fn set_up(root: &Path) -> Result<Self> {
        let place = Self {
            root: root.to_path_buf(),
            source: root.join("tests/conformance"),
            target: root.join("target/conformance"),
        };
        fs::create_dir_all(&place.target)?;
        installed::npm(&place.source, &place.target)?;
        Ok(place)
    }

    /// Returns a command for Node.js in the version that the lockfile pins, because the suite does not start on older ones. If npm has no
    /// Node.js for this machine, it is the machine's own.
    fn node(&self) -> Command {
        let installed = self.target.join("node_modules/.bin/node");
        Command::new(if installed.exists() { installed } else { "node".into() })
    }

    fn program(&self, binary: &str) -> PathBuf {
        if binary == "wharf" { wharf() } else { built(binary) }
    }

    pub fn config(&self) -> PathBuf {
        self.source.join("wharf.toml")
    }
}

/// Runs the suite against one server in each of these ways, and returns the problems.
pub fn suite(place: &Place, binary: &str, config: &Path, runs: &[Run]) -> Result<Vec<String>> {
    let server = Server::start(&place.program(binary), config, &place.target)?;
    let baseline = place.target.join("expected-failures.yml");
    fs::write(&baseline, "server: []\n")?;
    let mut problems = Vec::new();
    say(&format!(
        "{:<18} {:>9} {:>8} {:>8} {:>8} {:>8}",
        binary, "scenarios", "success", "failure", "warning", "skipped"
    ));
    for run in runs {
        let (tally, clean) = run.start(place, &server.url, &baseline).with_context(|| run.name)?;
        let sum = tally.sum();
        say(&format!(
            "{:<18} {:>9} {:>8} {:>8} {:>8} {:>8}",
            run.name,
            tally.scenarios(),
            sum.success,
            sum.failure,
            sum.warning,
            sum.skipped
        ));
        let mut found = tally.problems();
        if sum.success < run.min_successes {
            found.push(format!("only {} checks succeeded; {} should", sum.success, run.min_successes));
        }
        if !clean && found.is_empty() {
            found.push("the suite failed, but no check did; see suite.log".into());
        }
        problems.extend(found.into_iter().map(|problem| format!("{}: {problem}", run.name)));
    }
    Ok(problems)
}

impl Run {
    /// Runs the suite; returns the results of its checks, and whether it exited with success.
    fn start(&self, place: &Place, url: &str, baseline: &Path) -> Result<(Tally, bool)> {
        let folder = place.target.join("results").join(self.name.replace([' ', ','], "-"));
        // Results of an earlier run would be added to these.
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let script = place.target.join("node_modules").join(self.package).join("dist/index.js");
        ensure!(script.is_file(), "{} is missing", script.display());
        let log = File::create(folder.join("suite.log"))?;
        let mut command = place.node();
        command.arg(script).args(["server", "--url", url]).args(self.arguments);
        command.arg("--expected-failures").arg(baseline).arg("-o").arg(&folder);
        command.current_dir(&place.target).env("NO_COLOR", "1").stdout(log.try_clone()?).stderr(log);
        let status = finish(&mut command, SUITE_TIMEOUT)?;
        Ok((Tally::read(&folder)?, status.success()))
    }
}

/// Runs the third-party clients by their own script, which starts wharf as each of them needs it, prints their results, and fails if any
/// of them fails. The installed `node` comes first in `PATH` of the script and of the processes that it starts.
fn clients(place: &Place) -> Result<()> {
    let script = place.source.join("clients/run.mjs");
    ensure!(script.is_file(), "{} is missing", script.display());
    let path = env::var_os("PATH").unwrap_or_default();
    let installed = place.target.join("node_modules/.bin");
    let path = env::join_paths([installed].into_iter().chain(env::split_paths(&path)))?;
    let mut command = place.node();
    command.arg(&script).arg("--bin").arg(place.program("wharf")).arg("--config").arg(place.config());
    command.current_dir(&place.root).env("PATH", path);
    let status = finish(&mut command, CLIENTS_TIMEOUT)?;
    ensure!(status.success(), "{status}");
    Ok(())
}
