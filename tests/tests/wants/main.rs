//! Wants of plugins: how they are embedded, shown, granted by a person, and revoked.

#![expect(clippy::disallowed_methods, reason = "tests write what wharf is to read; what they spawn ends with them")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dialogue;
mod pinned;
mod revoked;
mod secrets;
mod shown;

use std::path::PathBuf;

use e2e::{Folder, folder::stderr};

/// Wants of every kind.
pub const ALL: &str = r#"
http = [{ url = "https://api.example.com/", methods = ["GET", "POST"], why = "reads issues", secret = "token" }]
roots = { access = "read", why = "to attach files" }
env = ["TZ"]
ask = ["elicitation"]
secrets = [{ name = "token", why = "private repositories" }]
settings = [{ key = "org", type = "string", required = true, why = "whose issues" }, { key = "pages", type = "number" }]
"#;

/// A copy of a plugin with these wants, at `plugins/<name>.wasm`.
pub async fn wanting(folder: &Folder, plugin: &str, name: &str, wants: &str) -> PathBuf {
    let path = folder.plugin_as(plugin, &format!("plugins/{name}.wasm"));
    folder.write("wants.toml", wants);
    let embedded = folder.run(&["build", "--embed", path.to_str().unwrap(), "--wants", "wants.toml"], &[]).await;
    assert!(embedded.status.success(), "{}", stderr(&embedded));
    path
}
