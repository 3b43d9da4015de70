//! The person's name and address for commits: the variables that git reads, and `user` and `author` in the person's own git config. And the
//! person's own ignore file, without which `git_add` would take what git leaves alone: no plugin can read it.
//!
//! git evaluates the conditions of `includeIf` for each repository, so they are passed on with what they include.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use super::{default_paths::base_dirs, git_config};
use wharf_base::{paths::open_regular, text};

/// The most bytes of a git config, and how deep includes are followed, as in git.
const MAX_FILE_BYTES: u64 = 1 << 20;
const MAX_DEPTH: usize = 10;
/// The maximum number of files that are read.
const MAX_FILES: usize = 64;
/// The most entries that are passed on.
const MAX_ENTRIES: usize = 256;
/// The most bytes of an ignore file.
const MAX_PATTERN_BYTES: u64 = 64 << 10;

/// A name, an address, or both, and the conditions under which they hold. Of several, the last one holds.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Entry {
    name: Option<String>,
    email: Option<String>,
    when: Vec<String>,
}

/// The content of an ignore file, and the conditions under which it holds. Of several, the last one holds.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Patterns {
    patterns: String,
    when: Vec<String>,
}

/// Everything that is known about the person.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// What the environment says. As in git, it counts before the config of a repository.
    environment: Entry,
    /// What the person's config says. It counts after the config of a repository.
    entries: Vec<Entry>,
    /// What git is to ignore in every repository.
    ignored: Vec<Patterns>,
    /// The first file that could not be read, and why.
    problem: Option<String>,
}

impl Identity {
    /// Returns what git would find for the person who runs wharf.
    pub fn of_person() -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let mut files = Vec::new();
        if std::env::var_os("GIT_CONFIG_NOSYSTEM").is_none() {
            files.push(named("GIT_CONFIG_SYSTEM").unwrap_or_else(|| "/etc/gitconfig".into()));
        }
        let home = std::env::home_dir();
        match named("GIT_CONFIG_GLOBAL") {
            Some(file) => files.push(file),
            None => {
                files.extend(base_dirs("XDG_CONFIG_HOME", ".config").next().map(|base| base.join("git/config")));
                files.extend(home.iter().map(|home| home.join(".gitconfig")));
            }
        }
        let environment =
            Entry { name: variable("GIT_AUTHOR_NAME"), email: variable("GIT_AUTHOR_EMAIL"), when: vec![] };
        let mut reader = Reader { home, ..Reader::default() };
        // The file that counts if no config names another.
        if let Some(base) = base_dirs("XDG_CONFIG_HOME", ".config").next() {
            reader.ignore(&base.join("git/ignore"), &[]);
        }
        // The last resort of git for an address.
        reader.users.extend(variable("EMAIL").map(|email| Entry { email: Some(email), ..Entry::default() }));
        for file in files {
            reader.read(&file, &[], 0);
        }
        reader.identity(environment)
    }

    /// Writes it as settings of the plugin `git`.
    pub fn write(self, settings: &mut toml::Table) {
        let Self { environment, entries, ignored, problem } = self;
        // The plugin is not told: a config may include a file that a plugin can write, which would then learn which files exist.
        if let Some(problem) = problem {
            tracing::warn!("this user's git config was not read completely: {problem}");
        }
        let entries: Vec<toml::Value> = entries.into_iter().map(Entry::table).collect();
        let mut person = toml::Table::new();
        person.insert("environment".into(), environment.table());
        person.insert("entries".into(), entries.into());
        if !ignored.is_empty() {
            let ignored: Vec<toml::Value> = ignored.into_iter().map(Patterns::table).collect();
            person.insert("ignored".into(), ignored.into());
        }
        settings.insert("person".into(), person.into());
    }
}

impl Entry {
    fn table(self) -> toml::Value {
        let Self { name, email, when } = self;
        let mut table = toml::Table::new();
        table.extend(name.map(|name| ("name".to_owned(), name.into())));
        table.extend(email.map(|email| ("email".to_owned(), email.into())));
        if !when.is_empty() {
            table.insert("when".into(), when.into());
        }
        table.into()
    }
}

impl Patterns {
    fn table(self) -> toml::Value {
        let Self { patterns, when } = self;
        let mut table = toml::Table::new();
        table.insert("patterns".into(), patterns.into());
        if !when.is_empty() {
            table.insert("when".into(), when.into());
        }
        table.into()
    }
}

/// Reads configs, one after the other.
#[derive(Default)]
struct Reader {
    home: Option<PathBuf>,
    users: Vec<Entry>,
    /// The entries of `[author]`, which count before those of `[user]`.
    authors: Vec<Entry>,
    ignored: Vec<Patterns>,
    problem: Option<String>,
    /// How many files were read.
    files: usize,
}

impl Reader {
    /// Reads a file that holds under these conditions. A file that does not exist says nothing, as in git.
    fn read(&mut self, path: &Path, when: &[String], depth: usize) {
        self.files += 1;
        let text = match contents(path, MAX_FILE_BYTES) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(problem) => return self.fail(path, &problem),
        };
        let lines = match git_config::parse(&text) {
            Ok(lines) => lines,
            Err(line) => return self.fail(path, &format!("line {line} is not a line of a git config")),
        };
        for git_config::Line { section, subsection, key, value } in lines {
            let entry = |name, email| Entry { name, email, when: when.to_vec() };
            match (section.as_str(), subsection.as_deref(), key.as_str()) {
                ("user", None, "name") => self.users.push(entry(Some(value), None)),
                ("user", None, "email") => self.users.push(entry(None, Some(value))),
                ("author", None, "name") => self.authors.push(entry(Some(value), None)),
                ("author", None, "email") => self.authors.push(entry(None, Some(value))),
                ("core", None, "excludesfile") => match self.expanded(&value) {
                    Some(file) => self.ignore(&file, when),
                    // An empty value means no file. A relative path would mean another file in each repository.
                    None if value.is_empty() || value.starts_with('/') => self.ignore(Path::new(&value), when),
                    None => self.fail(path, "core.excludesFile is not an absolute path"),
                },
                ("include", None, "path") => self.include(path, &value, when, depth),
                ("includeif", Some(condition), "path") => {
                    let condition = self.condition(path, condition);
                    self.include(path, &value, &[when, &[condition]].concat(), depth);
                }
                _ => {}
            }
        }
    }

    /// Reads an ignore file. One that does not exist says nothing, and counts in place of those before it.
    fn ignore(&mut self, path: &Path, when: &[String]) {
        self.files += 1;
        if self.files > MAX_FILES {
            return self.fail(path, "there are too many ignore files");
        }
        match contents(path, MAX_PATTERN_BYTES) {
            Ok(text) => {
                // What holds without a condition takes the place of all before it.
                if when.is_empty() {
                    self.ignored.clear();
                }
                let patterns = text.unwrap_or_default();
                if !(patterns.is_empty() && self.ignored.is_empty()) {
                    self.ignored.push(Patterns { patterns, when: when.to_vec() });
                }
            }
            Err(problem) => self.fail(path, &problem),
        }
    }

    fn include(&mut self, from: &Path, written: &str, when: &[String], depth: usize) {
        // A file that includes itself several times would be read without end otherwise.
        if depth >= MAX_DEPTH || self.files >= MAX_FILES || self.users.len() + self.authors.len() >= MAX_ENTRIES {
            return self.fail(from, "it includes too much");
        }
        let path = self.expanded(written).unwrap_or_else(|| from.parent().unwrap_or(Path::new("/")).join(written));
        self.read(&path, when, depth + 1);
    }

    /// Returns the path that begins with `~/`, in full.
    fn expanded(&self, written: &str) -> Option<PathBuf> {
        Some(self.home.as_ref()?.join(written.strip_prefix("~/")?))
    }

    /// Returns a condition whose pattern does not depend on the place of the file: `gitdir:` has an absolute path, or `**/` before it.
    fn condition(&self, from: &Path, written: &str) -> String {
        let Some((kind, pattern)) = written.split_once(':').filter(|(kind, _)| matches!(*kind, "gitdir" | "gitdir/i"))
        else {
            return written.to_owned();
        };
        let relative = pattern.strip_prefix("./").and_then(|rest| Some(from.parent()?.join(rest)));
        let mut full = match self.expanded(pattern).or(relative) {
            Some(path) => path.to_string_lossy().into_owned(),
            None if pattern.starts_with('/') => pattern.to_owned(),
            None => format!("**/{pattern}"),
        };
        if full.ends_with('/') {
            full += "**";
        }
        format!("{kind}:{full}")
    }

    fn fail(&mut self, path: &Path, problem: &str) {
        self.problem.get_or_insert_with(|| format!("{}: {problem}", text::path(path)));
    }

    fn identity(self, environment: Entry) -> Identity {
        let Self { home: _, users, authors, ignored, problem, files: _ } = self;
        let mut entries = [users, authors].concat();
        entries.truncate(MAX_ENTRIES);
        Identity { environment, entries, ignored, problem }
    }
}

/// Returns the text of a file, or `None` if the file does not exist.
fn contents(path: &Path, most: u64) -> Result<Option<String>, String> {
    let file = match open_regular(path) {
        Ok(Some(file)) => file,
        // /dev/null is what people write for no file.
        Ok(None) => return Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("it cannot be read: {error}")),
    };
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.len() as u64 > most {
        return Err(format!("it has more than {} KiB", most >> 10));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8".to_owned())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests write git configs")]
mod tests {
    use std::fs;

    use super::*;

    fn read(home: &Path, files: &[(&str, &str)]) -> Identity {
        for (name, contents) in files {
            let path = home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, contents).unwrap();
        }
        let mut reader = Reader { home: Some(home.to_owned()), ..Reader::default() };
        for file in [".config/git/config", ".gitconfig"] {
            reader.read(&home.join(file), &[], 0);
        }
        reader.identity(Entry::default())
    }

    fn entry(name: Option<&str>, email: Option<&str>, when: &[&str]) -> Entry {
        let owned = |text: &str| text.to_owned();
        Entry { name: name.map(owned), email: email.map(owned), when: when.iter().map(|text| owned(text)).collect() }
    }

    fn patterns(text: &str, when: &[&str]) -> Patterns {
        Patterns { patterns: text.to_owned(), when: when.iter().map(|text| (*text).to_owned()).collect() }
    }

    #[test]
    fn the_last_ignore_file_counts() {
        let ignored = |config: &str| {
            let held = tempfile::tempdir().unwrap();
            let absolute = config.replace("HOME", &held.path().display().to_string());
            let files = [
                ("one", "*.one\n"),
                ("two", "*.two\n"),
                ("more", "[core]\nexcludesFile = ~/two"),
                (".gitconfig", &absolute),
            ];
            let identity = read(held.path(), &files);
            (identity.ignored, identity.problem.map(|problem| problem.rsplit(": ").next().unwrap().to_owned()))
        };
        let (one, two) = (|| patterns("*.one\n", &[]), |when: &[&str]| patterns("*.two\n", when));
        let onbranch = "[includeIf \"onbranch:x\"]\npath = more\n";
        for (config, expected) in [
            ("", vec![]),
            ("[core]\nexcludesfile = ~/one\n", vec![one()]),
            ("[core]\nexcludesFile = HOME/one\n[include]\npath = more\n", vec![two(&[])]),
            (&format!("[core]\nexcludesFile = ~/one\n{onbranch}"), vec![one(), two(&["onbranch:x"])]),
            (&format!("{onbranch}[core]\nexcludesFile = ~/one\n"), vec![one()]),
            (&format!("[core]\nexcludesFile = ~/one\nexcludesFile = \n{onbranch}"), vec![two(&["onbranch:x"])]),
            ("[core]\nexcludesFile = ~/one\nexcludesFile = ~/gone\n", vec![]),
        ] {
            assert_eq!(ignored(config), (expected, None), "{config}");
        }
        let relative = Some("core.excludesFile is not an absolute path".to_owned());
        assert_eq!(ignored("[core]\nexcludesFile = one\n"), (vec![], relative));
    }

    #[test]
    fn the_last_of_all_files_and_includes_counts() {
        let held = tempfile::tempdir().unwrap();
        let home = held.path();
        let identity = read(
            home,
            &[
                (".config/git/config", "[user]\n\tname = Xdg\n"),
                (
                    ".gitconfig",
                    "[author]\nemail = author@example.org\n[user]\nname = Ann\n[include]\npath = more/one\npath = ~/two\npath = gone\n\
                     [includeIf \"gitdir:~/work/\"]\npath = work\n[includeIf \"gitdir/i:Clients\"]\npath = work\n",
                ),
                ("more/one", "[user]\nemail = one@example.org\n[includeIf \"gitdir:./x\"]\npath = three\n"),
                ("more/three", "[USER]\nName = Three\n[user \"other\"]\nname = Nobody\n"),
                ("two", "[user]\nemail = two@example.org\n"),
                ("work", "[user]\nemail = work@example.org\n[includeIf \"onbranch:main\"]\npath = more/three\n"),
            ],
        );
        let (work, x) = (format!("gitdir:{}/work/**", home.display()), format!("gitdir:{}/more/x", home.display()));
        let expected = [
            entry(Some("Xdg"), None, &[]),
            entry(Some("Ann"), None, &[]),
            entry(None, Some("one@example.org"), &[]),
            entry(Some("Three"), None, &[&x]),
            entry(None, Some("two@example.org"), &[]),
            entry(None, Some("work@example.org"), &[&work]),
            entry(Some("Three"), None, &[&work, "onbranch:main"]),
            entry(None, Some("work@example.org"), &["gitdir/i:**/Clients"]),
            entry(Some("Three"), None, &["gitdir/i:**/Clients", "onbranch:main"]),
            entry(None, Some("author@example.org"), &[]),
        ];
        assert_eq!(identity.entries, expected);
        assert_eq!(identity.problem, None);
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        for (contents, expected) in [
            ("[user\nname = Ann\n", ".gitconfig: line 1 is not a line of a git config"),
            ("[include]\npath = .gitconfig\n", ".gitconfig: it includes too much"),
            (
                "[include]\npath = .gitconfig\npath = .gitconfig\npath = .gitconfig\npath = .gitconfig\n",
                ".gitconfig: it includes too much",
            ),
        ] {
            let held = tempfile::tempdir().unwrap();
            let problem = read(held.path(), &[(".gitconfig", contents)]).problem;
            assert!(problem.as_ref().is_some_and(|problem| problem.ends_with(expected)), "{problem:?}");
        }
        let held = tempfile::tempdir().unwrap();
        assert_eq!(read(held.path(), &[]), Identity::default());
    }

    #[test]
    fn it_becomes_settings() {
        let identity = Identity {
            environment: entry(Some("Ann"), None, &[]),
            entries: vec![entry(None, Some("a@example.org"), &["onbranch:main"])],
            ignored: vec![patterns(".env\n", &["onbranch:main"])],
            problem: None,
        };
        let mut settings = toml::Table::new();
        identity.write(&mut settings);
        let expected = "[person]\nenvironment = { name = 'Ann' }\nentries = [{ email = 'a@example.org', when = ['onbranch:main'] }]\n\
                        ignored = [{ patterns = \"\"\"\n.env\n\"\"\", when = ['onbranch:main'] }]";
        assert_eq!(settings, toml::from_str(expected).unwrap());
    }
}
