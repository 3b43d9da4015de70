//! Logs the grants that a plugin wants but does not have, when its code is loaded. A new version that wants more than the previous one
//! runs with the existing grants.

use crate::plugins::served::Served;
use wharf_base::text;
use wharf_config::config::{Origin, Typed};
use wharf_policy::access::{scope::Scopes, wants::want::WantedGrant};

/// Logs, once for each version of a plugin, what it wants and is not granted. `before`: the version that was served until now.
pub(super) fn log(before: Option<&Served>, now: &Served, scopes: &Scopes) {
    log_unset(before, now, scopes);
    let same = |before: &&Served| before.plugin.code().digest() == now.plugin.code().digest();
    let Some(wants) = now.wants.as_ref().filter(|_| before.filter(same).is_none()) else { return };
    let known = |what: &WantedGrant| {
        let before = before.and_then(|before| before.wants.as_ref());
        before.is_some_and(|before| before.grants.iter().any(|want| want.what == *what))
    };
    let lacking = wants.grants.iter().map(|want| &want.what).filter(|what| !what.is_granted(&now.config.grants));
    let lacking: Vec<&WantedGrant> = lacking.filter(|what| !known(what)).collect();
    if lacking.is_empty() {
        return;
    }
    let words = lacking.iter().map(|what| what.words()).collect::<Vec<_>>().join("; ");
    let id = &now.config.id;
    let remedy = match now.config.origin {
        Origin::CommandLine => flags(&lacking, now.config.typed.as_ref()),
        Origin::Configured | Origin::DroppedIn => format!("`wharf grant {id}` asks for it"),
    };
    match before {
        Some(_) => tracing::warn!(plugin = id, "it now also wants {words}, which is not granted; {remedy}"),
        None => tracing::info!(plugin = id, "it wants {words}, which is not granted; {remedy}"),
    }
}

/// Logs, once for each grant, the variables that are granted to a plugin and are not set.
fn log_unset(before: Option<&Served>, now: &Served, scopes: &Scopes) {
    let known = |name: &String| before.is_some_and(|before| before.config.grants.env.0.contains(name));
    let unset = now.config.grants.env.0.iter().filter(|name| !known(name) && scopes.is_unset(name));
    for name in unset {
        tracing::info!(plugin = now.config.id, "the variable {name} is granted, but wharf was started without it");
    }
}

/// Says which options of the command line grant this. `wharf grant` writes into a config, which a plugin of the command line does not have.
fn flags(lacking: &[&WantedGrant], typed: Option<&Typed>) -> String {
    let flags: Vec<String> = lacking.iter().filter_map(|what| what.flag()).collect();
    // A person pastes it, and the wants are a stranger's words.
    let options =
        text::shell(flags.iter().flat_map(|flag| flag.split_once(' ')).flat_map(|(flag, value)| [flag, value]));
    let line = typed.map_or_else(|| options.clone(), |typed| typed.with(&options));
    match flags.len() {
        0 => "only a config can grant it: see `wharf add --help`".to_owned(),
        some if some < lacking.len() => format!("`{line}` grants it, as far as the command line can"),
        _ => format!("`{line}` grants it"),
    }
}

#[cfg(test)]
mod tests {
    use wharf_policy::access::wants::parse;

    use super::*;

    #[test]
    fn the_options_that_are_named_are_those_of_the_command_line() {
        for (wants, expected) in [
            (
                "http = ['https://a.example/']\nenv = ['KEY']",
                "`--allow http=https://a.example/ --allow env=KEY` grants it",
            ),
            (
                "http = [{ url = 'https://a.example/', methods = ['POST'] }]",
                "`--allow http-write=https://a.example/` grants it",
            ),
            ("roots = 'read'\nask = ['elicitation']", "`--allow roots=read --allow ask=elicitation` grants it"),
        ] {
            let (wants, _) = parse::toml(wants).unwrap();
            let all: Vec<&WantedGrant> = wants.grants.iter().map(|want| &want.what).collect();
            assert_eq!(flags(&all, None), expected);
            let typed = Typed { command: "wharf run".into(), rest: "npx -y x".into() };
            let line = expected.replacen('`', "`wharf run ", 1).replacen("` g", " npx -y x` g", 1);
            assert_eq!(flags(&all, Some(&typed)), line);
        }
        assert!(flags(&[], None).starts_with("only a config"));
    }
}
