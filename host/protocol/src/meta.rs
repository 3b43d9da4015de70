//! The `_meta` member of request parameters: what a request says of itself.
//!
//! A request makes a *modern claim* if its `_meta` has the protocol version key, whatever its value; nothing else counts.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{Id, Level, Object, RpcError, capability::ClientCapabilities};

pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// The `_meta` object of one request; empty if it has none.
#[derive(Debug, Clone, Default)]
pub struct RequestMeta {
    object: Object,
    /// As written, since a token must be echoed with its exact type.
    pub progress_token: Option<Id>,
}

/// What a modern request must say of itself.
#[derive(Debug, Clone)]
pub struct ModernClaim {
    pub version: String,
    pub capabilities: ClientCapabilities,
}

#[derive(Deserialize)]
struct WithMeta<'a> {
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WithToken<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: Option<&'a RawValue>,
}

impl RequestMeta {
    pub fn read(params: Option<&RawValue>) -> Result<Self, RpcError> {
        let Some(params) = params else { return Ok(Self::default()) };
        let outer: WithMeta = serde_json::from_str(params.get())
            .map_err(|error| RpcError::invalid_params(format!("`params`: {error}")))?;
        let Some(meta) = outer.meta else { return Ok(Self::default()) };
        let object: Object =
            serde_json::from_str(meta.get()).map_err(|_| RpcError::invalid_params("`_meta` must be an object"))?;
        let token: WithToken =
            serde_json::from_str(meta.get()).map_err(|error| RpcError::invalid_params(format!("`_meta`: {error}")))?;
        let progress_token = match token.token {
            None => None,
            Some(raw) => Some(
                Id::from_raw(raw.get())
                    .ok_or_else(|| RpcError::invalid_params("`_meta.progressToken` is a string or an integer"))?,
            ),
        };
        Ok(Self { object, progress_token })
    }

    pub fn object(&self) -> &Object {
        &self.object
    }

    pub fn claims_modern(&self) -> bool {
        self.object.contains_key(PROTOCOL_VERSION)
    }

    /// The required keys, with their types checked; the message names what is missing.
    pub fn modern_claim(&self) -> Result<ModernClaim, RpcError> {
        let version = match self.object.get(PROTOCOL_VERSION) {
            Some(Value::String(version)) => version.clone(),
            Some(_) => {
                return Err(RpcError::invalid_params(format!("`_meta` key {PROTOCOL_VERSION} must be a string")));
            }
            None => return Err(missing(&self.object)),
        };
        let capabilities = match self.object.get(CLIENT_CAPABILITIES) {
            Some(Value::Object(capabilities)) => ClientCapabilities::read(capabilities),
            Some(_) => {
                return Err(RpcError::invalid_params(format!("`_meta` key {CLIENT_CAPABILITIES} must be an object")));
            }
            None => return Err(missing(&self.object)),
        };
        Ok(ModernClaim { version, capabilities })
    }

    /// The level a modern request asks log messages for; absent means none at all.
    pub fn log_level(&self) -> Result<Option<Level>, RpcError> {
        match self.object.get(LOG_LEVEL) {
            None => Ok(None),
            Some(value) => value
                .as_str()
                .and_then(Level::parse)
                .map(Some)
                .ok_or_else(|| RpcError::invalid_params(format!("`_meta` key {LOG_LEVEL} is not a log level"))),
        }
    }

    pub fn client_info(&self) -> Option<&Value> {
        self.object.get(CLIENT_INFO)
    }
}

fn missing(meta: &Object) -> RpcError {
    let names: Vec<&str> =
        [PROTOCOL_VERSION, CLIENT_CAPABILITIES].into_iter().filter(|key| !meta.contains_key(*key)).collect();
    RpcError::invalid_params(format!("missing `_meta` key {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::INVALID_PARAMS;

    fn read(params: &str) -> Result<RequestMeta, RpcError> {
        let raw = RawValue::from_string(params.to_owned()).unwrap();
        RequestMeta::read(Some(&raw))
    }

    #[test]
    fn only_the_version_key_is_a_claim() {
        for (params, claims) in [
            ("{}", false),
            (r#"{"_meta":{}}"#, false),
            (r#"{"_meta":{"progressToken":1}}"#, false),
            (r#"{"_meta":{"io.modelcontextprotocol/related-task":{}}}"#, false),
            (r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}"#, false),
            (r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}"#, true),
            (r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}}"#, true),
        ] {
            assert_eq!(read(params).unwrap().claims_modern(), claims, "{params}");
        }
    }

    #[test]
    fn a_claim_needs_both_keys_with_their_types() {
        for params in [
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":7,"io.modelcontextprotocol/clientCapabilities":{}}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":[]}}"#,
        ] {
            assert_eq!(read(params).unwrap().modern_claim().unwrap_err().code, INVALID_PARAMS, "{params}");
        }
        for params in [r#"{"_meta":7}"#, r#"{"_meta":{"progressToken":1.5}}"#, r#"{"_meta":{"progressToken":{}}}"#] {
            assert_eq!(read(params).unwrap_err().code, INVALID_PARAMS, "{params}");
        }
    }

    #[test]
    fn tokens_keep_their_type() {
        assert_eq!(read(r#"{"_meta":{"progressToken":"1"}}"#).unwrap().progress_token, Some(Id::string("1")));
        assert_eq!(read(r#"{"_meta":{"progressToken":1}}"#).unwrap().progress_token, Some(Id::number(1)));
    }
}
