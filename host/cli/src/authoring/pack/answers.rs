//! What a packaged plugin asks its user, and what wharf makes of the answers. Each want has an environment variable, and nothing is granted
//! without an answer. A client's form, a registry and a person at a shell all can set variables.

use anyhow::{Context, Result, bail, ensure};
use toml::{Table, Value};

use sha2::{Digest, Sha256};
use wharf_base::text::{clip, hex};
use wharf_policy::access::{
    capability::Access,
    wants::want::{Setting, SettingKind, Want, WantedGrant, Wants},
};

/// One thing to answer by a variable.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The variable's name, such as `NOTES_ALLOW_ENV_TZ`.
    pub variable: String,
    pub kind: Kind,
    /// What it is about, in a few words.
    pub title: String,
    /// Why the plugin wants it, in its author's words.
    pub why: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Whether something is granted: `true` or `false`.
    Allow,
    /// A secret, which the plugin does not see.
    Secret,
    /// A setting of the plugin's.
    Setting { kind: SettingKind, required: bool },
}

/// Returns the access to folders that a plugin wants. The folders themselves are arguments.
pub fn folders(wants: &Wants) -> Option<Access> {
    wants.grants.iter().find_map(|want| match want.what {
        WantedGrant::Roots(access) => Some(access),
        _ => None,
    })
}

/// Returns everything that is answered by a variable.
pub fn questions(id: &str, wants: &Wants) -> Vec<Question> {
    let mut questions = Vec::new();
    for want in &wants.grants {
        let Some(variable) = allow_variable(id, &want.what) else { continue };
        let title = match &want.what {
            WantedGrant::Roots(_) => "write in these folders".to_owned(),
            WantedGrant::Http(_) => format!("send requests: {}", want.what.words()),
            WantedGrant::Env(_) => format!("see {}", want.what.words()),
            WantedGrant::Ask(_) => want.what.words(),
        };
        questions.push(Question { variable, kind: Kind::Allow, title, why: said(want.why.as_deref()) });
    }
    for secret in used_secrets(wants.grants.iter(), wants) {
        questions.push(Question {
            variable: secret_variable(id, &secret.name),
            kind: Kind::Secret,
            title: format!("the secret `{}`", secret.name),
            why: said(secret.why.as_deref()),
        });
    }
    for setting in &wants.settings {
        let Setting { key, kind, required, why } = setting;
        questions.push(Question {
            variable: setting_variable(id, key),
            kind: Kind::Setting { kind: *kind, required: *required },
            title: format!("the setting `{key}`"),
            why: said(why.as_deref()),
        });
    }
    questions
}

/// What the answers give: the contents of the plugin's table in a config, and of `[secrets]`.
#[derive(Debug, Default, PartialEq)]
pub struct Given {
    pub plugin: Table,
    pub secrets: Table,
}

/// Reads the answers. `folders`: whether the user has named folders.
pub fn given(id: &str, wants: &Wants, folders: bool, variable: &dyn Fn(&str) -> Option<String>) -> Result<Given> {
    let allowed = |name: &str| -> Result<bool> {
        match answer(variable(name)).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => bail!("the variable {name} is {:?}; set it to true or false", clip(other)),
        }
    };
    let (mut grants, mut config, mut secrets) = (Table::new(), Table::new(), Table::new());
    let mut granted = Vec::new();
    for want in &wants.grants {
        let is_allowed = allow_variable(id, &want.what).map(|name| allowed(&name)).transpose()?.unwrap_or_default();
        if let WantedGrant::Roots(access) = want.what {
            let access = if is_allowed { access } else { Access::Read };
            if folders {
                grants.insert("roots".into(), access.as_str().into());
            }
        } else if is_allowed {
            granted.push(want);
            let list = grants.entry(want.what.key()).or_insert_with(|| Value::Array(Vec::new()));
            if let (Value::Array(list), Some(value)) = (list, value(&want.what.value(None))?) {
                list.push(value);
            }
        }
    }
    for secret in used_secrets(granted.into_iter(), wants) {
        let name = secret_variable(id, &secret.name);
        ensure!(
            answer(variable(&name)).is_some(),
            "requests with the secret `{}` are allowed, and the variable {name}, which is to have the secret, is not set",
            secret.name
        );
        secrets.insert(secret.name.clone(), Table::from_iter([("env".to_owned(), Value::from(name))]).into());
    }
    for Setting { key, kind, required, .. } in &wants.settings {
        let name = setting_variable(id, key);
        let value = match answer(variable(&name)) {
            None if *required => bail!("the plugin {id} needs the setting `{key}`: set the variable {name}"),
            None => continue,
            Some(text) => typed(*kind, &text).with_context(|| format!("the variable {name}"))?,
        };
        config.insert(key.clone(), value);
    }
    let plugin = Table::from_iter([("grants".to_owned(), grants.into()), ("config".to_owned(), config.into())]);
    Ok(Given { plugin, secrets })
}

/// An answer that somebody gave. Clients leave variables that nobody has answered empty, or as they stand in the manifest.
fn answer(value: Option<String>) -> Option<String> {
    value.filter(|value| !value.is_empty() && !value.starts_with("${user_config."))
}

fn typed(kind: SettingKind, text: &str) -> Result<Value> {
    Ok(match kind {
        SettingKind::String => text.into(),
        SettingKind::Boolean => text.parse::<bool>().context("it has to be true or false")?.into(),
        SettingKind::Number => match text.parse::<i64>() {
            Ok(whole) => whole.into(),
            Err(_) => {
                let number: f64 = text.parse().context("it has to be a number")?;
                ensure!(number.is_finite(), "it has to be a number");
                number.into()
            }
        },
    })
}

/// Parses the value of a grant, which the parser of wants has checked.
fn value(text: &str) -> Result<Option<Value>> {
    let mut table: Table = toml::from_str(&format!("value = {text}"))?;
    Ok(table.remove("value"))
}

/// Returns the secrets of requests, each once.
fn used_secrets<'a>(
    granted: impl Iterator<Item = &'a Want>,
    wants: &'a Wants,
) -> Vec<&'a wharf_policy::access::wants::want::Secret> {
    let names: Vec<&str> = granted
        .filter_map(|want| match &want.what {
            WantedGrant::Http(http) => http.secret.as_ref().map(|secret| secret.name.as_str()),
            _ => None,
        })
        .collect();
    wants.secrets.iter().filter(|secret| names.contains(&secret.name.as_str())).collect()
}

/// Returns the variable that allows a want. It changes when the want becomes another one, so that an answer to the old question is not taken
/// for one to the new. Folders are granted by naming them, and writing in them by a variable.
fn allow_variable(id: &str, what: &WantedGrant) -> Option<String> {
    let about = match what {
        WantedGrant::Roots(Access::Read) => return None,
        WantedGrant::Roots(_) => "write".to_owned(),
        WantedGrant::Env(name) => format!("env {name}"),
        WantedGrant::Ask(ability) => format!("ask {ability}"),
        WantedGrant::Http(http) => {
            let place = http.url.split_once("://").map_or(http.url.as_str(), |(_, place)| place);
            // Names of hosts have both, and `api.acme.dev` and `api-acme.dev` belong to different people.
            let place = place.trim_end_matches('/').replace('-', "__");
            // Somebody else can choose what they want until a shorter digest is that of this want.
            let digest = hex(Sha256::digest(what.value(None)).get(..16).unwrap_or_default());
            format!("{place} {digest}")
        }
    };
    Some(variable(&[id, "allow", &about]))
}

fn secret_variable(id: &str, name: &str) -> String {
    variable(&[id, "secret", name])
}

fn setting_variable(id: &str, key: &str) -> String {
    variable(&[id, "set", key])
}

/// Joins words to the name of an environment variable: capital letters, digits and `_`.
fn variable(words: &[&str]) -> String {
    let name = words.join("_").to_ascii_uppercase();
    name.chars().map(|one| if one.is_ascii_alphanumeric() { one } else { '_' }).collect()
}

fn said(why: Option<&str>) -> Option<String> {
    why.map(|why| clip(why.trim())).filter(|why| !why.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_policy::access::wants::parse;

    fn wants() -> Wants {
        let text = r#"
            roots = "read-write"
            http = ["https://api.acme.dev/", { url = "https://pay.acme.dev/v1/", methods = ["GET", "POST"], secret = "token", why = "Pays." }]
            env = ["TZ"]
            ask = ["elicitation"]
            secrets = [{ name = "token", why = "From your account." }]
            settings = [{ key = "unit", type = "string", required = true }, { key = "most", type = "number" }]
        "#;
        parse::toml(text).unwrap().0
    }

    #[test]
    fn every_want_has_a_question() {
        let names: Vec<String> = questions("my-notes", &wants()).into_iter().map(|one| one.variable).collect();
        let [api, pay, write, env, ask, secret, unit, most] = names.as_slice() else { panic!("{names:?}") };
        assert!(
            api.starts_with("MY_NOTES_ALLOW_API_ACME_DEV_") && pay.starts_with("MY_NOTES_ALLOW_PAY_ACME_DEV_V1_"),
            "{names:?}"
        );
        assert_eq!(
            [write, env, ask, secret, unit, most],
            [
                "MY_NOTES_ALLOW_WRITE",
                "MY_NOTES_ALLOW_ENV_TZ",
                "MY_NOTES_ALLOW_ASK_ELICITATION",
                "MY_NOTES_SECRET_TOKEN",
                "MY_NOTES_SET_UNIT",
                "MY_NOTES_SET_MOST"
            ]
        );
        assert_eq!(folders(&wants()), Some(Access::ReadWrite));
        assert!(questions("a", &Wants::default()).is_empty() && folders(&Wants::default()).is_none());
    }

    #[test]
    fn nothing_is_granted_without_an_answer() {
        let wants = wants();
        let all = questions("n", &wants);
        let with = |answers: &[(&str, &str)], folders: bool| {
            let answers: Vec<(String, String)> =
                answers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            given("n", &wants, folders, &|name| {
                answers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
            })
        };
        let unit = ("N_SET_UNIT", "C");
        // Neither an empty answer nor a variable that the client left as it is counts.
        let nothing = with(
            &[unit, ("N_ALLOW_ENV_TZ", ""), ("N_ALLOW_WRITE", "${user_config.allow_write}"), ("N_SET_MOST", "")],
            false,
        )
        .unwrap();
        assert!(nothing.plugin["grants"].as_table().unwrap().is_empty() && nothing.secrets.is_empty(), "{nothing:?}");
        assert_eq!(nothing.plugin["config"].as_table().unwrap().len(), 1);
        let read = with(&[unit], true).unwrap();
        assert_eq!(read.plugin["grants"]["roots"].as_str(), Some("read"));
        let write = with(&[unit, ("N_ALLOW_WRITE", "true"), ("N_SET_MOST", "2.5")], true).unwrap();
        assert_eq!(write.plugin["grants"]["roots"].as_str(), Some("read-write"));
        assert_eq!(write.plugin["config"]["most"].as_float(), Some(2.5));

        let pay = all.iter().find(|one| one.variable.contains("PAY")).unwrap().variable.as_str();
        let paid = with(&[unit, (pay, "true"), ("N_SECRET_TOKEN", "x")], false).unwrap();
        assert_eq!(paid.plugin["grants"]["http"].as_array().unwrap().len(), 1);
        assert_eq!(paid.plugin["grants"]["http"][0]["headers"]["authorization"].as_str(), Some("Bearer {token}"));
        assert_eq!(paid.secrets["token"]["env"].as_str(), Some("N_SECRET_TOKEN"));
        // The secret alone allows nothing.
        let alone = with(&[unit, ("N_SECRET_TOKEN", "x")], false).unwrap();
        assert!(alone.secrets.is_empty() && alone.plugin["grants"].as_table().unwrap().is_empty());

        for (answers, expected) in [
            (vec![], "needs the setting `unit`: set the variable N_SET_UNIT"),
            (vec![unit, ("N_ALLOW_ENV_TZ", "yes")], "N_ALLOW_ENV_TZ is \"yes\"; set it to true or false"),
            (vec![unit, (pay, "true")], "the variable N_SECRET_TOKEN, which is to have the secret, is not set"),
            (vec![unit, ("N_SET_MOST", "many")], "N_SET_MOST"),
        ] {
            let error = format!("{:#}", with(&answers, false).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_wider_want_asks_again() {
        let variable = |http: &str| {
            let wants = parse::toml(&format!("http = [{http}]")).unwrap().0;
            questions("n", &wants)[0].variable.clone()
        };
        let read = variable(r#""https://api.acme.dev/""#);
        assert_eq!(read, variable(r#"{ url = "https://api.acme.dev/", why = "Reads." }"#));
        assert_ne!(read, variable(r#"{ url = "https://api.acme.dev/", methods = ["GET", "POST"] }"#));
        assert_ne!(read, variable(r#""http://api.acme.dev/""#));
        assert_eq!(read.strip_prefix("N_ALLOW_API_ACME_DEV_").map(str::len), Some(32));
        assert!(variable(r#""https://api-acme.dev/""#).starts_with("N_ALLOW_API__ACME_DEV_"));
    }
}
