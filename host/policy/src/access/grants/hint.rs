//! What the operator and the client are told when the sandbox refused something to a plugin: what it was, and what would allow it.

use wharf_base::text::toml_header;
use wharf_egress::hint as http;
use wharf_scope::{Denial, network::HttpRefusal};

use super::dirs;
pub use wharf_egress::hint::By;

/// A message for the operator's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    pub text: String,
    pub allowed: Allowed,
}

/// What would allow what was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    /// Nothing can.
    Never,
    /// The option that the text names.
    ByFlag,
    /// An entry of this table of the config.
    In(Table),
}

/// A table of the config file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Of one plugin.
    Grants,
    /// Of all plugins.
    Limits,
}

impl Table {
    /// The header of the table, for a plugin with this id.
    pub fn header(self, id: &str) -> String {
        match self {
            Self::Grants => toml_header(&["plugins", id, "grants"]),
            Self::Limits => toml_header(&["limits"]),
        }
    }
}

/// Returns the log message about what the sandbox refused. `clear` makes text from a guest safe to print.
pub fn hint(denial: &Denial, by: By, clear: fn(&str) -> String) -> Hint {
    match denial {
        Denial::Http(denial) => {
            let allowed = match denial.why {
                HttpRefusal::Limit(_) => Allowed::In(Table::Limits),
                HttpRefusal::Placeholder(_) => Allowed::Never,
                _ if by == By::Flag && http::flag(denial, clear).is_some() => Allowed::ByFlag,
                _ => Allowed::In(Table::Grants),
            };
            Hint { text: http::hint(denial, by, clear), allowed }
        }
        Denial::NoDirectory { .. } => match by {
            By::Config => Hint { text: dirs::HINT.into(), allowed: Allowed::In(Table::Grants) },
            By::Flag => Hint { text: dirs::HINT_FLAG.into(), allowed: Allowed::ByFlag },
        },
    }
}

/// Returns a sentence for the client about what was refused in a call of the plugin `id`: who can allow it, and how. It is empty if
/// nothing was refused that can be allowed.
pub fn for_client(denials: &[Denial], id: &str, by: By, clear: fn(&str) -> String) -> String {
    let mut ways: Vec<String> = denials.iter().filter_map(|denial| way(denial, id, by, clear)).collect();
    ways.dedup();
    match ways.first() {
        Some(way) => format!("The operator of this server can allow this with {way}."),
        None => String::new(),
    }
}

/// Returns what the operator types to allow what was refused.
fn way(denial: &Denial, id: &str, by: By, clear: fn(&str) -> String) -> Option<String> {
    let table = |table: Table| table.header(id);
    match (denial, by) {
        // The reasons differ from call to call: `CallRoots::explained` tells them.
        (Denial::NoDirectory { .. }, _) => None,
        (Denial::Http(denial), by) => {
            let flag = http::flag(denial, clear).filter(|_| by == By::Flag);
            if let Some(flag) = flag {
                let any = match denial.why {
                    HttpRefusal::NoRule if flag.contains("http=") => {
                        ", or with `--allow http=any` for every public address"
                    }
                    _ => "",
                };
                return Some(format!("{flag}{any}"));
            }
            let (entry, which) = match denial.why {
                HttpRefusal::Limit(_) => (http::entry(denial, clear)?, Table::Limits),
                _ => (http::entry(denial, clear)?, Table::Grants),
            };
            let of = if by == By::Flag { " of a config" } else { "" };
            Some(format!("{entry} in {}{of}", table(which)))
        }
    }
}

#[cfg(test)]
mod tests {
    use wharf_scope::network::HttpDenial;

    use super::*;

    #[test]
    fn what_is_named_is_what_the_operator_has() {
        let http = |method: &str, why| {
            Denial::Http(HttpDenial { method: method.into(), url: "https://a.example/x".into(), why })
        };
        let private = || HttpRefusal::Address("10.0.0.1".into());
        for (denial, by, expected) in [
            (
                http("GET", HttpRefusal::NoRule),
                By::Flag,
                "with `--allow http=https://a.example`, or with `--allow http=any` for every public address.",
            ),
            (
                http("GET", HttpRefusal::NoRule),
                By::Config,
                "with `http = [\"https://a.example\"]` in [plugins.p.grants].",
            ),
            (http("POST", HttpRefusal::NoRule), By::Flag, "with `--allow http-write=https://a.example`."),
            (http("GET", private()), By::Flag, "with `--allow http-private=https://a.example`."),
            (
                http("GET", private()),
                By::Config,
                "with `private = true` on the rule of `http` for https://a.example in [plugins.p.grants].",
            ),
            (http("GET", HttpRefusal::Limit("http_requests")), By::Config, "with `http_requests` in [limits]."),
        ] {
            let said = for_client(&[denial.clone(), denial.clone()], "p", by, str::to_owned);
            assert!(said.starts_with("The operator of this server can allow this with "), "{said}");
            assert!(said.contains(expected), "{said}");
            assert_ne!(hint(&denial, by, str::to_owned).allowed, Allowed::Never);
        }
        let own = http("GET", HttpRefusal::Address("wharf itself".into()));
        assert_eq!(for_client(&[own, http("GET", HttpRefusal::Malformed("odd"))], "p", By::Flag, str::to_owned), "");
        assert_eq!(for_client(&[], "p", By::Config, str::to_owned), "");
    }
}
