//! The stage of a case: fresh copies of its folders, and a separate [`Operator`] that serves the plugin as the case requires.

#![expect(clippy::disallowed_methods, reason = "creates the folders of a case, and reads them after it")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use parking_lot::Mutex;
use tempfile::TempDir;
use wharf_sandbox::Sandbox;
use wharf_scope::Fixed;

use super::{
    cases::{After, Contents, Given},
    judge::difference,
    network::Servers,
    subject::Subject,
};
use wharf_app::operator::{Operator, Setup};
use wharf_base::{
    below::{Below, CopyLimits},
    text,
};
use wharf_config::config::{self, CommandLine, Config};
use wharf_plugins::{
    observe::record::{Action, CallRecord, Observer},
    plugins::status::Status,
};
use wharf_policy::access::{call_roots::Folder, grants::Grants, rehearsal::Rehearsal};

/// The limits on the size of a fixture.
const FIXTURE_LIMITS: CopyLimits = CopyLimits { entries: 10_000, bytes: 256 << 20 };
/// The largest file that is compared after a case.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// What wharf recorded during a case.
#[derive(Default)]
pub struct Noted {
    /// The text that the plugin printed.
    printed: Mutex<String>,
    /// Hints about what the plugin was denied.
    refused: Mutex<Vec<String>>,
}

impl Noted {
    /// Takes and describes everything that was recorded. It helps to explain a failed case.
    pub fn take_lines(&self) -> Vec<String> {
        let printed = std::mem::take(&mut *self.printed.lock());
        let printed = (!printed.trim().is_empty()).then(|| format!("the plugin printed:\n{}", printed.trim_end()));
        let refused = std::mem::take(&mut *self.refused.lock());
        refused.into_iter().map(|hint| format!("wharf denied the plugin something: {hint}")).chain(printed).collect()
    }
}

/// Records what the plugin is denied.
struct DenialObserver(Arc<Noted>);

impl Observer for DenialObserver {
    fn ended(&self, record: &CallRecord) {
        if record.action != Action::List {
            let mut refused = self.0.refused.lock();
            for hint in record.denials.iter().map(ToString::to_string) {
                if !refused.contains(&hint) {
                    refused.push(hint);
                }
            }
        }
    }
}

pub struct Stage {
    pub operator: Operator,
    pub servers: Arc<Servers>,
    pub noted: Arc<Noted>,
    /// The folders that the client opens.
    pub roots: Vec<Folder>,
    /// The folders of the case on the host, by their paths in the plugin.
    folders: BTreeMap<String, PathBuf>,
    _folder: TempDir,
}

/// Why the stage of a case could not be set up.
pub enum StageError {
    /// The case, or `[dev]` of plugin.toml, is invalid.
    InvalidCase(anyhow::Error),
    /// The plugin does not load.
    NotLoaded(String),
}

impl Stage {
    /// Sets up the stage. `fixtures`: the folder that paths of fixtures are relative to.
    pub async fn set(
        subject: &Subject,
        given: &Given,
        fixtures: &Below,
        sandbox: &Arc<Sandbox>,
    ) -> Result<Self, StageError> {
        let (config, mut stage) = prepare(subject, given, fixtures).map_err(StageError::InvalidCase)?;
        let (network, noted) = (Arc::clone(&stage.servers), Arc::clone(&stage.noted));
        let hear = Arc::clone(&noted);
        let rehearsal = Rehearsal {
            fixed: Fixed { now: given.now, seed: given.seed },
            environment: given.env.clone(),
            network,
            printed: Arc::new(move |text: &str| hear.printed.lock().push_str(text)),
        };
        let setup = Setup {
            resolved: Some(config),
            rehearsal: Some(rehearsal),
            sandbox: Some(Arc::clone(sandbox)),
            observers: vec![Box::new(DenialObserver(noted))],
            ..Setup::default()
        };
        let operator = Operator::load(setup).await.map_err(StageError::InvalidCase)?;
        for plugin in operator.wharf.plugins() {
            if let Status::Failed { problem, .. } = plugin.status {
                let problem = format!("the plugin does not load ({}): {}", problem.stage, problem.text);
                return Err(StageError::NotLoaded(problem));
            }
        }
        let roots = std::mem::take(&mut stage.roots);
        Ok(Self {
            operator,
            servers: stage.servers,
            noted: stage.noted,
            roots,
            folders: stage.folders,
            _folder: stage.folder,
        })
    }

    /// Returns how the files differ from what `after` requires.
    pub fn problems(&self, given: &Given, after: &After) -> Vec<String> {
        let mut problems = Vec::new();
        for (path, wanted) in &after.files {
            match self.find(given, path) {
                Err(problem) => problems.push(format!("after: {path}: {problem}")),
                Ok(None) => problems.push(format!("after: {path} does not exist")),
                Ok(Some(file)) => match read(&file) {
                    Err(problem) => problems.push(format!("after: {path}: {problem:#}")),
                    Ok(text) if text == *wanted => {}
                    Ok(text) => problems.push(format!("after: {path} differs:\n{}", difference(wanted, &text))),
                },
            }
        }
        for path in &after.absent {
            match self.find(given, path) {
                Err(problem) => problems.push(format!("after: {path}: {problem}")),
                Ok(None) => {}
                Ok(Some(_)) => problems.push(format!("after: {path} exists")),
            }
        }
        problems
    }

    /// Returns the host path of a path in the plugin. Symbolic links are an error, since the plugin may have made them.
    fn find(&self, given: &Given, path: &str) -> Result<Option<PathBuf>, String> {
        let Some((folder, rest)) = given.folder_of(path) else { return Ok(None) };
        let Some(mut place) = self.folders.get(folder).cloned() else { return Ok(None) };
        for part in rest.split('/') {
            place.push(part);
            match place.symlink_metadata() {
                Ok(metadata) if metadata.is_symlink() => return Err("the path contains a symbolic link".into()),
                Ok(_) => {}
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(place))
    }
}

fn read(file: &Path) -> Result<String> {
    let metadata = file.metadata()?;
    ensure!(metadata.is_file(), "not a file");
    ensure!(metadata.len() <= MAX_FILE_BYTES, "larger than {} MiB", MAX_FILE_BYTES >> 20);
    String::from_utf8(fs::read(file)?).context("not UTF-8 text")
}

/// The parts of a stage that are made before the [`Operator`].
struct Prepared {
    servers: Arc<Servers>,
    noted: Arc<Noted>,
    roots: Vec<Folder>,
    folders: BTreeMap<String, PathBuf>,
    folder: TempDir,
}

fn prepare(subject: &Subject, given: &Given, fixtures: &Below) -> Result<(Config, Prepared)> {
    let folder = tempfile::Builder::new().prefix("wharf-test-").tempdir()?;
    let mut folders = BTreeMap::new();
    for (number, (path, contents)) in given.dirs.iter().enumerate() {
        let place = folder.path().join(number.to_string());
        fs::create_dir(&place)?;
        match contents {
            Contents::Fixture(fixture) => {
                let shown = || text::path(&fixtures.shown(fixture));
                let from = fixtures.folder(fixture).context("`given.dirs`")?;
                let from = from.with_context(|| format!("`given.dirs`: {}: there is no such folder", shown()))?;
                from.copy(&place, &mut FIXTURE_LIMITS.clone()).with_context(|| format!("`given.dirs`: {}", shown()))?;
            }
            Contents::Files(files) => write(files, &place).context("`given.dirs`")?,
        }
        folders.insert(path.clone(), place);
    }
    let config = config(subject, given, &folders, folder.path()).context("plugin.toml, [dev]")?;
    let grants = config.plugins.first().map(|plugin| plugin.grants.clone()).unwrap_or_default();
    let granted = |path: &String| grants.dirs.0.iter().any(|dir| dir.guest == *path);
    let opened = match &given.roots {
        Some(roots) => roots.clone(),
        None => folders.keys().filter(|path| !granted(path)).cloned().collect(),
    };
    for path in folders.keys() {
        let reached = granted(path) || (opened.contains(path) && grants.roots.is_given());
        ensure!(
            reached,
            "`given.dirs`: nothing opens `{path}` to the plugin: [dev.grants] of plugin.toml has neither `roots` nor a folder in \
             `dirs` that the plugin sees there"
        );
    }
    let roots = opened.iter().filter_map(|path| {
        let place = folders.get(path)?.clone();
        Some(Folder { path: place, shown: Some(path.clone()) })
    });
    let roots = roots.collect();
    let servers = Servers::new(&given.http).map_err(anyhow::Error::msg)?;
    let prepared = Prepared { servers: Arc::new(servers), noted: Arc::default(), roots, folders, folder };
    Ok((config, prepared))
}

/// Returns a config that serves the plugin as the case requires.
fn config(subject: &Subject, given: &Given, folders: &BTreeMap<String, PathBuf>, temporary: &Path) -> Result<Config> {
    let mut plugin = subject.dev.clone();
    let grants = table(&mut plugin, "grants")?;
    if let Some(toml::Value::Array(dirs)) = grants.get_mut("dirs") {
        // A test accesses no folder of the machine: grants of folders that the case does not provide are dropped.
        dirs.retain_mut(|dir| {
            let seen = dir.get("guest").or_else(|| dir.get("host")).and_then(toml::Value::as_str).map(str::to_owned);
            let place = seen.as_ref().and_then(|seen| folders.get(seen)?.to_str());
            // A malformed entry stays, so that parsing the grants reports it.
            let (Some(seen), Some(dir)) = (&seen, dir.as_table_mut()) else { return true };
            let Some(place) = place else { return false };
            dir.insert("guest".into(), seen.as_str().into());
            dir.insert("host".into(), place.into());
            true
        });
    }
    // The original error would repeat the value, which may be a secret.
    let written = grants.clone().try_into().map_err(|_| anyhow::anyhow!("`grants` is malformed"))?;
    let parsed = Grants::parse(written, &|path| Ok(PathBuf::from(path))).context("grants")?;
    let names: BTreeSet<String> = parsed.http.0.secrets().map(str::to_owned).collect();
    let own = table(&mut plugin, "config")?;
    own.extend(given.config.clone());
    own.iter_mut().for_each(|(_, value)| without_variables(value, given));
    let component = subject.component.to_str().context("the path of the component is not UTF-8")?;
    plugin.insert("path".into(), component.into());
    plugin.insert("prefix".into(), "".into());
    let mut whole = toml::Table::new();
    table(&mut whole, "plugins")?.insert(subject.name.clone(), plugin.into());
    for (name, file) in secrets(names, temporary)? {
        let file = file.to_str().context("the folder for temporary files is not UTF-8")?;
        let source = toml::Table::from_iter([("file".to_owned(), file.into())]);
        table(&mut whole, "secrets")?.insert(name, source.into());
    }
    config::from_text(&toml::to_string(&whole)?, None, &CommandLine::default())
}

/// Returns the table under a name, and creates it if it is missing.
fn table<'a>(of: &'a mut toml::Table, name: &str) -> Result<&'a mut toml::Table> {
    let table = of.entry(name).or_insert_with(|| toml::Table::new().into());
    table.as_table_mut().with_context(|| format!("`{name}` is not a table"))
}

/// Replaces environment variables by values of the test. The plugin must not see those of the machine, even if the case asks for them.
fn without_variables(value: &mut toml::Value, given: &Given) {
    match value {
        toml::Value::Table(table) => match (table.len(), table.get("env").and_then(toml::Value::as_str)) {
            (1, Some(name)) => {
                let stands_in = || format!("variable-of-the-test-{name}");
                *value = given.env.get(name).cloned().unwrap_or_else(stands_in).into();
            }
            _ => table.iter_mut().for_each(|(_, value)| without_variables(value, given)),
        },
        toml::Value::Array(items) => items.iter_mut().for_each(|item| without_variables(item, given)),
        _ => {}
    }
}

/// Writes placeholder secrets, which never reach a real server. Returns their files by name.
fn secrets(names: BTreeSet<String>, folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut secrets = BTreeMap::new();
    for (number, name) in names.into_iter().enumerate() {
        let file = folder.join(format!("secret-{number}"));
        let mut open = fs::OpenOptions::new();
        let written = open.write(true).create_new(true).mode(0o600).open(&file)?;
        std::io::Write::write_all(&mut &written, format!("secret-of-the-test-{name}").as_bytes())?;
        secrets.insert(name, file);
    }
    Ok(secrets)
}

/// Writes files into a new folder.
fn write(files: &BTreeMap<String, String>, to: &Path) -> Result<()> {
    for (name, text) in files {
        let place = to.join(name);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&place, text).with_context(|| format!("`{name}`"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Below {
        Below::open(Path::new("/")).unwrap()
    }

    fn subject(grants: &str) -> Subject {
        let dev = toml::from_str(&format!("[grants]\n{grants}")).unwrap();
        Subject { name: "p".into(), component: "/p.wasm".into(), dev }
    }

    fn given(dirs: &[&str], roots: Option<&[&str]>) -> Given {
        let contents = Contents::Files(BTreeMap::from([("in/a.txt".to_owned(), "x".to_owned())]));
        Given {
            dirs: dirs.iter().map(|path| ((*path).to_owned(), contents.clone())).collect(),
            roots: roots.map(|roots| roots.iter().map(ToString::to_string).collect()),
            ..Given::default()
        }
    }

    #[test]
    fn a_case_opens_its_own_folders_and_no_others() {
        let both = "roots='read'\ndirs=[{host='/etc', guest='/d', access='read'}]";
        for (allow, dirs, roots, opened, granted) in [
            ("roots='read'", &["/w"][..], None, &["/w"][..], &[][..]),
            (both, &["/w", "/d"], None, &["/w"], &["/d"]),
            (both, &["/d"], Some(&["/d"][..]), &["/d"], &["/d"]),
            // A folder that the case does not provide is missing, even if the machine has it.
            (both, &[], None, &[], &[]),
            ("dirs=[{host='/d', access='read-write'}]", &["/d"], None, &[], &["/d"]),
        ] {
            let (config, prepared) = prepare(&subject(allow), &given(dirs, roots), &here()).unwrap();
            let shown: Vec<&str> = prepared.roots.iter().filter_map(|root| root.shown.as_deref()).collect();
            assert_eq!(shown, opened, "{allow}");
            let own = &config.plugins[0].grants.dirs.0;
            assert_eq!(own.iter().map(|dir| dir.guest.as_str()).collect::<Vec<_>>(), granted, "{allow}");
            for dir in own {
                assert!(dir.host.starts_with(prepared.folder.path()));
                assert_eq!(fs::read_to_string(dir.host.join("in/a.txt")).unwrap(), "x");
            }
        }
    }

    #[test]
    fn no_variable_of_the_machine_is_given_to_a_plugin() {
        let mut subject = subject("");
        subject.dev.extend(toml::toml! {
            config = { own = { env = "PATH" }, deep = [{ in = { env = "PATH" } }], plain = { env = "PATH", more = 1 } }
        });
        let mut given = Given { config: toml::toml! { path = { env = "PATH" } }, ..Given::default() };
        let path = std::env::var("PATH").unwrap();
        for (value, times) in [("variable-of-the-test-PATH", 3), ("/of/the/case", 3)] {
            let (config, _prepared) = prepare(&subject, &given, &here()).unwrap();
            let json = config.plugins[0].settings.json();
            assert_eq!((json.matches(value).count(), json.contains(&path)), (times, false), "{json}");
            given.env.insert("PATH".into(), "/of/the/case".into());
        }
    }

    #[test]
    fn mistakes_are_named() {
        let wrong = |allow: &str, given: &Given| match prepare(&subject(allow), given, &here()) {
            Ok(_) => panic!("{allow}"),
            Err(error) => format!("{error:#}"),
        };
        assert!(wrong("", &given(&["/w"], None)).contains("nothing opens `/w` to the plugin"));
        assert!(wrong("roots='read'", &given(&["/w"], Some(&[]))).contains("nothing opens `/w` to the plugin"));
        let mut missing = given(&[], None);
        missing.dirs.insert("/w".into(), Contents::Fixture("no/such".into()));
        assert!(wrong("roots='read'", &missing).contains("`given.dirs`: /no/such"));
    }

    #[test]
    fn secrets_of_rules_are_there() {
        let allow = "http=[{url='https://a.example', headers={authorization='Bearer {t}'}}]";
        let (config, _prepared) = prepare(&subject(allow), &Given::default(), &here()).unwrap();
        let file = config.egress.secrets["t"].file().unwrap();
        assert_eq!(fs::read_to_string(file).unwrap(), "secret-of-the-test-t");
    }
}
