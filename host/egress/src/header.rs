//! Comparison of header names as a server may do it. CGI and its successors (WSGI, Rack, PHP) pass a header to a program as a variable in
//! whose name every character except letters and digits is `_`. There, `x_a`, `X-A` and `x.a` can be the same header, so a check of one
//! name has to cover all of its spellings.

use http::{
    HeaderMap, HeaderName,
    header::{HeaderValue, TRAILER},
};

/// Whether some server treats both names as the same header.
pub fn same_header(one: &str, other: &str) -> bool {
    let folded = |byte: u8| if byte.is_ascii_alphanumeric() { byte.to_ascii_lowercase() } else { b'_' };
    one.len() == other.len() && one.bytes().zip(other.bytes()).all(|(one, other)| folded(one) == folded(other))
}

/// Removes all headers that some server treats as this one, but not the header itself.
pub fn remove_others(headers: &mut HeaderMap, name: &HeaderName) {
    let is_meant = |own: &&HeaderName| *own != name && same_header(own.as_str(), name.as_str());
    let found: Vec<HeaderName> = headers.keys().filter(is_meant).cloned().collect();
    for name in found {
        headers.remove(name);
    }
}

/// Removes all headers that some server treats as one of these.
pub fn remove<'a>(headers: &mut HeaderMap, names: impl Iterator<Item = &'a str> + Clone) {
    let is_meant = |own: &&HeaderName| names.clone().any(|name| same_header(own.as_str(), name));
    let found: Vec<HeaderName> = headers.keys().filter(is_meant).cloned().collect();
    for name in found {
        headers.remove(name);
    }
}

/// Removes the `Trailer` header if it announces one of these names, since some servers add trailers to the headers. Only announced trailers
/// are sent.
pub fn remove_trailers<'a>(headers: &mut HeaderMap, names: impl Iterator<Item = &'a str> + Clone) {
    let is_meant = |value: &HeaderValue| {
        // A value that is not ASCII cannot be compared, so it is removed.
        value.to_str().map_or(true, |text| {
            text.split(',').map(str::trim).any(|own| names.clone().any(|name| same_header(own, name)))
        })
    };
    if headers.get_all(TRAILER).iter().any(is_meant) {
        headers.remove(TRAILER);
    }
}

#[cfg(test)]
mod tests {
    use http::header::CONTENT_LENGTH;

    use super::*;

    #[test]
    fn names_that_a_server_may_take_for_one_are_one() {
        for (one, other, same) in [
            ("x-http-method-override", "x_http_method_override", true),
            ("x-http-method-override", "X-HTTP_Method.Override", true),
            ("x-http-method-override", "x~http!method*override", true),
            ("x-http-method-override", "x-http-method-overrides", false),
            ("x-http-method-override", "xhttp-method-override", false),
            ("authorization", "Authorization", true),
            ("api-key", "api-kez", false),
            ("", "", true),
        ] {
            assert_eq!(same_header(one, other), same, "{one} {other}");
        }
    }

    #[test]
    fn nothing_that_is_removed_comes_behind_the_body() {
        for (announced, kept) in [
            ("x-checksum", true),
            ("x-checksum, x-more", true),
            ("x-api-key", false),
            ("x-checksum,X_Api_Key", false),
            ("x-checksum , x.api-key ", false),
        ] {
            let mut headers = HeaderMap::from_iter([(TRAILER, HeaderValue::from_static(announced))]);
            remove_trailers(&mut headers, ["x-api-key"].into_iter());
            assert_eq!(headers.contains_key(TRAILER), kept, "{announced}");
        }
    }

    #[test]
    fn every_spelling_is_removed() {
        let mut headers = HeaderMap::new();
        for name in ["x-api-key", "x_api_key", "x.api-key", "x-api-keys", "accept"] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static("1"));
        }
        remove(&mut headers, ["x-api-key", "range"].into_iter());
        let left = |headers: &HeaderMap| {
            let mut left: Vec<String> = headers.keys().map(ToString::to_string).collect();
            left.sort_unstable();
            left
        };
        assert_eq!(left(&headers), ["accept", "x-api-keys"]);
        for name in ["content-length", "content_length", "content.length"] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static("1"));
        }
        remove_others(&mut headers, &CONTENT_LENGTH);
        assert_eq!(left(&headers), ["accept", "content-length", "x-api-keys"]);
    }
}
