//! What it costs to know who calls: access tokens that are checked for every request, and roles.

use anyhow::Result;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rcgen::{KeyPair, PKCS_ED25519, SigningKey};
use serde_json::json;

use crate::{
    Effort,
    report::Report,
    rows::{ECHO, Site, message, ratio, turns},
    servers::{Built, Era, Http, show},
};

const EVERYBODY: &str = "[roles.everybody]\nwhen = 'anyone'\nplugins = ['*']\n";
const ROLES: &str = "[roles.reader]\nwhen = { scope = 'files:read' }\ntools = ['files_*']\n[roles.echo]\n\
    when = { scope = 'mcp', group = 'echo' }\nplugins = ['echo']\nlimits = { calls_per_minute = 1000000 }\n";

/// With a token that was found good a moment ago, and with that and roles, each against none of it.
pub async fn rows(built: &Built, effort: &Effort, report: &mut Report, plain: &Http) -> Result<()> {
    let key = KeyPair::generate_for(&PKCS_ED25519)?;
    let x = URL_SAFE_NO_PAD.encode(key.public_key_raw());
    let keys = json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "x": x, "kid": "one", "alg": "EdDSA" }] });
    let header = json!({ "alg": "EdDSA", "kid": "one" });
    let claims = json!({
        "iss": "https://id.example.com", "aud": "https://mcp.example.com/mcp", "sub": "ann", "scope": "mcp", "groups": ["echo"],
        "exp": 9_999_999_999_u64,
    });
    let part = |part: &serde_json::Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let signed = format!("{}.{}", part(&header), part(&claims));
    let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes())?));
    let auth = "[http]\npublic_url = 'https://mcp.example.com/mcp'\n[auth]\nscopes = ['mcp']\n[[auth.issuers]]\n\
        url = 'https://id.example.com'\njwks_file = 'keys.json'\n";
    for (name, roles, target) in [
        ("HTTP modern, fresh, with access tokens / without", EVERYBODY, 0.95),
        ("HTTP modern, fresh, with access tokens and roles / without", ROLES, 0.93),
    ] {
        let site = Site::new(built, &format!("{auth}{roles}{ECHO}"))?;
        std::fs::write(site.folder.path().join("keys.json"), keys.to_string())?;
        let known = Http::wharf(built, &site.config()).await?;
        let small = message(32);
        let mut ours = known.connections(Era::Modern, 16, "echo", &small).await?;
        show(&mut ours, &token)?;
        let mut theirs = plain.connections(Era::Modern, 16, "echo", &small).await?;
        let both = turns(effort, [&known, plain], [&mut ours, &mut theirs], 32).await?;
        report.row(ratio(name, target, &both));
    }
    Ok(())
}
