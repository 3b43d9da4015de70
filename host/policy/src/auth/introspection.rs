//! Opaque tokens: the issuer is asked about them by token introspection (RFC 7662).

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use parking_lot::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::{
    fetch,
    settings::{Introspection, is_safe},
};
use wharf_base::{
    party::Party,
    places::{Places, PoolRule},
    refusals::Refusals,
};
use wharf_egress::{outgoing::Outgoing, secrets::Vault};

/// The most introspection requests at once. Anybody can make wharf send one, with any unknown token.
const MAX_QUERIES: usize = 16;
/// The most client requests that wait for introspection.
const MAX_WAITING: usize = 256;
/// How long a client request waits for its turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(5);

/// The limit of introspection requests.
pub static ASKED: PoolRule = PoolRule {
    of: "introspection requests to an issuer",
    number: "16",
    taker: "address",
    until: "the issuer has answered, or 5 s have passed",
    asking: "not held: no person is asked",
    gone: "given back when the request is cancelled",
    gives_way: "nothing; a request waits 5 s for its turn, and the address with the fewest introspection requests is next",
    old: Duration::MAX,
};

/// The limit of client requests that wait for introspection.
pub static WAITING_TO_ASK: PoolRule = PoolRule {
    of: "requests that wait for introspection of their token",
    number: "256",
    taker: "address",
    until: "the issuer has answered, or 10 s have passed",
    asking: "not held: no person is asked",
    gone: "given back when the request is cancelled",
    gives_way: "nothing; further requests are refused",
    old: Duration::MAX,
};

/// The characters that are percent-encoded in a form: all except letters, digits and these four.
const FORM_ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The name of the only secret in the vault.
const SECRET_NAME: &str = "secret";

/// The issuer's answer about a token. `Ok(None)`: the token is not active. `Err`: the issuer could not be asked.
type Answer = Result<Option<Map<String, Value>>, ()>;

pub struct Introspector {
    issuer: String,
    settings: Introspection,
    vault: Vault,
    outgoing: Outgoing,
    url: OnceCell<String>,
    /// Logs failures, at a limited rate.
    refusals: Refusals,
    turns: Arc<Places>,
    /// Places of client requests that wait.
    waiting: Arc<Places>,
    /// The introspection requests that are waited for, by the digest of their token. Further requests with the same token share the answer.
    asked: Mutex<HashMap<[u8; 32], Weak<OnceCell<Answer>>>>,
}

impl Introspector {
    pub fn new(issuer: &str, settings: &Introspection, outgoing: &Outgoing) -> Self {
        Self {
            issuer: issuer.to_owned(),
            vault: Vault::new(&[(SECRET_NAME.to_owned(), settings.secret.clone())].into()),
            settings: settings.clone(),
            outgoing: outgoing.clone(),
            url: OnceCell::new(),
            refusals: Refusals::default(),
            turns: Places::new(&ASKED, MAX_QUERIES),
            waiting: Places::new(&WAITING_TO_ASK, MAX_WAITING),
            asked: Mutex::default(),
        }
    }

    /// Asks the issuer about a token. `party` is the client that the request counts for: its address, or the token's user if the token was
    /// valid recently.
    pub async fn ask(&self, token: &str, party: Party) -> Answer {
        let _waits = self.waiting.take(party).map_err(|full| self.cannot(party, &full.into()))?;
        let ask = Box::pin(async {
            let turn = tokio::time::timeout(TURN_TIMEOUT, self.turns.wait(party)).await;
            let _turn = turn.context("too many tokens are waiting for introspection")?;
            self.exchange(token).await
        });
        // If the client that asks disconnects, the next one that waits for the answer asks again.
        self.question(token)
            .get_or_init(|| async { ask.await.map_err(|error| self.cannot(party, &error)) })
            .await
            .clone()
    }

    /// Returns the pending introspection request for this token, or a new one.
    fn question(&self, token: &str) -> Arc<OnceCell<Answer>> {
        let mut asked = self.asked.lock();
        // There are never many, since each waiting request holds a place.
        asked.retain(|_, question| question.strong_count() > 0);
        let entry = asked.entry(Sha256::digest(token).into()).or_default();
        entry.upgrade().unwrap_or_else(|| {
            let question = Arc::default();
            *entry = Arc::downgrade(&question);
            question
        })
    }

    fn cannot(&self, party: Party, error: &anyhow::Error) {
        // The error never contains the token.
        self.refusals.say_about(party, "tokens, because introspection by their issuer failed", || {
            format!("{}: {error:#}", self.issuer)
        });
    }

    async fn exchange(&self, token: &str) -> Result<Option<Map<String, Value>>> {
        let url = self.url.get_or_try_init(|| self.find()).await?;
        let secret = self.vault.get(SECRET_NAME).await?;
        let form = |text: &str| utf8_percent_encode(text, FORM_ESCAPED).to_string();
        let user = format!("{}:{}", form(&self.settings.client_id), form(secret.expose()));
        let authorization = format!("Basic {}", STANDARD.encode(user));
        let body = format!("token={}&token_type_hint=access_token", form(token));
        let answer = fetch::form(url, &authorization, body, &self.outgoing).await?;
        let said: Map<String, Value> = serde_json::from_slice(&answer).context("the response is not a JSON object")?;
        let active = said.get("active").and_then(Value::as_bool).context("the response has no `active`")?;
        Ok(active.then_some(said))
    }

    async fn find(&self) -> Result<String> {
        if let Some(url) = &self.settings.url {
            return Ok(url.clone());
        }
        let metadata = fetch::metadata(&self.issuer, &self.outgoing).await?;
        let url = metadata.get("introspection_endpoint").and_then(Value::as_str);
        let url = url.context("its metadata has no `introspection_endpoint`; set `url` in `introspection`")?;
        ensure!(is_safe(url), "its metadata names an `introspection_endpoint` that is not at an https URL");
        Ok(url.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;
    use wharf_base::party::named;
    use wharf_egress::secrets::SecretSource;

    fn introspector(listener: &TcpListener) -> Introspector {
        let url = Some(format!("http://{}/introspect", listener.local_addr().unwrap()));
        let settings = Introspection { client_id: "wharf".into(), secret: SecretSource::Env("PATH".into()), url };
        let outgoing = Outgoing::new(&wharf_egress::EgressSettings::default());
        Introspector::new("http://127.0.0.1", &settings, &outgoing)
    }

    #[tokio::test]
    async fn a_stranger_with_many_tokens_leaves_turns_for_others() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let introspector = introspector(&listener);
        let made_up: Vec<String> = (0..300).map(|number| format!("t{number}")).collect();
        let ask = |token| introspector.ask(token, named("ann"));
        let mut hers = Box::pin(futures_util::future::join_all(made_up.iter().map(|token| ask(token))));
        // The issuer accepts connections and sends nothing.
        let mut held = Vec::new();
        let reached = async {
            while held.len() < MAX_QUERIES / 4 * 3 {
                held.push(listener.accept().await.unwrap());
            }
        };
        tokio::select! {
            _ = &mut hers => panic!("nobody answers"),
            () = reached => {}
        }
        assert_eq!((introspector.turns.taken(), introspector.waiting.taken()), (12, 192));
        let his = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = Vec::new();
            while !bytes.ends_with(b"token_type_hint=access_token") {
                stream.read_buf(&mut bytes).await.unwrap();
            }
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 27\r\n\r\n";
            stream.write_all(format!("{head}{}", r#"{"active":true,"sub":"ben"}"#).as_bytes()).await.unwrap();
        };
        tokio::select! {
            _ = &mut hers => panic!("nobody answers"),
            (said, ()) = async { tokio::join!(introspector.ask("good", named("ben")), his) } => {
                assert_eq!(said.unwrap().unwrap()["sub"], "ben");
            }
        }
    }

    #[tokio::test]
    async fn equal_tokens_are_one_question() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let introspector = introspector(&listener);
        let issuer = async {
            let mut asked = Vec::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut bytes = Vec::new();
                while !bytes.ends_with(b"token_type_hint=access_token") {
                    stream.read_buf(&mut bytes).await.unwrap();
                }
                let text = String::from_utf8(bytes).unwrap();
                let token = text.rsplit("token=").next().unwrap().split('&').next().unwrap().to_owned();
                let end = token == "end";
                asked.push(token);
                let body = r#"{"active":true,"sub":"ann"}"#;
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 27\r\n\r\n";
                stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
                if end {
                    return asked;
                }
            }
        };
        let clients = async {
            let tokens = ["one", "one", "one", "two", "one"];
            let ask = |token| introspector.ask(token, named("ann"));
            for said in futures_util::future::join_all(tokens.map(ask)).await {
                assert_eq!(said.unwrap().unwrap()["sub"], "ann");
            }
            ask("one").await.unwrap();
            ask("end").await.unwrap();
        };
        let (mut asked, ()) = tokio::join!(issuer, clients);
        asked.sort_unstable();
        assert_eq!(asked, ["end", "one", "one", "two"], "nothing is remembered that nobody waits for");
        assert_eq!(introspector.asked.lock().values().filter(|question| question.strong_count() > 0).count(), 0);
    }
}
