//! Responses for clients: the metadata that says where to log in, and the challenge that says why a request was refused.

use http::HeaderValue;
use serde_json::{Value, json};

use super::{
    identity::Refused,
    settings::{AuthSettings, is_scope},
};
use wharf_base::text::is_segment;

/// The path at which clients look for the metadata of a protected resource (RFC 9728); the resource's own path is appended.
pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Returns the metadata of this resource. `below` is what follows the resource's path in the URL that the client was given, a slash or the
/// name of a profile, since clients compare the two URLs.
pub fn document(settings: &AuthSettings, below: &str) -> Value {
    let resource = format!("{}{below}", settings.resource);
    let issuers: Vec<&str> = settings.issuers.iter().map(|issuer| issuer.url.as_str()).collect();
    let mut document = json!({
        "resource": resource,
        "authorization_servers": issuers,
        "bearer_methods_supported": ["header"],
    });
    if !settings.scopes.is_empty()
        && let Some(members) = document.as_object_mut()
    {
        members.insert("scopes_supported".into(), json!(settings.scopes));
    }
    document
}

/// Returns the path of the resource; empty if it has no path.
pub fn path(settings: &AuthSettings) -> &str {
    let rest = settings.resource.split_once("://").map_or("", |(_, rest)| rest);
    rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default()
}

/// Returns the URL of the metadata.
fn url(settings: &AuthSettings) -> String {
    let path = path(settings);
    let origin = settings.resource.strip_suffix(path).unwrap_or(&settings.resource);
    format!("{origin}{WELL_KNOWN}{path}")
}

/// Returns the value of `WWW-Authenticate` for a request that was refused because of its token. It always names the resource in its
/// canonical form, without a trailing slash, because identity providers know that form. `profile` is the profile that the client addressed.
pub fn challenge(settings: &AuthSettings, refused: &Refused, profile: Option<&str>) -> Option<HeaderValue> {
    let (error, why, scopes) = match refused {
        Refused::NoToken => (None, None, &settings.scopes),
        Refused::Invalid(why) => (Some("invalid_token"), Some(why), &settings.scopes),
        Refused::Malformed(why) => (Some("invalid_request"), Some(why), &settings.scopes),
        Refused::Scope(scopes) => (Some("insufficient_scope"), None, scopes),
        // A new login would not help.
        Refused::Role | Refused::Unavailable => return None,
    };
    let mut members = Vec::new();
    // All of these texts are constants or were checked when the config was read, so they contain no quotation marks.
    members.extend(error.map(|error| format!("error=\"{error}\"")));
    members.extend(why.map(|why| format!("error_description=\"{}\"", why.replace(['"', '\\'], "'"))));
    if settings.issuers.is_empty() {
        // There are only API keys, and no place to log in.
        members.insert(0, "realm=\"wharf\"".to_owned());
        return HeaderValue::from_str(&format!("Bearer {}", members.join(", "))).ok();
    }
    let profile = profile.filter(|name| is_segment(name)).map(|name| format!("/{name}")).unwrap_or_default();
    members.push(format!("resource_metadata=\"{}{profile}\"", url(settings)));
    // Scopes come from tokens, so those that are not valid in a header are left out.
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).filter(|scope| is_scope(scope)).collect();
    if !scopes.is_empty() {
        members.push(format!("scope=\"{}\"", scopes.join(" ")));
    }
    HeaderValue::from_str(&format!("Bearer {}", members.join(", "))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::token::tests::issuer;

    fn settings(scopes: &[&str]) -> AuthSettings {
        AuthSettings {
            resource: "https://mcp.example.com/mcp".into(),
            scopes: scopes.iter().map(|&scope| scope.to_owned()).collect(),
            includes: std::collections::BTreeMap::new(),
            keys_file: None,
            issuers: vec![issuer()],
        }
    }

    #[test]
    fn each_refusal_has_its_challenge() {
        let settings = settings(&["mcp", "more"]);
        let metadata =
            r#"resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp", scope="mcp more""#;
        for (refused, expected) in [
            (Refused::NoToken, format!("Bearer {metadata}")),
            (
                Refused::Invalid("it has expired"),
                format!(r#"Bearer error="invalid_token", error_description="it has expired", {metadata}"#),
            ),
            (
                Refused::Scope(vec!["mcp".into(), "more".into(), "no\"scope".into()]),
                format!(r#"Bearer error="insufficient_scope", {metadata}"#),
            ),
            (
                Refused::Malformed("twice \"a\""),
                format!(r#"Bearer error="invalid_request", error_description="twice 'a'", {metadata}"#),
            ),
        ] {
            assert_eq!(challenge(&settings, &refused, None).unwrap(), expected);
        }
        assert_eq!(challenge(&settings, &Refused::Unavailable, None), None);
    }

    #[test]
    fn the_metadata_names_the_resource_as_it_was_asked_for() {
        let document = |below| super::document(&settings(&[]), below);
        assert_eq!(document("")["resource"], "https://mcp.example.com/mcp");
        assert_eq!(document("/")["resource"], "https://mcp.example.com/mcp/");
        assert_eq!(document("/review")["resource"], "https://mcp.example.com/mcp/review");
        let at = |profile| challenge(&settings(&[]), &Refused::NoToken, Some(profile)).unwrap();
        assert!(at("review").to_str().unwrap().ends_with("oauth-protected-resource/mcp/review\""));
        assert!(at("a\"b").to_str().unwrap().ends_with("oauth-protected-resource/mcp\""));
        assert_eq!(document("")["authorization_servers"], json!(["https://id.example.com/realm"]));
        assert_eq!(document("").get("scopes_supported"), None);
        let root = AuthSettings { resource: "https://mcp.example.com".into(), ..settings(&["mcp"]) };
        assert_eq!(url(&root), "https://mcp.example.com/.well-known/oauth-protected-resource");
    }
}
