//! Log messages for the operator about refused requests.

use wharf_sandbox::network::{HttpDenial, HttpRefusal};

/// Describes what was refused and why, with the config entry that would allow it if there is one. `clear` makes text from a guest safe to
/// print.
pub fn hint(denial: &HttpDenial, clear: fn(&str) -> String) -> String {
    let HttpDenial { method, url, why } = denial;
    let (method, url) = (clear(method), clear(url));
    let wanted = format!("it wanted {method} {url}");
    match why {
        HttpRefusal::NoRule => format!("{wanted}, which the entry {} of `http` would allow", line(&method, &url)),
        HttpRefusal::Address(address) => format!(
            "{wanted}, which resolves to {address}, not a public address; `private = true` on its rule allows private \
             addresses, and a link-local address or one of a cloud's metadata service has to be the host of the rule itself"
        ),
        HttpRefusal::Limit(name) => format!("{wanted}; its limit `{name}` is used up"),
        HttpRefusal::Malformed(problem) => format!("{wanted}; {problem}"),
        // This message contains no text from the plugin, so the plugin cannot vary it to flood the log.
        HttpRefusal::Placeholder(secret) => format!(
            "it had the placeholder of the secret `{secret}` in a place where no rule replaces it; a plugin that does \
             this may be trying to leak the secret"
        ),
        HttpRefusal::Unreadable(problem) => format!("{wanted}; {problem}"),
    }
}

/// Returns the entry of `http` that would allow a request: only the URL for `GET` and `HEAD`, a table with the method for others.
fn line(method: &str, url: &str) -> String {
    let base = url.split_once("://").map_or(url, |(scheme, rest)| {
        url.get(..scheme.len() + 3 + rest.find('/').unwrap_or(rest.len())).unwrap_or(url)
    });
    match method {
        "GET" | "HEAD" => format!("\"{base}\""),
        method => format!("{{ url = \"{base}/\", methods = [\"{method}\"] }}"),
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde::Deserialize;

    use super::*;
    use crate::{
        rule::{RawRule, Rule, find},
        target::Target,
    };

    #[derive(Deserialize)]
    struct File {
        http: Vec<RawRule>,
    }

    #[test]
    fn the_line_of_a_hint_allows_what_was_refused() {
        for (method, url) in [
            ("GET", "https://api.example.com/a/b"),
            ("POST", "https://api.example.com:8443/a"),
            ("DELETE", "http://[::1]:80/"),
            ("HEAD", "https://a.example"),
        ] {
            let denial = HttpDenial { method: method.into(), url: url.into(), why: HttpRefusal::NoRule };
            let hint = hint(&denial, str::to_owned);
            let (_, line) = hint.split_once("the entry ").unwrap();
            let (line, _) = line.split_once(" of `http`").unwrap();
            let file: File = toml::from_str(&format!("http = [{line}]")).unwrap();
            let rules: Vec<Rule> = file.http.into_iter().map(|rule| Rule::parse(rule).unwrap()).collect();
            let target = Target::of(&url.parse().unwrap()).unwrap();
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert!(find(&rules, &method, &target).is_ok(), "{line}");
        }
    }
}
