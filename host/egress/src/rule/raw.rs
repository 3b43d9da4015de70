//! Rules of `http = […]` as they are written.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

/// A rule as written in the config: a URL alone, or a table.
#[derive(Debug, Clone, schemars::JsonSchema)]
#[schemars(transparent)]
pub struct RawRule(#[schemars(with = "Ways")] pub(super) Table);

/// The two ways to write a rule, for the schema.
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape counts")]
enum Ways {
    Url(String),
    Table(Table),
}

#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    /// The scheme, host and port, and the beginning of the path. A host that begins with `*.` stands for any name below the domain. The
    /// word `any` instead of a URL stands for every host with a public address.
    pub url: String,
    /// The methods that are allowed: a list, or `"any"`.
    ///
    /// Default: `["GET", "HEAD"]`
    #[serde(default)]
    pub methods: Option<WrittenMethods>,
    /// Headers that wharf adds to the requests. `{NAME}` is replaced by the secret in `[secrets]`; `{{` and `}}` are literal
    /// braces.
    ///
    /// Default: `{}`
    #[serde(default)]
    #[schemars(with = "std::collections::BTreeMap<String, String>")]
    pub headers: toml::Table,
    /// Whether the host may resolve to an address of this machine or of its network.
    ///
    /// Default: `false`
    #[serde(default)]
    pub private: bool,
    /// The secrets whose placeholders are replaced in the plugin's headers.
    ///
    /// Default: `[]`
    #[serde(default)]
    pub secrets: Vec<String>,
}

/// The methods of a rule as written in the config.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(untagged, expecting = "\"any\", or a list such as [\"GET\", \"POST\"]")]
pub enum WrittenMethods {
    Word(String),
    List(Vec<String>),
}

impl RawRule {
    /// Creates the rule that allows `GET` and `HEAD` for a URL and everything below it.
    pub fn url(url: impl Into<String>) -> Self {
        Self::with(url, None, None)
    }

    /// Creates the rule that allows these methods and adds a header.
    pub fn with(url: impl Into<String>, methods: Option<WrittenMethods>, header: Option<(String, String)>) -> Self {
        let headers = header.into_iter().map(|(name, value)| (name, value.into())).collect();
        Self(Table { url: url.into(), methods, headers, private: false, secrets: Vec::new() })
    }

    /// Creates the rule that allows every method for a URL and everything below it.
    pub fn any_method(url: impl Into<String>) -> Self {
        Self::with(url, Some(WrittenMethods::Word("any".to_owned())), None)
    }

    /// Creates the rule that allows `GET` and `HEAD` for a URL, also if its host resolves to a private address.
    pub fn private(url: impl Into<String>) -> Self {
        Self(Table { private: true, ..Self::url(url).0 })
    }
}

impl<'de> Deserialize<'de> for RawRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> de::Visitor<'de> for Either {
            type Value = RawRule;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a URL, `any`, or a table such as { url = \"https://…\", methods = [\"GET\"] }")
            }
            fn visit_str<E: de::Error>(self, url: &str) -> Result<RawRule, E> {
                Ok(RawRule::url(url))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<RawRule, A::Error> {
                Table::deserialize(de::value::MapAccessDeserializer::new(map)).map(RawRule)
            }
        }
        deserializer.deserialize_any(Either)
    }
}
