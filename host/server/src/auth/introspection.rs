//! Tokens that say nothing themselves: their issuer is asked what they are (RFC 7662).

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
use wharf_sandbox::places::{Places, Rule};

use super::{
    fetch,
    settings::{Introspection, is_safe},
};
use crate::{
    base::{party::Party, refusals::Refusals},
    egress::{secrets::Vault, tls::Tls},
};

/// How many questions are under way at once. Whoever sends tokens that nobody knows makes wharf ask for each.
const AT_ONCE: usize = 16;
/// How many requests wait for their turn, or have it.
const WAITING: usize = 256;
/// How long a request waits for its turn.
const TURN: Duration = Duration::from_secs(5);

/// Questions that an issuer is asked.
pub static ASKED: Rule = Rule {
    of: "questions about tokens that an issuer is asked",
    number: "16",
    taker: "address",
    until: "the issuer has answered, 5 s after the question at the latest",
    asking: "not held: no person is asked",
    gone: "given back when the request is given up",
    gives_way: "nothing; a request waits 5 s for its turn, and the address with the fewest questions is next",
    old: Duration::MAX,
};

/// Requests that wait for what an issuer says.
pub static WAITING_TO_ASK: Rule = Rule {
    of: "requests that wait for what an issuer says of their tokens",
    number: "256",
    taker: "address",
    until: "the issuer has answered, 10 s later at the latest",
    asking: "not held: no person is asked",
    gone: "given back when the request is given up",
    gives_way: "nothing; further requests are refused",
    old: Duration::MAX,
};

/// What stands for itself in a form, by the rules of URLs.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The name of the only secret.
const SECRET: &str = "secret";

/// What the issuer says of a token. `Ok(None)`: it is not good. `Err`: nobody knows.
type Said = Result<Option<Map<String, Value>>, ()>;

pub struct Introspector {
    issuer: String,
    settings: Introspection,
    vault: Vault,
    tls: Arc<Tls>,
    url: OnceCell<String>,
    /// Tells the operator what is wrong, at a limited rate.
    told: Refusals,
    turns: Arc<Places>,
    /// Room for requests that wait for their turn.
    waiting: Arc<Places>,
    /// The questions that somebody waits for, by the digests of their tokens. Whoever comes with the same token waits for the same
    /// answer.
    asked: Mutex<HashMap<[u8; 32], Weak<OnceCell<Said>>>>,
}

impl Introspector {
    pub fn new(issuer: &str, settings: &Introspection, tls: &Arc<Tls>) -> Self {
        Self {
            issuer: issuer.to_owned(),
            vault: Vault::new(&[(SECRET.to_owned(), settings.secret.clone())].into()),
            settings: settings.clone(),
            tls: Arc::clone(tls),
            url: OnceCell::new(),
            told: Refusals::default(),
            turns: Places::new(&ASKED, AT_ONCE),
            waiting: Places::new(&WAITING_TO_ASK, WAITING),
            asked: Mutex::default(),
        }
    }

    /// `party`: who is known to have sent the token, which is an address unless the token was good a while ago.
    pub async fn ask(&self, token: &str, party: Party) -> Said {
        let _waits = self.waiting.take(party).map_err(|full| self.cannot(party, &full.into()))?;
        let ask = async {
            let turn = tokio::time::timeout(TURN, self.turns.wait(party)).await;
            let _turn = turn.context("too many tokens wait to be asked about")?;
            self.exchange(token).await
        };
        // If the client that asks leaves, the next one that waits for the answer asks again.
        self.question(token)
            .get_or_init(|| async { ask.await.map_err(|error| self.cannot(party, &error)) })
            .await
            .clone()
    }

    /// The question about this token, if somebody waits for its answer already, else a new one.
    fn question(&self, token: &str) -> Arc<OnceCell<Said>> {
        let mut asked = self.asked.lock();
        // There are never many, since whoever waits has a place.
        asked.retain(|_, question| question.strong_count() > 0);
        let entry = asked.entry(Sha256::digest(token).into()).or_default();
        entry.upgrade().unwrap_or_else(|| {
            let question = Arc::default();
            *entry = Arc::downgrade(&question);
            question
        })
    }

    fn cannot(&self, party: Party, error: &anyhow::Error) {
        // The error never repeats what was sent.
        self.told.say_about(party, "tokens, because their issuer cannot be asked about them", || {
            format!("{}: {error:#}", self.issuer)
        });
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

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;
    use crate::{
        base::party::named,
        egress::{
            secrets::Source,
            tls::{Roots, Trust},
        },
    };

    fn introspector(listener: &TcpListener) -> Introspector {
        let url = Some(format!("http://{}/introspect", listener.local_addr().unwrap()));
        let settings = Introspection { client_id: "wharf".into(), secret: Source::Env("PATH".into()), url };
        let tls = Arc::new(Tls::new(&Arc::new(Roots::new(Trust::default()))));
        Introspector::new("http://127.0.0.1", &settings, &tls)
    }

    #[tokio::test]
    async fn a_stranger_with_many_tokens_leaves_turns_for_others() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let introspector = introspector(&listener);
        let made_up: Vec<String> = (0..300).map(|number| format!("t{number}")).collect();
        let ask = |token| introspector.ask(token, named("ann"));
        let mut hers = Box::pin(futures_util::future::join_all(made_up.iter().map(|token| ask(token))));
        // The issuer takes connections and says nothing.
        let mut held = Vec::new();
        let reached = async {
            while held.len() < AT_ONCE / 4 * 3 {
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
