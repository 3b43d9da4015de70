//! The checks that need more than Rust, and the three tiers: what a pull request has to pass, what a merge has to, and what runs before a
//! release. `.ci/run`, the table in CONTRIBUTING.md and the workflow for pull requests are all made of, or compared with, the list here.

use std::{
    env,
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
    sync::{Condvar, Mutex, PoisonError},
    thread,
    time::Instant,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    adapted, bench, conformance, deny, existing, fuzz, languages, macos, others, package, packs, replicas, root, say,
    search, service, signatures, slots, soak, tidy,
};

/// The arguments with which a check runs in a tier, and the minutes that it takes; `None` if it is not a part of it.
type Runs = Option<(&'static [&'static str], f32)>;

/// A check, and how it runs in each tier.
struct Check {
    name: &'static str,
    /// What it does, and the arguments that a person may give it.
    what: &'static str,
    /// What it needs besides Rust.
    needs: &'static str,
    /// Before a merge. The minutes are on two cores, with everything built by `cargo xtask test`.
    merge: Runs,
    /// Before a release.
    release: Runs,
    run: fn(&Path, &[String]) -> Result<()>,
}

/// The minutes of `cargo xtask test`, after `cargo xtask demo`.
const TEST_MINUTES: f32 = 16.0;

const CHECKS: [Check; 21] = [
    Check {
        name: "tidy",
        what: "rules of this project that the compiler does not check; a part of `test`",
        needs: "",
        merge: None,
        release: None,
        run: |_, _| tidy(&[]),
    },
    Check {
        name: "deny",
        what: "licences, bans, sources and advisories of all dependencies",
        needs: "cargo-deny",
        merge: None,
        release: Some((&[], 0.1)),
        run: |root, _| deny::check(root),
    },
    Check {
        name: "languages",
        what: "plugins in every SDK's language, made from an empty folder as authors do; --brief: TypeScript, without the official suite; --only LANG, --abilities",
        needs: "npm, Python 3",
        merge: Some((&["--brief"], 4.0)),
        release: Some((&[], 10.0)),
        run: languages::check,
    },
    Check {
        name: "slots",
        what: "no data of a call reaches the next one: [CALLS], --languages with the guests of `languages`; --swap needs root",
        needs: "",
        merge: None,
        release: Some((&["100000", "--languages"], 5.0)),
        run: slots::check,
    },
    Check {
        name: "conformance",
        what: "the official suite in two versions, and official clients",
        needs: "npm, Python 3",
        merge: Some((&[], 4.0)),
        release: Some((&[], 3.0)),
        run: |root, _| conformance::check(root),
    },
    Check {
        name: "dropin",
        what: "answers of the plugins next to those of the reference servers that they replace; --brief for four of seven, --only NAME, \
               --timing; --figures: what both take, --table FILE",
        needs: "npm, Python 3",
        merge: Some((&["--brief"], 1.5)),
        release: Some((&[], 5.0)),
        run: others::dropin,
    },
    Check {
        name: "adapted",
        what: "programs and components of other projects; --brief for one of each kind",
        needs: "Python 3, npm",
        merge: None,
        release: Some((&[], 5.0)),
        run: adapted::check,
    },
    Check {
        name: "clients",
        what: "clients of many frameworks, and restarts of wharf under them; --brief for a few",
        needs: "npm, Python 3",
        merge: None,
        release: Some((&[], 30.0)),
        run: others::clients,
    },
    Check {
        name: "existing",
        what: "existing MCP servers in Python and TypeScript as plugins; --brief: expressions",
        needs: "npm, Python 3",
        merge: Some((&["--brief"], 6.0)),
        release: Some((&[], 35.0)),
        run: existing::check,
    },
    Check {
        name: "agents",
        what: "coding agents with a scripted model; --brief for two, --only NAME",
        needs: "npm",
        merge: Some((&["--brief"], 0.7)),
        release: Some((&[], 10.0)),
        run: others::agents,
    },
    Check {
        name: "login",
        what: "official clients log in at an identity provider; --only TEXT",
        needs: "npm, Python 3",
        merge: None,
        release: Some((&[], 1.0)),
        run: others::login,
    },
    Check {
        name: "soak",
        what: "all hostile clients and plugins at once, next to well-behaved ones: [SECONDS], by default a minute",
        needs: "",
        merge: None,
        release: Some((&["60"], 1.5)),
        run: soak,
    },
    Check {
        name: "packs",
        what: "packages of plugins by `wharf pack`, installed and used",
        needs: "npm, Python 3",
        merge: None,
        release: Some((&[], 3.0)),
        run: packs::check,
    },
    Check {
        name: "replicas",
        what: "three replicas behind nginx and HAProxy while they and Redis are killed; --only load|clients|ratio|people; --brief: the \
               load behind nginx, for a minute",
        needs: "Node.js, Debian; without --brief npm, Python 3",
        merge: None,
        release: Some((&[], 30.0)),
        run: replicas::check,
    },
    Check {
        name: "signatures",
        what: "signatures by sigstore's own library, with a second opinion; --record keeps them",
        needs: "npm, Python 3",
        merge: None,
        release: Some((&[], 1.0)),
        run: signatures::check,
    },
    Check {
        name: "fuzz",
        what: "the parsers of what clients and plugins send: [TARGET] [SECONDS], by default a minute for all",
        needs: "a C++ compiler",
        merge: None,
        release: Some((&["600"], 13.0)),
        run: fuzz::run,
    },
    Check {
        name: "macos",
        what: "wharf compiles for macOS; --brief for one of two processors",
        needs: "Python 3",
        merge: None,
        release: Some((&[], 8.0)),
        run: macos::check,
    },
    Check {
        name: "search",
        what: "the search for tools, on those of hundreds of other servers",
        needs: "npm, Python 3",
        merge: None,
        release: Some((&[], 2.0)),
        run: |root, _| search::check(root),
    },
    Check {
        name: "window",
        what: "the page of `wharf open` in Chromium, by keyboard, with a checker of accessibility",
        needs: "npm, Debian",
        merge: None,
        release: Some((&[], 1.5)),
        run: others::window,
    },
    Check {
        name: "service",
        what: "the systemd unit and the container image; --unit, --image",
        needs: "root on Debian",
        merge: None,
        release: None,
        run: service::check,
    },
    Check {
        name: "package",
        what: "packages of a binary, installed and used, and the workflows' syntax; `cargo xtask package` makes those for users",
        needs: "npm, Python 3",
        merge: None,
        release: None,
        run: package::run_command,
    },
];

/// Runs one check, or all of a tier with `--merge` or `--release`. Without an argument, lists them.
pub fn check(rest: &[String]) -> Result<()> {
    match rest.split_first() {
        None => {
            say(&list());
            Ok(())
        }
        Some((word, [])) if word == "--merge" => tier(|check| check.merge),
        Some((word, [])) if word == "--release" => tier(|check| check.release),
        Some((name, rest)) => {
            let check = CHECKS.iter().find(|check| check.name == name);
            let check = check.with_context(|| format!("there is no check {name}; there are:\n{}", list()))?;
            (check.run)(&root(), rest)
        }
    }
}

/// Runs everything that a release has to pass. The real binary that is tested is the one for use, for which all bounds on time are tighter.
pub fn all() -> Result<()> {
    crate::release::build(&root(), &[])?;
    for arguments in [["test"].as_slice(), &["check", "--release"]] {
        crate::run(crate::cargo().arg("xtask").args(arguments).env("WHARF_BIN", "target/release/wharf"))?;
    }
    bench(&["--fixed".to_owned()])?;
    package::run_command(&root(), &["--check".to_owned(), "--steps".to_owned()])
}

/// Checks that use what another one makes, after it.
const AFTER: [(&str, &str); 1] = [("slots", "languages")];
/// Checks whose bounds on time need the machine for themselves.
const ALONE: [&str; 3] = ["clients", "replicas", "soak"];

/// A check of a tier: the arguments that it runs with, and the minutes that it takes.
type Chosen<'c> = (&'c Check, &'static [&'static str], f32);

/// How far the checks of a tier are.
struct Progress<'c> {
    waiting: Vec<Chosen<'c>>,
    ended: Vec<&'static str>,
    failed: Vec<String>,
    /// The number of checks in all.
    all: usize,
}

impl<'c> Progress<'c> {
    /// Takes the first check that can begin. `alone`: one of those that run alone.
    fn next(&mut self, alone: bool) -> Option<Chosen<'c>> {
        let can_begin = |name: &str| AFTER.iter().all(|(later, first)| name != *later || self.ended.contains(first));
        let is_next = |(check, ..): &Chosen<'_>| ALONE.contains(&check.name) == alone && can_begin(check.name);
        let at = self.waiting.iter().position(is_next)?;
        let (line, left) =
            (line_of(*self.waiting.get(at)?), self.waiting.iter().map(|(_, _, minutes)| minutes).sum::<f32>());
        let number = self.all - self.waiting.len() + 1;
        say(&format!("[{number}/{}] check {line} ({left:.0} minutes of work left, for two at a time)", self.all));
        Some(self.waiting.remove(at))
    }
}

fn line_of((check, arguments, _): Chosen<'_>) -> String {
    [&[check.name], arguments].concat().join(" ")
}

/// Runs the checks of a tier, and names all that failed at the end. Most wait more than they compute, so two run at a time, each in a process
/// of its own whose output is printed when it has ended, and is in target/xtask until then.
fn tier(of: impl Fn(&Check) -> Runs) -> Result<()> {
    let mut waiting: Vec<Chosen<'_>> =
        CHECKS.iter().filter_map(|check| of(check).map(|(arguments, minutes)| (check, arguments, minutes))).collect();
    // The longest first, so that none of them is left at the end.
    waiting.sort_by(|(_, _, one), (_, _, other)| other.total_cmp(one));
    let progress = Progress { all: waiting.len(), waiting, ended: Vec::new(), failed: Vec::new() };
    let (progress, changed) = (Mutex::new(progress), Condvar::new());
    let lane = |alone: bool| {
        let mut now = progress.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(chosen) = now.next(alone) {
                drop(now);
                let passed = in_process(chosen);
                now = progress.lock().unwrap_or_else(PoisonError::into_inner);
                if let Err(error) = passed {
                    say(&format!("error: {error:#}"));
                    now.failed.push(line_of(chosen));
                }
                now.ended.push(chosen.0.name);
                changed.notify_all();
            } else if now.waiting.iter().any(|(check, ..)| ALONE.contains(&check.name) == alone) {
                now = changed.wait(now).unwrap_or_else(PoisonError::into_inner);
            } else {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| lane(false));
        }
    });
    lane(true);
    let failed = progress.into_inner().unwrap_or_else(PoisonError::into_inner).failed;
    ensure!(failed.is_empty(), "failed: {}", failed.join("; "));
    Ok(())
}

/// Runs a check in a process of its own, and prints its output in one piece.
fn in_process(chosen: Chosen<'_>) -> Result<()> {
    let began = Instant::now();
    let (line, (check, arguments, _)) = (line_of(chosen), chosen);
    let folder = root().join("target/xtask");
    fs::create_dir_all(&folder)?;
    let log = folder.join(format!("{}.log", check.name));
    let output = File::create(&log)?;
    let status = Command::new(env::current_exe()?)
        .args(["check", check.name])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .status()?;
    let text = fs::read(&log)?;
    let text = String::from_utf8_lossy(&text);
    say(&format!("---- check {line}, {:.0} s\n{}", began.elapsed().as_secs_f32(), text.trim_end()));
    ensure!(status.success(), "check {line}: {status}");
    Ok(())
}

/// The list that people read, a line for each check.
pub fn list() -> String {
    let lines = CHECKS.iter().map(|check| {
        let needs = if check.needs.is_empty() { String::new() } else { format!(" (needs {})", check.needs) };
        format!("  {:<12} {}{needs}", check.name, check.what)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The table of CONTRIBUTING.md.
pub fn table() -> String {
    let tier = |of: Option<(&[&str], f32)>| match of {
        Some((arguments, minutes)) => {
            let arguments = if arguments.is_empty() { String::new() } else { format!("`{}`: ", arguments.join(" ")) };
            format!("{arguments}{minutes}")
        }
        None => String::new(),
    };
    let sum = |of: fn(&Check) -> Runs| {
        let minutes = |check: &Check| {
            let at_a_time = if ALONE.contains(&check.name) { 1.0 } else { 2.0 };
            of(check).map_or(0.0, |(_, minutes)| minutes / at_a_time)
        };
        CHECKS.iter().map(minutes).sum::<f32>() + TEST_MINUTES
    };
    let mut lines = vec![
        "| command | tests | needs | pull request: `cargo xtask test` | merge: `.ci/run` | release: `cargo xtask all` |".to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
        format!(
            "| `test` | formatting, this project's rules, lints, and all tests of the code and of the real binary | | {TEST_MINUTES} | \
             {TEST_MINUTES} | {TEST_MINUTES} |"
        ),
    ];
    lines.extend(CHECKS.iter().map(|check| {
        let (merge, release) = (tier(check.merge), tier(check.release));
        let row = format!("| `check {}` | {} | {} | | {merge} | {release} |", check.name, check.what, check.needs);
        row.replace("  ", " ")
    }));
    lines.push("| `bench --fixed`, `package --check` | | npm, Python 3 | | | 75 |".to_owned());
    lines.push(format!(
        "| minutes in all | | | {TEST_MINUTES} | {:.0} | {:.0} |",
        sum(|check| check.merge),
        sum(|check| check.release) + 75.0
    ));
    lines.join("\n").replace("|  |", "| |")
}

/// Writes the table into CONTRIBUTING.md, in place of the one that is there; or, with `only_compare`, fails if it is another.
pub fn write_table(only_compare: bool) -> Result<()> {
    let file = root().join("CONTRIBUTING.md");
    let text = std::fs::read_to_string(&file)?;
    let (begin, end) = ("<!-- the table of checks -->\n", "\n<!-- end of the table -->");
    let (before, after) = text.split_once(begin).with_context(|| format!("CONTRIBUTING.md has no line {begin}"))?;
    let (_, after) = after.split_once(end).with_context(|| format!("CONTRIBUTING.md has no line {end}"))?;
    let written = format!("{before}{begin}{}{end}{after}", table());
    if written == text {
        return Ok(());
    }
    if only_compare {
        bail!("the table in CONTRIBUTING.md is not that of xtask/src/checks.rs; run `cargo xtask generate`");
    }
    Ok(std::fs::write(file, written)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands in a file, which it may indent and precede by `- run: `.
    fn commands(file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        let lines = text.lines().map(|line| line.trim().trim_start_matches("- run: "));
        lines.filter(|line| line.starts_with("cargo xtask")).map(str::to_owned).collect()
    }

    #[test]
    fn the_gate_the_workflow_and_the_table_are_of_one_list() {
        assert_eq!(commands(".ci/run"), ["cargo xtask test", "cargo xtask check --merge"]);
        assert_eq!(commands(".github/workflows/pull-request.yml"), ["cargo xtask test"]);
        write_table(true).unwrap();
    }

    #[test]
    fn every_check_has_one_name() {
        for (index, check) in CHECKS.iter().enumerate() {
            assert!(CHECKS.iter().skip(index + 1).all(|other| other.name != check.name), "{}", check.name);
        }
    }
}
