//! The grants that a plugin wants but does not have: logged when its code is loaded, and told with a call that failed. A new version that
//! wants more than the previous one runs with the existing grants.

use super::served::Served;
use wharf_base::text;
use wharf_config::config::{Origin, Typed};
use wharf_policy::access::{scope::Scopes, wants::want::WantedGrant};

/// Logs, once for each version of a plugin, what it lacks. `before`: the version that was served until now.
pub fn log(before: Option<&Served>, now: &Served, scopes: &Scopes) {
    for unset in unset(before, now, scopes) {
        tracing::info!(plugin = now.config.id, "{unset}");
    }
    let same = |before: &&Served| before.plugin.code().digest() == now.plugin.code().digest();
    if before.filter(same).is_some() {
        return;
    }
    match (before, ungranted(before, now)) {
        (Some(_), Some(says)) => tracing::warn!(plugin = now.config.id, "it now also {says}"),
        (None, Some(says)) => tracing::info!(plugin = now.config.id, "it {says}"),
        (_, None) => {}
    }
}

/// Returns sentences about what a plugin lacks, and what its calls so far lacked.
pub fn sentences(now: &Served, scopes: &Scopes) -> Vec<String> {
    let ungranted = ungranted(None, now).map(|says| format!("it {says}"));
    unset(None, now, scopes).chain(ungranted).chain(scopes.lessened(&now.config.id)).collect()
}

/// Says what a plugin wants and is not granted, apart from what the version `before` wanted as well.
fn ungranted(before: Option<&Served>, now: &Served) -> Option<String> {
    let known = |what: &WantedGrant| {
        let before = before.and_then(|before| before.wants.as_ref());
        before.is_some_and(|before| before.grants.iter().any(|want| want.what == *what))
    };
    let wants = now.wants.iter().flat_map(|wants| &wants.grants).map(|want| &want.what);
    let lacking: Vec<&WantedGrant> =
        wants.filter(|what| !what.is_granted(&now.config.grants) && !known(what)).collect();
    let words = lacking.iter().map(|what| what.words()).collect::<Vec<_>>().join("; ");
    let remedy = match now.config.origin {
        Origin::CommandLine => flags(&lacking, now.config.typed.as_ref()),
        Origin::Configured | Origin::DroppedIn => format!("`wharf grant {}` asks for it", now.config.id),
    };
    (!lacking.is_empty()).then(|| format!("wants {words}, which is not granted; {remedy}"))
}

/// Says which variables are granted to a plugin and are not set, apart from those that the version `before` was granted.
fn unset<'a>(before: Option<&'a Served>, now: &'a Served, scopes: &'a Scopes) -> impl Iterator<Item = String> + 'a {
    let known = move |name: &String| before.is_some_and(|before| before.config.grants.env.0.contains(name));
    let unset = now.config.grants.env.0.iter().filter(move |name| !known(name) && scopes.is_unset(name));
    unset.map(|name| format!("the variable {name} is granted, but wharf was started without it"))
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
