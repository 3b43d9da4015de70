//! `wharf add` and `wharf grant`: show a person what a plugin wants, and write what they allow into the config.

use std::{collections::BTreeMap, path::Path, process::ExitCode, sync::Arc};

use anyhow::{Context, Result, bail, ensure};
use toml_edit::Value;
use wharf_sandbox::Outside;

use super::{
    ask::Person,
    check::all_or_nothing,
    edit::Edited,
    file::{File, component},
    load::print,
};
use crate::{
    access::{
        grants::could_use,
        wants::{
            parse,
            want::{Http, Injected, Kind, Setting, Wants, What, because},
        },
    },
    base::{
        guard,
        text::{clip, escaped},
    },
    config::{self, PluginConfig},
};

/// `wharf add`: a plugin that the config does not have yet.
pub async fn add(path: &Path, id: Option<&str>, config: Option<&Path>) -> Result<ExitCode> {
    guard::check_trusted_file(path, "plugin")?;
    let (_, outside) = component(path)?;
    let wants = wants(&outside)?.unwrap_or_default();
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let id = id.unwrap_or(&stem);
    config::check_id(id).context("name another with --id")?;
    let mut file = File::open(config)?;
    let known = file.config()?.plugins.iter().any(|plugin| plugin.id == id);
    ensure!(
        !known,
        "{} has a plugin `{id}` already; `wharf grant {id}` asks for what it wants, and --id adds this file under another id",
        file.path.display()
    );
    let pin = |edited: &mut Edited, path: String| {
        edited.set(id, "path", &text(&path))?;
        edited.set(id, "sha256", &text(&outside.sha256))
    };
    let path = file.relative(path)?;
    let Some(mut person) = Person::here() else {
        let mut lines = Edited::parse("")?;
        pin(&mut lines, path)?;
        bail!("{}", by_hand("add", &file, &format!("{}{}", lines.text(), suggested(id, &wants)?)));
    };
    introduce(&mut person, id, &outside)?;
    pin(&mut file.edited, path)?;
    let mut asking = Asking { person, file, id, secrets: BTreeMap::new(), allowed: Vec::new() };
    asking.go_through(&wants)?;
    asking.finish().await
}

/// `wharf grant`: what a plugin of the config wants and does not have yet.
pub async fn grant(id: &str, config: Option<&Path>) -> Result<ExitCode> {
    let mut file = File::open(config)?;
    ensure!(file.is_there(), "{}: there is no such config file", file.path.display());
    let config = file.config()?;
    let plugin = plugin(&config, id).with_context(|| file.path.display().to_string())?;
    let path = plugin.source.path().context("the plugin has no file")?;
    guard::check_trusted_file(path, "plugin")?;
    let (_, outside) = component(path)?;
    let Some(wants) = wants(&outside)? else {
        bail!("{id} does not say what it wants; what it is granted is written into [plugins.{id}.grants] by hand");
    };
    let is_new = plugin.sha256.is_some_and(|known| hex(&known) != outside.sha256);
    let wants = lacking(wants, &plugin);
    if wants == Wants::default() && !is_new {
        print(&format!("{id} has all that it wants"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(mut person) = Person::here() else {
        bail!("{}", by_hand("grant", &file, &suggested(id, &wants)?));
    };
    introduce(&mut person, id, &outside)?;
    if is_new {
        person.tell("its file is not the one whose sha256 is in the config")?;
        if !person.agrees("Trust this file from now on?")? {
            bail!("the file is not trusted, so nothing was written");
        }
        file.edited.set(id, "sha256", &text(&outside.sha256))?;
    }
    if !config.plugins.iter().any(|plugin| plugin.id == id) {
        // It lies in the plugin folder and has no table yet.
        let path = file.relative(path)?;
        file.edited.set(id, "path", &text(&path))?;
        file.edited.set(id, "sha256", &text(&outside.sha256))?;
    }
    let mut asking = Asking { person, file, id, secrets: BTreeMap::new(), allowed: Vec::new() };
    asking.go_through(&wants)?;
    asking.finish().await
}

/// A plugin that has a table in the config, or lies in the plugin folder.
fn plugin(config: &config::Config, id: &str) -> Result<Arc<PluginConfig>> {
    if let Some(plugin) = config.plugins.iter().find(|plugin| plugin.id == id) {
        return Ok(Arc::clone(plugin));
    }
    config::check_id(id)?;
    let dropped_in = config.plugin_dir.as_ref().map(|folder| folder.join(format!("{id}.wasm")));
    match dropped_in.filter(|path| crate::base::paths::FileId::at(path).is_some()) {
        Some(path) => Ok(Arc::new(config.dropped_in(id, path))),
        None => {
            let ids: Vec<&str> = config.plugins.iter().map(|plugin| plugin.id.as_str()).collect();
            bail!("there is no plugin `{id}`; there are: {}", all_or_nothing(&ids));
        }
    }
}

fn wants(outside: &Outside) -> Result<Option<Wants>> {
    let parsed = outside.sections.wants.as_deref().map(parse::json).transpose();
    parsed.map_err(|error| anyhow::anyhow!("the section wharf:wants: {}", clip(&escaped(&format!("{error:#}")))))
}

/// The wants that the config does not fulfil.
fn lacking(wants: Wants, plugin: &PluginConfig) -> Wants {
    let given: serde_json::Value = serde_json::from_str(&plugin.settings.json()).unwrap_or_default();
    let Wants { mut grants, secrets, mut settings } = wants;
    grants.retain(|want| !want.what.is_granted(&plugin.grants));
    settings.retain(|setting| given.get(&setting.key).is_none());
    let used = |name: &str| {
        grants.iter().any(
            |want| matches!(&want.what, What::Http(http) if http.secret.as_ref().is_some_and(|one| one.name == name)),
        )
    };
    let secrets = secrets.into_iter().filter(|secret| used(&secret.name)).collect();
    Wants { grants, secrets, settings }
}

fn introduce(person: &mut Person, id: &str, outside: &Outside) -> Result<()> {
    person.tell(&format!("{id}: sha256 {}", outside.sha256))?;
    person.tell(&format!("could use, if granted: {}", all_or_nothing(&could_use(&outside.imports))))
}

/// Why a command that asks does not go on without a terminal, and what to write instead.
fn by_hand(command: &str, file: &File, lines: &str) -> String {
    format!(
        "`wharf {command}` asks a person, and there is no terminal to ask at; write into {} what you agree to of this:\n{}",
        file.path.display(),
        lines.trim_end()
    )
}

/// Everything that a plugin wants as lines of a config. They are comments, so that nobody grants by copying.
fn suggested(id: &str, wants: &Wants) -> Result<String> {
    let mut edited = Edited::parse("")?;
    for want in &wants.grants {
        write(&mut edited, id, &want.what, None)?;
    }
    for secret in &wants.secrets {
        edited.add_secret(&secret.name, "{ env = \"NAME\" }")?;
    }
    for setting in &wants.settings {
        edited.set_setting(id, &setting.key, "\"…\"")?;
    }
    let text = edited.text();
    Ok(text.lines().filter(|line| !line.is_empty()).map(|line| format!("# {line}\n")).collect())
}

fn write(edited: &mut Edited, id: &str, what: &What, secret: Option<&str>) -> Result<()> {
    match what {
        What::Roots(_) => edited.set_grant(id, what.key(), &what.value(secret)),
        _ => edited.add_grant(id, what.key(), &what.value(secret)),
    }
}

/// A conversation about one plugin, and the config as it would be if it ended now.
struct Asking<'a> {
    person: Person,
    file: File,
    id: &'a str,
    /// The secrets that were spoken of: the plugin's names, and those in the config; `None` if it is not to have it.
    secrets: BTreeMap<String, Option<String>>,
    allowed: Vec<What>,
}

impl Asking<'_> {
    fn go_through(&mut self, wants: &Wants) -> Result<()> {
        for want in &wants.grants {
            self.person.tell(&format!("\nIt wants {}{}", want.what.words(), because(want.why.as_deref())))?;
            if !self.person.agrees(&format!("Allow {}?", question(&want.what)))? {
                continue;
            }
            match &want.what {
                What::Http(http) => self.allow_http(http, wants)?,
                what => {
                    write(&mut self.file.edited, self.id, what, None)?;
                    self.allowed.push(what.clone());
                }
            }
        }
        for setting in &wants.settings {
            self.set(setting)?;
        }
        Ok(())
    }

    fn allow_http(&mut self, http: &Http, wants: &Wants) -> Result<()> {
        let secret = match &http.secret {
            Some(injected) => self.secret(injected, wants)?,
            None => None,
        };
        let mut http = http.clone();
        if secret.is_none() {
            http.secret = None;
        }
        let what = What::Http(Box::new(http));
        write(&mut self.file.edited, self.id, &what, secret.as_deref())?;
        self.allowed.push(what);
        Ok(())
    }

    /// The name in `[secrets]` of a secret that is to be added to requests; `None` if they are to go without it.
    fn secret(&mut self, injected: &Injected, wants: &Wants) -> Result<Option<String>> {
        let name = &injected.name;
        if let Some(known) = self.secrets.get(name) {
            return Ok(known.clone());
        }
        let why = wants.secrets.iter().find(|secret| secret.name == *name).and_then(|secret| secret.why.as_deref());
        self.person.tell(&format!(
            "wharf adds the secret `{name}` to these requests, and the plugin never sees it{}",
            because(why)
        ))?;
        let mut chosen = name.clone();
        if self.file.edited.has_secret(name) {
            let question = format!("There is a secret `{name}` in the config already. Is it this one?");
            if self.person.agrees(&question)? {
                self.secrets.insert(name.clone(), Some(chosen.clone()));
                return Ok(Some(chosen));
            }
            chosen = format!("{}_{name}", self.id.replace('.', "_"));
            ensure!(
                !self.file.edited.has_secret(&chosen),
                "there is a secret `{chosen}` as well, so nothing was written; write this rule by hand"
            );
        }
        let question =
            format!("Where does `{name}` come from? (env NAME, file PATH, command WORDS; nothing to go without)");
        let source = self.person.says(&question, source)?;
        let chosen = match source {
            Some(source) => {
                self.file.edited.add_secret(&chosen, &source)?;
                Some(chosen)
            }
            None => None,
        };
        self.secrets.insert(name.clone(), chosen.clone());
        Ok(chosen)
    }

    fn set(&mut self, setting: &Setting) -> Result<()> {
        let Setting { key, kind, required, why } = setting;
        self.person.tell(&format!("\nIt has {}{}", setting.words(), because(why.as_deref())))?;
        let hint = if *required { "" } else { " (nothing to leave it out)" };
        let read = |answer: &str| {
            ensure!(!*required || !answer.is_empty(), "it does not work without this setting");
            if answer.is_empty() { Ok(None) } else { value(*kind, answer).map(Some) }
        };
        if let Some(value) = self.person.says(&format!("Value of `{key}`{hint}:"), read)? {
            self.file.edited.set_setting(self.id, key, &value)?;
        }
        Ok(())
    }

    async fn finish(self) -> Result<ExitCode> {
        let Self { file, id, allowed, .. } = self;
        if file.is_unchanged() {
            print("nothing was allowed, so nothing was written")?;
            return Ok(ExitCode::SUCCESS);
        }
        let missing = file.try_out(id).await?;
        file.write()?;
        let config = file.changed()?;
        for plugin in config.plugins.iter().filter(|plugin| plugin.id == id) {
            print(&format!("granted: {}", all_or_nothing(&plugin.grants.describe())))?;
            for what in allowed.iter().filter(|what| !what.is_granted(&plugin.grants)) {
                let words = what.words();
                print(&format!("note: {words}: another rule for the same comes first; take one of them out by hand"))?;
            }
        }
        for problem in missing {
            print(&format!("note: {problem}"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What is asked for, in the words of the question. They are wharf's own or were checked.
fn question(what: &What) -> String {
    match what {
        What::Http(http) => http.rule.to_string(),
        What::Roots(_) => format!("{}, the folders that a client opens", what.words()),
        What::Env(name) => format!("it to see the environment variable {name}"),
        What::Ask(ability) => format!("it to ask the client ({ability})"),
    }
}

/// A text as TOML has it.
fn text(value: &str) -> String {
    Value::from(value).to_string()
}

/// Reads where a secret comes from.
fn source(answer: &str) -> Result<Option<String>> {
    if answer.is_empty() {
        return Ok(None);
    }
    let (kind, rest) = answer.split_once(char::is_whitespace).unwrap_or((answer, ""));
    let rest = rest.trim();
    ensure!(!rest.is_empty(), "say env and the name of a variable, file and a path, or command and its words");
    Ok(Some(match kind {
        "env" => format!("{{ env = {} }}", text(rest)),
        "file" if rest.starts_with("~/") => format!("{{ file = {} }}", text(rest)),
        "file" => {
            // A path that somebody types is relative to where they are, and one in the file to the file.
            let path = std::path::absolute(rest)?;
            format!("{{ file = {} }}", text(path.to_str().unwrap_or(rest)))
        }
        "command" => {
            let words: Vec<String> = rest.split_whitespace().map(text).collect();
            format!("{{ command = [{}] }}", words.join(", "))
        }
        _ => bail!("`{kind}` is none of env, file, command"),
    }))
}

/// Reads the value of a setting.
fn value(kind: Kind, answer: &str) -> Result<String> {
    match kind {
        Kind::String => Ok(text(answer)),
        Kind::Boolean => {
            ensure!(["true", "false"].contains(&answer), "it is true or false");
            Ok(answer.to_owned())
        }
        Kind::Number => {
            let value: Option<Value> = answer.parse().ok();
            ensure!(value.is_some_and(|value| value.is_integer() || value.is_float()), "it is a number");
            Ok(answer.to_owned())
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_become_toml() {
        for (answer, expected) in [
            ("", None),
            ("env GITHUB_TOKEN", Some(r#"{ env = "GITHUB_TOKEN" }"#)),
            ("file /run/a b", Some(r#"{ file = "/run/a b" }"#)),
            ("file ~/t", Some(r#"{ file = "~/t" }"#)),
            ("command  op read x", Some(r#"{ command = ["op", "read", "x"] }"#)),
        ] {
            assert_eq!(source(answer).unwrap().as_deref(), expected, "{answer}");
        }
        for wrong in ["env", "file ", "GITHUB_TOKEN", "credential x"] {
            assert!(source(wrong).is_err(), "{wrong}");
        }
        for (kind, answer, expected) in [
            (Kind::String, r#"a "b" = {}"#, Some(r#"'a "b" = {}'"#)),
            (Kind::Number, "1.5", Some("1.5")),
            (Kind::Number, "x", None),
            (Kind::Number, "\"1\"", None),
            (Kind::Boolean, "true", Some("true")),
            (Kind::Boolean, "yes", None),
        ] {
            assert_eq!(value(kind, answer).ok().as_deref(), expected, "{answer}");
        }
    }

    #[test]
    fn what_is_suggested_is_commented_out() {
        let wants = parse::toml(
            "http = [{ url = 'https://a.example', secret = 't' }]\nroots = 'read'\nsecrets = [{ name = 't' }]\n\
             settings = [{ key = 'org', type = 'string' }]",
        );
        let lines = suggested("a", &wants.unwrap().0).unwrap();
        assert_eq!(
            lines,
            "# [plugins.a.grants]\n\
             # http = [{ url = \"https://a.example\", headers = { authorization = \"Bearer {t}\" } }]\n\
             # roots = \"read\"\n# [plugins.a.config]\n# org = \"…\"\n# [secrets]\n# t = { env = \"NAME\" }\n"
        );
    }
}
