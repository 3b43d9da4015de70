//! Who makes a request over HTTP, where identity providers say so: wharf is an OAuth 2.1 resource server. It checks access tokens and
//! names their issuers; it issues none, never passes one on, and no plugin sees one.
//!
//! The way of a token: `header` finds it in the request, `token` reads and judges it, `keys` has what its signature is checked with,
//! and `verified` remembers for a while that it was good. `metadata` is what clients are told of all this.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use http::HeaderMap;
use tokio::sync::Mutex as AsyncMutex;

use self::{
    keys::{Keys, NoKey},
    token::Parts,
    verified::Verified,
};
use crate::{base::text::escaped, egress::tls::Tls};

mod fetch;
mod header;
mod identity;
mod keys;
pub mod metadata;
pub mod settings;
mod token;
mod verified;

pub use self::{
    identity::{Identity, Refused},
    settings::Settings,
};

/// What checks tokens, for as long as wharf runs.
pub struct Auth {
    pub settings: Arc<Settings>,
    /// In the order of the settings.
    keys: Vec<Keys>,
    verified: Verified,
    /// The first issuer's metadata, for clients that look for it here, and when it was asked for.
    mirrored: AsyncMutex<Option<(Instant, Option<Arc<str>>)>>,
    tls: Arc<Tls>,
}

/// For how long an issuer's metadata is passed on as it was, or not asked for again if that failed.
const MIRRORED: Duration = Duration::from_secs(60);

impl Auth {
    /// `tls`: how the issuers are reached.
    pub fn new(settings: Arc<Settings>, tls: &Arc<Tls>) -> Self {
        let keys = settings.issuers.iter().map(|issuer| Keys::new(issuer, Arc::clone(tls))).collect();
        let (verified, mirrored) = (Verified::default(), AsyncMutex::default());
        Self { settings, keys, verified, mirrored, tls: Arc::clone(tls) }
    }

    /// Fetches all keys, so that the first requests need not wait. Those that cannot be fetched are tried again when they are
    /// needed.
    pub async fn warm_up(&self) {
        for keys in &self.keys {
            keys.warm_up().await;
        }
    }

    /// Whether the keys of all issuers are there. Those that are not are fetched in the background, because nobody sends tokens to a
    /// server that is not ready.
    pub fn ready(&self) -> bool {
        // All of them are looked at, so that all are fetched that are missing.
        self.keys.iter().filter(|keys| !keys.ready()).count() == 0
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

    /// Checks the token of a request. `query`: what follows the `?` of its URL.
    pub async fn check(&self, headers: &HeaderMap, query: Option<&str>) -> Result<Identity, Refused> {
        let token = header::token(headers, query)?;
        let identity = match self.verified.get(token) {
            Some(identity) => identity,
            None => {
                let identity = self.verify(token).await?;
                self.verified.add(token, &identity);
                identity
            }
        };
        let lacks = self.settings.scopes.iter().any(|scope| !identity.scopes.contains(scope));
        if lacks { Err(Refused::Scope) } else { Ok(identity) }
    }

    async fn verify(&self, token: &str) -> Result<Identity, Refused> {
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
        let began = Instant::now();
        let mut key = keys.find(parts.kid.as_deref(), parts.algorithm, None).await.map_err(unknown)?;
        if !parts.is_signed_by(&key) {
            // The issuer may have put a new key under the old name.
            key = keys.find(parts.kid.as_deref(), parts.algorithm, Some(began)).await.map_err(unknown)?;
            if !parts.is_signed_by(&key) {
                return Err(Refused::Invalid("its signature is wrong"));
            }
        }
        Ok(identity)
    }
}

fn unknown(problem: NoKey) -> Refused {
    match problem {
        NoKey::Unknown => Refused::Invalid("it is signed with a key that its issuer does not name"),
        NoKey::Unavailable => Refused::Unavailable,
    }
}
