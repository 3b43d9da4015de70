//! `wharf test`: runs the test cases of a plugin on the real host, on the same path as a client's calls, and compares the outcome with
//! what the cases expect.

#![expect(clippy::disallowed_methods, reason = "creates the folder of the report that the user names")]

use std::{
    collections::BTreeMap,
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use futures_util::{StreamExt, stream};
use serde_json::{Map, Value, json};
use wharf_sandbox::Sandbox;

use self::{
    cases::{Action, Case, List},
    client::{Client, Ended},
    report::Finished,
    snapshots::{Compared, Mode, Place},
    stage::{Stage, StageError},
    subject::Subject,
};
use super::{arguments::Test, file, load::print, person::Person};
use wharf_app::operator;
use wharf_base::{
    below::Below,
    failed::{OrFailed, failed},
    text,
};
use wharf_config::config::{self, CommandLine};

mod cases;
mod client;
mod judge;
mod network;
mod report;
mod snapshots;
mod stage;
mod subject;

/// The maximum number of cases that run at the same time.
const MAX_PARALLEL_CASES: usize = 4;
/// The largest file of cases that is read.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// The folder of the cases in the folder of a plugin.
const TESTS_FOLDER: &str = "tests";
/// The name of the case that every plugin has: its lists are compared with a snapshot.
const LISTS_CASE: &str = "lists";

pub(super) async fn run(command: Test) -> Result<ExitCode> {
    let mode = mode(&command)?;
    let person = match mode {
        Mode::Review => {
            Some(Person::here().context("--review asks questions at a terminal, and there is no terminal")?)
        }
        _ => None,
    };
    let cases = cases(&command)?;
    let subject = Subject::of(&command).await?;
    let (sandbox, _cache) = sandbox()?;
    let at_once = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_PARALLEL_CASES);
    let playing = cases.iter().map(|case| play(case, &subject, &sandbox, mode));
    let mut playing = stream::iter(playing).buffered(at_once);
    let mut finished = Vec::new();
    while let Some(one) = playing.next().await {
        let one = one?;
        if one.pending.is_none() || mode != Mode::Review {
            tell(&one)?;
        }
        finished.push(one);
    }
    if let Some(mut person) = person {
        review(&mut finished, &mut person)?;
    }
    if let Some(file) = &command.junit {
        write(file, &command.project.folder, &report::junit(&subject.name, &finished))?;
    }
    let failed = finished.iter().filter(|one| !one.passed()).count();
    if mode == Mode::WriteNew && finished.iter().any(|one| one.pending.is_some()) {
        print(
            "new snapshots were written next to the old ones as `.new`: accept them with --accept, or one by one with --review",
        )?;
    }
    print(&format!("{} passed, {failed} failed", finished.len() - failed))?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn mode(command: &Test) -> Result<Mode> {
    let ci = std::env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
    ensure!(
        !ci || !(command.accept || command.review),
        "--accept and --review write snapshots, which is refused while the environment variable CI is set: a person has to look at \
         snapshots before they are committed"
    );
    Ok(match command {
        _ if ci => Mode::ReadOnly,
        Test { accept: true, .. } => Mode::Accept,
        Test { review: true, .. } => Mode::Review,
        _ => Mode::WriteNew,
    })
}

/// Writes a file that the user names, and creates its folder. Inside the project, which may come from someone else, no symbolic link is
/// followed.
fn write(file: &Path, project: &Path, contents: &str) -> Result<()> {
    let (file_at, project_at) = (std::path::absolute(file)?, std::path::absolute(project)?);
    let below = |path: &&Path| *path != project_at && path.starts_with(&project_at);
    let mut within = file_at.ancestors().take_while(below);
    if let Some(link) = within.find(|path| path.is_symlink()) {
        bail!("{} is a link in the project: remove it, or name a file outside of the project", text::path(link));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).with_context(|| text::path(folder)).or_failed()?;
    file::replace(file, contents.as_bytes(), file::SHARED_MODE)
}

/// Returns the sandbox that all cases share, and the folder of its compiled code if that is temporary.
fn sandbox() -> Result<(Arc<Sandbox>, Option<tempfile::TempDir>)> {
    let config = config::load(None, &CommandLine::default())?;
    // Every case loads the plugin, so its compiled code has to be cached.
    let (folder, held) = match config::cache_dir() {
        Some(folder) => (folder, None),
        None => {
            let held = tempfile::tempdir()?;
            (held.path().to_owned(), Some(held))
        }
    };
    Ok((operator::shared_sandbox(&config, folder)?, held))
}

/// Returns the cases to run, the one of the lists first.
fn cases(command: &Test) -> Result<Vec<Case>> {
    let folder = &command.project.folder;
    let project = Arc::new(Below::open(folder.strip_prefix(".").unwrap_or(folder))?);
    let mut all = vec![lists(&project)];
    if command.files.is_empty() {
        let (tests, shown) = (Path::new(TESTS_FOLDER), text::path(&project.shown(Path::new(TESTS_FOLDER))));
        let tests = project.folder(tests)?.with_context(|| format!("{shown}: there is no such folder"))?;
        let tests = Arc::new(tests);
        let mut names = tests.names()?;
        names.retain(|name| name.extension().is_some_and(|extension| extension == "toml"));
        ensure!(!names.is_empty(), "{shown}: there is no file of cases, such as greet.toml");
        for name in &names {
            all.extend(read(&tests, name)?);
        }
    }
    for file in &command.files {
        let name = file.file_name().with_context(|| format!("{}: not a file of cases", text::path(file)))?;
        let folder = Below::open(file.parent().unwrap_or(Path::new("")))?;
        all.extend(read(&Arc::new(folder), Path::new(name))?);
    }
    let mut snapshots = BTreeMap::new();
    for case in &all {
        if let Some(other) = snapshots.insert(snapshot(case).shown(), case) {
            let place = |case: &Case| format!("{}:{}", text::path(&case.file), case.line);
            bail!("{}: the case `{}` has the same name as the one at {}", place(case), case.name, place(other));
        }
    }
    if let Some(part) = &command.filter {
        all.retain(|case| case.name.contains(part.as_str()));
        ensure!(!all.is_empty(), "no case has `{}` in its name", text::escaped(part));
    }
    Ok(all)
}

/// Reads the cases of a file.
fn read(folder: &Arc<Below>, name: &Path) -> Result<Vec<Case>> {
    let file = folder.shown(name);
    let text =
        folder.read(name, MAX_FILE_BYTES)?.with_context(|| format!("{}: there is no such file", text::path(&file)))?;
    cases::read(&text, &file, folder)
}

/// Returns the case that every plugin has.
fn lists(project: &Arc<Below>) -> Case {
    let expected = cases::Expected { snapshot: true, ..Default::default() };
    let (given, after) = Default::default();
    let (file, folder) = (project.shown(Path::new(TESTS_FOLDER)), Arc::clone(project));
    Case { name: LISTS_CASE.into(), file, folder, line: 0, action: Action::Lists, expected, given, after }
}

/// Returns the place of a case's snapshot, next to the file of the case. The name is in lower case, since some file systems ignore case.
fn snapshot(case: &Case) -> Place {
    let file = format!("{}.json", case.name.replace(' ', "-").to_lowercase());
    let folder = if matches!(case.action, Action::Lists) { Path::new(TESTS_FOLDER) } else { Path::new("") };
    Place { below: Arc::clone(&case.folder), path: folder.join("snapshots").join(file) }
}

async fn play(case: &Case, subject: &Subject, sandbox: &Arc<Sandbox>, mode: Mode) -> Result<Finished> {
    let is_lists = matches!(case.action, Action::Lists);
    let named = || match is_lists {
        true => "the case of the lists".to_owned(),
        false => format!("{}:{}: the case `{}`", text::path(&case.file), case.line, case.name),
    };
    let mut finished = Finished {
        name: case.name.clone(),
        place: (!is_lists).then(|| (case.file.clone(), case.line)),
        took: Duration::ZERO,
        problems: Vec::new(),
        pending: None,
        accepted: false,
    };
    let stage = match Stage::set(subject, &case.given, &case.folder, sandbox).await {
        Ok(stage) => Some(stage),
        Err(StageError::InvalidCase(error)) => return Err(error.context(named())),
        // Without lists there is nothing to test.
        Err(StageError::NotLoaded(problem)) if is_lists => return Err(failed(anyhow!(problem))),
        Err(StageError::NotLoaded(problem)) => {
            let ended = Ended { result: Err(problem), ..Ended::default() };
            finished.problems = judge::problems(&case.expected, &ended);
            None
        }
    };
    let Some(mut stage) = stage else { return Ok(finished) };
    let mut client = Client::open(&stage.operator, std::mem::take(&mut stage.roots));
    let began = Instant::now();
    let ended = act(&case.action, &mut client, case).await.with_context(named);
    finished.took = began.elapsed();
    stage.operator.abandon().await;
    let ended = ended?;
    finished.problems = ended.unanswered.clone();
    let unlisted = stage.servers.unlisted();
    finished.problems.extend(unlisted.iter().map(|request| format!("{request} is not in `given.http`")));
    // Unanswered questions and unlisted requests explain everything else, so nothing further is compared after them.
    if finished.problems.is_empty() {
        finished.problems = judge::problems(&case.expected, &ended);
        finished.problems.extend(stage.problems(&case.given, &case.after));
    }
    let settled = ended.result.is_ok() || case.expected.error.is_some();
    if case.expected.snapshot && settled && finished.problems.is_empty() {
        let answered = ended.result.unwrap_or_else(|error| json!({ "error": error }));
        match snapshots::compare(&snapshot(case), &answered, mode)? {
            Compared::Same => {}
            Compared::Accepted => finished.accepted = true,
            Compared::Pending(pending) => finished.pending = Some(pending),
        }
    }
    if !finished.problems.is_empty() {
        finished.problems.extend(stage.noted.take_lines());
    }
    Ok(finished)
}

async fn act(action: &Action, client: &mut Client, case: &Case) -> Result<Ended> {
    match action {
        Action::Request(method, params) => client.request(method, params, &case.given.answers).await,
        Action::List(list) => client.list(*list).await,
        Action::Lists => {
            let mut all = Map::new();
            for list in List::ALL {
                match client.list(list).await?.result {
                    Ok(Value::Object(one)) => all.extend(one),
                    Ok(_) => {}
                    Err(error) => return Ok(Ended { result: Err(error), ..Ended::default() }),
                }
            }
            Ok(Ended { result: Ok(Value::Object(all)), ..Ended::default() })
        }
    }
}

fn tell(one: &Finished) -> Result<()> {
    print(&one.lines().join("\n"))
}

/// Shows a person each new or changed snapshot, and asks whether to accept it.
fn review(finished: &mut [Finished], person: &mut Person) -> Result<()> {
    for one in finished {
        let Some(pending) = &one.pending else { continue };
        person.tell("")?;
        for line in pending.whole().lines() {
            person.tell(&text::escaped(line))?;
        }
        match person.agrees(&format!("Accept the snapshot of `{}`?", one.name))? {
            true => {
                pending.accept()?;
                (one.pending, one.accepted) = (None, true);
            }
            false => pending.write_new()?,
        }
        tell(one)?;
    }
    Ok(())
}
