//! Compares a plugin's wants with its grants and imports: what is granted, what is granted without being wanted, and what is imported
//! without being wanted.

use super::want::{HttpWant, WantedGrant, Wants};
use crate::access::grants::{Grants, could_use};
use wharf_base::text;
use wharf_egress::rule::{Rule, choice::strongest};

impl WantedGrant {
    /// Whether the grants allow what is wanted.
    pub fn is_granted(&self, grants: &Grants) -> bool {
        let Grants { roots, dirs: _, env, ask, http } = grants;
        match self {
            Self::Http(wanted) => wanted.is_granted(&http.0.rules),
            Self::Roots(access) => roots.0 >= Some(*access),
            Self::Env(name) => env.0.contains(name) || http.0.placeholders.iter().any(|one| one.name == *name),
            Self::Ask(ability) => match ability.as_str() {
                "elicitation" => ask.elicitation,
                "sampling" => ask.sampling,
                _ => ask.roots,
            },
        }
    }
}

impl HttpWant {
    /// Whether the rules allow the wanted requests; different methods may be allowed by different rules. If a secret is wanted, those rules
    /// have to add one.
    fn is_granted(&self, rules: &[Rule]) -> bool {
        let adds = |rule: &Rule| match &self.secret {
            Some(secret) => {
                !rule.secrets.is_empty() || rule.headers.iter().any(|(name, _)| name.as_str() == secret.header)
            }
            None => true,
        };
        self.rule.by_method().iter().all(|one| strongest(rules, one).is_some_and(adds))
    }
}

impl Wants {
    /// Describes what is granted although the plugin does not want it.
    pub fn not_wanted(&self, grants: &Grants) -> Vec<String> {
        let Grants { roots, dirs, env, ask, http } = grants;
        let wanted = |what: &WantedGrant| self.grants.iter().any(|want| want.what == *what);
        let wanted_roots = self.grants.iter().find_map(|want| match want.what {
            WantedGrant::Roots(access) => Some(access),
            _ => None,
        });
        let wanted_rules: Vec<&Rule> = self
            .grants
            .iter()
            .filter_map(|want| match &want.what {
                WantedGrant::Http(http) => Some(&http.rule),
                _ => None,
            })
            .collect();
        let mut beyond = Vec::new();
        beyond.extend(
            roots.0.filter(|access| Some(*access) > wanted_roots).map(WantedGrant::Roots).map(|what| what.words()),
        );
        // The operator's directories have no want of their own; they count as wanted if the plugin wants roots, since both give access to
        // files.
        if wanted_roots.is_none() {
            beyond.extend(dirs.0.iter().map(|dir| format!("{} ({})", text::path(&dir.host), dir.access.as_str())));
        }
        beyond
            .extend(env.0.iter().cloned().map(WantedGrant::Env).filter(|what| !wanted(what)).map(|what| what.words()));
        let abilities =
            [(ask.elicitation, "elicitation"), (ask.sampling, "sampling"), (ask.roots, "roots")].into_iter();
        let asked = abilities.filter(|(granted, _)| *granted).map(|(_, ability)| WantedGrant::Ask(ability.to_owned()));
        beyond.extend(asked.filter(|what| !wanted(what)).map(|what| what.words()));
        let is_wanted = |rule: &Rule| wanted_rules.iter().any(|wanted| wanted.includes(rule));
        beyond.extend(http.0.rules.iter().filter_map(|rule| rule.without(is_wanted)).map(|rule| rule.to_string()));
        beyond
    }

    /// Returns the abilities that the plugin wants although it lacks the imports to use them.
    pub fn without_import(&self, imports: &[String]) -> Vec<&'static str> {
        let could = could_use(imports);
        let mut without: Vec<&str> = self
            .grants
            .iter()
            .filter_map(|want| want.what.needs())
            .filter(|ability| !could.contains(ability))
            .collect();
        without.dedup();
        without
    }
}

/// Returns the abilities that a plugin with these imports could use although it does not want them. Imports are authoritative: a language's
/// runtime may import more than the plugin's author knows.
pub fn unspoken(wants: Option<&Wants>, imports: &[String]) -> Vec<&'static str> {
    let mut could = could_use(imports);
    let grants = wants.map(|wants| wants.grants.as_slice()).unwrap_or_default();
    could.retain(|ability| !grants.iter().any(|want| want.what.needs() == Some(ability)));
    could
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{
        grants::{RawGrants, dirs},
        wants::parse,
    };

    fn grants(text: &str) -> Grants {
        let written: RawGrants = toml::from_str(text).unwrap();
        Grants::parse(written, &|path| Ok(path.into())).unwrap()
    }

    #[test]
    fn what_is_granted_and_what_is_beyond() {
        let all = "http = [{ url = 'https://a.example/x', methods = ['GET', 'POST'], secret = 't' }]\n\
                   roots = 'read'\nenv = ['TZ']\nask = ['elicitation']\nsecrets = [{ name = 't' }]";
        let header = "headers = { authorization = 'Bearer {t}' }";
        for (wants, granted, missing, beyond) in [
            (all, String::new(), "http roots env ask", ""),
            ("", String::new(), "", ""),
            (
                all,
                format!(
                    "http = [{{ url = 'https://a.example', methods = ['GET', 'POST'], {header} }}]\nroots = 'read'\nenv = ['TZ']\nask = ['elicitation']"
                ),
                "",
                "GET POST https://a.example/ (with authorization)",
            ),
            (
                all,
                format!(
                    "http = [{{ url = 'https://a.example/x', {header} }}, {{ url = 'https://a.example/x', methods = ['POST'], {header} }}]"
                ),
                "roots env ask",
                "",
            ),
            (
                all,
                "http = [{ url = 'https://a.example/x', methods = ['GET', 'POST'] }]".into(),
                "http roots env ask",
                "",
            ),
            (all, format!("http = [{{ url = 'https://a.example/x', {header} }}]"), "http roots env ask", ""),
            (
                all,
                format!(
                    "http = [{{ url = 'https://a.example', methods = 'any' }}, {{ url = 'https://a.example', methods = ['GET', 'POST'], {header} }}]"
                ),
                "http roots env ask",
                "any method https://a.example/; GET POST https://a.example/ (with authorization)",
            ),
            (
                all,
                "roots = 'read-write'\nenv = ['LANG']\nask = ['sampling', 'roots']".into(),
                "http env ask",
                "roots (read-write); the variable LANG; asking the client (sampling); asking the client (roots)",
            ),
            (
                "http = [{ url = 'https://a.example', methods = ['POST'] }]",
                "http = [{ url = 'https://a.example', methods = ['HEAD', 'POST'] }, 'https://b.example']".into(),
                "",
                "HEAD https://a.example/; GET HEAD https://b.example/",
            ),
            ("", "dirs = [{ host = '/srv', access = 'read' }]".into(), "", "/srv (read)"),
            ("roots = 'read-write'", "dirs = [{ host = '/srv', access = 'read' }]\nroots = 'read'".into(), "roots", ""),
        ] {
            let wants = parse::toml(wants).unwrap().0;
            let granted = grants(&granted);
            let lacking: Vec<&str> = wants
                .grants
                .iter()
                .filter(|want| !want.what.is_granted(&granted))
                .map(|want| want.what.key())
                .collect();
            assert_eq!(lacking.join(" "), missing, "{granted:?}");
            assert_eq!(wants.not_wanted(&granted).join("; "), beyond, "{granted:?}");
        }
    }

    #[test]
    fn imports_are_the_truth() {
        let imports = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
        let both = imports(&["wasi:http/types@0.2.0", "wasi:filesystem/types@0.2.0"]);
        let wants = parse::toml("http = ['https://a.example', 'https://b.example']\nask = ['sampling']").unwrap().0;
        assert_eq!(wants.without_import(&both), Vec::<&str>::new());
        assert_eq!(wants.without_import(&imports(&["wasi:clocks/x@0.2.0"])), ["HTTP"]);
        assert_eq!(unspoken(Some(&wants), &both), [dirs::FILES]);
        assert_eq!(unspoken(None, &both), [dirs::FILES, "HTTP"]);
    }
}
