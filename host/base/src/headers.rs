//! Reads headers that a request may have only once: a second value would leave open which one counts.

use http::{
    HeaderMap,
    header::{AUTHORIZATION, AsHeaderName},
};

/// Why a header has no single value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotSingle {
    /// The header occurs more than once.
    Twice,
    /// The value is not ASCII text.
    NotText,
}

/// Returns the value of a header that may occur at most once.
pub fn single(headers: &HeaderMap, name: impl AsHeaderName) -> Result<Option<&str>, NotSingle> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(NotSingle::Twice);
    }
    value.to_str().map(Some).map_err(|_| NotSingle::NotText)
}

/// Returns what follows `Bearer` in the header `Authorization`, which may be empty. `None`: there is no such header, or it has another
/// scheme.
pub fn bearer(headers: &HeaderMap) -> Result<Option<&str>, NotSingle> {
    let Some(value) = single(headers, AUTHORIZATION)? else { return Ok(None) };
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    Ok(scheme.eq_ignore_ascii_case("bearer").then_some(token.trim()))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_header_is_read_if_it_occurs_once() {
        for (values, one, token) in [
            (&[][..], Ok(None), Ok(None)),
            (&["Bearer a.b.c"], Ok(Some("Bearer a.b.c")), Ok(Some("a.b.c"))),
            (&["bearer  a b "], Ok(Some("bearer  a b ")), Ok(Some("a b"))),
            (&["BEARER"], Ok(Some("BEARER")), Ok(Some(""))),
            (&["Bearera"], Ok(Some("Bearera")), Ok(None)),
            (&["Basic YTpi"], Ok(Some("Basic YTpi")), Ok(None)),
            (&["Bearer a", "Bearer a"], Err(NotSingle::Twice), Err(NotSingle::Twice)),
            (&["Bearer \u{e4}"], Err(NotSingle::NotText), Err(NotSingle::NotText)),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            assert_eq!(single(&headers, "authorization"), one, "{values:?}");
            assert_eq!(bearer(&headers), token, "{values:?}");
        }
    }
}
