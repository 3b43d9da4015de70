//! `WWW-Authenticate`: how a registry wants its clients to log in.

/// What a registry asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Challenge {
    /// The user and the password with each request.
    Basic,
    /// A token, which the server at `realm` issues.
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
}

/// Reads the values of the header, each of which may have several challenges. A token is preferred: it may be had without a password, and a
/// password goes to the server for tokens alone. None: it asks for nothing that is understood.
pub fn choose<'a>(values: impl Iterator<Item = &'a str>) -> Option<Challenge> {
    let all: Vec<Challenge> = values.flat_map(|value| split(value).into_iter().filter_map(understood)).collect();
    let (tokens, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| *one != Challenge::Basic);
    tokens.into_iter().chain(others).next()
}

/// A challenge as it is written: its scheme, and its parameters.
type Written<'a> = (&'a str, Vec<(String, String)>);

fn understood((scheme, parameters): Written<'_>) -> Option<Challenge> {
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (mut realm, mut service, mut scope) = (None, None, None);
    for (name, value) in parameters {
        match name.as_str() {
            "realm" => realm = Some(value),
            "service" => service = Some(value),
            "scope" => scope = Some(value),
            _ => {}
        }
    }
    Some(Challenge::Bearer { realm: realm?, service, scope })
}

/// Splits `Basic realm="a", Bearer realm="b", service=c` into challenges. A word that no `=` follows begins one. What follows something
/// malformed is not read, and neither is the challenge that has it.
fn split(mut text: &str) -> Vec<Written<'_>> {
    let mut all: Vec<Written<'_>> = Vec::new();
    loop {
        text = text.trim_start_matches([' ', '\t', ',']);
        if text.is_empty() {
            return all;
        }
        let (word, rest) = text.split_at(text.find([' ', '\t', ',', '=']).unwrap_or(text.len()));
        let Some(rest) = rest.trim_start().strip_prefix('=') else {
            all.push((word, Vec::new()));
            text = rest;
            continue;
        };
        match (value(rest.trim_start()), all.last_mut()) {
            (Some((value, rest)), Some((_, parameters))) => {
                parameters.push((word.to_ascii_lowercase(), value));
                text = rest;
            }
            _ => {
                all.pop();
                return all;
            }
        }
    }
}

/// Reads a value, which may be in quotes, and returns it with what follows. None: the end of the quotes is missing.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, rest) = text.split_at(text.find([',', ' ', '\t']).unwrap_or(text.len()));
        return Some((value.to_owned(), rest));
    };
    let (mut value, mut escaped) = (String::new(), false);
    for (at, character) in quoted.char_indices() {
        match character {
            '\\' if !escaped => escaped = true,
            '"' if !escaped => return Some((value, quoted.get(at + 1..)?)),
            other => {
                value.push(other);
                escaped = false;
            }
        }
    }
    None
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
            (", ,", None),
            ("realm=\"x\"", None),
            // Several in one header.
            (
                "Basic realm=\"x, Bearer\", Bearer realm=\"https://a.example/t\",service=\"s\"",
                bearer("https://a.example/t", Some("s"), None),
            ),
            ("Bearer realm = \"a\" , Basic realm=x", bearer("a", None, None)),
            ("Negotiate abc==, Basic", Some(Challenge::Basic)),
            ("Basic, Bearer service=\"x\"", Some(Challenge::Basic)),
            ("Basic realm=\"x\", Bearer realm=\"x", Some(Challenge::Basic)),
        ] {
            assert_eq!(choose([text].into_iter()), expected, "{text}");
        }
        let both = ["Basic realm=\"x\"", "Bearer realm=\"a\""].into_iter();
        assert_eq!(choose(both), bearer("a", None, None));
    }
}
