//! Authentication over HTTP by identity providers: wharf is an OAuth 2.1 resource server. It validates access tokens and publishes who
//! issues them. It does not issue tokens or pass them on, and plugins never see them.
//!
//! The path of a token: `header` finds it in the request, `token` parses it and checks its claims, `keys` has the keys for its signature,
//! and `verified` caches the outcome. `introspection` asks the issuer about opaque tokens. `api_keys` are keys of the operator's own.
//! `metadata` is what clients are sent about all this.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use anyhow::Result;
use http::HeaderMap;
use tokio::sync::Mutex as AsyncMutex;

use self::{
    api_keys::ApiKeys,
    introspection::Introspector,
    keys::{Keys, NoKey},
    settings::{Issuer, KeySource},
    token::{Claims, Parts},
    verified::Verified,
};
use wharf_base::{party::Party, text::escaped};
use wharf_egress::outgoing::Outgoing;

pub mod api_keys;
mod fetch;
mod header;
mod identity;
mod introspection;
mod keys;
pub mod metadata;
pub mod settings;
mod signature;
mod token;
mod verified;

pub use self::{
    identity::{Caller, Identity, Refused},
    introspection::{ASKED, WAITING_TO_ASK},
    keys::FETCHES,
    settings::AuthSettings,
    verified::{BAD, GOOD},
};

/// Validates tokens, for as long as wharf runs.
pub struct Auth {
    pub settings: Arc<AuthSettings>,
    api_keys: Option<ApiKeys>,
    /// The keys of each issuer, in the order of the settings.
    keys: Vec<Keys>,
    /// The issuer that is asked about opaque tokens, with its index in the settings.
    introspector: Option<(usize, Introspector)>,
    verified: Verified,
    /// The cached metadata of the first issuer, for clients that look for it here, with the time of the request.
    mirrored: AsyncMutex<Option<(Instant, Option<Arc<str>>)>>,
    outgoing: Outgoing,
}

/// How long an issuer's metadata, or the failure to fetch it, is cached.
const METADATA_INTERVAL: Duration = Duration::from_secs(60);

impl Auth {
    /// Creates the validator. `outgoing` sends the requests to issuers.
    pub fn new(settings: Arc<AuthSettings>, outgoing: &Outgoing) -> Result<Self> {
        let keys = settings.issuers.iter().map(|issuer| Keys::new(issuer, outgoing.clone())).collect();
        let introspector = settings.issuers.iter().enumerate().find_map(|(at, issuer)| {
            Some((at, Introspector::new(&issuer.url, issuer.introspection.as_ref()?, outgoing)))
        });
        let api_keys = settings.keys_file.as_deref().map(|path| ApiKeys::open(path, &settings)).transpose()?;
        let (verified, mirrored) = (Verified::default(), AsyncMutex::default());
        Ok(Self { settings, api_keys, keys, introspector, verified, mirrored, outgoing: outgoing.clone() })
    }

    /// Fetches all keys in advance, so that the first requests need not wait. Keys that cannot be fetched are tried again when they are
    /// needed.
    pub async fn warm_up(&self) {
        for keys in self.needed_keys() {
            keys.warm_up().await;
        }
    }

    /// Whether the keys of all issuers are available. Missing keys are fetched in the background, because clients send no tokens to a
    /// server that is not ready.
    pub fn ready(&self) -> bool {
        // `count` visits all issuers, so that all missing keys are fetched.
        self.needed_keys().filter(|keys| !keys.ready()).count() == 0
    }

    /// Returns the keys without which tokens cannot be validated. An issuer with introspection may have no keys.
    fn needed_keys(&self) -> impl Iterator<Item = &Keys> {
        let needs = |issuer: &Issuer| issuer.introspection.is_none() || issuer.keys != KeySource::Discovered;
        self.keys.iter().zip(&self.settings.issuers).filter(move |(_, issuer)| needs(issuer)).map(|(keys, _)| keys)
    }

    /// Returns the metadata of the first issuer, or `None` if it cannot be fetched now.
    pub async fn issuer_metadata(self: &Arc<Self>) -> Option<Arc<str>> {
        let auth = Arc::clone(self);
        #[expect(
            clippy::disallowed_methods,
            reason = "it ends by itself, within the time that an issuer has to answer"
        )]
        let fetching = tokio::spawn(async move { auth.mirror().await });
        // The task continues if the request is cancelled, so cancelling cannot make wharf ask the issuer more often.
        fetching.await.ok().flatten()
    }

    async fn mirror(&self) -> Option<Arc<str>> {
        let mut mirrored = self.mirrored.lock().await;
        if let Some((at, text)) = &*mirrored
            && at.elapsed() < METADATA_INTERVAL
        {
            return text.clone();
        }
        let issuer = self.settings.issuers.first()?;
        let fetched = fetch::metadata(&issuer.url, &self.outgoing).await;
        if let Err(error) = &fetched {
            tracing::warn!("the metadata of {} cannot be fetched: {}", issuer.url, escaped(&format!("{error:#}")));
        }
        let text: Option<Arc<str>> = fetched.ok().map(|value| value.to_string().into());
        *mirrored = Some((Instant::now(), text.clone()));
        text
    }

    /// Validates the token of a request. `query` is the part of its URL after `?`. `from` is the party of the client's address, which the
    /// check of an unknown token counts for. `has_profile` tells which profiles exist now.
    pub async fn check(
        &self,
        headers: &HeaderMap,
        query: Option<&str>,
        from: Party,
        has_profile: impl Fn(&str) -> bool,
    ) -> Result<Arc<Identity>, Refused> {
        let token = header::token(headers, query)?;
        if let Some(api_keys) = self.api_keys.as_ref().filter(|_| token.starts_with(api_keys::PREFIX)) {
            return api_keys.check(token, &self.settings);
        }
        let identity = match self.verified.get(token) {
            Some(found) => found.map_err(Refused::Invalid)?,
            None => self.verify(token, from).await?,
        };
        if !identity.is_for(has_profile) {
            return Err(Refused::Invalid(token::ANOTHER_AUDIENCE));
        }
        let lacks = self.settings.scopes.iter().any(|scope| !identity.scopes.contains(scope));
        if lacks { Err(Refused::Scope(self.settings.to_ask_for(&[], &identity))) } else { Ok(identity) }
    }

    /// Resolves when the caller's API key, or one of its scopes, is revoked. Never resolves for a caller without an API key.
    pub async fn revoked(&self, identity: &Identity) {
        if self.api_keys.is_none() || identity.key.is_none() {
            return std::future::pending().await;
        }
        while !self.is_revoked(identity) {
            tokio::time::sleep(api_keys::RELOAD_INTERVAL).await;
        }
    }

    /// Whether the caller's API key, or one of its scopes, is revoked. Always false for a caller without an API key.
    pub fn is_revoked(&self, identity: &Identity) -> bool {
        let keys = self.api_keys.as_ref().filter(|_| identity.key.is_some());
        keys.is_some_and(|keys| keys.is_revoked(identity, &self.settings))
    }

    async fn verify(&self, token: &str, from: Party) -> Result<Arc<Identity>, Refused> {
        let mut identity = self.judge(token, from).await?;
        self.settings.include(&mut identity);
        let identity = Arc::new(identity);
        self.verified.add_good(token, &identity);
        Ok(identity)
    }

    async fn judge(&self, token: &str, from: Party) -> Result<Identity, Refused> {
        let began = Instant::now();
        if let Some((at, introspector)) = self.introspector.as_ref().filter(|_| !token::is_jwt(token)) {
            let issuer = self.settings.issuers.get(*at).ok_or(Refused::Unavailable)?;
            // The check of a token that was valid recently counts for its user, so that it does not wait behind other tokens from the same
            // address.
            let party = self.verified.known(token).unwrap_or(from);
            // Boxed, so that the futures of all requests stay small.
            let judged = Box::pin(introspect(introspector, issuer, token, party)).await;
            if let Err(Refused::Invalid(why)) = &judged {
                self.verified.add_bad(token, from, why);
            }
            return judged;
        }
        let parts = Parts::read(token).map_err(Refused::Invalid)?;
        let mut issuers = self.settings.issuers.iter().zip(&self.keys);
        let (issuer, keys) = issuers
            .find(|(issuer, _)| parts.claims.issuer() == Some(&issuer.url))
            .ok_or(Refused::Invalid("its issuer is not trusted here"))?;
        if !issuer.algorithms.contains(&parts.algorithm) {
            return Err(Refused::Invalid("its issuer does not sign with this algorithm"));
        }
        // Everything that needs no key is checked first, so that a worthless token causes no fetch.
        let identity = parts.claims.judge(issuer, parts.typ.as_deref(), SystemTime::now()).map_err(Refused::Invalid)?;
        let (kid, algorithm) = (parts.kid.as_deref(), parts.algorithm);
        if keys.known(kid, algorithm).is_some_and(|key| parts.is_signed_by(&key)) {
            return Ok(identity);
        }
        // The issuer may have created a new key, even under an old name, so only keys fetched after this token arrived can prove that it is
        // invalid.
        let bad = match keys.since(kid, algorithm, began, from).await {
            Ok(key) if parts.is_signed_by(&key) => return Ok(identity),
            Ok(_) => "its signature is invalid",
            Err(NoKey::Unknown) => "it is signed with a key that its issuer does not publish",
            Err(NoKey::Unavailable) => return Err(Refused::Unavailable),
        };
        self.verified.add_bad(token, from, bad);
        Err(Refused::Invalid(bad))
    }
}

/// Asks the issuer about an opaque token. The response is checked like the claims of other tokens.
async fn introspect(
    introspector: &Introspector,
    issuer: &Issuer,
    token: &str,
    party: Party,
) -> Result<Identity, Refused> {
    let said = introspector.ask(token, party).await.map_err(|()| Refused::Unavailable)?;
    let mut said = said.ok_or(Refused::Invalid("its issuer says that it is not active"))?;
    // `iss` is optional in the response.
    said.entry("iss").or_insert_with(|| issuer.url.as_str().into());
    Claims::new(said).judge(issuer, None, SystemTime::now()).map_err(Refused::Invalid)
}
