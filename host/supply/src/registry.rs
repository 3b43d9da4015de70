//! One repository of a registry, over the OCI distribution protocol. Everything is checked by its digest.

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, Uri, header::WWW_AUTHENTICATE};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use tokio::sync::Mutex;
use wharf_base::{digest::Digest, text::escaped};
use wharf_config::config::{
    reference::{OciReference, OciVersion},
    sources::SourceRules,
};
use wharf_egress::{outgoing::Destinations, route::Unconnected};

use super::{
    challenge::{self, Challenge},
    login::{self, Credentials, DOCKER_HUB},
    manifest::{Descriptor, INDEX, MANIFEST, MAX_MANIFEST_BYTES, digest},
    version,
    web::{self, Answer, Asked, LONG, Web},
};

/// The host that answers for docker's own registry.
const DOCKER_HUB_HOST: &str = "registry-1.docker.io";
/// How many pages of tags are read, and how many tags of each.
const MAX_PAGES: usize = 20;
const PAGE_TAGS: usize = 1000;
const MAX_LIST_BYTES: usize = 4 << 20;
const MAX_TOKEN_BYTES: usize = 64 << 10;

/// A repository.
pub struct Repository<'a> {
    web: &'a Web,
    sources: &'a SourceRules,
    /// The registry by which logins are named: the mirror's, if there is one.
    registry: String,
    /// `https://HOST`, or `http://HOST` on this machine.
    base: String,
    name: String,
    /// What is asked for in tokens: `pull`, or `pull,push`.
    actions: &'static str,
    reach: Destinations,
    authorization: Mutex<Option<HeaderValue>>,
}

impl<'a> Repository<'a> {
    pub async fn open(
        web: &'a Web,
        sources: &'a SourceRules,
        reference: &OciReference,
        actions: &'static str,
    ) -> Result<Self> {
        let (registry, name) = match sources.mirrors.get(&reference.registry) {
            Some(mirror) if actions == "pull" => match mirror.split_once('/') {
                Some((host, before)) => (host.to_owned(), format!("{before}/{}", reference.repository)),
                None => (mirror.clone(), reference.repository.clone()),
            },
            _ => (reference.registry.clone(), reference.repository.clone()),
        };
        let on_hub = registry == DOCKER_HUB;
        let name = if on_hub && !name.contains('/') { format!("library/{name}") } else { name };
        let host = if on_hub { DOCKER_HUB_HOST } else { &registry };
        // A registry on this machine may speak plain HTTP, which is found out by asking.
        let at = OciReference { registry: registry.clone(), repository: name.clone(), version: OciVersion::Highest };
        let secure = format!("https://{host}");
        let url: Uri = format!("{secure}/v2/").parse().context("the registry has no URL")?;
        let reach = web.reach_from(&url).await?;
        let base = match at.is_on_this_machine() {
            true => match web.ask(Asked::get(url, MAX_TOKEN_BYTES), reach, &|_| {}).await {
                Err(error) if error.downcast_ref::<Unconnected>().is_some_and(Unconnected::speaks_no_tls) => {
                    format!("http://{host}")
                }
                Err(error) => return Err(error),
                Ok(_) => secure,
            },
            false => secure,
        };
        Ok(Self { web, sources, registry, base, name, actions, reach, authorization: Mutex::default() })
    }

    pub fn url(&self, path: &str) -> Result<Uri> {
        format!("{}/v2/{}/{path}", self.base, self.name).parse().context("the request has no URL")
    }

    /// Sends a request, and logs in if the registry asks for it.
    pub async fn ask(&self, mut asked: Asked<'_>, progress: &(dyn Fn(usize) + Sync)) -> Result<Answer> {
        // A registry may send uploads elsewhere, to where its login does not belong.
        let is_own = asked.url.to_string().starts_with(&format!("{}/", self.base));
        if !is_own {
            return self.web.ask(Asked { first: self.reach, ..asked }, self.reach, progress).await;
        }
        asked.authorization = self.authorization.lock().await.clone();
        let answer = self.web.ask(asked.clone(), self.reach, progress).await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        let values = answer.headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let challenge = challenge::choose(values);
        let challenge =
            challenge.with_context(|| format!("{}: 401, and it does not say how to log in", self.registry))?;
        let value = self.log_in(challenge).await?;
        *self.authorization.lock().await = Some(value.clone());
        asked.authorization = Some(value);
        let answer = self.web.ask(asked, self.reach, progress).await?;
        if answer.status == StatusCode::UNAUTHORIZED {
            bail!(
                "{0}: 401, the login is wrong; run `docker login {0}`, or correct `logins` in [sources]",
                self.registry
            );
        }
        Ok(answer)
    }

    async fn log_in(&self, challenge: Challenge) -> Result<HeaderValue> {
        let registry = &self.registry;
        let credentials = login::credentials(self.sources, registry).await?;
        let missing = || {
            format!("{registry}: 401, it wants a login; run `docker login {registry}`, or write `logins` in [sources]")
        };
        let Challenge::Bearer { realm, service, scope } = challenge else {
            return match credentials.with_context(missing)? {
                Credentials::UserPassword(user, password) => Credentials::basic(&user, &password),
                Credentials::IdentityToken(_) => {
                    bail!("{registry}: it wants a password, and docker's config has a token")
                }
            };
        };
        let url = web::join(&self.url("")?, &realm).context("the registry's server for tokens")?;
        ensure!(
            url.scheme_str() == Some("https") || self.base.starts_with("http://"),
            "{registry}: its server for tokens is without TLS, so nothing is sent to it"
        );
        let scope = scope.unwrap_or_else(|| format!("repository:{}:{}", self.name, self.actions));
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let mut parameters = vec![format!("scope={}", encoded(&scope))];
        parameters.extend(service.map(|service| format!("service={}", encoded(&service))));
        // Tokens come from another server, which the registry chose, so its address has to be one that the registry may lead to.
        let has_credentials = credentials.is_some();
        let mut asked = Asked::get(url.clone(), MAX_TOKEN_BYTES);
        match credentials {
            Some(Credentials::IdentityToken(token)) => {
                parameters.extend(["grant_type=refresh_token".into(), "client_id=wharf".into()]);
                parameters.push(format!("refresh_token={}", encoded(&token)));
                let body = Bytes::from(parameters.join("&"));
                asked = asked.send(Method::POST, "application/x-www-form-urlencoded", body);
            }
            other => {
                let joint = if url.query().is_some() { '&' } else { '?' };
                asked.url = format!("{url}{joint}{}", parameters.join("&")).parse().context("the server for tokens")?;
                if let Some(Credentials::UserPassword(user, password)) = other {
                    asked.authorization = Some(Credentials::basic(&user, &password)?);
                }
            }
        }
        asked.first = self.reach;
        let answer = self.web.ask(asked, self.reach, &|_| {}).await?;
        if matches!(answer.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            if has_credentials {
                bail!("{registry}: it gives no token for this login: {}", answer.status);
            }
            bail!(missing());
        }
        #[derive(Deserialize)]
        struct Token {
            token: Option<String>,
            access_token: Option<String>,
        }
        let body = answer.body("the token")?;
        let token: Token = serde_json::from_slice(&body).context("the token is malformed")?;
        let token = token.token.or(token.access_token).context("the server for tokens sent none")?;
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).context("the token is malformed")?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Returns the bytes and the digest of a manifest. None: there is no such manifest.
    pub async fn manifest(&self, which: &str, accept: &'static str) -> Result<Option<(Bytes, Digest)>> {
        let asked = Asked::get(self.url(&format!("manifests/{which}"))?, MAX_MANIFEST_BYTES).accept(accept);
        let answer = self.ask(asked, &|_| {}).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let bytes = answer.body(&format!("the manifest {} of {}/{}", escaped(which), self.registry, self.name))?;
        let is = digest(&bytes);
        if which.starts_with("sha256:") && which != format!("sha256:{is}") {
            bail!("the registry answers with a manifest of another digest, sha256:{is}");
        }
        Ok(Some((bytes, is)))
    }

    /// Returns a blob, whose size and digest are checked.
    pub async fn blob(&self, descriptor: &Descriptor, progress: &(dyn Fn(usize) + Sync)) -> Result<Bytes> {
        let expected = descriptor.sha256()?;
        let size = usize::try_from(descriptor.size).context("the blob is too large")?;
        let mut asked = Asked::get(self.url(&format!("blobs/{}", descriptor.digest))?, size);
        asked.timeout = LONG;
        let what = format!("the blob {} of {}/{}", descriptor.digest, self.registry, self.name);
        let bytes = self.ask(asked, progress).await?.body(&what)?;
        ensure!(bytes.len() == size, "{what} has {} bytes in place of {size}", bytes.len());
        let is = digest(&bytes);
        ensure!(is == expected, "{what} has another digest, sha256:{is}");
        Ok(bytes)
    }

    /// Returns all tags.
    pub async fn tags(&self) -> Result<Vec<String>> {
        #[derive(Deserialize)]
        struct Page {
            tags: Option<Vec<String>>,
        }
        let (mut tags, mut next) = (Vec::new(), Some(self.url(&format!("tags/list?n={PAGE_TAGS}"))?));
        for _ in 0..MAX_PAGES {
            let Some(url) = next.take() else { return Ok(tags) };
            let answer = self.ask(Asked::get(url.clone(), MAX_LIST_BYTES), &|_| {}).await?;
            let after = answer.header(http::header::LINK).and_then(following).map(str::to_owned);
            let what = format!("the tags of {}/{}", self.registry, self.name);
            let page: Page = serde_json::from_slice(&answer.body(&what)?).with_context(|| what)?;
            tags.extend(page.tags.unwrap_or_default());
            next = after.map(|location| web::join(&url, &location)).transpose()?;
            ensure!(
                next.as_ref().is_none_or(|next| next.authority() == url.authority()),
                "the list of tags goes on at another server, which is not followed"
            );
        }
        bail!("{}/{} has more than {} tags; name the version", self.registry, self.name, MAX_PAGES * PAGE_TAGS);
    }

    /// Returns the name of the manifest that a reference means, and the tag if it has one.
    pub async fn choose(&self, version: &OciVersion) -> Result<(String, Option<String>)> {
        let beginning = match version {
            OciVersion::Digest(digest) => return Ok((format!("sha256:{digest}"), None)),
            OciVersion::Tag(tag) if !version::is_partial(tag) => return Ok((tag.clone(), Some(tag.clone()))),
            OciVersion::Tag(tag) => Some(tag.as_str()),
            OciVersion::Highest => None,
        };
        let tags = self.tags().await?;
        let chosen = version::highest(tags.iter().map(String::as_str), beginning);
        // A tag such as `1.4` may also be one that its publisher moves.
        let chosen = chosen.or(beginning.filter(|tag| tags.iter().any(|one| one == tag)));
        let chosen = chosen.with_context(|| match beginning {
            Some(beginning) => format!("{}/{} has no version {beginning}", self.registry, self.name),
            None => format!("{}/{} has no tag that is a version; name the tag", self.registry, self.name),
        })?;
        Ok((chosen.to_owned(), Some(chosen.to_owned())))
    }

    /// Returns the artifacts that refer to a manifest, such as signatures. A registry that does not know the question, and what stands before
    /// one that does, answer anything: then a tag has the list, if anything has.
    pub async fn referrers(&self, subject: &Digest) -> Result<Vec<Descriptor>> {
        const WHAT: &str = "the list of signatures";
        let asked = Asked::get(self.url(&format!("referrers/sha256:{subject}"))?, MAX_MANIFEST_BYTES).accept(INDEX);
        let why = match self.ask(asked, &|_| {}).await {
            Ok(answer) if UNKNOWN.contains(&answer.status) => None,
            answer => match answer.and_then(|answer| answer.body(WHAT)).and_then(|bytes| listed(&bytes)) {
                Ok(listed) => return Ok(listed),
                Err(why) => Some(why),
            },
        };
        match (self.manifest(&fallback_tag(subject), INDEX).await, why) {
            (Ok(Some((bytes, _))), _) => listed(&bytes),
            (Ok(None), None) => Ok(Vec::new()),
            (Err(error), None) | (_, Some(error)) => Err(error),
        }
    }

    /// The manifest of an artifact that refers to another one.
    pub async fn referrer(&self, descriptor: &Descriptor) -> Result<Option<Bytes>> {
        descriptor.sha256()?;
        Ok(self.manifest(&descriptor.digest, MANIFEST).await?.map(|(bytes, _)| bytes))
    }
}

/// What registries answer that do not know what refers to a manifest.
const UNKNOWN: [StatusCode; 3] = [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED, StatusCode::BAD_REQUEST];

/// Reads a list of artifacts. Anybody may have added to it, so what is malformed in it is left out.
fn listed(bytes: &[u8]) -> Result<Vec<Descriptor>> {
    #[derive(Deserialize)]
    struct Listed {
        manifests: Vec<serde_json::Value>,
    }
    let listed: Listed = serde_json::from_slice(bytes).context("the list of signatures is malformed")?;
    Ok(listed.manifests.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect())
}

/// The tag under which registries without the API have the artifacts that refer to a manifest.
pub fn fallback_tag(subject: &Digest) -> String {
    format!("sha256-{subject}")
}

/// Returns the URL of the next page from a `Link` header.
fn following(link: &str) -> Option<&str> {
    let (url, parameters) = link.split_once('>')?;
    parameters.contains("rel=\"next\"").then(|| url.trim().strip_prefix('<'))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_malformed_in_a_list_is_left_out() {
        let list = |text: &str| listed(text.as_bytes()).map(|all| all.len());
        let one = format!(r#"{{"mediaType":"{MANIFEST}","digest":"sha256:00","size":2}}"#);
        assert_eq!(list(&format!(r#"{{"manifests":[1,{one},{{"digest":"x"}},{{"size":-1}}]}}"#)).unwrap(), 1);
        for wrong in ["<html>", "{}", r#"{"manifests":null}"#] {
            assert!(list(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_next_page_is_found() {
        assert_eq!(following("</v2/a/tags/list?n=1&last=b>; rel=\"next\""), Some("/v2/a/tags/list?n=1&last=b"));
        assert_eq!(following("</v2/a>; rel=\"prev\""), None);
        assert_eq!(following("nonsense"), None);
    }
}
