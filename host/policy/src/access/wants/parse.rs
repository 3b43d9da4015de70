//! Parses wants, and refuses those that no config could grant. After that, every text except the reasons consists of characters that can
//! neither deceive a reader nor end a TOML string.

use std::{fmt, marker::PhantomData};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Deserializer, de};

use super::want::{HttpWant, Injected, Secret, Setting, SettingKind, Want, WantedGrant, Wants};
use crate::access::{
    capability::{Access, Capability},
    grants::ask,
};
use wharf_base::explain;
use wharf_egress::{
    address::{AddressKind, judge},
    rule::{self, HostPattern, Rule, WrittenMethods},
    target::Host,
};

/// The most entries of each list, since a person has to read all of them.
const MAX_ENTRIES: usize = 32;
const MAX_NAME_BYTES: usize = 64;
const MAX_URL_BYTES: usize = 200;
/// The methods that can be wanted. Only the operator can write a rule with other methods, since a word that the author invents must not
/// appear in a question to a person.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// The wants as written by the author.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    http: Vec<TextOr<WrittenHttp>>,
    roots: Option<TextOr<WrittenRoots>>,
    env: Vec<TextOr<WrittenEnv>>,
    ask: Vec<TextOr<WrittenAsk>>,
    secrets: Vec<WrittenSecret>,
    settings: Vec<WrittenSetting>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenHttp {
    url: String,
    methods: Option<WrittenMethods>,
    why: Option<String>,
    secret: Option<String>,
    header: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRoots {
    access: String,
    why: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenEnv {
    name: String,
    why: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAsk {
    capability: String,
    why: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSecret {
    name: String,
    why: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSetting {
    key: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    required: bool,
    why: Option<String>,
}

impl From<String> for WrittenHttp {
    fn from(url: String) -> Self {
        Self { url, methods: None, why: None, secret: None, header: None }
    }
}

impl From<String> for WrittenRoots {
    fn from(access: String) -> Self {
        Self { access, why: None }
    }
}

impl From<String> for WrittenEnv {
    fn from(name: String) -> Self {
        Self { name, why: None }
    }
}

impl From<String> for WrittenAsk {
    fn from(capability: String) -> Self {
        Self { capability, why: None }
    }
}

/// A value that is written as a string, or as a table with further keys.
struct TextOr<T>(T);

impl<'de, T: Deserialize<'de> + From<String>> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + From<String>> de::Visitor<'de> for Either<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a string, or a table with further keys")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
                Ok(T::from(text.to_owned()))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(de::value::MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_any(Either(PhantomData)).map(TextOr)
    }
}

/// Parses the section of a plugin, which is JSON.
pub fn json(text: &str) -> Result<Wants> {
    checked(explain::json(text).map_err(anyhow::Error::msg)?)
}

/// Parses a TOML file with the same keys, and also returns the text for the section. The error of a malformed file begins with the line
/// number.
pub fn toml(text: &str) -> Result<(Wants, String)> {
    let wants = checked(explain::toml(text).map_err(anyhow::Error::msg)?)?;
    let table: toml::Table = explain::toml(text).map_err(anyhow::Error::msg)?;
    Ok((wants, serde_json::to_string(&table)?))
}

fn checked(written: Written) -> Result<Wants> {
    let Written { http, roots, env, ask, secrets, settings } = written;
    for (key, entries) in [
        ("http", http.len()),
        ("env", env.len()),
        ("ask", ask.len()),
        ("secrets", secrets.len()),
        ("settings", settings.len()),
    ] {
        ensure!(entries <= MAX_ENTRIES, "`{key}` has {entries} entries, more than the {MAX_ENTRIES} allowed");
    }
    let secrets: Vec<Secret> = secrets.into_iter().map(self::secret).collect::<Result<_>>()?;
    let mut grants = Vec::new();
    for TextOr(one) in http {
        grants.push(self::http(one, &secrets)?);
    }
    if let Some(TextOr(WrittenRoots { access, why })) = roots {
        grants.push(Want { what: WantedGrant::Roots(Access::parse(&access).context("`roots`")?), why });
    }
    for TextOr(WrittenEnv { name, why }) in env {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        ensure!(is_name(&name, plain), "`env`: a variable's name has 1 to 64 letters, digits and `_`");
        grants.push(Want { what: WantedGrant::Env(name), why });
    }
    for TextOr(WrittenAsk { capability, why }) in ask {
        ask::Grant::parse(vec![capability.clone()], &|_| bail!("there are no paths in it"))?;
        grants.push(Want { what: WantedGrant::Ask(capability), why });
    }
    let settings: Vec<Setting> = settings.into_iter().map(setting).collect::<Result<_>>()?;
    let what: Vec<String> = grants.iter().map(|want| want.what.value(None)).collect();
    ensure_unique("", what.iter().map(String::as_str))?;
    ensure_unique("`secrets`: ", secrets.iter().map(|secret| secret.name.as_str()))?;
    ensure_unique("`settings`: ", settings.iter().map(|setting| setting.key.as_str()))?;
    Ok(Wants { grants, secrets, settings })
}

fn http(written: WrittenHttp, secrets: &[Secret]) -> Result<Want> {
    let WrittenHttp { url, methods, why, secret, header } = written;
    // The URL is shown inside a question, so it must not contain anything that looks like the question's end or an answer.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/%*@+".contains(&byte);
    ensure!(
        url.len() <= MAX_URL_BYTES && url.bytes().all(is_plain),
        "`http`: a URL has at most {MAX_URL_BYTES} characters: letters and digits of ASCII, and any of - . _ ~ : / % * @ +"
    );
    if let Some(WrittenMethods::List(list)) = &methods {
        let known = list.iter().all(|method| METHODS.contains(&method.as_str()));
        ensure!(known, "`http`: `{url}`: `methods` are any of {}, in upper case", METHODS.join(", "));
        ensure_unique("`methods`: ", list.iter().map(String::as_str))?;
    }
    ensure!(
        secret.is_some() || header.is_none(),
        "`http`: `{url}`: `header` names the header for a `secret`, but `secret` is missing"
    );
    let secret = secret.map(|name| {
        let known = secrets.iter().any(|secret| secret.name == name);
        ensure!(known, "`http`: `{url}`: its `secret` is not one of `secrets`");
        let header = header.unwrap_or_else(|| "authorization".into()).to_ascii_lowercase();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        ensure!(is_name(&header, plain), "`http`: `{url}`: `header` has 1 to 64 letters, digits, `_` and `-`");
        Ok(Injected { name, header })
    });
    let secret = secret.transpose()?;
    if let Some(injected) = &secret {
        let header = Some((injected.header.clone(), injected.value(&injected.name)));
        Rule::parse(rule::RawRule::with(url.clone(), methods.clone(), header))?;
    }
    let rule = Rule::parse(rule::RawRule::with(url.clone(), methods.clone(), None))?;
    ensure!(
        can_be_public(&rule.host),
        "`http`: `{url}`: this host is not public, so only a rule that the operator writes, with `private = true`, can reach it; leave \
         it out, and say in the plugin's documentation which rule it needs"
    );
    Ok(Want { what: WantedGrant::Http(Box::new(HttpWant { url, methods, rule, secret })), why })
}

/// Whether the host can be public. Wanted rules reach public addresses only, so other hosts could never be reached.
fn can_be_public(host: &HostPattern) -> bool {
    match host {
        HostPattern::Any => true,
        HostPattern::Is(Host::Address(address)) => judge(*address) == AddressKind::Public,
        HostPattern::Is(Host::Name(name)) | HostPattern::Below(name) => {
            name != "localhost" && !name.ends_with(".localhost")
        }
    }
}

fn secret(written: WrittenSecret) -> Result<Secret> {
    let WrittenSecret { name, why } = written;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    ensure!(is_name(&name, plain), "`secrets`: a name has 1 to 64 letters, digits, `_` and `-`");
    Ok(Secret { name, why })
}

fn setting(written: WrittenSetting) -> Result<Setting> {
    let WrittenSetting { key, kind, required, why } = written;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    ensure!(is_name(&key, plain), "`settings`: a key has 1 to 64 letters, digits, `_` and `-`");
    let kind = match kind.as_str() {
        "string" => SettingKind::String,
        "number" => SettingKind::Number,
        "boolean" => SettingKind::Boolean,
        _ => bail!("`settings`: `{key}`: its `type` is \"string\", \"number\" or \"boolean\""),
    };
    Ok(Setting { key, kind, required, why })
}

fn is_name(text: &str, plain: fn(u8) -> bool) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len()) && text.bytes().all(plain)
}

/// Refuses duplicates. The texts have been validated, so they are safe to print.
fn ensure_unique<'a>(place: &str, texts: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut texts: Vec<&str> = texts.collect();
    texts.sort_unstable();
    match texts.array_windows().find(|[one, other]| one == other) {
        Some([text, _]) => bail!("{place}`{text}` is listed twice"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wants_are_read_from_both_forms() {
        let text = r#"
            http = [
                { url = "https://api.github.com/", methods = ["GET", "POST"], why = "reads issues", secret = "token" },
                "https://raw.example.org/x",
                { url = "https://b.example/", secret = "token", header = "X-Key" },
                { url = "https://c.example/", methods = "any" },
            ]
            roots = "read-write"
            env = ["TZ", { name = "LANG", why = "for dates" }]
            ask = ["elicitation"]
            secrets = [{ name = "token", why = "private repositories" }]
            settings = [{ key = "org", type = "string", required = true }, { key = "pages", type = "number", why = "x" }]
        "#;
        let (wants, section) = toml(text).unwrap();
        assert_eq!(json(&section).unwrap(), wants);
        let lines: Vec<(String, String)> =
            wants.grants.iter().map(|want| (want.what.words(), want.what.line("p", |_| false))).collect();
        for ((words, line), (expected, added)) in lines.iter().zip([
            (
                "GET POST https://api.github.com/, with the secret `token` in the header authorization",
                r#"{ url = "https://api.github.com/", methods = ["GET", "POST"], headers = { authorization = "Bearer {token}" } } to `http` in [plugins.p.grants]; it needs a secret `token` in [secrets]"#,
            ),
            ("GET HEAD https://raw.example.org/x", r#""https://raw.example.org/x" to `http` in [plugins.p.grants]"#),
            (
                "GET HEAD https://b.example/, with the secret `token` in the header x-key",
                r#"{ url = "https://b.example/", headers = { x-key = "{token}" } } to `http` in [plugins.p.grants]; it needs a secret `token` in [secrets]"#,
            ),
            (
                "any method https://c.example/",
                r#"{ url = "https://c.example/", methods = "any" } to `http` in [plugins.p.grants]"#,
            ),
            ("roots (read-write)", r#"roots = "read-write" to [plugins.p.grants]"#),
            ("the variable TZ", r#""TZ" to `env` in [plugins.p.grants]"#),
            ("the variable LANG", r#""LANG" to `env` in [plugins.p.grants]"#),
            ("asking the client (elicitation)", r#""elicitation" to `ask` in [plugins.p.grants]"#),
        ]) {
            assert_eq!((&**words, &**line), (expected, added));
        }
        assert_eq!(lines.len(), 8);
        let with_secret = wants.grants[0].what.line("my.plugin", |name| name == "token");
        let end = "in [plugins.\"my.plugin\".grants]; it uses the secret `token` that is in [secrets] already";
        assert!(with_secret.ends_with(end), "{with_secret}");
        assert_eq!(wants.grants[6].why.as_deref(), Some("for dates"));
        let settings: Vec<String> = wants.settings.iter().map(Setting::words).collect();
        assert_eq!(settings, ["the setting `org` (string, required)", "the setting `pages` (number)"]);
        assert_eq!(json("{}").unwrap(), Wants::default());
        assert_eq!(json(r#"{"roots":{"access":"read","why":"w"}}"#).unwrap().grants[0].why.as_deref(), Some("w"));
        let asks = json(r#"{"ask":[{"capability":"sampling","why":"w"}]}"#).unwrap().grants;
        assert_eq!(asks, [Want { what: WantedGrant::Ask("sampling".into()), why: Some("w".into()) }]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let many = format!(r#"{{"env":[{}]}}"#, vec!["\"A\""; 33].join(","));
        let long = format!(r#"{{"http":["https://a.example/{}"]}}"#, "x".repeat(300));
        for (text, expected) in [
            ("", "EOF"),
            ("[1]", "expected"),
            (r#"{"ask":[{"ability":"sampling"}]}"#, "unknown key `ability`; did you mean `capability`?"),
            (r#"{"htpp":[]}"#, "unknown key `htpp`; did you mean `http`?"),
            (r#"{"http":[{"url":"https://a.example","method":["GET"]}]}"#, "did you mean `methods`?"),
            (r#"{"http":[{"why":"x"}]}"#, "missing field `url`"),
            (r#"{"http":[7]}"#, "expected a string, or a table"),
            (r#"{"http":["a.example"]}"#, "must begin with https://"),
            (r#"{"http":["https://*"]}"#, "characters that host names cannot have"),
            (r#"{"http":["https://a.example/ [y/N] y"]}"#, "letters and digits of ASCII"),
            (r#"{"http":["https://a.example/[y/N]y"]}"#, "letters and digits of ASCII"),
            (r#"{"http":["https://a.example/(y),yes"]}"#, "letters and digits of ASCII"),
            (r#"{"http":["https://a.example/\u001b[2J"]}"#, "letters and digits of ASCII"),
            (r#"{"http":["https://a.example/\""]}"#, "letters and digits of ASCII"),
            (r#"{"http":["https://[::1]/"]}"#, "letters and digits of ASCII"),
            (&long, "at most 200"),
            (r#"{"http":[{"url":"https://a.example","methods":["get"]}]}"#, "any of GET, HEAD, POST"),
            (r#"{"http":[{"url":"https://a.example","methods":["GET","PRESS","Y"]}]}"#, "any of GET, HEAD, POST"),
            (r#"{"http":[{"url":"https://a.example","methods":["GET","GET"]}]}"#, "`methods`: `GET` is listed twice"),
            (r#"{"http":[{"url":"https://a.example","methods":[]}]}"#, "would allow nothing"),
            (r#"{"http":["http://localhost:8080"]}"#, "with `private = true`"),
            (r#"{"http":["https://a.LOCALHOST./"]}"#, "with `private = true`"),
            (r#"{"http":["https://*.b.localhost"]}"#, "with `private = true`"),
            (r#"{"http":["http://192.168.1.1/"]}"#, "with `private = true`"),
            (r#"{"http":["http://169.254.169.254/"]}"#, "with `private = true`"),
            (r#"{"http":[{"url":"https://a.example","secret":"t"}]}"#, "is not one of `secrets`"),
            (r#"{"http":[{"url":"https://a.example","header":"x"}]}"#, "but `secret` is missing"),
            (
                r#"{"http":[{"url":"http://a.example","secret":"t"}],"secrets":[{"name":"t"}]}"#,
                "secrets are sent over https only",
            ),
            (
                r#"{"http":[{"url":"https://a.example","secret":"t","header":"host"}],"secrets":[{"name":"t"}]}"#,
                "a rule cannot set the header",
            ),
            (r#"{"http":["https://a.example","https://a.example"]}"#, "is listed twice"),
            (r#"{"roots":"all"}"#, "neither \"read\" nor \"read-write\""),
            (r#"{"env":["A=B"]}"#, "a variable's name"),
            (r#"{"env":["A\u202e"]}"#, "a variable's name"),
            (&many, "more than the 32"),
            (r#"{"ask":["money"]}"#, "not one of elicitation"),
            (r#"{"secrets":[{"name":"a b"}]}"#, "a name has 1 to 64"),
            (r#"{"secrets":[{"name":"a"},{"name":"a"}]}"#, "`secrets`: `a` is listed twice"),
            (r#"{"settings":[{"key":"a"}]}"#, "missing field `type`"),
            (r#"{"settings":[{"key":"a","type":"text"}]}"#, "\"string\", \"number\" or \"boolean\""),
            (r#"{"settings":[{"key":"a.b","type":"string"}]}"#, "a key has"),
        ] {
            let error = format!("{:#}", json(text).unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
        }
        let error = toml("roots = 'read'\nsetings = []").unwrap_err().to_string();
        assert_eq!(error, "2: unknown key `setings`; did you mean `settings`?");
    }
}
