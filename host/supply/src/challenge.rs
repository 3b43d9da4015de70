//! `WWW-Authenticate`: how a registry wants its clients to log in.

/// What a registry asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Challenge {
    /// The user and the password with each request.
    Basic,
    /// A token, which the server at `realm` issues.
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
}

/// Reads the value of the header. None: it asks for nothing that is understood.
pub fn parse(value: &str) -> Option<Challenge> {
    let (scheme, rest) = value.trim().split_once(' ').unwrap_or((value.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (mut realm, mut service, mut scope) = (None, None, None);
    for (name, value) in parameters(rest)? {
        match name.to_ascii_lowercase().as_str() {
            "realm" => realm = Some(value),
            "service" => service = Some(value),
            "scope" => scope = Some(value),
            _ => {}
        }
    }
    Some(Challenge::Bearer { realm: realm?, service, scope })
}

/// Splits `a="b", c=d` into names and values. None: it is malformed.
fn parameters(mut text: &str) -> Option<Vec<(String, String)>> {
    let mut all = Vec::new();
    loop {
        text = text.trim_start_matches([' ', ',']);
        if text.is_empty() {
            return Some(all);
        }
        let (name, rest) = text.split_once('=')?;
        let (value, rest) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (mut value, mut escaped, mut end) = (String::new(), false, None);
                for (at, character) in quoted.char_indices() {
                    match character {
                        '\\' if !escaped => escaped = true,
                        '"' if !escaped => {
                            end = Some(at);
                            break;
                        }
                        other => {
                            value.push(other);
                            escaped = false;
                        }
                    }
                }
                (value, quoted.get(end? + 1..)?)
            }
            None => {
                let end = rest.find([',', ' ']).unwrap_or(rest.len());
                (rest.get(..end)?.to_owned(), rest.get(end..)?)
            }
        };
        all.push((name.trim().to_owned(), value));
        text = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let bearer = |realm: &str, service: Option<&str>, scope: Option<&str>| {
            Some(Challenge::Bearer {
                realm: realm.into(),
                service: service.map(Into::into),
                scope: scope.map(Into::into),
            })
        };
        for (text, expected) in [
            ("Basic realm=\"x\"", Some(Challenge::Basic)),
            ("basic", Some(Challenge::Basic)),
            (
                "Bearer realm=\"https://auth.example/token\",service=\"registry.example\",scope=\"repository:a/b:pull,push\"",
                bearer("https://auth.example/token", Some("registry.example"), Some("repository:a/b:pull,push")),
            ),
            ("bearer realm=https://a.example/t , error=\"x\"", bearer("https://a.example/t", None, None)),
            ("Bearer realm=\"a\\\"b\"", bearer("a\"b", None, None)),
            ("Bearer service=\"x\"", None),
            ("Bearer realm=\"x", None),
            ("Negotiate", None),
            ("", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
