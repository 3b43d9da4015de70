//! Runs the official MCP conformance suite, in two versions, against the real binary, and then other people's clients.
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

use crate::{installed, prepare, say};

pub mod child;
mod tally;

use child::{Server, finish};
use tally::Tally;

/// One run of the suite.
pub struct Run {
    name: &'static str,
    package: &'static str,
    arguments: &'static [&'static str],
    /// Fewer successful checks than this mean that scenarios were left out.
    at_least: usize,
}

const SUITE: &str = "@modelcontextprotocol/conformance";
/// The version that most people get today, because they name none.
const OLDER_SUITE: &str = "conformance-0.1";

pub const RUNS: [Run; 5] = [
    Run { name: "2025-11-25", package: SUITE, arguments: &["--requirements", "2025-11-25"], at_least: 83 },
    Run { name: "2026-07-28", package: SUITE, arguments: &["--requirements", "2026-07-28"], at_least: 196 },
    Run {
        name: "2025-06-18",
        package: SUITE,
        arguments: &["--suite", "all", "--spec-version", "2025-06-18"],
        at_least: 56,
    },
    Run { name: "older suite", package: OLDER_SUITE, arguments: &[], at_least: 39 },
    Run { name: "older suite, all", package: OLDER_SUITE, arguments: &["--suite", "all"], at_least: 46 },
];

/// The most time for one run of the suite. It usually takes seconds; the suite itself ends each scenario after half a minute.
const PATIENCE: Duration = Duration::from_secs(300);
/// The most time for all clients together. The script that runs them also ends each client that takes too long.
const CLIENTS_PATIENCE: Duration = Duration::from_secs(1800);

/// Builds, installs, runs everything, and fails at the end if anything did.
pub fn check(root: &Path) -> Result<()> {
    prepare(&["embedded"])?;
    let place = Place::set_up(root)?;
    let mut problems = suite(&place, "wharf", &place.config(), &RUNS)?;
    // The newest of each era once more, with wharf as a part of another program.
    problems.extend(suite(&place, "embedded", &place.config(), RUNS.get(..2).unwrap_or_default())?);
    if let Err(problem) = clients(&place) {
        problems.push(format!("clients: {problem:#}"));
    }
    if problems.is_empty() { Ok(()) } else { bail!("not conforming:\n  {}", problems.join("\n  ")) }
}

/// The folders that a run of the suite uses.
pub struct Place {
    root: PathBuf,
    /// `tests/conformance`, with the lockfile of what is installed, and wharf's config.
    source: PathBuf,
    /// `target/conformance`, for what is installed and what the runs write.
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

    /// Node.js in the version that the lockfile pins, because the suite does not start on older ones. It is the machine's own
    /// if npm has none for this machine.
    fn node(&self) -> Command {
        let installed = self.target.join("node_modules/.bin/node");
        Command::new(if installed.exists() { installed } else { "node".into() })
    }

    fn built(&self, binary: &str) -> PathBuf {
        self.root.join("target/release").join(binary)
    }

    pub fn config(&self) -> PathBuf {
        self.source.join("wharf.toml")
    }
}

/// Makes these runs of the suite against one server, and returns what is wrong.
pub fn suite(place: &Place, binary: &str, config: &Path, runs: &[Run]) -> Result<Vec<String>> {
    let server = Server::start(&place.built(binary), config, &place.target)?;
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
        if sum.success < run.at_least {
            found.push(format!("only {} checks succeeded; {} should", sum.success, run.at_least));
        }
        if !clean && found.is_empty() {
            found.push("the suite failed, and none of its checks says why".into());
        }
        problems.extend(found.into_iter().map(|problem| format!("{}: {problem}", run.name)));
    }
    Ok(problems)
}

impl Run {
    /// What the scenarios checked, and whether the suite itself was content.
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
        let status = finish(&mut command, PATIENCE)?;
        Ok((Tally::read(&folder)?, status.success()))
    }
}

/// The clients have an entry point of their own: it starts wharf as each of them needs it, prints what they found, and fails if
/// any of them does. The processes that it starts find the installed `node` first, as it does itself.
fn clients(place: &Place) -> Result<()> {
    let script = place.source.join("clients/run.mjs");
    ensure!(script.is_file(), "{} is missing", script.display());
    let path = env::var_os("PATH").unwrap_or_default();
    let installed = place.target.join("node_modules/.bin");
    let path = env::join_paths([installed].into_iter().chain(env::split_paths(&path)))?;
    let mut command = place.node();
    command.arg(&script).arg("--bin").arg(place.built("wharf")).arg("--config").arg(place.config());
    command.current_dir(&place.root).env("PATH", path);
    let status = finish(&mut command, CLIENTS_PATIENCE)?;
    ensure!(status.success(), "{status}");
    Ok(())
}
