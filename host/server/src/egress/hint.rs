//! What the operator is told about a request that was refused.

use wharf_sandbox::network::{HttpDenial, HttpRefusal};

/// What was refused and why, with the line that would allow it if there is one. `clear` makes text of a
/// guest safe to print.
pub fn hint(denial: &HttpDenial, clear: fn(&str) -> String) -> String {
    let HttpDenial { method, url, why } = denial;
    let (method, url) = (clear(method), clear(url));
    let wanted = format!("it wanted {method} {url}");
    match why {
        HttpRefusal::NoRule => format!("{wanted}, which the entry {} of `http` would allow", line(&method, &url)),
        HttpRefusal::Address(address) => format!(
            "{wanted}, which leads to {address}, no public address; `private = true` on its rule allows private addresses, and \
             an address of the link or of a cloud's metadata has to stand in the rule itself"
        ),
        HttpRefusal::Limit(name) => format!("{wanted}; its limit `{name}` is used up"),
        HttpRefusal::Malformed(problem) => format!("{wanted}; {problem}"),
        // Nothing of the plugin's own is in this sentence, so that it cannot be drowned in others like it.
        HttpRefusal::Placeholder(secret) => format!(
            "it had the placeholder of the secret `{secret}` in a place where that secret does not belong; no rule \
             replaces it there, and a plugin that sends it elsewhere may try to give the secret away"
        ),
        HttpRefusal::Unreadable(problem) => format!("{wanted}; {problem}"),
    }
}

/// The entry of `http` that would allow a request: the host for `GET`, the host and the method for others.
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
    use crate::egress::{
        rule::{Rule, Written, find},
        target::Target,
    };

    #[derive(Deserialize)]
    struct File {
        http: Vec<Written>,
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
