//! `server_card` of `[http]`: what this server is and where, in a document that can be read before connecting (SEP-2127).

use anyhow::{Context, Result, ensure};
use http::Uri;
use serde_json::{Value, json};
use wharf_protocol::{Revision, model::ServerInfo};

use super::raw;

pub const CARD_TYPE: &str = "application/mcp-server-card+json";
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";
/// The longest text in a card, in characters.
const MAX_CHARS: usize = 100;
const MAX_NAME_BYTES: usize = 200;

/// The texts of the documents, ready to be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    pub card: String,
    /// The catalog of this host, which leads to the card.
    pub catalog: String,
}

/// Returns the documents, or `None` if the config does not ask for a card. `url`: where clients reach this server. `revisions`: the
/// revisions that are served.
pub fn resolve(
    raw: Option<raw::ServerCard>,
    url: Option<&str>,
    info: &ServerInfo,
    revisions: &[Revision],
) -> Result<Option<Card>> {
    let given = match raw {
        None | Some(raw::ServerCard::Is(false)) => return Ok(None),
        Some(raw::ServerCard::Is(true)) => None,
        Some(raw::ServerCard::Named(name)) => Some(name),
    };
    let url = url.context("`server_card` needs `public_url`: the card says where this server is")?;
    let uri: Uri = url.parse()?;
    let domain = uri.host().context("`public_url` has no host")?;
    let name = given.unwrap_or_else(|| default_name(domain, &info.name));
    check_name(&name)?;
    let text = |text: &str| text.trim().chars().take(MAX_CHARS).collect::<String>();
    let description = info.description.as_deref().map(text).filter(|text| !text.is_empty());
    let mut card = json!({
        "$schema": SCHEMA,
        "name": name,
        "version": info.version,
        "description": description.unwrap_or_else(|| format!("Tools, resources and prompts of {domain}.")),
        "remotes": [{
            "type": "streamable-http",
            "url": url,
            "supportedProtocolVersions": revisions.iter().map(|revision| revision.as_str()).collect::<Vec<_>>(),
        }],
    });
    let more = [
        ("title", info.title.as_deref().map(text).filter(|text| !text.is_empty()).map(Value::from)),
        ("websiteUrl", info.website.clone().map(Value::from)),
        ("icons", (!info.icons.is_empty()).then(|| json!(info.icons))),
    ];
    if let Some(members) = card.as_object_mut() {
        members.extend(more.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    }
    let (_, own) = name.split_once('/').unwrap_or_default();
    let catalog = json!({
        "specVersion": "1.0",
        "entries": [{
            "identifier": format!("urn:air:{domain}:mcp:{own}"),
            "type": CARD_TYPE,
            "url": format!("{url}/server-card"),
        }],
    });
    Ok(Some(Card { card: card.to_string(), catalog: catalog.to_string() }))
}

/// Returns the reversed domain and the server's name, in which all characters that are not allowed become `-`.
fn default_name(domain: &str, name: &str) -> String {
    let domain: Vec<&str> =
        domain.trim_matches(['[', ']']).split(['.', ':']).filter(|part| !part.is_empty()).rev().collect();
    let plain = |character: char| if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '-' };
    let name: String = name.chars().map(plain).collect();
    let name = name.trim_matches('-');
    format!("{}/{}", domain.join("."), if name.is_empty() { "wharf" } else { name })
}

fn check_name(name: &str) -> Result<()> {
    let plain = |text: &str, more: &[u8]| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
    };
    let fits = name.split_once('/').is_some_and(|(domain, own)| plain(domain, b".-") && plain(own, b"._-"));
    ensure!(
        fits && name.len() <= MAX_NAME_BYTES,
        "`server_card`: `{}` is not a name such as com.example/weather",
        name.escape_debug()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(name: &str) -> ServerInfo {
        ServerInfo {
            name: name.into(),
            title: None,
            version: "1.2.3".into(),
            description: Some("x".repeat(300)),
            website: None,
            icons: vec![],
        }
    }

    #[test]
    fn a_card_says_what_and_where() {
        let made = |raw, url: Option<&str>| resolve(Some(raw), url, &info("Our Files!"), &Revision::ALL);
        let Card { card, catalog } =
            made(raw::ServerCard::Is(true), Some("https://mcp.example.com/mcp")).unwrap().unwrap();
        let (card, catalog): (Value, Value) =
            (serde_json::from_str(&card).unwrap(), serde_json::from_str(&catalog).unwrap());
        assert_eq!(card["name"], "com.example.mcp/our-files");
        assert_eq!(card["description"].as_str().unwrap().len(), 100);
        assert_eq!(card["remotes"][0]["url"], "https://mcp.example.com/mcp");
        assert_eq!(card["remotes"][0]["supportedProtocolVersions"].as_array().unwrap().len(), Revision::ALL.len());
        assert_eq!(catalog["entries"][0]["identifier"], "urn:air:mcp.example.com:mcp:our-files");
        assert_eq!(catalog["entries"][0]["url"], "https://mcp.example.com/mcp/server-card");
        assert_eq!(made(raw::ServerCard::Is(false), None).unwrap(), None);
        assert!(made(raw::ServerCard::Is(true), None).is_err());
        for (name, valid) in [
            ("com.example/weather", true),
            ("weather", false),
            ("com.example/a/b", false),
            ("com example/a", false),
            ("com.example/", false),
            ("/a", false),
        ] {
            let made = made(raw::ServerCard::Named(name.into()), Some("https://example.com"));
            assert_eq!(made.is_ok(), valid, "{name}");
        }
    }
}
