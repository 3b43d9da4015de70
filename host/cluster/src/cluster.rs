//! One replica among several: its address, which others run, and the seal of what it shares.

use std::{
    collections::HashSet,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use parking_lot::RwLock;
use redis::Script;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use wharf_base::{
    ledger::Ledger,
    party,
    state_keys::{Ciphers, Signers, StateKeys},
    text::hex,
};
use wharf_config::config::cluster::Cluster as Settings;

use crate::{link::Link, silent::Silent, turns::Turns, waiting::Bus};

/// What the keys are derived with: for shared values and messages, for the ids of questions to clients, and for the numbers of parties.
const PURPOSE: &str = "wharf cluster 1";
const QUESTIONS: &str = "wharf cluster questions 1";
const PARTIES: &str = "wharf cluster parties 1";
/// The length of the code at the end of the id of a question, in bytes.
const CODE_BYTES: usize = 8;
/// How long a replica counts as running after it was last heard of, and how often it says that it runs.
const LEASE: Duration = Duration::from_secs(15);
const BEAT_INTERVAL: Duration = Duration::from_secs(3);
/// How often it is asked whether Redis answers again.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// The number of random bytes in an address.
pub const ADDRESS_BYTES: usize = 16;

/// Removes the replicas whose lease is over, adds or removes this one, and returns whether it was known, and which run. By the clock of Redis,
/// since those of the replicas may differ.
static BEAT: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "#!lua flags=allow-oom
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known = redis.call('ZSCORE', KEYS[1], ARGV[1]) and 1 or 0
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if tonumber(ARGV[2]) > 0 then
  redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
  redis.call('PEXPIRE', KEYS[1], 10 * ARGV[2])
else
  redis.call('ZREM', KEYS[1], ARGV[1])
end
return {known, redis.call('ZRANGE', KEYS[1], 0, -1)}",
    )
});

pub struct Cluster {
    /// The name of this replica in records.
    pub name: Arc<str>,
    /// The address of this process among the replicas. A replica that was restarted has another one.
    pub(crate) address: Arc<str>,
    prefix: String,
    /// How much all clients together may store in Redis.
    pub(crate) memory_bytes: usize,
    ciphers: Ciphers,
    questions: Signers,
    pub(crate) link: Link,
    pub(crate) bus: Bus,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) turns: Turns,
    /// The addresses of the replicas that run, as far as is known.
    live: RwLock<HashSet<String>>,
    /// Whether Redis has heard of this replica.
    joined: AtomicBool,
    /// Whether the operator was told that something in Redis is not sealed by a replica.
    told_altered: AtomicBool,
}

impl Cluster {
    /// Prepares to join. Redis need not run yet. `number`: identifies this process. `ledger`: what other replicas send for a client
    /// is charged there.
    pub fn new(
        settings: &Settings,
        keys: &StateKeys,
        number: [u8; ADDRESS_BYTES],
        ledger: &Arc<Ledger>,
    ) -> Result<Arc<Self>> {
        let address: Arc<str> = hex(&number).into();
        let wrong = |_| anyhow!("the key has a wrong length");
        // A client is the same party for all replicas, so that what it stores is charged to it wherever it comes.
        let party = keys.signers(PARTIES).map_err(wrong)?.sign(b"");
        party::share_key(&party);
        Ok(Arc::new(Self {
            name: settings.name.as_str().into(),
            prefix: settings.prefix.clone(),
            memory_bytes: settings.memory_bytes,
            ciphers: keys.derived(PURPOSE).map_err(wrong)?,
            questions: keys.signers(QUESTIONS).map_err(wrong)?,
            link: Link::new(settings).context("[cluster]")?,
            bus: Bus::new(),
            ledger: Arc::clone(ledger),
            turns: Turns::default(),
            live: RwLock::new(HashSet::from([address.to_string()])),
            address,
            joined: AtomicBool::new(false),
            told_altered: AtomicBool::new(false),
        }))
    }

    /// Returns the address of this process.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the id of a question of this replica to the client of a session. `rest`: tells it from others, and has no dot.
    pub fn question_id(&self, session: &str, rest: &str) -> String {
        let id = format!("wharf-{}.{rest}", self.address);
        let code = self.questions.sign(signed(session, &id).as_bytes());
        format!("{id}.{}", hex(code.get(..CODE_BYTES).unwrap_or(&code)))
    }

    /// Returns the address of the replica that has asked the client of this session a question with this id. `None`: none has.
    pub fn asker<'a>(&self, session: &str, id: &'a str) -> Option<&'a str> {
        let (question, code) = id.rsplit_once('.')?;
        let code = u64::from_str_radix(code, 16).ok().filter(|_| code.len() == 2 * CODE_BYTES)?;
        let (address, _) = question.strip_prefix("wharf-")?.split_once('.')?;
        self.questions.has_signed(signed(session, question).as_bytes(), &code.to_be_bytes()).then_some(address)
    }

    /// Returns the number of replicas that run, or ran when Redis last answered.
    pub fn replicas(&self) -> u32 {
        u32::try_from(self.live.read().len()).unwrap_or(u32::MAX).max(1)
    }

    /// Whether Redis answers.
    pub fn is_up(&self) -> bool {
        self.link.is_up()
    }

    /// Waits until Redis answers.
    pub async fn answers(&self) {
        self.link.answers().await;
    }

    /// Whether the replica with this address runs, as far as is known. Fails while Redis does not answer.
    pub async fn is_live(&self, address: &str) -> Result<bool, Silent> {
        if *address == *self.address || self.live.read().contains(address) {
            return Ok(true);
        }
        // It may have started since.
        self.say_alive(LEASE).await?;
        // Leases run out while Redis does not answer, and nobody could renew them.
        Ok(self.live.read().contains(address) || self.link.is_just_back())
    }

    pub(crate) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Says that this replica runs, for as long as wharf runs. `compare`: what is known of others may be old, and is compared with Redis.
    pub(crate) async fn keep_alive(&self, compare: impl Fn() + Send, stop: &CancellationToken) {
        loop {
            let beat = Instant::now();
            // If this fails, the next beat tries again.
            if self.say_alive(LEASE).await.is_ok() && self.link.unsure.swap(false, Ordering::Relaxed) {
                compare();
            }
            let pause = if self.link.is_up() { BEAT_INTERVAL } else { PROBE_INTERVAL };
            tokio::select! {
                () = stop.cancelled() => break,
                // However many commands fail, Redis is probed no more often than when it does not answer.
                () = async { self.link.doubted.notified().await; sleep_until(beat + PROBE_INTERVAL).await } => {}
                () = sleep_until(beat + pause) => {}
            }
        }
        let _ = self.say_alive(Duration::ZERO).await;
    }

    pub(crate) async fn say_alive(&self, lease: Duration) -> Result<(), Silent> {
        let mut said = BEAT.key(self.key("replicas"));
        said.arg(&*self.address).arg(millis(lease));
        // This is also what finds out whether Redis answers again: without the right to write there, it is of no use.
        let (known, mut live): (bool, HashSet<String>) = self.link.probe(&said).await?;
        if self.joined.swap(true, Ordering::Relaxed) && !known {
            // Redis has lost what was in it.
            self.link.unsure.store(true, Ordering::Relaxed);
        }
        live.insert(self.address.to_string());
        *self.live.write() = live;
        Ok(())
    }

    /// Opens what a replica has sealed for this place. The first time that something was not, the operator is told.
    pub(crate) fn open(&self, sealed: &[u8], place: &str) -> Result<Vec<u8>, Silent> {
        let opened = self.ciphers.open(sealed, place.as_bytes());
        opened.ok_or_else(|| {
            if !self.told_altered.swap(true, Ordering::Relaxed) {
                tracing::error!(
                    "Redis has something under `{place}` that no replica with these keys has written; it is ignored. Another program writes \
                     there, or a replica has other `state_keys`. This is said once"
                );
            }
            Silent
        })
    }

    pub(crate) fn seal(&self, text: &[u8], place: &str) -> Result<Vec<u8>, Silent> {
        self.ciphers.seal(text, place.as_bytes()).ok_or(Silent)
    }
}

/// Returns what the id of a question is signed with: it is good in one session.
fn signed(session: &str, id: &str) -> String {
    format!("{session}\n{id}")
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The settings of a replica whose Redis is at this port of this machine, in this database.
#[cfg(test)]
pub(crate) fn settings(port: u16, database: i64) -> Settings {
    Settings {
        name: "one".into(),
        redis: wharf_config::config::cluster::RedisAddress { host: "127.0.0.1".into(), port, database, tls: false },
        user: None,
        password: None,
        ca_file: None,
        prefix: "wharf:".into(),
        memory_bytes: 1 << 20,
    }
}

/// A replica with such a key and number, whose Redis does not run.
#[cfg(test)]
pub(crate) fn replica(key: u8, number: u8, ledger: &Arc<Ledger>) -> Arc<Cluster> {
    Cluster::new(&settings(1, 0), &StateKeys::new([key; 32], Vec::new()), [number; ADDRESS_BYTES], ledger).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    // The connections to Redis are made in a runtime.
    #[tokio::test]
    async fn only_a_question_that_a_replica_has_asked_in_the_session_has_an_asker() {
        let made = |key: u8, number: u8| replica(key, number, &Ledger::new(1 << 20));
        let (one, other, stranger) = (made(7, 1), made(7, 2), made(8, 3));
        let id = one.question_id("s", "x-1");
        assert!(id.len() <= 96, "{id}");
        for asked in [&one, &other] {
            assert_eq!(asked.asker("s", &id), Some(one.address()));
        }
        assert_eq!(other.asker("another session", &id), None);
        assert_eq!(stranger.asker("s", &id), None);
        let without_code = id.rsplit_once('.').unwrap().0.to_owned();
        for forged in
            [id.replace("x-1", "x-2"), format!("{without_code}."), without_code, "wharf-x-1".into(), String::new()]
        {
            assert_eq!(other.asker("s", &forged), None, "{forged}");
        }
    }
}
