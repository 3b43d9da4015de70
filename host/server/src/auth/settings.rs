//! What the config says of identity providers.

use std::{collections::BTreeMap, path::PathBuf};

use http::Uri;
use jsonwebtoken::Algorithm;

use super::identity::Identity;
use crate::egress::secrets::Source;

/// `[auth]`, and `public_url` of `[http]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The URL at which clients reach this server, in its canonical form: the resource that tokens are for.
    pub resource: String,
    /// The scopes that every request needs, and the first ones that clients ask for.
    pub scopes: Vec<String>,
    /// What a scope includes besides itself, with all that these include in turn.
    pub includes: BTreeMap<String, Vec<String>>,
    /// Where the API keys are, if there are any. Otherwise there is at least one issuer.
    pub keys_file: Option<PathBuf>,
    pub issuers: Vec<Issuer>,
}

impl Settings {
    /// Adds what the scopes of a token include.
    pub fn include(&self, identity: &mut Identity) {
        identity.own_scopes = identity.scopes.iter().cloned().collect();
        let included = identity.own_scopes.iter().filter_map(|scope| self.includes.get(scope)).flatten();
        identity.scopes.extend(included.cloned());
    }

    /// What a client has to ask for that needs these scopes: they, those that every request needs, and those that it has already,
    /// because clients ask for exactly what they are told.
    pub fn to_ask_for(&self, needed: &[String], identity: &Identity) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for scope in self.scopes.iter().chain(needed).chain(&identity.own_scopes) {
            if scope != "offline_access" && !all.contains(scope) {
                all.push(scope.clone());
            }
        }
        all
    }

    /// The files of keys.
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
    /// As it stands in `iss`, exactly.
    pub url: String,
    pub algorithms: Vec<Algorithm>,
    /// What `aud` may be, besides the resource.
    pub audience: Vec<String>,
    /// Whether tokens must say that they are access tokens by RFC 9068.
    pub only_at_jwt: bool,
    pub keys: KeySource,
    /// How it is asked about tokens that say nothing themselves.
    pub introspection: Option<Introspection>,
    /// The resource, with and without a slash at its end.
    pub resource: [String; 2],
}

/// As whom wharf asks an issuer about tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introspection {
    pub client_id: String,
    pub secret: Source,
    /// None: where the issuer's metadata says.
    pub url: Option<String>,
}

/// Where an issuer's keys are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// Where the issuer's metadata says.
    Discovered,
    Url(String),
    /// In a file that the operator keeps.
    File(PathBuf),
}

/// Whether a text can be a scope, and so stand between quotation marks in a header.
pub fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
}

/// Whether nobody on the way can read or change what is at a URL: it is https, or on this machine.
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
