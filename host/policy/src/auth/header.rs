//! Finds the bearer token of a request. It is accepted in one place only, the header `Authorization`.

use http::HeaderMap;

use super::identity::Refused;
use wharf_base::headers::{NotSingle, bearer};

/// The longest token. Tokens of large companies with many groups have a few KiB.
const MAX_TOKEN_BYTES: usize = 12 << 10;

/// Returns the token after `Bearer`. `query` is the part of the URL after `?`.
pub fn token<'a>(headers: &'a HeaderMap, query: Option<&str>) -> Result<&'a str, Refused> {
    let in_query = query.is_some_and(|query| {
        query
            .split('&')
            .any(|pair| pair.split('=').next().is_some_and(|name| name.eq_ignore_ascii_case("access_token")))
    });
    if in_query {
        return Err(Refused::Malformed("a token in the URL is not accepted; send it in the header `Authorization`"));
    }
    let token = bearer(headers).map_err(|problem| match problem {
        NotSingle::Twice => Refused::Malformed("there are two headers `Authorization`"),
        NotSingle::NotText => Refused::Malformed("the header `Authorization` is not ASCII text"),
    })?;
    let token = token.ok_or(Refused::NoToken)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    if token.is_empty() || !token.bytes().all(is_plain) {
        return Err(Refused::Malformed("`Bearer` must be followed by exactly one token"));
    }
    if token.len() > MAX_TOKEN_BYTES {
        return Err(Refused::Invalid("it is longer than 12 KiB"));
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use http::header;

    use super::*;

    #[test]
    fn there_is_one_place_for_a_token() {
        let with = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, http::HeaderValue::from_static(value));
            }
            headers
        };
        for (values, query, expected) in [
            (&["Bearer a.b.c"][..], None, Ok("a.b.c")),
            (&["bearer  a.b.c "], None, Ok("a.b.c")),
            (&["BEARER a"], Some("x=access_token"), Ok("a")),
            (&[], None, Err("none")),
            (&["Basic YTpi"], None, Err("none")),
            (&["Bearera.b.c"], None, Err("none")),
            (&["Bearer"], None, Err("malformed")),
            (&["Bearer "], None, Err("malformed")),
            (&["Bearer a b"], None, Err("malformed")),
            (&["Bearer a,Bearer b"], None, Err("malformed")),
            (&["Bearer a", "Bearer a"], None, Err("malformed")),
            (&["Bearer a"], Some("access_token=a"), Err("malformed")),
            (&[], Some("b=1&Access_Token=a"), Err("malformed")),
        ] {
            let headers = with(values);
            let found = token(&headers, query).map_err(|refused| match refused {
                Refused::NoToken => "none",
                Refused::Malformed(_) => "malformed",
                _ => "other",
            });
            assert_eq!(found, expected, "{values:?} {query:?}");
        }
    }

    #[test]
    fn a_token_has_a_longest_length() {
        assert_eq!(MAX_TOKEN_BYTES, 12 << 10);
        for (bytes, fits) in [(MAX_TOKEN_BYTES, true), (MAX_TOKEN_BYTES + 1, false), (16 << 10, false)] {
            let mut headers = HeaderMap::new();
            let value = format!("Bearer {}", "a".repeat(bytes));
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            let got = token(&headers, None);
            assert_eq!(got.is_ok(), fits, "{bytes}");
            assert!(fits || matches!(got, Err(Refused::Invalid(_))), "{bytes}: {got:?}");
        }
    }
}
