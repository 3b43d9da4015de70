//! Who makes a request over HTTP, where identity providers say so: wharf is an OAuth 2.1 resource server. It checks access tokens and
//! names their issuers; it issues none, never passes one on, and no plugin sees one.
//!
//! The way of a token: `header` finds it in the request, `token` reads and judges it, `keys` has what its signature is checked with, and
//! `verified` remembers for a while that it was good. About a token that says nothing itself, `introspection` asks its issuer. API keys
//! are the operator's own (`api_keys`). `metadata` is what clients are told of all this.

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
use crate::{
    base::{party::Party, text::escaped},
    egress::tls::Tls,
};

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
    settings::Settings,
    verified::{BAD, GOOD},
};

/// What checks tokens, for as long as wharf runs.
pub struct Auth {
    pub settings: Arc<Settings>,
    api_keys: Option<ApiKeys>,
    /// In the order of the settings.
    keys: Vec<Keys>,
    /// The issuer that is asked about tokens that say nothing themselves, with its place in the settings.
    introspector: Option<(usize, Introspector)>,
    verified: Verified,
    /// The first issuer's metadata, for clients that look for it here, and when it was asked for.
    mirrored: AsyncMutex<Option<(Instant, Option<Arc<str>>)>>,
    tls: Arc<Tls>,
}

/// For how long an issuer's metadata is passed on as it was, or not asked for again if that failed.
const MIRRORED: Duration = Duration::from_secs(60);

impl Auth {
    /// `tls`: how the issuers are reached.
    pub fn new(settings: Arc<Settings>, tls: &Arc<Tls>) -> Result<Self> {
        let keys = settings.issuers.iter().map(|issuer| Keys::new(issuer, Arc::clone(tls))).collect();
        let introspector =
            settings.issuers.iter().enumerate().find_map(|(at, issuer)| {
                Some((at, Introspector::new(&issuer.url, issuer.introspection.as_ref()?, tls)))
            });
        let api_keys = settings.keys_file.as_deref().map(|path| ApiKeys::open(path, &settings)).transpose()?;
        let (verified, mirrored) = (Verified::default(), AsyncMutex::default());
        Ok(Self { settings, api_keys, keys, introspector, verified, mirrored, tls: Arc::clone(tls) })
    }

    /// Fetches all keys, so that the first requests need not wait. Those that cannot be fetched are tried again when they are
    /// needed.
    pub async fn warm_up(&self) {
        for keys in self.needed_keys() {
            keys.warm_up().await;
        }
    }

    /// Whether the keys of all issuers are there. Those that are not are fetched in the background, because nobody sends tokens to a
    /// server that is not ready.
    pub fn ready(&self) -> bool {
        // All of them are looked at, so that all are fetched that are missing.
        self.needed_keys().filter(|keys| !keys.ready()).count() == 0
    }

    /// The keys without which tokens cannot be taken. An issuer that is asked about tokens may have none.
    fn needed_keys(&self) -> impl Iterator<Item = &Keys> {
        let needs = |issuer: &Issuer| issuer.introspection.is_none() || issuer.keys != KeySource::Discovered;
        self.keys.iter().zip(&self.settings.issuers).filter(move |(_, issuer)| needs(issuer)).map(|(keys, _)| keys)
    }

    /// The metadata of the first issuer. None: it cannot be fetched now.
    pub async fn issuer_metadata(self: &Arc<Self>) -> Option<Arc<str>> {
        let auth = Arc::clone(self);
        #[expect(
            clippy::disallowed_methods,
            reason = "it ends by itself, within the time that an issuer has to answer"
        )]
        let fetching = tokio::spawn(async move { auth.mirror().await });
        // It goes on if the request is given up, so that the issuer is asked no more often for that.
        fetching.await.ok().flatten()
    }

    async fn mirror(&self) -> Option<Arc<str>> {
        let mut mirrored = self.mirrored.lock().await;
        if let Some((at, text)) = &*mirrored
            && at.elapsed() < MIRRORED
        {
            return text.clone();
        }
        let issuer = self.settings.issuers.first()?;
        let fetched = fetch::metadata(&issuer.url, &self.tls).await;
        if let Err(error) = &fetched {
            tracing::warn!("the metadata of {} cannot be fetched: {}", issuer.url, escaped(&format!("{error:#}")));
        }
        let text: Option<Arc<str>> = fetched.ok().map(|value| value.to_string().into());
        *mirrored = Some((Instant::now(), text.clone()));
        text
    }

    /// Checks the token of a request. `query`: what follows the `?` of its URL. `from`: the party of the address that it comes from, which
    /// takes the places for finding out about a token that is not known. `has_profile`: which profiles there are now.
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

    /// Resolves when the API key that a caller showed, or something of it, is taken away. For a caller that showed none, that is never.
    pub async fn revoked(&self, identity: &Identity) {
        let Some(keys) = self.api_keys.as_ref().filter(|_| identity.key.is_some()) else {
            return std::future::pending().await;
        };
        while !keys.is_revoked(identity, &self.settings) {
            tokio::time::sleep(api_keys::LOOK).await;
        }
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
            // A user whose token was good a moment ago does not wait for what others send from the same address.
            let party = self.verified.known(token).unwrap_or(from);
            let judged = introspect(introspector, issuer, token, party).await;
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
        // All that needs no key is judged first, so that what is worthless makes nobody fetch any.
        let identity = parts.claims.judge(issuer, parts.typ.as_deref(), SystemTime::now()).map_err(Refused::Invalid)?;
        let (kid, algorithm) = (parts.kid.as_deref(), parts.algorithm);
        if keys.known(kid, algorithm).is_some_and(|key| parts.is_signed_by(&key)) {
            return Ok(identity);
        }
        // The issuer may have made a new key, even under an old name, so the token is bad only by keys that were fetched since.
        let bad = match keys.since(kid, algorithm, began, from).await {
            Ok(key) if parts.is_signed_by(&key) => return Ok(identity),
            Ok(_) => "its signature is wrong",
            Err(NoKey::Unknown) => "it is signed with a key that its issuer does not name",
            Err(NoKey::Unavailable) => return Err(Refused::Unavailable),
        };
        self.verified.add_bad(token, from, bad);
        Err(Refused::Invalid(bad))
    }
}

/// Asks the issuer of a token that says nothing itself. What the issuer says of it is judged as the claims of other tokens are.
async fn introspect(
    introspector: &Introspector,
    issuer: &Issuer,
    token: &str,
    party: Party,
) -> Result<Identity, Refused> {
    let said = introspector.ask(token, party).await.map_err(|()| Refused::Unavailable)?;
    let mut said = said.ok_or(Refused::Invalid("its issuer does not know it, or does not hold it for good"))?;
    // The standard leaves it to the issuer whether it names itself.
    said.entry("iss").or_insert_with(|| issuer.url.as_str().into());
    Claims::new(said).judge(issuer, None, SystemTime::now()).map_err(Refused::Invalid)
}
