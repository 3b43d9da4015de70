//! Abilities that the official suite does not test: the plugin's config, its directories, HTTP requests, random numbers, and failures. The
//! plugins in other languages have the same tools.

#![allow(clippy::disallowed_methods, reason = "a plugin sees only the files that are open to it")]

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    time::{SystemTime, UNIX_EPOCH},
};

use wharf_sdk::{
    http::{self, Method, Request},
    prelude::*,
    serde_json::{Value, json},
};

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct File {
    path: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Fetch {
    url: String,
    /// The environment variable whose value is sent as `authorization`.
    variable: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "wharf_sdk::serde")]
#[schemars(crate = "wharf_sdk::schemars")]
struct Fails {
    /// `throws` or `returns`.
    how: String,
}

struct Abilities;

#[tools]
impl Abilities {
    /// The plugin's config.
    fn ability_config() -> String {
        host::config()
    }

    /// The directories that are open to this call.
    fn ability_directories() -> String {
        let open = host::directories().into_iter();
        let open: Vec<Value> = open.map(|one| json!({ "path": one.path, "writable": one.writable })).collect();
        json!(open).to_string()
    }

    /// The text of a file.
    fn ability_read(args: File) -> Result<String> {
        Ok(std::fs::read_to_string(args.path)?)
    }

    /// What a server answers.
    fn ability_fetch(args: Fetch) -> Result<String> {
        let mut request = Request::new(Method::Get, args.url);
        if let Some(variable) = args.variable {
            request = request.header("authorization", std::env::var(variable)?);
        }
        let response = http::send(&request)?;
        Ok(format!("{} {}", response.status, String::from_utf8_lossy(&response.body)))
    }

    /// What has to differ from call to call.
    fn ability_chance() -> Result<String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        // The standard library has no random numbers except the seeds of its hash maps.
        let random = || RandomState::new().hash_one("a").to_string();
        let clock = u64::try_from(now.as_millis())?;
        Ok(json!({ "random": random(), "secure": random(), "hash": random(), "clock_ms": clock }).to_string())
    }

    /// Fails.
    #[allow(clippy::panic, reason = "what a plugin does that was written badly")]
    fn ability_fails(args: Fails) -> Result<String> {
        match args.how.as_str() {
            "throws" => panic!("thrown on purpose"),
            _ => Err(Error::failed("returned on purpose")),
        }
    }
}
