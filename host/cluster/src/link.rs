//! The connections to Redis: one for commands, and one for probes, which decide alone whether Redis answers. A command may wait behind large
//! ones, or be refused, while Redis answers. While Redis does not answer, commands fail at once instead of making each request wait.

#![expect(clippy::disallowed_methods, reason = "the file of certificates is read here, at the start")]

use std::{
    collections::HashSet,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use parking_lot::{Mutex, RwLock};
use redis::{
    Client, Cmd, ConnectionAddr, ErrorKind, FromRedisValue, IntoConnectionInfo, RedisConnectionInfo, RedisError,
    ScriptInvocation, TlsCertificates,
    aio::{ConnectionManager, ConnectionManagerConfig, PubSub},
};
use tokio::sync::{Notify, watch};
use wharf_base::text::{self, escaped};
use wharf_config::config::cluster::{Cluster as Settings, RedisAddress};

use crate::silent::Silent;

/// The time limit of a connection attempt, and of a command.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const COMMAND_TIMEOUT: Duration = Duration::from_secs(1);
/// Within this time, each replica has noticed that Redis is back.
const NOTICED_WITHIN: Duration = Duration::from_secs(3);

pub struct Link {
    client: Client,
    tls: bool,
    commands: RwLock<ConnectionManager>,
    probes: RwLock<ConnectionManager>,
    /// Whether Redis answered the last probe.
    up: watch::Sender<bool>,
    /// When Redis last came back.
    back: Mutex<Option<Instant>>,
    /// Whether what is known of other replicas may be old, since Redis did not answer, or has lost what was in it.
    pub unsure: AtomicBool,
    /// A command had no answer, so Redis is to be probed now.
    pub doubted: Notify,
    /// What Redis refuses, as the operator was told.
    told_refused: Mutex<HashSet<String>>,
}

impl Link {
    pub fn new(settings: &Settings) -> Result<Self> {
        let client = client(settings)?;
        let (commands, probes) = (RwLock::new(connection(&client)?), RwLock::new(connection(&client)?));
        Ok(Self {
            client,
            tls: settings.redis.tls,
            commands,
            probes,
            up: watch::Sender::new(true),
            back: Mutex::default(),
            unsure: AtomicBool::new(false),
            doubted: Notify::new(),
            told_refused: Mutex::default(),
        })
    }

    fn commands(&self) -> ConnectionManager {
        self.commands.read().clone()
    }

    pub fn is_up(&self) -> bool {
        *self.up.borrow()
    }

    /// Waits until Redis answers.
    pub async fn answers(&self) {
        // The sender is not dropped while this is borrowed.
        self.up.subscribe().wait_for(|up| *up).await.ok();
    }

    /// Runs a script even if Redis did not answer last time, to find out whether it does again.
    pub async fn probe<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> Result<T, Silent> {
        let mut probes = self.probes.read().clone();
        let answered = script.invoke_async(&mut probes).await.map_err(|error| {
            self.renew(&self.probes);
            self.renew(&self.commands);
            self.failed(&error)
        })?;
        if self.up.send_if_modified(|up| !std::mem::replace(up, true)) {
            self.came_back();
            self.unsure.store(true, Ordering::Relaxed);
            tracing::info!("Redis answers again");
        }
        Ok(answered)
    }

    pub async fn run<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Silent> {
        if !self.is_up() {
            return Err(Silent);
        }
        command.query_async(&mut self.commands()).await.map_err(|error| self.command_failed(&error))
    }

    pub async fn script<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> Result<T, Silent> {
        if !self.is_up() {
            return Err(Silent);
        }
        script.invoke_async(&mut self.commands()).await.map_err(|error| self.command_failed(&error))
    }

    /// Replaces a connection. One that Redis has refused is not tried again by itself.
    fn renew(&self, refused: &RwLock<ConnectionManager>) {
        if let Ok(another) = connection(&self.client) {
            *refused.write() = another;
        }
    }

    /// Notes that Redis has just come back, for commands or for messages.
    pub fn came_back(&self) {
        *self.back.lock() = Some(Instant::now());
    }

    /// Whether Redis came back so short a while ago that other replicas may not have noticed yet.
    pub fn is_just_back(&self) -> bool {
        self.back.lock().is_some_and(|back| back.elapsed() < NOTICED_WITHIN)
    }

    /// Opens a connection for messages.
    pub async fn messages(&self) -> Result<PubSub> {
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, self.client.get_async_pubsub()).await;
        Ok(opened.context("it does not answer")??)
    }

    fn failed(&self, error: &RedisError) -> Silent {
        if self.up.send_if_modified(|up| std::mem::replace(up, false)) {
            let error = self.described(error);
            tracing::error!("Redis does not answer, so replicas stand for themselves until it does: {error}");
        }
        Silent
    }

    /// A command failed that is not a probe. If Redis refuses it, other commands go on; if it has no answer, a probe decides.
    fn command_failed(&self, error: &RedisError) -> Silent {
        let what = match error.code() {
            _ if lacks_rights(error) => "Redis refuses something that replicas need",
            Some(FULL) => "Redis is full, so replicas share nothing new",
            Some(OTHER_KIND) => "Redis has something that no replica has written where replicas store values",
            _ => {
                // The one for probes may go on without trouble, so nothing else would replace this one.
                if !error.is_io_error() {
                    self.renew(&self.commands);
                }
                self.doubted.notify_one();
                return Silent;
            }
        };
        let error = self.described(error);
        let mut told = self.told_refused.lock();
        if told.len() < MAX_TOLD && told.insert(error.clone()) {
            tracing::error!("{what}: {error}");
        }
        Silent
    }

    /// Returns what went wrong, and what to do about it.
    pub fn described(&self, error: &RedisError) -> String {
        let text = escaped(&error.to_string());
        let has = |part: &str| text.contains(part);
        let advice = if lacks_rights(error) {
            "; give the user of Redis the commands, keys and channels that docs/replicas.md lists, with ACL SETUSER"
        } else if error.code() == Some(FULL) {
            "; raise `maxmemory` in the config of Redis. What it has already can be read, and calls are counted"
        } else if error.kind() == ErrorKind::AuthenticationFailed || has("WRONGPASS") || has("NOAUTH") {
            "; check `user` and `password_secret` in [cluster], and what Redis says about the user: ACL GETUSER"
        } else if has("UnknownIssuer") || has("BadSignature") {
            "; set `ca_file` in [cluster] to the certificate of the authority that has issued the certificate of Redis"
        } else if has("NotValidForName") || has("not valid for name") {
            "; write the host in `redis` as the certificate of Redis has it"
        } else if has("invalid peer certificate") {
            "; replace the certificate of Redis"
        } else if self.tls && error.is_timeout() {
            "; if it is always so, check that this port of Redis speaks TLS, or begin `redis` in [cluster] with redis://"
        } else {
            ""
        };
        format!("{text}{advice}")
    }
}

/// The code of the error for a user without the right to do something.
const NO_RIGHTS: &str = "NOPERM";
/// The code of the error for a command that needs memory when Redis has none.
const FULL: &str = "OOM";
/// The code of the error for a key with another kind of value.
const OTHER_KIND: &str = "WRONGTYPE";
/// How many errors of this kind are told of.
const MAX_TOLD: usize = 16;

/// Whether the user of Redis may not do this. Of a command in a script, Redis says that without the code.
fn lacks_rights(error: &RedisError) -> bool {
    error.code() == Some(NO_RIGHTS) || error.to_string().contains("user executing the script can't")
}

/// Returns a connection that is made when it is first used.
fn connection(client: &Client) -> Result<ConnectionManager, RedisError> {
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(COMMAND_TIMEOUT))
        .set_number_of_retries(0);
    ConnectionManager::new_lazy_with_config(client.clone(), config)
}

fn client(settings: &Settings) -> Result<Client> {
    let RedisAddress { host, port, database, tls } = &settings.redis;
    let address = match tls {
        false => ConnectionAddr::Tcp(host.clone(), *port),
        true => ConnectionAddr::TcpTls { host: host.clone(), port: *port, insecure: false, tls_params: None },
    };
    let mut login = RedisConnectionInfo::default().set_db(*database);
    if let Some(user) = &settings.user {
        login = login.set_username(user);
    }
    if let Some(password) = &settings.password {
        login = login.set_password(password.now().context("`password_secret`")?.expose());
    }
    let info = address.into_connection_info()?.set_redis_settings(login);
    if !tls {
        return Ok(Client::open(info)?);
    }
    let authorities = settings.ca_file.as_deref().map(|path| std::fs::read(path).with_context(|| text::path(path)));
    Ok(Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert: authorities.transpose()? })?)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpListener,
        thread,
    };

    use super::*;
    use crate::cluster::settings;

    /// Starts a Redis server that refuses its first connection for commands and no other. Returns its port.
    fn refuses_once() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for (index, stream) in listener.incoming().take(2).enumerate() {
                let (mut stream, mut bytes) = (stream.unwrap(), [0; 4096]);
                let answer = if index == 0 { "-ERR max number of clients reached\r\n" } else { "+OK\r\n" };
                thread::spawn(move || {
                    while let Ok(read @ 1..) = stream.read(&mut bytes) {
                        let commands = bytes[..read].iter().filter(|byte| **byte == b'*').count();
                        stream.write_all(answer.repeat(commands).as_bytes()).unwrap();
                    }
                });
            }
        });
        port
    }

    #[tokio::test]
    async fn commands_go_on_after_a_connection_that_was_refused() {
        // A database other than 0, so that Redis is asked for it when a connection is made.
        let link = Link::new(&settings(refuses_once(), 1)).unwrap();
        let ping = redis::cmd("PING");
        assert_eq!(link.run::<String>(&ping).await, Err(Silent));
        assert!(link.is_up(), "only a probe tells");
        assert_eq!(link.run::<String>(&ping).await, Ok("OK".into()));
    }
}
