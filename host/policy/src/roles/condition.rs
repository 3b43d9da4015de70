//! The conditions under which a role applies to a caller.

use std::fmt;

use crate::auth::Identity;
use wharf_base::principal::Principal;

/// One `{ … }` of `when`. All of its conditions have to hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Condition {
    pub scopes: Vec<String>,
    pub issuer: Option<String>,
    pub subject: Option<String>,
    /// Claims, each with a value that has to be among the caller's values of that claim.
    pub claims: Vec<(String, String)>,
    /// The client for which the token was issued.
    pub client: Option<String>,
    /// The id of an API key.
    pub key: Option<String>,
    /// A name in the certificate of the client.
    pub certificate: Option<String>,
    /// The user, by number, whose program connected to a Unix socket.
    pub uid: Option<u32>,
}

/// The claims in which providers name the client, the standard one first. The last two are those of Okta and of older tokens of Entra.
const CLIENT_CLAIMS: [&str; 4] = ["client_id", "azp", "cid", "appid"];

/// Describes the condition for the operator.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scopes, issuer, subject, claims, client, key, certificate, uid } = self;
        let named = [("issuer", issuer), ("subject", subject), ("client", client), ("key", key), ("cert", certificate)];
        let parts = scopes.iter().map(|scope| format!("scope {scope}"));
        let parts = parts.chain(claims.iter().map(|(name, text)| format!("{name} {text}")));
        let parts = parts.chain(named.iter().filter_map(|(name, text)| Some(format!("{name} {}", text.as_ref()?))));
        let parts: Vec<String> = parts.chain(uid.map(|uid| format!("uid {uid}"))).collect();
        f.write_str(&if parts.is_empty() { "anyone".to_owned() } else { parts.join(" and ") })
    }
}

impl Condition {
    pub fn is_met(&self, identity: &Identity) -> bool {
        self.lacks(identity).is_none() && self.fits(identity)
    }

    /// Returns the scopes that it requires, if only scopes are missing.
    pub fn lacks(&self, identity: &Identity) -> Option<Vec<String>> {
        let has_all = self.scopes.iter().all(|scope| identity.scopes.contains(scope));
        (!has_all && self.fits(identity)).then(|| self.scopes.clone())
    }

    /// Whether everything except the scopes holds.
    fn fits(&self, identity: &Identity) -> bool {
        // Destructured completely, so that a new condition does not compile until it is checked here.
        let Self { scopes: _, issuer, subject, claims, client, key, certificate, uid } = self;
        let user = match &identity.principal {
            Principal::User(user) => Some(user),
            _ => None,
        };
        let of_user =
            |wanted: &Option<String>, own: Option<&String>| wanted.as_ref().is_none_or(|wanted| own == Some(wanted));
        of_user(issuer, user.map(|user| &user.issuer))
            && of_user(subject, user.map(|user| &user.subject))
            && claims.iter().all(|(name, text)| identity.claim(name).contains(text))
            && client.as_ref().is_none_or(|client| {
                // If a token has several of the claims, the first one counts.
                let named = CLIENT_CLAIMS.iter().map(|name| identity.claim(name)).find(|named| !named.is_empty());
                named.is_some_and(|named| named.first() == Some(client))
            })
            && key.as_ref().is_none_or(|key| matches!(&identity.principal, Principal::Key(id) if **id == **key))
            && uid.is_none_or(|uid| identity.principal == Principal::Local(uid))
            && certificate.as_ref().is_none_or(|name| identity.names.contains(name))
    }
}
