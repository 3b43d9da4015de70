//! Reads headers, and compares them with the parts of the body that they repeat.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{self, AsHeaderName},
};
use wharf_protocol::{Method, Request, RpcError, header::decode_value};

use wharf_base::headers;

// Names that are constants need not be parsed for each lookup.
pub const VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
const NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");

pub fn text(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whether the client accepts a body of this type.
pub fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let kinds = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let family = wanted.split_once('/').map_or(wanted, |(family, _)| family);
    kinds.map(|kind| kind.split(';').next().unwrap_or_default().trim()).any(|kind| {
        let any_of = kind.strip_suffix("/*").is_some_and(|of| of == "*" || of.eq_ignore_ascii_case(family));
        any_of || kind.eq_ignore_ascii_case(wanted)
    })
}

/// Returns the value of a header that may occur at most once, without blanks around it. The error is for the client.
pub fn single(headers: &HeaderMap, name: HeaderName) -> Result<Option<&str>, RpcError> {
    let value = headers::single(headers, &name).map(|value| value.map(str::trim));
    value.map_err(|_| RpcError::header_mismatch(format!("the header {name} is malformed, or occurs twice")))
}

/// Checks `Mcp-Name`, which repeats the name or URI in the parameters of the methods that have one.
pub fn check_name(headers: &HeaderMap, request: &Request) -> Result<(), RpcError> {
    let Some(key) = request.known().and_then(Method::name_member) else { return Ok(()) };
    let written = request.params.as_ref().and_then(|params| params.get(key));
    // A request without the member fails later, for that reason.
    let Some(expected) = written.and_then(|text| serde_json::from_str::<String>(text.as_str()).ok()) else {
        return Ok(());
    };
    let mut values = headers.get_all(NAME_HEADER).iter();
    let given = values.next().and_then(|value| decode_value(value.as_bytes()));
    if given.as_ref() == Some(&expected) && values.next().is_none() {
        Ok(())
    } else {
        Err(RpcError::header_mismatch(format!("the header Mcp-Name is missing or differs from `params.{key}`")))
    }
}

/// The header with the id of a request, which logs and the response contain.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The maximum length of an id that a client sends.
const MAX_REQUEST_ID_BYTES: usize = 64;

/// Returns the id of a request, if the client sent one that may appear in logs and headers.
pub fn request_id(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(REQUEST_ID).filter(|id| is_id(id))
}

fn is_id(id: &HeaderValue) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    (1..=MAX_REQUEST_ID_BYTES).contains(&id.len()) && id.as_bytes().iter().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_clients_are_plain() {
        for (id, good) in [
            ("a", true),
            ("01JF9Z6C0G.req_7-b", true),
            ("", false),
            ("a b", false),
            ("a\"b", false),
            ("a/b", false),
            ("\u{e4}", false),
        ] {
            assert_eq!(is_id(&HeaderValue::from_bytes(id.as_bytes()).unwrap()), good, "{id}");
        }
        assert!(is_id(&HeaderValue::try_from("a".repeat(64)).unwrap()));
        assert!(!is_id(&HeaderValue::try_from("a".repeat(65)).unwrap()));
    }
}
