//! `cargo xtask bench --builds`: what a newcomer waits for, measured. The last commit is cloned into an empty folder, and with an empty
//! registry of crates the demo, the tests and the checks before a merge run there, as the README and `.ci/run` run them.

use std::{env, fs, path::Path, process::Command, time::Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::{run, say};

/// The figures so far: a line for each measurement.
const FIGURES: &str = "tests/bench/builds.tsv";
/// A rise that has to be argued in the commit that records it.
const RISE: f64 = 1.1;
/// What is measured, one after the other in the same folder.
const STEPS: [(&str, &[&str]); 3] = [("demo", &["demo"]), ("test", &["test"]), ("merge", &["check", "--merge"])];

/// One line of the figures.
#[derive(Debug, Clone, PartialEq)]
struct Figure {
    date: String,
    commit: String,
    machine: String,
    step: String,
    /// By the clock, and on all cores.
    seconds: f64,
    cpu_seconds: f64,
}

impl Figure {
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [date, commit, machine, step, seconds, cpu_seconds] = fields.as_slice() else { return None };
        Some(Self {
            date: (*date).to_owned(),
            commit: (*commit).to_owned(),
            machine: (*machine).to_owned(),
            step: (*step).to_owned(),
            seconds: seconds.parse().ok()?,
            cpu_seconds: cpu_seconds.parse().ok()?,
        })
    }

    fn line(&self) -> String {
        let Self { date, commit, machine, step, seconds, cpu_seconds } = self;
        format!("{date}\t{commit}\t{machine}\t{step}\t{seconds:.0}\t{cpu_seconds:.0}")
    }
}

/// Measures. `rest` may name steps, else all are measured; `--record` adds the figures to the file.
pub fn measure(root: &Path, rest: &[String]) -> Result<()> {
    let known = STEPS.map(|(name, _)| name);
    let words: Vec<&str> = rest.iter().map(String::as_str).filter(|word| *word != "--builds").collect();
    if let Some(unknown) = words.iter().find(|word| **word != "--record" && !known.contains(word)) {
        bail!("there is no {unknown}; there are --record, {}", known.join(", "));
    }
    // A step needs what the ones before it have built.
    let last = STEPS.iter().rposition(|(name, _)| words.contains(name)).unwrap_or(STEPS.len() - 1);
    let folder = env::temp_dir().join(format!("wharf-builds-{}", std::process::id()));
    let source = folder.join("wharf");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    run(Command::new("git").args(["clone", "--quiet", "."]).arg(&source))?;
    let file = root.join(FIGURES);
    let text = fs::read_to_string(&file).with_context(|| FIGURES.to_owned())?;
    let before: Vec<Figure> = text.lines().filter_map(Figure::parse).collect();
    let commit = said_by("git", &["-C", &source.display().to_string(), "rev-parse", "--short=8", "HEAD"])?;
    let mut measured = Vec::new();
    for (name, arguments) in STEPS.iter().take(last + 1) {
        say(&format!("cargo xtask {}, in {}", arguments.join(" "), source.display()));
        let (began, cpu_before) = (Instant::now(), cpu_of_children()?);
        let mut cargo = Command::new("cargo");
        cargo.arg("xtask").args(*arguments).current_dir(&source).env("CARGO_HOME", folder.join("cargo"));
        // Cargo passes these to what it runs, and so to this program.
        for variable in ["CARGO", "CARGO_MANIFEST_DIR", "RUSTUP_TOOLCHAIN", "WHARF_BUILTINS"] {
            cargo.env_remove(variable);
        }
        let ended = cargo.status().context("cannot run cargo")?;
        ensure!(ended.success(), "cargo xtask {}: {ended}; the folder is {}", arguments.join(" "), folder.display());
        let figure = Figure {
            date: said_by("date", &["+%F"])?,
            commit: commit.clone(),
            machine: machine()?,
            step: (*name).to_owned(),
            seconds: began.elapsed().as_secs_f64(),
            cpu_seconds: cpu_of_children()? - cpu_before,
        };
        say(&compared(&figure, &before));
        measured.push(figure);
    }
    fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    if words.contains(&"--record") {
        let lines: String = measured.iter().map(|figure| figure.line() + "\n").collect();
        fs::write(&file, text + &lines)?;
    }
    Ok(())
}

/// Returns a figure as a sentence, and the one before it of the same step and machine.
fn compared(figure: &Figure, before: &[Figure]) -> String {
    let minutes = |seconds: f64| format!("{:.0}:{:02.0}", (seconds / 60.0).floor(), (seconds % 60.0).floor());
    let mut says =
        format!("{}: {} minutes, {} of CPU time", figure.step, minutes(figure.seconds), minutes(figure.cpu_seconds));
    let earlier = before.iter().rev().find(|one| one.step == figure.step && one.machine == figure.machine);
    if let Some(earlier) = earlier {
        let times = figure.cpu_seconds / earlier.cpu_seconds;
        says += &format!("; {times:.2} times the CPU time at {}", earlier.commit);
        if times > RISE {
            says += ": a rise of more than a tenth; say in the commit why it is worth it";
        }
    }
    says
}

/// Returns the seconds that all ended children of this process, and theirs, have been on a core.
fn cpu_of_children() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat").context("this needs Linux")?;
    // The name, in parentheses, may contain spaces. After it, user and system time of children are the 14th and 15th field, in ticks.
    let fields = stat.rsplit_once(") ").map(|(_, after)| after.split_whitespace()).context("/proc/self/stat")?;
    let ticks: f64 = fields.skip(13).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    let a_second: f64 = said_by("getconf", &["CLK_TCK"])?.parse()?;
    Ok(ticks / a_second)
}

/// The processor and the number of cores.
fn machine() -> Result<String> {
    let info = fs::read_to_string("/proc/cpuinfo")?;
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        line.split_once(": ").map(|(_, value)| value.to_owned())
    };
    let cores = std::thread::available_parallelism()?;
    let name = field("model name").unwrap_or_else(|| env::consts::ARCH.to_owned());
    let (family, model) = (field("cpu family").unwrap_or_default(), field("model\t").unwrap_or_default());
    Ok(format!("{name} (family {family}, model {model}), {cores} cores"))
}

fn said_by(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).output().with_context(|| program.to_owned())?;
    ensure!(output.status.success(), "{program}: {}", output.status);
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_by_more_than_a_tenth_is_named() {
        let figure = |commit: &str, machine: &str, cpu_seconds| Figure {
            date: "2026-11-28".into(),
            commit: commit.into(),
            machine: machine.into(),
            step: "demo".into(),
            seconds: 61.0,
            cpu_seconds,
        };
        let before = [figure("a", "m", 50.0), figure("b", "m", 100.0), figure("c", "other", 1.0)];
        assert_eq!(
            compared(&figure("d", "m", 105.0), &before),
            "demo: 1:01 minutes, 1:45 of CPU time; 1.05 times the CPU time at b"
        );
        assert!(compared(&figure("d", "m", 111.0), &before).contains("more than a tenth"));
        assert!(!compared(&figure("d", "new", 111.0), &before).contains("times"));
    }

    #[test]
    fn each_line_of_the_file_is_a_figure_or_a_comment() {
        let text = fs::read_to_string(crate::root().join(FIGURES)).unwrap();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            assert_eq!(Figure::parse(line).map(|figure| figure.line()).as_deref(), Some(line));
        }
    }

    #[test]
    fn this_machine_has_a_name_and_children_use_time() {
        assert!(machine().unwrap().ends_with("cores"));
        assert!(cpu_of_children().unwrap() >= 0.0);
    }
}
