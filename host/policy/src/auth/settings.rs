//! The settings for identity providers.

use std::{collections::BTreeMap, path::PathBuf};

use http::Uri;
use jsonwebtoken::Algorithm;

use super::identity::Identity;
use wharf_egress::secrets::SecretSource;

/// The settings of `[auth]`, and `public_url` of `[http]`.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthSettings {
    /// The canonical URL at which clients reach this server: the resource that tokens are issued for.
    pub resource: String,
    /// The scopes that every request needs, and that clients request at first.
    pub scopes: Vec<String>,
    /// The scopes that each scope includes, directly or indirectly.
    pub includes: BTreeMap<String, Vec<String>>,
    /// The file of API keys, if there is one. If not, there is at least one issuer.
    pub keys_file: Option<PathBuf>,
    pub issuers: Vec<Issuer>,
}

impl AuthSettings {
    /// Adds the scopes that the token's scopes include.
    pub fn include(&self, identity: &mut Identity) {
        identity.own_scopes = identity.scopes.iter().cloned().collect();
        let included = identity.own_scopes.iter().filter_map(|scope| self.includes.get(scope)).flatten();
        identity.scopes.extend(included.cloned());
    }

    /// Returns the scopes that a client has to request if it needs these: they, those that every request needs, and those that the token
    /// has already, because clients request exactly the scopes in the challenge.
    pub fn to_ask_for(&self, needed: &[String], identity: &Identity) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for scope in self.scopes.iter().chain(needed).chain(&identity.own_scopes) {
            if scope != "offline_access" && !all.contains(scope) {
                all.push(scope.clone());
            }
        }
        all
    }

    /// Returns the files of API keys and of issuers' keys.
    pub fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.keys_file.iter().cloned().chain(self.issuers.iter().filter_map(|issuer| match &issuer.keys {
            KeySource::File(path) => Some(path.clone()),
            KeySource::Discovered | KeySource::Url(_) => None,
        }))
    }
}

/// One identity provider.
#[derive(Debug, Clone, PartialEq)]
pub struct Issuer {
    /// The issuer's URL, exactly as in `iss`.
    pub url: String,
    pub algorithms: Vec<Algorithm>,
    /// The values of `aud` that are accepted in addition to the resource.
    pub audience: Vec<String>,
    /// Whether tokens must declare themselves to be access tokens (RFC 9068, `at+jwt`).
    pub only_at_jwt: bool,
    pub keys: KeySource,
    /// How to ask the issuer about opaque tokens, if it can be asked.
    pub introspection: Option<Introspection>,
    /// The resource, without and with a trailing slash.
    pub resource: [String; 2],
}

/// The credentials with which wharf asks an issuer about opaque tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introspection {
    pub client_id: String,
    pub secret: SecretSource,
    /// The introspection endpoint. `None`: it is taken from the issuer's metadata.
    pub url: Option<String>,
}

/// The source of an issuer's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// The URL in the issuer's metadata.
    Discovered,
    Url(String),
    /// A file of the operator.
    File(PathBuf),
}

/// Whether a text is a valid scope, and therefore safe between quotation marks in a header.
pub fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
}

/// Whether a connection to this URL cannot be read or changed in transit: it is https, or on this machine.
pub fn is_safe(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return false };
    let local = matches!(uri.host(), Some("localhost" | "127.0.0.1" | "[::1]"));
    match uri.scheme_str() {
        Some("https") => uri.host().is_some(),
        Some("http") => local,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_from_places_that_nobody_on_the_way_can_change() {
        for (url, safe) in [
            ("https://id.example.com/keys", true),
            ("http://127.0.0.1:4000/keys", true),
            ("http://localhost/keys", true),
            ("http://id.example.com/keys", false),
            ("http://127.0.0.1.example.com/keys", false),
            ("file:///etc/passwd", false),
            ("/keys", false),
            ("", false),
        ] {
            assert_eq!(is_safe(url), safe, "{url}");
        }
    }
}
