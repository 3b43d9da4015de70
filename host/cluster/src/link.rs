//! The connection for commands. While Redis does not answer, commands fail at once instead of making each request wait, and one probe at a
//! time finds out when it answers again.

#![expect(clippy::disallowed_methods, reason = "the file of certificates is read here, at the start")]

use std::time::Duration;

use anyhow::{Context, Result};
use redis::{
    Client, Cmd, ConnectionAddr, FromRedisValue, IntoConnectionInfo, RedisConnectionInfo, RedisError, ScriptInvocation,
    TlsCertificates,
    aio::{ConnectionManager, ConnectionManagerConfig, PubSub},
};
use tokio::sync::watch;
use wharf_base::text::{self, escaped};
use wharf_config::config::cluster::{Cluster as Settings, RedisAddress};

use crate::silent::Silent;

/// The time limit of a connection attempt, and of a command.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const COMMAND_TIMEOUT: Duration = Duration::from_secs(1);

pub struct Link {
    client: Client,
    commands: ConnectionManager,
    /// Whether Redis answered last time.
    up: watch::Sender<bool>,
}

impl Link {
    pub fn new(settings: &Settings) -> Result<Self> {
        let client = client(settings)?;
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(COMMAND_TIMEOUT))
            .set_number_of_retries(0);
        let commands = ConnectionManager::new_lazy_with_config(client.clone(), config)?;
        Ok(Self { client, commands, up: watch::Sender::new(true) })
    }

    pub fn is_up(&self) -> bool {
        *self.up.borrow()
    }

    /// Runs a script even if Redis did not answer last time, to find out whether it does again.
    pub async fn probe<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> Result<T, Silent> {
        let answered = script.invoke_async(&mut self.commands.clone()).await.map_err(|error| self.failed(&error))?;
        if self.up.send_if_modified(|up| !std::mem::replace(up, true)) {
            tracing::info!("Redis answers again");
        }
        Ok(answered)
    }

    pub async fn run<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Silent> {
        if !self.is_up() {
            return Err(Silent);
        }
        command.query_async(&mut self.commands.clone()).await.map_err(|error| self.failed(&error))
    }

    pub async fn script<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> Result<T, Silent> {
        if !self.is_up() {
            return Err(Silent);
        }
        script.invoke_async(&mut self.commands.clone()).await.map_err(|error| self.failed(&error))
    }

    /// Opens a connection for messages.
    pub async fn messages(&self) -> Result<PubSub> {
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, self.client.get_async_pubsub()).await;
        Ok(opened.context("it does not answer")??)
    }

    fn failed(&self, error: &RedisError) -> Silent {
        if self.up.send_if_modified(|up| std::mem::replace(up, false)) {
            let error = escaped(&error.to_string());
            tracing::error!("Redis does not answer, so replicas stand for themselves until it does: {error}");
        }
        Silent
    }
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
