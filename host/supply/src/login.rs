//! Users and passwords for registries: from `[sources]`, or from docker's config and its helper programs.

use anyhow::{Context, Result};
use base64::{Engine, engine::general_purpose::STANDARD};
use docker_credential::{CredentialRetrievalError, DockerCredential};
use http::HeaderValue;
use wharf_config::config::sources::SourceRules;

/// The name of docker's own registry, which is not the host that answers.
pub const DOCKER_HUB: &str = "docker.io";
/// The name under which it is in docker's config.
const IN_DOCKERS_CONFIG: &str = "https://index.docker.io/v1/";

/// What a registry accepts in place of a person.
pub enum Credentials {
    UserPassword(String, String),
    /// A token that is exchanged for one that the registry accepts.
    IdentityToken(String),
}

impl Credentials {
    pub fn basic(user: &str, password: &str) -> Result<HeaderValue> {
        let value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))));
        let mut value = value.context("the user or the password cannot be sent")?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// Returns the credentials for a registry. None: nobody has given one, so the registry is asked without.
#[expect(clippy::disallowed_methods, reason = "the thread that reads is waited for")]
pub async fn credentials(sources: &SourceRules, registry: &str) -> Result<Option<Credentials>> {
    if let Some(login) = sources.logins.get(registry) {
        let password = login.password.load().await.with_context(|| format!("the password for {registry}"))?;
        return Ok(Some(Credentials::UserPassword(login.user.clone(), password.expose().to_owned())));
    }
    let name = if registry == DOCKER_HUB { IN_DOCKERS_CONFIG.to_owned() } else { registry.to_owned() };
    // A helper is a program, which may ask its person.
    let found = tokio::task::spawn_blocking(move || docker_credential::get_credential(&name)).await?;
    match found {
        Ok(DockerCredential::UsernamePassword(user, password)) => Ok(Some(Credentials::UserPassword(user, password))),
        Ok(DockerCredential::IdentityToken(token)) => Ok(Some(Credentials::IdentityToken(token))),
        Err(
            CredentialRetrievalError::NoCredentialConfigured
            | CredentialRetrievalError::ConfigNotFound
            | CredentialRetrievalError::ConfigReadError,
        ) => Ok(None),
        // What a helper prints may have secrets in it.
        Err(
            CredentialRetrievalError::HelperFailure { .. }
            | CredentialRetrievalError::HelperCommunicationError
            | CredentialRetrievalError::MalformedHelperResponse,
        ) => anyhow::bail!("the credential helper that docker's config names for {registry} failed"),
        Err(_) => anyhow::bail!("docker's config has a login for {registry} that cannot be read"),
    }
}
