//! The conversation in which a person says what a plugin gets of what it wants. Each yes changes the config in memory; it is written
//! at the end, or not at all.

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::{Result, ensure};

use super::{
    answers::{self, SOURCES, source},
    ask::Person,
    check::granted,
    file::File,
    load::print,
};
use crate::{
    access::wants::want::{Http, Injected, Kind, Setting, Wants, What, because},
    base::text::toml_header,
};

/// A conversation about one plugin, and the config as it would be if it ended now.
pub struct Asking<'a> {
    pub person: Person,
    pub file: File,
    pub id: &'a str,
    /// The digest of the file that the person was told of.
    pub sha256: &'a str,
    /// The path of the plugin, if it has no table yet and gets one only with something to stand in it.
    pub no_table: Option<String>,
    /// Whether the config loads no other file than this one.
    pub is_pinned: bool,
    pub told: Told,
}

/// What was said so far.
#[derive(Default)]
pub struct Told {
    /// For the plugin's name of a secret, and where it goes: the name in `[secrets]`; `None` if it is to go without.
    secrets: BTreeMap<(String, String), Option<String>>,
    /// The last of them by the plugin's name alone.
    last: BTreeMap<String, String>,
    allowed: Vec<What>,
    notes: Vec<String>,
    of_settings: bool,
}

impl Asking<'_> {
    /// Asks for everything, and writes the config.
    pub async fn go_through(mut self, wants: &Wants) -> Result<ExitCode> {
        for want in &wants.grants {
            self.person.tell(&format!("\nIt wants {}{}", want.what.words(), because(want.why.as_deref())))?;
            if !self.person.agrees(&format!("Allow {}?", question(&want.what)))? {
                continue;
            }
            match &want.what {
                What::Http(http) => self.allow_http(http, wants)?,
                what => {
                    self.file.edited.allow(self.id, what, None)?;
                    self.told.allowed.push(what.clone());
                }
            }
        }
        for setting in &wants.settings {
            self.set(setting)?;
        }
        self.finish().await
    }

    fn allow_http(&mut self, http: &Http, wants: &Wants) -> Result<()> {
        let secret = match &http.secret {
            Some(injected) => self.secret(injected, &http.rule.origin(), wants)?,
            None => None,
        };
        let mut http = http.clone();
        if secret.is_none() {
            http.secret = None;
        }
        let what = What::Http(Box::new(http));
        self.file.edited.allow(self.id, &what, secret.as_deref())?;
        self.told.allowed.push(what);
        Ok(())
    }

    /// The name in `[secrets]` of a secret that is to be added to requests to a host; `None` if they are to go without it.
    fn secret(&mut self, injected: &Injected, origin: &str, wants: &Wants) -> Result<Option<String>> {
        let Injected { name, header } = injected;
        let key = (name.clone(), origin.to_owned());
        if let Some(known) = self.told.secrets.get(&key) {
            return Ok(known.clone());
        }
        let why = wants.secrets.iter().find(|secret| secret.name == *name).and_then(|secret| secret.why.as_deref());
        let because = because(why);
        self.person.tell(&format!(
            "wharf adds the secret `{name}` to these requests, and the plugin never sees it{because}"
        ))?;
        let chosen = match self.known_secret(name, header, origin)? {
            Some(known) => Some(known),
            None => self.new_secret(name)?,
        };
        if let Some(chosen) = &chosen {
            self.told.last.insert(name.clone(), chosen.clone());
        }
        self.told.secrets.insert(key, chosen.clone());
        Ok(chosen)
    }

    /// A secret that is in the config already, if it is the one.
    fn known_secret(&mut self, name: &str, header: &str, origin: &str) -> Result<Option<String>> {
        let known = self.told.last.get(name).map_or(name, String::as_str);
        if !self.file.edited.has_secret(known) {
            return Ok(None);
        }
        let known = known.to_owned();
        let from = self.file.edited.secret_source(&known).map(|source| format!(", from {source},")).unwrap_or_default();
        let question = format!(
            "Is it the secret `{known}` of the config{from} and is that to go to {origin} in the header {header}?"
        );
        Ok(self.person.agrees(&question)?.then_some(known))
    }

    /// A secret that the person says the source of.
    fn new_secret(&mut self, name: &str) -> Result<Option<String>> {
        let question = format!("Where does `{name}` come from? ({SOURCES}; nothing to go without)");
        let Some(source) = self.person.says(&question, source)? else { return Ok(None) };
        let Self { person, file, id, .. } = self;
        let own = format!("{}_{name}", id.replace('.', "_"));
        let chosen = match [name, &own].into_iter().find(|name| !file.edited.has_secret(name)) {
            Some(free) => free.to_owned(),
            None => person.says(
                &format!("`{name}` and `{own}` are taken in [secrets]. What is this one called there?"),
                |answer| {
                    let chosen = answers::name(answer)?;
                    ensure!(!file.edited.has_secret(&chosen), "there is a secret `{chosen}` already");
                    Ok(chosen)
                },
            )?,
        };
        file.edited.add_secret(&chosen, &source)?;
        Ok(Some(chosen))
    }

    fn set(&mut self, setting: &Setting) -> Result<()> {
        let Setting { key, kind, required, why } = setting;
        self.person.tell(&format!("\nIt has {}{}", setting.words(), because(why.as_deref())))?;
        if !std::mem::replace(&mut self.told.of_settings, true) {
            self.person.tell("The plugin sees what you say here. Put no secret into it.")?;
        }
        let read = |answer: &str| match answer {
            "" => Ok(None),
            answer => answers::value(*kind, answer).map(|value| Some((value, answers::is_yes_or_no(answer)))),
        };
        let said = self.person.says(&format!("Value of `{key}` (nothing to skip it):"), read)?;
        let value = match said {
            Some((value, true)) if *kind == Kind::String => {
                self.person.agrees(&format!("Is {value} the value of `{key}`?"))?.then_some(value)
            }
            Some((value, _)) => Some(value),
            None => None,
        };
        match value {
            Some(value) => self.file.edited.set_setting(self.id, key, &value)?,
            None if *required => {
                let table = toml_header(&["plugins", self.id, "config"]);
                self.told
                    .notes
                    .push(format!("it says that it does not work without `{key}`, which {table} can give it"));
            }
            None => {}
        }
        Ok(())
    }

    async fn finish(self) -> Result<ExitCode> {
        let Self { mut person, mut file, id, sha256, no_table, is_pinned, told } = self;
        if file.is_unchanged() {
            print("nothing was allowed, so nothing was written")?;
            return told.notes.iter().try_for_each(|note| print(&format!("note: {note}"))).map(|()| ExitCode::SUCCESS);
        }
        if let Some(path) = &no_table {
            file.edited.set(id, "path", &answers::text(path))?;
        }
        if !is_pinned {
            person.tell(&format!("\nUntil you say otherwise, any file at its path is {id} and has these grants."))?;
            let question = format!(
                "Serve only the file that it is now, sha256 {sha256}, until `wharf grant {id}` is told of another?"
            );
            if person.agrees(&question)? {
                file.edited.set(id, "sha256", &answers::text(sha256))?;
            }
        }
        let missing = file.try_out(id, sha256).await?;
        let grants = file.grants(id)?;
        let mut lines = vec![format!("granted: {}", granted(&grants.describe()))];
        for what in told.allowed.iter().filter(|what| !what.is_granted(&grants)) {
            let words = what.words();
            lines.push(format!("note: {words}: another rule for the same comes first; take one of them out by hand"));
        }
        lines.extend(told.notes.iter().chain(&missing).map(|note| format!("note: {note}")));
        file.write(&lines)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What is asked for, in the words of the question. They are wharf's own or were checked.
fn question(what: &What) -> String {
    match what {
        What::Http(_) => what.words(),
        What::Roots(_) => format!("{}, the folders that a client opens", what.words()),
        What::Env(name) => format!("it to see the environment variable {name}"),
        What::Ask(ability) => format!("it to ask the client ({ability})"),
    }
}
