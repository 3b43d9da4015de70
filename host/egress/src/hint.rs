//! Log messages for the operator about refused requests.

use wharf_scope::network::{HttpDenial, HttpRefusal};

use crate::{
    address::{AddressKind, judge},
    target::{Host, Target},
};

/// How the operator grants a plugin something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// By an entry of the config.
    Config,
    /// By an option of the command line, which names the plugin.
    Flag,
}

/// Describes what was refused and why, with the entry or the option that would allow it if there is one. `clear` makes text from a guest
/// safe to print.
pub fn hint(denial: &HttpDenial, by: By, clear: fn(&str) -> String) -> String {
    let HttpDenial { method, url, why } = denial;
    let wanted = format!("it wanted {} {}", clear(method), clear(url));
    match why {
        HttpRefusal::NoRule => match flag(denial, clear).filter(|_| by == By::Flag) {
            Some(flag) => format!("{wanted}, which {flag} would allow"),
            None => format!("{wanted}, which the entry {} of `http` would allow", line(&clear(method), &clear(url))),
        },
        HttpRefusal::Address(address) => match flag(denial, clear).filter(|_| by == By::Flag) {
            Some(flag) => format!("{wanted}, which resolves to {address}, not a public address; {flag} would allow it"),
            None => format!(
                "{wanted}, which resolves to {address}, not a public address; `private = true` on its rule allows private \
                 addresses, and a link-local address or one of a cloud's metadata service has to be the host of the rule itself"
            ),
        },
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

/// Returns the option of the command line that would allow a request, or `None` if only a config can.
pub fn flag(denial: &HttpDenial, clear: fn(&str) -> String) -> Option<String> {
    Some(format!("`--allow {}`", grant(denial, clear)?))
}

/// Returns what the option `--allow` takes to allow a request, or `None` if only a config can.
pub fn grant(denial: &HttpDenial, clear: fn(&str) -> String) -> Option<String> {
    let base = clear(origin(&denial.url));
    let reads = matches!(denial.method.as_str(), "GET" | "HEAD");
    match &denial.why {
        HttpRefusal::NoRule if reads && is_private(&denial.url) => Some(format!("http-private={base}")),
        HttpRefusal::NoRule if reads => Some(format!("http={base}")),
        HttpRefusal::NoRule if !is_private(&denial.url) => Some(format!("http-write={base}")),
        HttpRefusal::Address(address) if reads => {
            let private = address.parse().is_ok_and(|address| judge(address) == AddressKind::Private);
            private.then(|| format!("http-private={base}"))
        }
        _ => None,
    }
}

/// Returns the entry of the config that would allow a request, or `None` if none can.
pub fn entry(denial: &HttpDenial, clear: fn(&str) -> String) -> Option<String> {
    let (method, url) = (clear(&denial.method), clear(&denial.url));
    match &denial.why {
        HttpRefusal::NoRule => Some(format!("`http = [{}]`", line(&method, &url))),
        HttpRefusal::Address(address) => {
            // No rule opens the addresses at which wharf itself listens.
            let kind = address.parse().map(judge).ok()?;
            let is_spelled = origin(&url).contains(address.as_str());
            let opens = kind == AddressKind::Private || is_spelled;
            opens.then(|| format!("`private = true` on the rule of `http` for {}", origin(&url)))
        }
        HttpRefusal::Limit(name) => Some(format!("`{name}`")),
        _ => None,
    }
}

/// Whether the host of a URL is on this machine or its network, as far as the URL shows.
pub fn is_private(url: &str) -> bool {
    let target = url.parse().ok().and_then(|url| Target::of(&url).ok());
    target.is_some_and(|target| match target.host {
        Host::Address(address) => judge(address) == AddressKind::Private,
        Host::Name(_) => target.host.is_private_by_name(),
    })
}

/// Returns the scheme, host and port of a URL.
fn origin(url: &str) -> &str {
    url.split_once("://")
        .map_or(url, |(scheme, rest)| url.get(..scheme.len() + 3 + rest.find('/').unwrap_or(rest.len())).unwrap_or(url))
}

/// Returns the entry of `http` that would allow a request: only the URL for `GET` and `HEAD`, a table with the method for others.
fn line(method: &str, url: &str) -> String {
    let base = origin(url);
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
    use crate::rule::{RawRule, Rule, choice::find};

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
            let hint = hint(&denial, By::Config, str::to_owned);
            let (_, line) = hint.split_once("the entry ").unwrap();
            let (line, _) = line.split_once(" of `http`").unwrap();
            let file: File = toml::from_str(&format!("http = [{line}]")).unwrap();
            let rules: Vec<Rule> = file.http.into_iter().map(|rule| Rule::parse(rule).unwrap()).collect();
            let target = Target::of(&url.parse().unwrap()).unwrap();
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert!(find(&rules, &method, &target).is_ok(), "{line}");
        }
    }

    #[test]
    fn the_option_of_a_hint_allows_what_was_refused() {
        let address = |text: &str| HttpRefusal::Address(text.into());
        for (method, url, why, expected) in [
            ("GET", "https://a.example/x", HttpRefusal::NoRule, Some("`--allow http=https://a.example`")),
            ("GET", "http://127.0.0.1:81/x", HttpRefusal::NoRule, Some("`--allow http-private=http://127.0.0.1:81`")),
            ("GET", "http://localhost/x", HttpRefusal::NoRule, Some("`--allow http-private=http://localhost`")),
            ("POST", "https://a.example/x", HttpRefusal::NoRule, Some("`--allow http-write=https://a.example`")),
            ("POST", "http://localhost/x", HttpRefusal::NoRule, None),
            ("GET", "http://a.example:81/x", address("10.0.0.1"), Some("`--allow http-private=http://a.example:81`")),
            ("GET", "http://a.example/", address("169.254.169.254"), None),
            ("GET", "http://localhost:7300/", address("wharf itself"), None),
            ("GET", "https://a.example/", HttpRefusal::Limit("http_requests"), None),
        ] {
            let denial = HttpDenial { method: method.into(), url: url.into(), why };
            assert_eq!(flag(&denial, str::to_owned).as_deref(), expected, "{denial:?}");
            let said = hint(&denial, By::Flag, str::to_owned);
            assert!(expected.is_none_or(|flag| said.contains(flag)), "{said}");
        }
    }
}
