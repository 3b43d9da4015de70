//! `wharf open`: serves the page that shows what all wharfs of this user do, and carries out what the person decides there.

use std::{
    io::IsTerminal,
    path::Path,
    process::{ExitCode, Stdio},
    sync::Arc,
};

use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    signal::unix::{SignalKind, signal},
    task::JoinSet,
};
use wharf_undo::NotUndone;
use wharf_window::{
    actions::{Actions, AuditPart, ChangedFiles, Lines, Standing},
    page::Page,
    viewer::Viewer,
};

use super::{
    arguments::{Allowed, Open, grants, parse_allow},
    audit,
    check::granted,
    edit::Edited,
    file::File,
    load::print,
    revoke, undo,
};
use wharf_base::{
    failed::OrFailed,
    text::{self, escaped},
};
use wharf_config::config::{self, window_folder};

/// How many paths of a call are shown.
const SHOWN_PATHS: usize = 20;
/// How many lines of an audit log are shown.
const SHOWN_LINES: usize = 100;
/// The program that opens a link in the browser.
const BROWSER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

pub async fn run(command: Open) -> Result<ExitCode> {
    let Open { port, no_browser } = command;
    let folder = window_folder().context("there is no home directory, so wharfs that run cannot be found")?;
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let page = Page::bind(port, Viewer::new(folder), Arc::new(Here::default())).await;
    let page = page.with_context(|| format!("cannot listen on port {port} of this machine")).or_failed()?;
    let links = page.links();
    let fresh = || links.fresh().or_failed();
    let mut background = JoinSet::new();
    background.spawn(page.serve());
    let link = fresh()?;
    print(&format!("Open this link, which works once: {link}"))?;
    let is_terminal = std::io::stdout().is_terminal();
    if is_terminal && !no_browser {
        background.spawn(browse(link));
    }
    let asks = is_terminal && std::io::stdin().is_terminal();
    if asks {
        print("Press Enter for another link, Ctrl-C to end.")?;
    }
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut reads = asks;
    loop {
        tokio::select! {
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
            line = lines.next_line(), if reads => match line {
                Ok(Some(_)) => print(&format!("Open this link, which works once: {}", fresh()?))?,
                // Stdin was closed. The page stays.
                Ok(None) | Err(_) => reads = false,
            },
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens a link in the browser. Other users can see the link among the words of that program, and cannot use it: the page asks the system
/// whose program connects.
async fn browse(link: String) {
    let started =
        Command::new(BROWSER).arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Ok(mut browser) = started {
        browser.wait().await.ok();
    }
}

/// The person's files on this machine.
#[derive(Default)]
struct Here {
    /// Held while a config is changed.
    writes: Mutex<()>,
}

impl Actions for Here {
    fn standing(&self, config: &Path, grants: &[(&str, &str)]) -> Vec<Standing> {
        let Ok(file) = existing(config) else { return vec![Standing::Elsewhere; grants.len()] };
        let of = |(plugin, grant): &(&str, &str)| standing(&file, plugin, grant).unwrap_or(Standing::Elsewhere);
        grants.iter().map(of).collect()
    }

    fn allow(&self, config: &Path, plugin: &str, grant: &str) -> Result<Lines, Lines> {
        let _alone = self.writes.lock();
        allow(config, plugin, grant).map_err(|error| said(&error))
    }

    fn take_back(&self, config: &Path, plugin: &str, grant: &str) -> Result<Lines, Lines> {
        let _alone = self.writes.lock();
        take_back(config, plugin, grant).map_err(|error| said(&error))
    }

    fn changes(&self) -> Result<Vec<ChangedFiles>, String> {
        changes().map_err(|error| escaped(&format!("{error:#}")))
    }

    fn undo(&self, id: &str) -> Result<Lines, Lines> {
        let _alone = self.writes.lock();
        take_back_changes(id)
    }

    fn has_audit_log(&self, config: &Path) -> bool {
        audit::path_of(config).is_ok()
    }

    fn audit(&self, config: &Path, search: &str) -> Result<AuditPart, String> {
        let part = || {
            let log = audit::path_of(config)?;
            let (is_whole, verdict) = audit::verdict(&log)?;
            Ok(AuditPart { is_whole, verdict, lines: audit::last_lines(&log, search, SHOWN_LINES)? })
        };
        part().map_err(|error: Error| escaped(&format!("{error:#}")))
    }
}

fn said(error: &Error) -> Lines {
    vec![escaped(&format!("{error:#}"))]
}

/// Reads the config of a process, as a command that changes it does.
fn existing(config: &Path) -> Result<File> {
    ensure!(config.is_absolute(), "the process does not say where its config is");
    File::existing(Some(config))
}

fn standing(file: &File, plugin: &str, grant: &str) -> Result<Standing> {
    if !file.edited.names(plugin) {
        return Ok(Standing::Elsewhere);
    }
    let mut edited = Edited::parse(&file.edited.text())?;
    edited.allow_given(plugin, &grants(&[parse_allow(grant)?]))?;
    let after = config::grants(&edited.text(), &file.path, plugin)?;
    Ok(if file.grants(plugin)? == after { Standing::Written } else { Standing::Missing })
}

fn allow(config: &Path, plugin: &str, grant: &str) -> Result<Lines> {
    let mut file = existing(config)?;
    ensure!(
        file.edited.names(plugin),
        "{}: there is no plugin `{plugin}` in this config, so nothing was written",
        text::path(&file.path)
    );
    let was_right = file.problem().is_none();
    file.edited.allow_given(plugin, &grants(&[parse_allow(grant)?]))?;
    ensure!(!file.is_unchanged(), "the config has this grant already, so nothing was written");
    let after = file.grants(plugin).context("nothing was written")?;
    if let Some(problem) = file.problem().filter(|_| was_right) {
        bail!("with that the config would be invalid, so nothing was written: {problem:#}");
    }
    let mut lines = file.save()?;
    lines.push(format!("granted to {plugin}: {}", granted(&after.describe())));
    lines.push("Each wharf that uses this config reads it now.".to_owned());
    Ok(lines)
}

fn take_back(config: &Path, plugin: &str, grant: &str) -> Result<Lines> {
    let mut file = existing(config)?;
    let what = match parse_allow(grant)? {
        Allowed::Roots(_) => "roots".to_owned(),
        Allowed::Http(url) | Allowed::HttpWrite(url) | Allowed::HttpPrivate(url) => url,
        Allowed::Env(name) => format!("${name}"),
        // In `wharf grant --revoke`, that word stands for more.
        Allowed::Ask(what) if what == "roots" => bail!("take `ask = [\"roots\"]` out of the config by hand"),
        Allowed::Ask(what) => what,
    };
    let (notes, problem) = revoke::taken(&mut file, plugin, &[what])?;
    let mut lines = file.save()?;
    lines.extend(notes);
    lines.extend(problem.map(|problem| {
        format!("The config is invalid, and a running wharf keeps its grants until this is fixed: {problem:#}")
    }));
    Ok(lines)
}

fn changes() -> Result<Vec<ChangedFiles>> {
    let all = undo::store()?.all().context("cannot read what is kept of calls")?;
    let change = |kept: &wharf_undo::ChangedCall| {
        let paths = kept.paths();
        ChangedFiles {
            id: kept.id.clone(),
            time: kept.call.time / 1000,
            plugin: escaped(&kept.call.plugin),
            name: escaped(&kept.call.name),
            more: paths.len().saturating_sub(SHOWN_PATHS),
            paths: paths.iter().take(SHOWN_PATHS).map(|path| text::path(path)).collect(),
            is_running: kept.is_running,
            is_undone: kept.is_undone,
        }
    };
    Ok(all.iter().map(change).collect())
}

fn take_back_changes(id: &str) -> Result<Lines, Lines> {
    let find = || {
        let store = undo::store()?;
        let all = store.all().context("cannot read what is kept of calls")?;
        let found = all.into_iter().find(|kept| kept.id == id);
        Ok((store, found.ok_or_else(|| anyhow!("this call is not kept any more, so nothing was taken back"))?))
    };
    let (store, kept) = find().map_err(|error: Error| said(&error))?;
    let lines = |lines: Vec<String>| lines.iter().map(|line| escaped(line)).collect::<Lines>();
    match store.undo(&kept, false) {
        Ok(done) => Ok(lines(done)),
        Err(NotUndone::Conflicts(conflicts)) => {
            let force = format!(
                "Nothing of it was changed. `wharf undo {id} --force` takes back what it can, and overwrites what has changed."
            );
            Err(lines(conflicts).into_iter().chain([force]).collect())
        }
        Err(error) => Err(said(&Error::new(error).context("not taken back"))),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests write configs")]
mod tests {
    use super::*;

    const CONFIG: &str = "# mine\n[plugins.a] # here\nbuiltin = 'fetch'\n\n# b\n[plugins.b]\nbuiltin = 'time'\n";

    /// Each kind of grant is written, is seen to be there, and is taken back, and the rest of the file stays.
    #[test]
    fn what_is_allowed_on_the_page_is_written_and_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("wharf.toml");
        let here = Here::default();
        for (grant, line) in [
            ("http=https://api.example/v1/", "http = [\"https://api.example/v1/\"]"),
            ("http-write=https://api.example/v1/", "http = [{ url = \"https://api.example/v1/\", methods = \"any\" }]"),
            ("http-private=http://10.0.0.1/", "http = [{ url = \"http://10.0.0.1/\", private = true }]"),
            ("roots=read", "roots = \"read\""),
            ("env=TZ", "env = [\"TZ\"]"),
            ("ask=sampling", "ask = [\"sampling\"]"),
        ] {
            std::fs::write(&path, CONFIG).unwrap();
            let standing = |plugin| here.standing(&path, &[(plugin, grant)]);
            assert_eq!((standing("a"), standing("c")), (vec![Standing::Missing], vec![Standing::Elsewhere]), "{grant}");
            let lines = here.allow(&path, "a", grant).unwrap();
            assert!(lines.iter().any(|one| one.contains(line)), "{grant}: {lines:?}");
            let written = std::fs::read_to_string(&path).unwrap();
            assert!(written.contains(line) && written.starts_with("# mine\n[plugins.a] # here\n"), "{written}");
            assert_eq!(standing("a"), [Standing::Written], "{grant}");
            assert!(here.allow(&path, "a", grant).unwrap_err()[0].contains("already"), "{grant}");
            let lines = here.take_back(&path, "a", grant).unwrap();
            assert!(lines.iter().any(|one| one == "granted: nothing"), "{grant}: {lines:?}");
            // An empty table may stay.
            let after = std::fs::read_to_string(&path).unwrap().replace("\n[plugins.a.grants]\n", "");
            assert_eq!(after, CONFIG, "{grant}");
            assert!(here.take_back(&path, "a", grant).is_err(), "{grant}");
        }
    }

    #[test]
    fn nothing_is_written_where_it_would_not_be_right() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("wharf.toml");
        std::fs::write(&path, CONFIG).unwrap();
        let here = Here::default();
        for (config, plugin, grant, why) in [
            (&*path, "c", "env=TZ", "there is no plugin `c`"),
            (&*path, "a", "dirs=/", "expected roots=read"),
            (&*path, "a", "http=https://user@a.example/", ""),
            (Path::new("wharf.toml"), "a", "env=TZ", "does not say where"),
            (&*folder.path().join("other.toml"), "a", "env=TZ", "no such config file"),
        ] {
            let lines = here.allow(config, plugin, grant).unwrap_err();
            assert!(lines[0].contains(why), "{grant}: {lines:?}");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), CONFIG);
    }
}
