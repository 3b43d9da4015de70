//! Tokens that say nothing themselves: their issuer is asked what they are (RFC 7662).

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};
use tokio::sync::{OnceCell, Semaphore};

use super::{
    fetch,
    settings::{Introspection, is_safe},
};
use crate::{
    base::text::escaped,
    egress::{secrets::Vault, tls::Tls},
};

/// How many questions are under way at once. Whoever sends tokens that nobody knows makes wharf ask for each.
const AT_ONCE: usize = 16;
/// How many requests wait for their turn, or have it.
const WAITING: usize = 256;
/// How long a request waits for its turn.
const TURN: Duration = Duration::from_secs(5);
/// What stands for itself in a form, by the rules of URLs.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The name of the only secret.
const SECRET: &str = "secret";

pub struct Introspector {
    issuer: String,
    settings: Introspection,
    vault: Vault,
    tls: Arc<Tls>,
    url: OnceCell<String>,
    turns: Semaphore,
    /// Room for requests that wait for their turn.
    waiting: Semaphore,
}

impl Introspector {
    pub fn new(issuer: &str, settings: &Introspection, tls: &Arc<Tls>) -> Self {
        Self {
            issuer: issuer.to_owned(),
            vault: Vault::new(&[(SECRET.to_owned(), settings.secret.clone())].into()),
            settings: settings.clone(),
            tls: Arc::clone(tls),
            url: OnceCell::new(),
            turns: Semaphore::new(AT_ONCE),
            waiting: Semaphore::new(WAITING),
        }
    }

    /// What the issuer says of a token. `Ok(None)`: it is not good. `Err`: nobody knows.
    pub async fn ask(&self, token: &str) -> Result<Option<Map<String, Value>>, ()> {
        let asked = async {
            let _waits = self.waiting.try_acquire().context("too many tokens wait to be asked about")?;
            let _turn = tokio::time::timeout(TURN, self.turns.acquire()).await.context("there is no turn")??;
            self.exchange(token).await
        };
        asked.await.map_err(|error| {
            // The error never repeats what was sent.
            tracing::warn!("{} cannot be asked about tokens: {}", self.issuer, escaped(&format!("{error:#}")));
        })
    }

    async fn exchange(&self, token: &str) -> Result<Option<Map<String, Value>>> {
        let url = self.url.get_or_try_init(|| self.find()).await?;
        let secret = self.vault.get(SECRET).await?;
        let form = |text: &str| utf8_percent_encode(text, PLAIN).to_string();
        let user = format!("{}:{}", form(&self.settings.client_id), form(secret.expose()));
        let authorization = format!("Basic {}", STANDARD.encode(user));
        let body = format!("token={}&token_type_hint=access_token", form(token));
        let answer = fetch::form(url, &authorization, body, &self.tls).await?;
        let said: Map<String, Value> = serde_json::from_slice(&answer).context("the answer is no JSON object")?;
        let active = said.get("active").and_then(Value::as_bool).context("the answer does not say `active`")?;
        Ok(active.then_some(said))
    }

    async fn find(&self) -> Result<String> {
        if let Some(url) = &self.settings.url {
            return Ok(url.clone());
        }
        let metadata = fetch::metadata(&self.issuer, &self.tls).await?;
        let url = metadata.get("introspection_endpoint").and_then(Value::as_str);
        let url = url.context("its metadata names no `introspection_endpoint`; say `url` in `introspection`")?;
        ensure!(is_safe(url), "its metadata names an `introspection_endpoint` that is not at an https URL");
        Ok(url.to_owned())
    }
}
