//! The dialogue of `wharf add` and `wharf grant`, in which a person decides about each grant that a plugin wants. Each yes changes the
//! config in memory; the file is written at the end, or not at all.

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::{Result, ensure};

use super::{
    answers::{self, SOURCES, source},
    check::granted,
    file::File,
    load::print,
    person::Person,
};
use wharf_base::text::toml_header;
use wharf_policy::access::wants::want::{HttpWant, Injected, Setting, SettingKind, WantedGrant, Wants, because};

/// A dialogue about one plugin, and the config with the answers so far.
pub struct GrantDialogue<'a> {
    pub person: Person,
    pub file: File,
    pub id: &'a str,
    /// The digest of the plugin's file, which the person was shown.
    pub sha256: &'a str,
    /// The path of a plugin that has no table in the config yet. The table is added only if something is granted.
    pub no_table: Option<String>,
    /// Whether the config pins the plugin to the digest of this file.
    pub is_pinned: bool,
    pub decisions: Decisions,
}

/// The answers so far.
#[derive(Default)]
pub struct Decisions {
    /// Keys: the plugin's name for a secret, and the origin that gets it. Values: the name in `[secrets]`; `None` to send no secret.
    secrets: BTreeMap<(String, String), Option<String>>,
    /// The last chosen name in `[secrets]`, by the plugin's name for the secret.
    last: BTreeMap<String, String>,
    allowed: Vec<WantedGrant>,
    notes: Vec<String>,
    /// Whether the person was warned that the plugin sees its settings.
    warned_of_settings: bool,
}

impl GrantDialogue<'_> {
    /// Asks about everything that the plugin wants, and writes the config.
    pub async fn go_through(mut self, wants: &Wants) -> Result<ExitCode> {
        self.ask(wants)?;
        self.finish().await
    }

    /// Asks about everything that the plugin wants, and writes nothing yet.
    pub fn ask(&mut self, wants: &Wants) -> Result<()> {
        for want in &wants.grants {
            self.person.tell(&format!("\nIt wants {}{}", want.what.words(), because(want.why.as_deref())))?;
            if !self.person.agrees(&format!("Allow {}?", question(&want.what)))? {
                continue;
            }
            match &want.what {
                WantedGrant::Http(http) => self.allow_http(http, wants)?,
                what => {
                    self.file.edited.allow(self.id, what, None)?;
                    self.decisions.allowed.push(what.clone());
                }
            }
        }
        for setting in &wants.settings {
            self.set(setting)?;
        }
        Ok(())
    }

    fn allow_http(&mut self, http: &HttpWant, wants: &Wants) -> Result<()> {
        let secret = match &http.secret {
            Some(injected) => self.secret(injected, &http.rule.origin(), wants)?,
            None => None,
        };
        let mut http = http.clone();
        if secret.is_none() {
            http.secret = None;
        }
        let what = WantedGrant::Http(Box::new(http));
        self.file.edited.allow(self.id, &what, secret.as_deref())?;
        self.decisions.allowed.push(what);
        Ok(())
    }

    /// Asks which secret to add to requests to an origin, and returns its name in `[secrets]`; `None` to send the requests without it.
    fn secret(&mut self, injected: &Injected, origin: &str, wants: &Wants) -> Result<Option<String>> {
        let Injected { name, header } = injected;
        let key = (name.clone(), origin.to_owned());
        if let Some(known) = self.decisions.secrets.get(&key) {
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
            self.decisions.last.insert(name.clone(), chosen.clone());
        }
        self.decisions.secrets.insert(key, chosen.clone());
        Ok(chosen)
    }

    /// Asks whether to use the secret that is already in the config, if there is one.
    fn known_secret(&mut self, name: &str, header: &str, origin: &str) -> Result<Option<String>> {
        let known = self.decisions.last.get(name).map_or(name, String::as_str);
        if !self.file.edited.has_secret(known) {
            return Ok(None);
        }
        let known = known.to_owned();
        let from = self.file.edited.secret_source(&known).map(|source| format!(", from {source},")).unwrap_or_default();
        let question = format!("Send the secret `{known}` of the config{from} to {origin} in the header {header}?");
        Ok(self.person.agrees(&question)?.then_some(known))
    }

    /// Asks for the source of a secret, and adds the secret to the config.
    fn new_secret(&mut self, name: &str) -> Result<Option<String>> {
        let question = format!("Where does `{name}` come from? ({SOURCES}; Enter to go without)");
        let Some(source) = self.person.says(&question, source)? else { return Ok(None) };
        let Self { person, file, id, .. } = self;
        let own = format!("{}_{name}", id.replace('.', "_"));
        let chosen = match [name, &own].into_iter().find(|name| !file.edited.has_secret(name)) {
            Some(free) => free.to_owned(),
            None => person.says(
                &format!("`{name}` and `{own}` are taken in [secrets]. What shall this one be called there?"),
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
        if !std::mem::replace(&mut self.decisions.warned_of_settings, true) {
            self.person.tell("The plugin sees these values. Do not enter a secret.")?;
        }
        let read = |answer: &str| match answer {
            "" => Ok(None),
            answer => answers::value(*kind, answer).map(|value| Some((value, answers::is_yes_or_no(answer)))),
        };
        let said = self.person.says(&format!("Value of `{key}` (Enter to skip):"), read)?;
        let value = match said {
            Some((value, true)) if *kind == SettingKind::String => {
                self.person.agrees(&format!("Is {value} the value of `{key}`?"))?.then_some(value)
            }
            Some((value, _)) => Some(value),
            None => None,
        };
        match value {
            Some(value) => self.file.edited.set_setting(self.id, key, &value)?,
            None if *required => {
                let table = toml_header(&["plugins", self.id, "config"]);
                self.decisions.notes.push(format!("the plugin declares `{key}` as required; set it in {table}"));
            }
            None => {}
        }
        Ok(())
    }

    pub async fn finish(self) -> Result<ExitCode> {
        let Self { mut person, mut file, id, sha256, no_table, is_pinned, decisions } = self;
        if file.is_unchanged() {
            print("nothing was allowed, so nothing was written")?;
            return decisions
                .notes
                .iter()
                .try_for_each(|note| print(&format!("note: {note}")))
                .map(|()| ExitCode::SUCCESS);
        }
        if let Some(path) = &no_table {
            file.edited.set(id, "path", &answers::text(path))?;
        }
        if !is_pinned {
            person
                .tell(&format!("\nAny file that is put at the plugin's path counts as {id} and has these grants."))?;
            let question = format!(
                "Serve only the current file, sha256 {sha256}, until you trust another with `wharf grant {id}`?"
            );
            if person.agrees(&question)? {
                file.edited.set(id, "sha256", &answers::text(sha256))?;
            }
        }
        let missing = file.try_out(id, sha256).await?;
        let grants = file.grants(id)?;
        let mut lines = vec![format!("granted: {}", granted(&grants.describe()))];
        for what in decisions.allowed.iter().filter(|what| !what.is_granted(&grants)) {
            let words = what.words();
            lines.push(format!(
                "note: {words}: another rule for the same place takes precedence; remove one of them by hand"
            ));
        }
        lines.extend(decisions.notes.iter().chain(&missing).map(|note| format!("note: {note}")));
        file.write(&lines)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns what the question asks to allow. The words are wharf's own or were validated, so they need no escaping.
fn question(what: &WantedGrant) -> String {
    match what {
        WantedGrant::Http(_) => what.words(),
        WantedGrant::Roots(_) => format!("{}, the folders that a client opens", what.words()),
        WantedGrant::Env(name) => format!("it to see the environment variable {name}"),
        WantedGrant::Ask(ability) => format!("it to ask the client ({ability})"),
    }
}
