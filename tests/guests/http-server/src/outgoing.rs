//! A request that the server makes itself.

use wasip2::http::{
    outgoing_handler,
    types::{Fields, OutgoingRequest, Scheme},
};

/// Requests a URL. Returns the status, or the error.
pub fn fetch(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let request = OutgoingRequest::new(Fields::new());
    let scheme = if scheme == "https" { Scheme::Https } else { Scheme::Http };
    request.set_scheme(Some(&scheme)).expect("a scheme");
    request.set_authority(Some(authority)).expect("an authority");
    request.set_path_with_query(Some(&format!("/{path}"))).expect("a path");
    let sent = match outgoing_handler::handle(request, None) {
        Ok(sent) => sent,
        Err(error) => return format!("{error:?}"),
    };
    sent.subscribe().block();
    match sent.get().expect("a response").expect("once") {
        Ok(response) => response.status().to_string(),
        Err(error) => format!("{error:?}"),
    }
}
