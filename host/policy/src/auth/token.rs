//! Parses a JSON Web Token (JWT) and checks its claims.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::{Map, Value};

use super::{identity::Identity, settings::Issuer, signature};
use wharf_base::{
    principal::{Principal, User},
    text::is_segment,
};

/// The tolerated difference between the clocks of issuers and of this machine.
const LEEWAY: Duration = Duration::from_secs(30);
/// The longest subject, and the most scopes that are read.
const MAX_SUBJECT_BYTES: usize = 512;
const MAX_SCOPES: usize = 256;
/// The most bytes of other claims that are retained while a token is cached, and how deep objects in them are read.
const MAX_CLAIM_BYTES: usize = 8 << 10;
const MAX_CLAIM_DEPTH: usize = 4;

/// The reason for refusing a token for another resource, or for a profile that does not exist.
pub const ANOTHER_AUDIENCE: &str = "it is for another audience";

/// A parsed token. It must not be trusted before its signature is verified.
pub struct Parts<'a> {
    token: &'a str,
    pub algorithm: Algorithm,
    pub kid: Option<String>,
    pub typ: Option<String>,
    pub claims: Claims,
}

impl<'a> Parts<'a> {
    pub fn read(token: &'a str) -> Result<Self, &'static str> {
        let mut parts = token.split('.');
        let (Some(header), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err("it is not a JSON Web Token");
        };
        if signature.is_empty() {
            return Err("it is not signed");
        }
        let object = |part: &str| -> Option<Map<String, Value>> {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
        };
        let header = object(header).ok_or("its header is malformed")?;
        let claims = Claims(object(claims).ok_or("its claims are malformed")?);
        let text = |key: &str| header.get(key).and_then(Value::as_str);
        let algorithm = text("alg").ok_or("its header names no algorithm")?;
        // `none` is refused here, since it does not parse.
        let algorithm: Algorithm = algorithm.parse().map_err(|_| "its algorithm is not accepted")?;
        if matches!(algorithm, Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512) {
            return Err("its algorithm is not accepted");
        }
        // Members that a token declares critical must be understood, and wharf supports no such members.
        if header.contains_key("crit") {
            return Err("its header has critical members");
        }
        Ok(Self {
            token,
            algorithm,
            kid: text("kid").map(ToOwned::to_owned),
            typ: text("typ").map(str::to_ascii_lowercase),
            claims,
        })
    }

    /// Whether the signature was made with this key.
    pub fn is_signed_by(&self, key: &DecodingKey) -> bool {
        let Some((signed, signature)) = self.token.rsplit_once('.') else { return false };
        let signature = URL_SAFE_NO_PAD.decode(signature);
        signature.is_ok_and(|signature| signature::is_valid(self.algorithm, key, signed.as_bytes(), &signature))
    }
}

/// Whether a token looks like a JSON Web Token, valid or not.
pub fn is_jwt(token: &str) -> bool {
    token.split('.').count() == 3
}

/// The claims of a token, or the response of its issuer about it.
#[derive(Debug)]
pub struct Claims(Map<String, Value>);

impl Claims {
    pub fn new(claims: Map<String, Value>) -> Self {
        Self(claims)
    }

    pub fn issuer(&self) -> Option<&str> {
        self.text("iss")
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str()
    }

    /// Returns a claim that is a time. `Err`: the claim is not a time.
    fn time(&self, key: &str) -> Result<Option<SystemTime>, ()> {
        let Some(value) = self.0.get(key) else { return Ok(None) };
        let seconds = value.as_f64().filter(|seconds| (0.0..1e11).contains(seconds)).ok_or(())?;
        Ok(Some(UNIX_EPOCH + Duration::from_secs_f64(seconds)))
    }

    /// Returns the words of a claim that is a space-separated string, or the strings of a list.
    fn words(&self, key: &str) -> Vec<String> {
        match self.0.get(key) {
            Some(Value::String(text)) => {
                text.split(' ').filter(|word| !word.is_empty()).map(ToOwned::to_owned).collect()
            }
            Some(Value::Array(all)) => all.iter().filter_map(|one| one.as_str().map(ToOwned::to_owned)).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the claims that roles can match: strings, numbers, booleans, lists of these, and those in objects, whose names are joined by
    /// dots.
    fn texts(&self) -> BTreeMap<String, Vec<String>> {
        let mut left = MAX_CLAIM_BYTES;
        let mut texts = BTreeMap::new();
        // A claim comes before those in objects, so that nothing in an object takes its name.
        let mut level: Vec<(String, &Value)> = self.0.iter().map(|(name, value)| (name.clone(), value)).collect();
        for _ in 0..MAX_CLAIM_DEPTH {
            let mut below = Vec::new();
            for (name, value) in level {
                let all: Vec<String> = match value {
                    Value::Array(all) => all.iter().filter_map(scalar).collect(),
                    Value::Object(object) => {
                        below.extend(object.iter().map(|(key, value)| (format!("{name}.{key}"), value)));
                        continue;
                    }
                    one => scalar(one).into_iter().collect(),
                };
                let bytes = name.len() + all.iter().map(String::len).sum::<usize>();
                // A claim that exceeds the remaining space is dropped; no role could match one that long.
                if let Some(rest) = left.checked_sub(bytes)
                    && !texts.contains_key(&name)
                {
                    left = rest;
                    texts.insert(name, all);
                }
            }
            level = below;
        }
        texts
    }

    /// Returns the values that say whom the token is for. Amazon Cognito's access tokens have no audience; they name the client, which only
    /// counts if the operator has written it as an audience.
    fn audience(&self, issuer: &Issuer) -> Result<Vec<&str>, &'static str> {
        match self.0.get("aud") {
            Some(Value::String(one)) => Ok(vec![one]),
            Some(Value::Array(all)) => {
                all.iter().map(Value::as_str).collect::<Option<_>>().ok_or("its audience is malformed")
            }
            Some(_) => Err("its audience is malformed"),
            None => match self.text("client_id").filter(|_| self.text("token_use") == Some("access")) {
                Some(client) if issuer.audience.iter().any(|accepted| accepted == client) => Ok(vec![client]),
                Some(_) => Err("it has no audience, and the client for which it was issued is not named in `audience`"),
                None => Err("it has no audience"),
            },
        }
    }

    /// Returns the identity of the token, if it is an access token for this server and currently valid. `typ` is the type in its header, in
    /// lower case.
    pub fn judge(&self, issuer: &Issuer, typ: Option<&str>, now: SystemTime) -> Result<Identity, &'static str> {
        let at_jwt = matches!(typ, Some("at+jwt" | "application/at+jwt"));
        if !at_jwt && (issuer.only_at_jwt || !matches!(typ, None | Some("jwt" | "application/jwt"))) {
            return Err("it does not say that it is an access token");
        }
        if self.issuer() != Some(&issuer.url) {
            return Err("its issuer is not trusted here");
        }
        // Keycloak's refresh and ID tokens are signed like its access tokens.
        if self.text("typ").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer"))
            || ["nonce", "at_hash", "c_hash"].iter().any(|key| self.0.contains_key(*key))
        {
            return Err("it is not an access token");
        }
        let audience = self.audience(issuer)?;
        let is_ours = |one: &&str| issuer.resource.iter().chain(&issuer.audience).any(|accepted| accepted == one);
        // A profile is the same resource at a URL below it. Profiles may change while the token is valid, so whether a profile exists is
        // checked for each request.
        let profile = |one: &&str| {
            let name = issuer.resource.first().and_then(|resource| one.strip_prefix(resource)?.strip_prefix('/'));
            // Clients may add a trailing slash, and the metadata then names the resource with it.
            name.map(|name| name.strip_suffix('/').unwrap_or(name))
                .filter(|name| is_segment(name))
                .map(ToOwned::to_owned)
        };
        let whole = audience.iter().any(is_ours);
        let profiles: Vec<String> = if whole { Vec::new() } else { audience.iter().filter_map(profile).collect() };
        if !whole && profiles.is_empty() {
            return Err(ANOTHER_AUDIENCE);
        }
        let expires = self.time("exp").map_err(|()| "`exp` is not a time")?.ok_or("it has no expiry (`exp`)")?;
        if expires + LEEWAY <= now {
            return Err("it has expired");
        }
        for (key, malformed, early) in [
            ("nbf", "`nbf` is not a time", "it is not valid yet"),
            ("iat", "`iat` is not a time", "it was issued in the future"),
        ] {
            if self.time(key).map_err(|()| malformed)?.is_some_and(|from| from > now + LEEWAY) {
                return Err(early);
            }
        }
        // A token with `cnf` is only valid with a proof of possession of a key (DPoP or mTLS), which wharf does not support.
        if self.0.contains_key("cnf") {
            return Err("it is bound to a key of the client (`cnf`), which is not supported");
        }
        let subject = self.text("sub").filter(|subject| !subject.is_empty()).ok_or("it has no subject (`sub`)")?;
        if subject.len() > MAX_SUBJECT_BYTES {
            return Err("its subject (`sub`) is too long");
        }
        let scopes: HashSet<String> =
            ["scope", "scp"].iter().flat_map(|key| self.words(key)).take(MAX_SCOPES).collect();
        let user = User::new(&issuer.url, subject);
        // During the leeway an expired token is still accepted; its expiry is then extended, so that streams do not end at once.
        let expires = if expires > now { expires } else { expires + LEEWAY };
        let principal = Principal::User(Arc::new(user));
        Ok(Identity { scopes, claims: self.texts(), profiles, expires: Some(expires), ..Identity::of(principal) })
    }
}

/// Returns a string, number or boolean as text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is) => Some(is.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
pub mod tests {
    use serde_json::json;

    use super::*;
    use crate::auth::settings::KeySource;

    pub fn issuer() -> Issuer {
        Issuer {
            url: "https://id.example.com/realm".into(),
            algorithms: vec![Algorithm::RS256, Algorithm::ES256],
            audience: vec!["api://wharf".into()],
            only_at_jwt: false,
            keys: KeySource::Discovered,
            introspection: None,
            resource: ["https://mcp.example.com/mcp".into(), "https://mcp.example.com/mcp/".into()],
        }
    }

    fn good(now: u64) -> Value {
        json!({
            "iss": "https://id.example.com/realm", "aud": "https://mcp.example.com/mcp", "sub": "ann",
            "exp": now + 60, "iat": now - 5, "scope": "mcp files:read",
        })
    }

    #[test]
    fn only_access_tokens_for_this_server_that_are_good_now_are_taken() {
        let at = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let now = 1_700_000_000_u64;
        let with = |key: &str, value: Value| {
            let mut claims = good(now);
            claims[key] = value;
            claims
        };
        let without = |key: &str| {
            let mut claims = good(now);
            claims.as_object_mut().unwrap().remove(key);
            claims
        };
        let judge = |claims: Value, typ: Option<&str>| {
            let Value::Object(claims) = claims else { panic!("no object") };
            Claims(claims).judge(&issuer(), typ, at)
        };
        for (claims, typ) in [
            (good(now), None),
            (good(now), Some("jwt")),
            (good(now), Some("at+jwt")),
            (good(now), Some("application/at+jwt")),
            (with("aud", json!("https://mcp.example.com/mcp/")), None),
            (with("aud", json!(["other", "https://mcp.example.com/mcp"])), None),
            (with("aud", json!("api://wharf")), None),
            (with("exp", json!(now as f64 + 0.5)), None),
            (with("exp", json!(now - 29)), None),
            (with("nbf", json!(now + 29)), None),
            (with("typ", json!("Bearer")), None),
        ] {
            let identity = judge(claims.clone(), typ).unwrap_or_else(|problem| panic!("{claims}: {problem}"));
            assert_eq!(identity.principal.to_string(), "user https://id.example.com/realm ann");
            assert!(identity.scopes.contains("mcp") && identity.scopes.contains("files:read"));
        }
        for (claims, typ, expected) in [
            (good(now), Some("id+jwt"), "access token"),
            (good(now), Some("dpop+jwt"), "access token"),
            (good(now), Some("secevent+jwt"), "access token"),
            (without("iss"), None, "issuer"),
            (with("iss", json!("https://id.example.com/realm/")), None, "issuer"),
            (with("iss", json!(["https://id.example.com/realm"])), None, "issuer"),
            (without("aud"), None, "no audience"),
            (with("aud", json!("https://other.example.com/mcp")), None, "another audience"),
            (with("aud", json!("https://mcp.example.com")), None, "another audience"),
            (with("aud", json!("HTTPS://MCP.EXAMPLE.COM/mcp")), None, "another audience"),
            (with("aud", json!([])), None, "another audience"),
            (with("aud", json!(["https://mcp.example.com/mcp", 7])), None, "malformed"),
            (with("aud", json!({ "a": 1 })), None, "malformed"),
            (without("exp"), None, "no expiry"),
            (with("exp", json!(now - 31)), None, "expired"),
            (with("exp", json!((now + 60).to_string())), None, "`exp` is not a time"),
            (with("exp", json!(-1)), None, "`exp` is not a time"),
            (with("exp", json!(1e300)), None, "`exp` is not a time"),
            (with("nbf", json!(now + 31)), None, "not valid yet"),
            (with("nbf", json!((now - 60).to_string())), None, "`nbf` is not a time"),
            (with("iat", json!(now + 31)), None, "in the future"),
            (with("cnf", json!({ "jkt": "x" })), None, "bound to a key"),
            (with("nonce", json!("n")), None, "not an access token"),
            (with("typ", json!("ID")), None, "not an access token"),
            (with("typ", json!("Refresh")), None, "not an access token"),
            (without("sub"), None, "no subject"),
            (with("sub", json!("")), None, "no subject"),
            (with("sub", json!("x".repeat(513))), None, "too long"),
        ] {
            let problem = judge(claims.clone(), typ).expect_err(&claims.to_string());
            assert!(problem.contains(expected), "{claims}: {problem}");
        }
    }

    #[test]
    fn a_token_without_audience_is_for_a_client_that_the_operator_names() {
        let at = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let judge = |more: Value, issuer: &Issuer| {
            let (Value::Object(mut claims), Value::Object(more)) = (good(1_700_000_000), more) else {
                panic!("no object")
            };
            claims.remove("aud");
            claims.extend(more);
            Claims(claims).judge(issuer, None, at).map(|identity| identity.is_for(|_| false))
        };
        let issuer = Issuer { audience: vec!["cli-1".into()], ..issuer() };
        assert_eq!(judge(json!({ "client_id": "cli-1", "token_use": "access" }), &issuer), Ok(true));
        let resource = issuer.resource.first().unwrap();
        for (more, part) in [
            (json!({ "client_id": "cli-2", "token_use": "access" }), "is not named in `audience`"),
            (json!({ "client_id": resource, "token_use": "access" }), "is not named in `audience`"),
            (json!({ "client_id": "cli-1", "token_use": "id" }), "it has no audience"),
            (json!({ "client_id": "cli-1" }), "it has no audience"),
            (json!({ "aud": "other", "client_id": "cli-1", "token_use": "access" }), ANOTHER_AUDIENCE),
        ] {
            let problem = judge(more.clone(), &issuer).expect_err(&more.to_string());
            assert!(problem.contains(part), "{more}: {problem}");
        }
    }

    #[test]
    fn roles_see_claims_of_every_kind() {
        let Value::Object(claims) = json!({
            "text": "a", "true": true, "level": 5, "half": 0.5, "nothing": null, "mixed": ["a", 7, false, null, ["b"], {}],
            "realm_access": { "roles": ["admin"], "of": { "app": { "roles": ["user"], "deeper": { "x": 1 } } } },
            "a.b": "first", "a": { "b": "second" },
        }) else {
            panic!("no object")
        };
        let texts = Claims(claims).texts();
        for (name, expected) in [
            ("text", &["a"][..]),
            ("true", &["true"]),
            ("level", &["5"]),
            ("half", &["0.5"]),
            ("nothing", &[]),
            ("mixed", &["a", "7", "false"]),
            ("realm_access.roles", &["admin"]),
            ("realm_access.of.app.roles", &["user"]),
            ("realm_access.of.app.deeper.x", &[]),
            ("a.b", &["first"]),
        ] {
            assert_eq!(texts.get(name).map(Vec::as_slice).unwrap_or_default(), expected, "{name}");
        }
        let large = json!({ "large": { "a": "x".repeat(MAX_CLAIM_BYTES), "b": "small" } });
        let texts = Claims(large.as_object().unwrap().clone()).texts();
        assert_eq!(texts.keys().collect::<Vec<_>>(), ["large.b"]);
    }

    #[test]
    fn a_token_is_for_the_server_or_for_profiles_that_are_there() {
        let at = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let judge = |audience: Value| {
            let Value::Object(mut claims) = good(1_700_000_000) else { panic!("no object") };
            claims.insert("aud".into(), audience);
            let identity = Claims(claims).judge(&issuer(), None, at).ok()?;
            Some([&["review"][..], &["other"], &[]].map(|there| identity.is_for(|name| there.contains(&name))))
        };
        let url = |rest: &str| json!(format!("https://mcp.example.com/mcp{rest}"));
        for (audience, expected) in [
            (url(""), Some([true, true, true])),
            (url("/"), Some([true, true, true])),
            (url("/review"), Some([true, false, false])),
            (json!([url("/review"), url("/other")]), Some([true, true, false])),
            (json!([url("/review"), url("")]), Some([true, true, true])),
            (url("/review/"), Some([true, false, false])),
            (url("/review//"), None),
            (url("/review/x"), None),
            (url("/Review"), None),
            (url("/review?x"), None),
            (url("/.."), None),
            (url("//review"), None),
            (url("review"), None),
        ] {
            assert_eq!(judge(audience.clone()), expected, "{audience}");
        }
    }

    #[test]
    fn what_is_no_signed_token_is_refused() {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let claims = part(&json!({}));
        let token = |header: Value| format!("{}.{claims}.c2ln", part(&header));
        for (text, expected) in [
            ("", "not a JSON Web Token"),
            ("a.b", "not a JSON Web Token"),
            ("a.b.c.d", "not a JSON Web Token"),
            ("e30.e30.", "not signed"),
            ("!.e30.c2ln", "header is malformed"),
            ("W10.e30.c2ln", "header is malformed"),
            ("e30.e30.c2ln", "names no algorithm"),
            (&token(json!({ "alg": "none" })), "not accepted"),
            (&token(json!({ "alg": "None" })), "not accepted"),
            (&token(json!({ "alg": "HS256" })), "not accepted"),
            (&token(json!({ "alg": 7 })), "names no algorithm"),
            (&token(json!({ "alg": "RS256", "crit": ["b64"], "b64": false })), "critical"),
        ] {
            let problem = Parts::read(text).err().unwrap_or_default();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
        assert!(Parts::read(&token(json!({ "alg": "RS256", "kid": "k", "jku": "https://evil.example" }))).is_ok());
    }
}
