//! The wants of a plugin. Every text except the reasons was validated by the parser, so it can be printed and written into a config as it
//! is. A reason is printed only by [`because`], on lines of its own.

use crate::access::{
    capability::Access,
    grants::{dirs, env, http},
};
use wharf_base::text::{marked, quoted, toml_header};
use wharf_egress::rule::{Rule, WrittenMethods};

/// Everything that a plugin wants.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wants {
    /// The wants that an entry in the plugin's grants would fulfil.
    pub grants: Vec<Want>,
    pub secrets: Vec<Secret>,
    pub settings: Vec<Setting>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Want {
    pub what: WantedGrant,
    pub why: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum WantedGrant {
    Http(Box<HttpWant>),
    Roots(Access),
    Env(String),
    Ask(String),
}

/// Requests that the plugin wants to send.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpWant {
    pub url: String,
    pub methods: Option<WrittenMethods>,
    /// The rule that would allow the requests, without the headers that it would add.
    pub rule: Rule,
    pub secret: Option<Injected>,
}

/// A secret that wharf should add to requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injected {
    pub name: String,
    /// The header for the secret, in lower case.
    pub header: String,
}

/// A secret, by the name that the plugin's author chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    pub name: String,
    pub why: Option<String>,
}

/// A key of the plugin's own config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub key: String,
    pub kind: SettingKind,
    pub required: bool,
    pub why: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    String,
    Number,
    Boolean,
}

impl SettingKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    /// Returns a sample value for a suggested line, which the operator has to replace.
    pub fn example(self) -> &'static str {
        match self {
            Self::String => "\"…\"",
            Self::Number => "0",
            Self::Boolean => "false",
        }
    }
}

impl Injected {
    /// Returns the header's value in a rule: `Bearer` and the secret in `authorization`, as most APIs expect, else the secret alone.
    pub fn value(&self, secret: &str) -> String {
        if self.header == "authorization" { format!("Bearer {{{secret}}}") } else { format!("{{{secret}}}") }
    }
}

impl WantedGrant {
    /// Describes the want for a person.
    pub fn words(&self) -> String {
        match self {
            Self::Http(http) => match &http.secret {
                Some(Injected { name, header }) => {
                    format!("{}, with the secret `{name}` in the header {header}", http.rule)
                }
                None => http.rule.to_string(),
            },
            Self::Roots(access) => format!("roots ({})", access.as_str()),
            // Without `$`, which a shell would expand if the text were pasted.
            Self::Env(name) => format!("the variable {name}"),
            Self::Ask(ability) => format!("asking the client ({ability})"),
        }
    }

    /// Returns the key in the plugin's grants that would fulfil the want.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Http(_) => "http",
            Self::Roots(_) => "roots",
            Self::Env(_) => "env",
            Self::Ask(_) => "ask",
        }
    }

    /// Returns the TOML value, or the list entry, that would fulfil the want. `secret` is the name in `[secrets]`, if it differs from the
    /// plugin's own.
    pub fn value(&self, secret: Option<&str>) -> String {
        match self {
            Self::Http(http) => http.entry(secret),
            Self::Roots(access) => format!("\"{}\"", access.as_str()),
            Self::Env(text) | Self::Ask(text) => format!("\"{text}\""),
        }
    }

    /// Returns the option of the command line that would fulfil the want, or `None` if only a config can.
    pub fn flag(&self) -> Option<String> {
        match self {
            Self::Http(http) => match (&http.secret, &http.methods) {
                (Some(_), _) => None,
                (None, None) => Some(format!("--allow http={}", http.url)),
                (None, Some(_)) => Some(format!("--allow http-write={}", http.url)),
            },
            Self::Roots(access) => Some(format!("--allow roots={}", access.as_str())),
            Self::Env(name) => Some(format!("--allow env={name}")),
            Self::Ask(ability) => Some(format!("--allow ask={ability}")),
        }
    }

    /// Returns the line to add to the grants of a plugin. `has_secret`: whether the config has a secret of that name.
    pub fn line(&self, id: &str, has_secret: impl Fn(&str) -> bool) -> String {
        let (key, value, table) = (self.key(), self.value(None), toml_header(&["plugins", id, "grants"]));
        match self {
            Self::Roots(_) => format!("{key} = {value} to {table}"),
            Self::Http(http) => {
                let needs = http.secret.as_ref().map(|Injected { name, .. }| match has_secret(name) {
                    true => format!("; it uses the secret `{name}` that is in [secrets] already"),
                    false => format!("; it needs a secret `{name}` in [secrets]"),
                });
                format!("{value} to `{key}` in {table}{}", needs.unwrap_or_default())
            }
            Self::Env(_) | Self::Ask(_) => format!("{value} to `{key}` in {table}"),
        }
    }

    /// Returns the ability that a plugin must have imported to use this, or `None` if every plugin can use it.
    pub fn needs(&self) -> Option<&'static str> {
        match self {
            Self::Http(_) => Some(http::HTTP),
            Self::Roots(_) => Some(dirs::FILES),
            Self::Env(_) => Some(env::VARIABLES),
            Self::Ask(_) => None,
        }
    }
}

impl HttpWant {
    fn entry(&self, secret: Option<&str>) -> String {
        let Self { url, methods, rule: _, secret: injected } = self;
        let mut entry = format!("{{ url = \"{url}\"");
        match methods {
            Some(WrittenMethods::Word(word)) => entry += &format!(", methods = \"{word}\""),
            Some(WrittenMethods::List(list)) => {
                let list: Vec<String> = list.iter().map(|method| format!("\"{method}\"")).collect();
                entry += &format!(", methods = [{}]", list.join(", "));
            }
            None if injected.is_none() => return format!("\"{url}\""),
            None => {}
        }
        if let Some(injected) = injected {
            let value = injected.value(secret.unwrap_or(&injected.name));
            entry += &format!(", headers = {{ {} = \"{value}\" }}", injected.header);
        }
        entry + " }"
    }
}

impl Setting {
    /// Describes the setting for a person.
    pub fn words(&self) -> String {
        let Self { key, kind, required, why: _ } = self;
        format!("the setting `{key}` ({}{})", kind.as_str(), if *required { ", required" } else { "" })
    }

    /// Returns the line to add to the config of a plugin.
    pub fn line(&self, id: &str) -> String {
        format!("{} = {} to {}", self.key, self.kind.example(), toml_header(&["plugins", id, "config"]))
    }
}

/// Formats the author's reason, marked as text from a third party, on lines of its own.
pub fn because(why: Option<&str>) -> String {
    why.map(|why| marked(&format!("it says: {}", quoted(why)))).unwrap_or_default()
}
