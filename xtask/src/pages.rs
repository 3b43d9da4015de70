//! Executes sections of a page of the documentation that show a file and the commands for it, as a reader would: in an empty folder, with the
//! SDKs of this repository in place of those in the registries.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{run, run_in, say, tree::built};

const PAGE: &str = "docs/existing.md";
/// The headings of the sections, each with the name under which the file that it shows is saved.
const SECTIONS: [(&str, &str); 2] = [("## Python", "server.py"), ("## TypeScript and JavaScript", "server.ts")];
/// What a command prints, in the comment at its end.
const PRINTS: &str = "# prints ";

/// Executes all sections below `work`. `python`: an interpreter with pip.
pub fn execute(root: &Path, work: &Path, python: &Path) -> Result<()> {
    if work.exists() {
        fs::remove_dir_all(work)?;
    }
    let packages = packages(root, &work.join("packages"), python)?;
    let page = fs::read_to_string(root.join(PAGE))?;
    for (heading, file) in SECTIONS {
        let began = Instant::now();
        let folder = work.join(file);
        fs::create_dir_all(&folder)?;
        let [shown, commands] = blocks(&page, heading).with_context(|| format!("{PAGE}, {heading}"))?;
        fs::write(folder.join(file), shown)?;
        for line in commands.lines() {
            execute_line(root, &folder, line, &packages).with_context(|| format!("{PAGE}: {line}"))?;
        }
        say(&format!("{file} of {PAGE} was executed in {:.0} s", began.elapsed().as_secs_f64()));
    }
    Ok(())
}

/// Returns the first two fenced blocks of a section: the file, then the commands.
fn blocks<'p>(page: &'p str, heading: &str) -> Result<[&'p str; 2]> {
    let (_, section) = page.split_once(&format!("\n{heading}\n")).context("the page has no such heading")?;
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut pieces =
        section.split("```").skip(1).step_by(2).map(|block| block.split_once('\n').map(|(_, lines)| lines));
    match (pieces.next().flatten(), pieces.next().flatten()) {
        (Some(file), Some(commands)) => Ok([file, commands]),
        _ => bail!("the section does not show a file and commands"),
    }
}

/// The SDKs of this repository, packed as for the registries.
struct Packages {
    /// A folder with wheels, for pip.
    wheels: PathBuf,
    /// The archive of wharf-sdk, for npm.
    sdk: PathBuf,
}

fn packages(root: &Path, folder: &Path, python: &Path) -> Result<Packages> {
    fs::create_dir_all(folder)?;
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--wheel-dir"]).arg(folder);
    run(pip.args(["python", "python-compat"].map(|name| root.join("sdk-guest").join(name))))?;
    let pack = ["pack", "--ignore-scripts", "--loglevel=error", "--pack-destination"];
    run_in(&root.join("sdk-guest/ts"), Command::new("npm").args(pack).arg(folder).stdout(Stdio::null()))?;
    let sdk = fs::read_dir(folder)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "tgz"))
        .context("npm packed nothing")?;
    Ok(Packages { wheels: folder.to_owned(), sdk })
}

fn execute_line(root: &Path, folder: &Path, line: &str, packages: &Packages) -> Result<()> {
    // npm takes a package that is in no registry only by its path.
    let install = "npm install --save-dev wharf-sdk";
    let line = line.replace(install, &format!("npm install --save-dev {}", packages.sdk.display()));
    let mut paths = vec![built("")];
    paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut command = Command::new("bash");
    command.args(["-c", &line]).current_dir(folder).env("PATH", std::env::join_paths(paths)?);
    command
        .env("PIP_FIND_LINKS", &packages.wheels)
        .env("PIP_QUIET", "1")
        .env("XDG_CACHE_HOME", root.join("target/existing"));
    let output = command.stdin(Stdio::null()).output()?;
    let (printed, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{}\n{printed}{log}", output.status);
    if let Some((_, expected)) = line.split_once(PRINTS) {
        ensure!(printed.trim() == expected, "it printed {:?}", printed.trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    #[test]
    fn each_section_shows_a_server_and_how_to_call_it() {
        let page = fs::read_to_string(root().join(PAGE)).unwrap();
        for (heading, file) in SECTIONS {
            let [shown, commands] = blocks(&page, heading).unwrap();
            assert!(shown.contains("notes") && commands.contains(file) && commands.contains(PRINTS), "{heading}");
        }
    }

    #[test]
    fn the_servers_of_pypi_that_the_check_holds_to_run_are_listed_and_counted() {
        let files = [PAGE, "tests/existing/README.md", "tests/existing/python.toml"];
        let [page, table, corpus] = files.map(|file| fs::read_to_string(root().join(file)).unwrap());
        let runs = corpus.split("[[server]]").filter(|server| server.contains("\nruns = true\n"));
        let runs: Vec<&str> = runs.map(|server| server.split('"').nth(1).unwrap()).collect();
        for name in &runs {
            let row = table.lines().find(|line| line.starts_with(&format!("| {name} ")));
            assert!(row.is_some_and(|row| row.contains("| equal: ")), "{name}: {row:?}");
        }
        assert!(page.contains(&format!("of {} servers of PyPI", runs.len())), "{}", runs.len());
    }
}
