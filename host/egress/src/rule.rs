//! Rules of `http = […]` in a plugin's grants: an allowlist of requests. A request is checked before its host is looked up.

pub mod choice;
mod raw;

use std::fmt;

use anyhow::{Context, Result, bail, ensure};
use http::{HeaderName, Method};
use wharf_scope::braces;

use self::raw::Table;
pub use self::raw::{RawRule, WrittenMethods};
use super::{
    header::same_header,
    target::{self, Host, Scheme, Target},
};
use wharf_base::reading::doubt_of_path;

/// A rule: the requests that it allows, and what it adds to them.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub scheme: Scheme,
    pub host: HostPattern,
    pub port: u16,
    /// The segments that a path has to begin with. Empty: any path matches.
    segments: Vec<String>,
    methods: Methods,
    /// Whether the host may resolve to an address that is not public.
    pub private: bool,
    /// Headers to add; they replace those of the guest.
    pub headers: Vec<(HeaderName, Template)>,
    /// The secrets whose placeholders are replaced in the guest's headers.
    pub secrets: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    Is(Host),
    /// Any name below this domain.
    Below(String),
    /// Any host, over any scheme and at any port, if its address is public.
    Any,
}

/// The rule for any public address, as it is written instead of a URL.
const ANY: &str = "any";

impl HostPattern {
    /// Whether this pattern matches every host that `other` matches.
    fn includes(&self, other: &Self) -> bool {
        let below = |name: &str, domain: &str| name.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Is(host), Self::Is(other)) => host == other,
            (Self::Below(domain), Self::Is(Host::Name(name))) => below(name, domain),
            (Self::Below(domain), Self::Below(other)) => other == domain || below(other, domain),
            _ => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Methods {
    Any,
    Only(Vec<Method>),
}

impl Methods {
    fn read(written: Option<WrittenMethods>) -> Result<Self> {
        let list = match written {
            None => return Ok(Self::Only(vec![Method::GET, Method::HEAD])),
            Some(WrittenMethods::Word(word)) if word == "any" => return Ok(Self::Any),
            Some(WrittenMethods::Word(word)) => bail!("`methods` is \"any\" or a list such as [{word:?}]"),
            Some(WrittenMethods::List(list)) => list,
        };
        ensure!(!list.is_empty(), "`methods` is empty, so the rule would allow nothing");
        let method = |name: &String| {
            let known = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
            let method = Method::from_bytes(name.as_bytes()).ok().filter(|_| known);
            let method = method
                .with_context(|| format!("`methods`: `{name}` is not a method; methods are written in upper case"))?;
            ensure!(!is_never(&method), "`methods`: {name} is never allowed");
            Ok(method)
        };
        list.iter().map(method).collect::<Result<_>>().map(Self::Only)
    }

    fn allow(&self, method: &Method) -> bool {
        match self {
            Self::Any => !is_never(method),
            Self::Only(methods) => methods.contains(method),
        }
    }
}

/// Whether a method is never allowed. `CONNECT` would open a tunnel, and `TRACE` would return the headers that wharf added, including
/// secrets.
fn is_never(method: &Method) -> bool {
    matches!(*method, Method::CONNECT | Method::TRACE)
}

/// The value of a header, which may contain secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(pub Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Text(String),
    /// The secret with this name.
    Secret(String),
}

impl Template {
    /// Parses a template such as `Bearer {name}`. `{{` and `}}` stand for braces.
    fn parse(text: &str) -> Result<Self> {
        let visible = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        ensure!(text.bytes().all(visible), "a header's value must consist of visible ASCII characters");
        let part = |part| match part {
            braces::Part::Text(text) => Ok(Part::Text(text)),
            braces::Part::Place(name) => {
                ensure!(
                    !name.is_empty() && !name.contains('{'),
                    "`{text}`: braces must contain the name of a secret, as in `Bearer {{name}}`"
                );
                Ok(Part::Secret(name))
            }
        };
        let parts = braces::parse(text).map_err(anyhow::Error::msg)?;
        parts.into_iter().map(part).collect::<Result<_>>().map(Self)
    }

    /// Returns the names of the secrets in the template.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Secret(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }
}

impl Rule {
    pub fn parse(written: RawRule) -> Result<Self> {
        let Table { url, methods, headers, private, secrets } = written.0;
        let within = |error: &str| format!("`http`: `{url}`: {error}");
        if url == ANY {
            ensure!(!private, within("it stands for public addresses; a private one needs a rule with its URL"));
            ensure!(
                headers.is_empty() && secrets.is_empty(),
                within("headers and secrets would be sent to every host; write a rule with the URL that they are for")
            );
            let (host, methods) = (HostPattern::Any, Methods::read(methods).with_context(|| within("methods"))?);
            let (scheme, headers) = (Scheme::Https, Vec::new());
            return Ok(Self {
                scheme,
                host,
                port: scheme.port(),
                segments: Vec::new(),
                methods,
                private,
                headers,
                secrets,
            });
        }
        let (scheme, rest) = url.split_once("://").with_context(|| within("it must begin with https:// or http://"))?;
        let scheme = Scheme::parse(scheme).with_context(|| within("it must begin with https:// or http://"))?;
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        ensure!(!authority.contains('@'), within("a user name or a password does not belong in it; see `headers`"));
        ensure!(!url.contains(['?', '#']), within("a rule ends with the path; queries are always allowed"));
        let (host, port) = target::split_port(authority).map_err(|error| anyhow::anyhow!(within(error)))?;
        let host = match host.strip_prefix("*.") {
            Some(domain) => match target::host(domain) {
                Ok(Host::Name(domain)) if domain.contains('.') => HostPattern::Below(domain),
                _ => bail!(within("after `*.` comes a domain of at least two labels, such as *.example.com")),
            },
            None => HostPattern::Is(target::host(host).map_err(|error| anyhow::anyhow!(within(error)))?),
        };
        if let Some(doubt) = doubt_of_path(path) {
            bail!(within(&format!("its path {doubt}, and such paths never match")));
        }
        let segments: Vec<String> = path.split('/').filter(|segment| !segment.is_empty()).map(str::to_owned).collect();
        let headers: Vec<(HeaderName, Template)> = headers
            .into_iter()
            .map(|(name, value)| header(&name, &value).with_context(|| within("headers")))
            .collect::<Result<_>>()?;
        for (at, (name, _)) in headers.iter().enumerate() {
            let same = headers.iter().skip(at + 1).find(|(other, _)| same_header(name.as_str(), other.as_str()));
            if let Some((other, _)) = same {
                bail!(within(&format!("headers: `{name}` and `{other}` may be the same header to a server; keep one")));
            }
        }
        let rule = Self {
            scheme,
            host,
            port: port.unwrap_or(scheme.port()),
            segments,
            methods: Methods::read(methods).with_context(|| within("methods"))?,
            private,
            headers,
            secrets,
        };
        ensure!(
            scheme == Scheme::Https || private || rule.all_secrets().next().is_none(),
            within("secrets are sent over https only, unless the rule is `private`")
        );
        Ok(rule)
    }

    /// Returns the names of all secrets that the rule can add to a request.
    pub fn all_secrets(&self) -> impl Iterator<Item = &str> {
        self.headers.iter().flat_map(|(_, value)| value.secrets()).chain(self.secrets.iter().map(String::as_str))
    }

    /// Whether the rule covers requests to this target, whatever their method.
    fn covers(&self, target: &Target) -> bool {
        let host = match (&self.host, &target.host) {
            (HostPattern::Is(host), other) => host == other,
            (HostPattern::Below(domain), Host::Name(name)) => {
                name.strip_suffix(domain.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            (HostPattern::Below(_), Host::Address(_)) => false,
            (HostPattern::Any, _) => return true,
        };
        let path = || {
            let mut segments = target.path.split('/').skip(1);
            self.segments.is_empty()
                || (target.doubt.is_none()
                    && self.segments.iter().all(|wanted| segments.next() == Some(wanted.as_str())))
        };
        host && self.scheme == target.scheme && self.port == target.port && path()
    }

    /// Whether the rule allows a method that is meant to change something on the server.
    pub fn can_write(&self) -> bool {
        match &self.methods {
            Methods::Any => true,
            Methods::Only(methods) => methods.iter().any(|method| !method.is_safe()),
        }
    }

    /// Whether this rule allows every request that `other` allows, if the addresses are public. What the rules add to requests is ignored.
    pub fn includes(&self, other: &Self) -> bool {
        let methods = match (&self.methods, &other.methods) {
            (Methods::Any, _) => true,
            (Methods::Only(_), Methods::Any) => false,
            (Methods::Only(own), Methods::Only(others)) => others.iter().all(|method| own.contains(method)),
        };
        methods && self.includes_place(other)
    }

    /// Whether this rule covers every URL that `other` covers, ignoring methods.
    fn includes_place(&self, other: &Self) -> bool {
        self.meets_origin(other, |own, other| own.includes(other)) && other.segments.starts_with(&self.segments)
    }

    /// Whether there is a URL that both rules cover.
    pub fn meets(&self, other: &Self) -> bool {
        let host = |own: &HostPattern, other: &HostPattern| own.includes(other) || other.includes(own);
        let paths = self.segments.iter().zip(&other.segments).all(|(own, other)| own == other);
        paths && self.meets_origin(other, host)
    }

    fn meets_origin(&self, other: &Self, host: impl Fn(&HostPattern, &HostPattern) -> bool) -> bool {
        let is_any = |rule: &Self| rule.host == HostPattern::Any;
        let same = self.scheme == other.scheme && self.port == other.port;
        (same || is_any(self) || is_any(other)) && host(&self.host, &other.host)
    }

    /// Returns the scheme, host and port as the beginning of a URL; for the rule `any`, this word.
    pub fn origin(&self) -> String {
        let host = match &self.host {
            HostPattern::Is(host) => host.to_string(),
            HostPattern::Below(domain) => format!("*.{domain}"),
            HostPattern::Any => return ANY.to_owned(),
        };
        let port = if self.port == self.scheme.port() { String::new() } else { format!(":{}", self.port) };
        format!("{}://{host}{port}", self.scheme.as_str())
    }

    /// Whether both rules cover the same URLs, ignoring methods.
    pub fn same_place(&self, other: &Self) -> bool {
        self.includes_place(other) && other.includes_place(self)
    }

    /// Whether the rule adds no headers, replaces no placeholders, and reaches public addresses only.
    pub fn is_plain(&self) -> bool {
        self.headers.is_empty() && self.secrets.is_empty() && !self.private
    }

    /// Whether this rule takes precedence over `other` for a request that both allow, whatever their order in the config.
    pub fn is_more_specific(&self, other: &Self) -> bool {
        self.specificity() > other.specificity()
    }

    /// Splits the rule into one rule for each method.
    pub fn by_method(&self) -> Vec<Self> {
        match &self.methods {
            Methods::Any => vec![self.clone()],
            Methods::Only(methods) => {
                let only = |method: &Method| Self { methods: Methods::Only(vec![method.clone()]), ..self.clone() };
                methods.iter().map(only).collect()
            }
        }
    }

    /// Returns the rule without the methods for which `is_known` holds, or `None` if no method is left. `is_known` is called with a rule
    /// for one method. `HEAD` also counts as known if `GET` is, because permission to read implies it and plugins do not list it.
    pub fn without(&self, is_known: impl Fn(&Self) -> bool) -> Option<Self> {
        let with = |methods: Vec<Method>| Self { methods: Methods::Only(methods), ..self.clone() };
        match &self.methods {
            Methods::Any => (!is_known(self)).then(|| self.clone()),
            Methods::Only(methods) => {
                let mut left = methods.clone();
                left.retain(|method| {
                    let head = *method == Method::HEAD && is_known(&with(vec![Method::GET]));
                    !head && !is_known(&with(vec![method.clone()]))
                });
                (!left.is_empty()).then(|| with(left))
            }
        }
    }

    /// Returns how specific the rule is; the more specific rule takes precedence.
    fn specificity(&self) -> (usize, u8) {
        let host = match self.host {
            HostPattern::Any => 0,
            HostPattern::Below(_) => 1,
            HostPattern::Is(_) => 2,
        };
        (self.segments.len(), host)
    }
}

/// Parses a header that a rule adds.
fn header(name: &str, value: &toml::Value) -> Result<(HeaderName, Template)> {
    let parsed =
        HeaderName::from_bytes(name.as_bytes()).ok().with_context(|| format!("`{name}` is not a valid header name"))?;
    let framing = ["host", "content-length", "transfer-encoding", "connection", "upgrade", "expect", "te", "trailer"];
    ensure!(!framing.iter().any(|own| same_header(own, name)), "a rule cannot set the header `{name}`");
    let value = value.as_str().with_context(|| format!("`{name}`: a header's value must be a string"))?;
    Ok((parsed, Template::parse(value)?))
}

/// Formats the rule for messages, in terms of the config.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.methods {
            Methods::Any => f.write_str("any method")?,
            Methods::Only(methods) => {
                f.write_str(&methods.iter().map(Method::as_str).collect::<Vec<_>>().join(" "))?;
            }
        }
        match self.host {
            HostPattern::Any => f.write_str(" any public address")?,
            _ => write!(f, " {}/{}", self.origin(), self.segments.join("/"))?,
        }
        let mut more = Vec::new();
        if self.private {
            more.push("private addresses too".to_owned());
        }
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        if !names.is_empty() {
            more.push(format!("with {}", names.join(", ")));
        }
        if more.is_empty() { Ok(()) } else { write!(f, " ({})", more.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::{choice::find, *};
    use wharf_testing::paths::{PLAIN, leaving};

    #[derive(Deserialize)]
    struct File {
        http: Vec<RawRule>,
    }

    fn rules(text: &str) -> Result<Vec<Rule>> {
        let file: File = toml::from_str(&format!("http = [{text}]"))?;
        file.http.into_iter().map(Rule::parse).collect()
    }

    fn found(rules: &[Rule], method: &str, url: &str) -> Option<usize> {
        let target = Target::of(&url.parse().unwrap()).ok()?;
        let found = find(rules, &Method::from_bytes(method.as_bytes()).unwrap(), &target).ok()?;
        rules.iter().position(|rule| std::ptr::eq(rule, found))
    }

    #[test]
    fn what_a_rule_allows() {
        let all = rules(
            r#""https://api.example.com",
            { url = "https://api.example.com/repos/acme/", methods = ["GET", "POST"] },
            { url = "https://*.wild.example:8443", methods = "any" },
            { url = "http://localhost:8080/", private = true, methods = "any" },
            "https://[2001:db8::1]""#,
        )
        .unwrap();
        for (method, url, expected) in [
            ("GET", "https://api.example.com/", Some(0)),
            ("HEAD", "https://API.EXAMPLE.COM./x?y=z", Some(0)),
            ("POST", "https://api.example.com/", None),
            ("GET", "https://api.example.com:443/", Some(0)),
            ("GET", "https://api.example.com:8443/", None),
            ("GET", "http://api.example.com/", None),
            ("GET", "https://xapi.example.com/", None),
            ("GET", "https://x.api.example.com/", None),
            ("GET", "https://api.example.com.evil.example/", None),
            ("GET", "https://api.example.com/repos/acme/x", Some(1)),
            ("POST", "https://api.example.com/repos/acme", Some(1)),
            ("POST", "https://api.example.com/repos/acme/", Some(1)),
            ("POST", "https://api.example.com/repos/acmex", None),
            ("POST", "https://api.example.com/repos//acme", None),
            ("POST", "https://api.example.com/repos/acme/../other", None),
            ("POST", "https://api.example.com/repos/acme/%2e%2e/other", None),
            ("POST", "https://api.example.com/repos/acme%2fx", None),
            ("POST", "https://api.example.com/repos/acme/%25%32%65%25%32%65/other", None),
            ("POST", "https://api.example.com/repos/acme/..%3b/other", None),
            ("POST", "https://api.example.com/repos/acme/%c0%ae%c0%ae/other", None),
            ("POST", "https://api.example.com/repos/acme/a%3bb/x", Some(1)),
            ("POST", "https://api.example.com/repos/Acme/x", None),
            ("GET", "https://api.example.com/repos/acme/../other", Some(0)),
            ("DELETE", "https://a.wild.example:8443/x", Some(2)),
            ("DELETE", "https://a.b.wild.example:8443/x", Some(2)),
            ("DELETE", "https://wild.example:8443/x", None),
            ("DELETE", "https://.wild.example:8443/x", None),
            ("DELETE", "https://awild.example:8443/x", None),
            ("TRACE", "https://a.wild.example:8443/x", None),
            ("PROPFIND", "http://localhost:8080/", Some(3)),
            ("GET", "https://[2001:DB8:0::1]/", Some(4)),
            ("get", "https://api.example.com/", None),
        ] {
            assert_eq!(found(&all, method, url), expected, "{method} {url}");
        }
    }

    #[test]
    fn no_spelling_leads_out_of_the_path_of_a_rule() {
        let rules = rules(r#""https://a.example/public""#).unwrap();
        let allowed = |path: &str| {
            // A path that is not valid in a URI is refused before the rules are checked.
            let uri = format!("https://a.example{path}").parse();
            uri.is_ok_and(|uri| find(&rules, &Method::GET, &Target::of(&uri).unwrap()).is_ok())
        };
        for path in PLAIN {
            assert!(allowed(path), "{path}");
        }
        for path in leaving() {
            assert!(!allowed(&path), "{path}");
        }
    }

    #[test]
    fn the_rule_any_allows_every_host_and_gives_way_to_all_others() {
        let all =
            rules(r#""any", "https://*.wild.example", { url = "https://api.example.com", headers = { x-a = "b" } }"#);
        let all = all.unwrap();
        for (method, url, expected) in [
            ("GET", "https://a.example/x", Some(0)),
            ("HEAD", "http://a.example:8080/../x", Some(0)),
            ("GET", "http://93.184.216.34/", Some(0)),
            ("GET", "https://a.wild.example/", Some(1)),
            ("GET", "https://api.example.com/", Some(2)),
            ("GET", "http://api.example.com/", Some(0)),
            ("POST", "https://a.example/x", None),
        ] {
            assert_eq!(found(&all, method, url), expected, "{method} {url}");
        }
        assert_eq!(all[0].to_string(), "GET HEAD any public address");
        assert!(all[0].includes(&all[1]) && !all[1].includes(&all[0]) && all[1].meets(&all[0]));
        let writing = rules(r#"{ url = "any", methods = ["POST"] }"#).unwrap();
        assert_eq!(found(&writing, "POST", "http://a.example/"), Some(0));
        for (text, expected) in [
            (r#"{ url = "any", private = true }"#, "public addresses"),
            (r#"{ url = "any", secrets = ["t"] }"#, "sent to every host"),
            (r#"{ url = "any", headers = { x-a = "b" } }"#, "sent to every host"),
            (r#""any/x""#, "must begin with https://"),
        ] {
            let error = format!("{:#}", rules(text).unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn what_a_rule_includes() {
        for (wider, narrower, expected) in [
            (r#""https://a.example""#, r#""https://A.example./x/y""#, true),
            (r#""https://a.example/x""#, r#""https://a.example""#, false),
            (r#""https://a.example/x""#, r#""https://a.example/xy""#, false),
            (r#""https://a.example""#, r#""http://a.example""#, false),
            (r#""https://a.example""#, r#""https://a.example:8443""#, false),
            (r#""https://a.example""#, r#"{ url = "https://a.example", methods = ["POST"] }"#, false),
            (r#"{ url = "https://a.example", methods = "any" }"#, r#""https://a.example""#, true),
            (r#""https://a.example""#, r#"{ url = "https://a.example", methods = "any" }"#, false),
            (r#""https://*.x.example""#, r#""https://a.x.example""#, true),
            (r#""https://*.x.example""#, r#""https://*.a.x.example""#, true),
            (r#""https://*.x.example""#, r#""https://x.example""#, false),
            (r#""https://*.x.example""#, r#""https://ax.example""#, false),
            (r#""https://a.x.example""#, r#""https://*.x.example""#, false),
        ] {
            let (wider, narrower) = (rules(wider).unwrap(), rules(narrower).unwrap());
            assert_eq!(wider[0].includes(&narrower[0]), expected, "{} {}", wider[0], narrower[0]);
        }
        for (one, other, expected) in [
            ("https://a.example/x", "https://a.example", true),
            ("https://a.example/x", "https://a.example/x/y", true),
            ("https://a.example/x", "https://a.example/y", false),
            ("https://*.x.example/y", "https://a.x.example", true),
            ("https://*.x.example", "https://x.example", false),
            ("https://*.x.example", "https://*.y.example", false),
            ("https://a.example", "http://a.example", false),
            ("https://a.example", "https://a.example:8443", false),
        ] {
            let both = rules(&format!("{one:?}, {other:?}")).unwrap();
            assert_eq!((both[0].meets(&both[1]), both[1].meets(&both[0])), (expected, expected), "{one} {other}");
            assert!(both[0].same_place(&both[0]) && !both[0].same_place(&both[1]), "{one} {other}");
        }
        let both = rules(r#"{ url = "https://a.example", methods = ["GET", "POST"] }"#).unwrap();
        let each: Vec<String> = both[0].by_method().iter().map(ToString::to_string).collect();
        assert_eq!(each, ["GET https://a.example/", "POST https://a.example/"]);
    }

    #[test]
    fn what_is_wrong_with_a_rule_is_said() {
        for (text, expected) in [
            (r#""api.example.com""#, "must begin with https://"),
            (r#""ftp://a.example""#, "must begin with https://"),
            (r#""https://u:p@a.example""#, "a user name or a password"),
            (r#""https://a.example/?x""#, "queries are always allowed"),
            (r#""https://127.1/""#, "ends in a number"),
            (r#""https://*.com/""#, "at least two labels"),
            (r#""https://*/""#, "characters that host names cannot have"),
            (r#""https://bücher.example/""#, "characters that host names cannot have"),
            (r#""https://a.example/x/../y""#, "such paths never match"),
            (r#"{ url = "https://a.example", methods = ["get"] }"#, "methods are written in upper case"),
            (r#"{ url = "https://a.example", methods = ["TRACE"] }"#, "never allowed"),
            (r#"{ url = "https://a.example", methods = [] }"#, "would allow nothing"),
            (r#"{ url = "https://a.example", methods = "GET" }"#, "\"any\" or a list"),
            (r#"{ url = "http://a.example", headers = { authorization = "{t}" } }"#, "over https only"),
            (r#"{ url = "http://a.example", secrets = ["t"] }"#, "over https only"),
            (r#"{ url = "https://a.example", headers = { host = "b" } }"#, "a rule cannot set the header"),
            (r#"{ url = "https://a.example", headers = { content_length = "1" } }"#, "a rule cannot set the header"),
            (r#"{ url = "https://a.example", headers = { x-a = "1", x_a = "2" } }"#, "may be the same header"),
            (r#"{ url = "https://a.example", headers = { a = "{t" } }"#, "not closed"),
            (r#"{ url = "https://a.example", headers = { a = "t}" } }"#, "closes nothing"),
            (r#"{ url = "https://a.example", headers = { a = "{}" } }"#, "the name of a secret"),
            (r#"{ url = "https://a.example", headers = { a = "{a{b}" } }"#, "the name of a secret"),
            (r#""https://a.example/x%2fy""#, "has an encoded slash"),
            (r#"{ url = "https://a.example", headers = { a = 1 } }"#, "must be a string"),
            (r#"{ url = "https://a.example", method = "GET" }"#, "unknown field `method`"),
            ("7", "a URL, `any`, or a table"),
        ] {
            let error = format!("{:#}", rules(text).unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
        }
        let rule = rules(r#"{ url = "http://a.example", headers = { authorization = "Bearer {t}" }, private = true }"#);
        assert_eq!(rule.unwrap()[0].all_secrets().collect::<Vec<_>>(), ["t"]);
    }

    #[test]
    fn doubled_braces_in_a_header_are_characters() {
        let rule = rules(r#"{ url = "https://a.example", headers = { a = '{{"key": "{t}"}}' } }"#).unwrap().remove(0);
        let [(_, Template(parts))] = &rule.headers[..] else { panic!("{:?}", rule.headers) };
        let text = |text: &str| Part::Text(text.to_owned());
        assert_eq!(*parts, [text("{\"key\": \""), Part::Secret("t".to_owned()), text("\"}")]);
    }
}
