//! Plugins with `source`: from a registry, a URL or a file into the store, with signatures, and into connected clients.

#![expect(clippy::disallowed_methods, reason = "tests write what wharf is to read; what they spawn ends with them")]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod debian;
mod fake;
mod habits;
mod hostile;
mod lifecycle;
mod logins;
mod older;
mod signed;

use std::path::PathBuf;

use e2e::{
    Folder,
    folder::{stderr, stdout},
};
use fake::Fake;

pub const LOCK: &str = "config/wharf/wharf.lock";
pub const CONFIG: &str = "config/wharf/wharf.toml";

/// A pair of keys: the private one at `NAME.pem`, the public one at `NAME.pub`.
pub fn key(folder: &Folder, name: &str) -> PathBuf {
    let pair = rcgen::KeyPair::generate().unwrap();
    let private = folder.write(&format!("{name}.pem"), pair.serialize_pem());
    folder.set_mode(&format!("{name}.pem"), 0o600);
    folder.write(&format!("{name}.pub"), pair.public_key_pem());
    private
}

/// Runs a command that succeeds, and returns what it prints.
pub async fn done(folder: &Folder, arguments: &[&str]) -> String {
    let output = folder.run(arguments, &[]).await;
    let said = stdout(&output) + &stderr(&output);
    assert!(output.status.success(), "wharf {arguments:?}: {said}");
    said
}

/// Runs a command that fails, and returns what it prints.
pub async fn failed(folder: &Folder, arguments: &[&str]) -> String {
    let output = folder.run(arguments, &[]).await;
    let said = stdout(&output) + &stderr(&output);
    assert!(!output.status.success(), "wharf {arguments:?} succeeds: {said}");
    said
}

/// Publishes a plugin of the repository.
pub async fn publish(folder: &Folder, registry: &Fake, plugin: &str, name: &str, key: Option<&str>) -> String {
    let component = folder.plugin_as(plugin, &format!("made/{plugin}.wasm"));
    let source = registry.source(name);
    let mut arguments = vec!["publish", &source, component.to_str().unwrap()];
    arguments.extend(key.iter().flat_map(|key| ["--key", key]));
    done(folder, &arguments).await
}

/// A component that tells models the same as the others of its plugin, and has other bytes.
pub fn variant(folder: &Folder, number: u8) -> String {
    let name = format!("made/variant-{number}.wasm");
    let mut bytes = std::fs::read(folder.plugin_as("version-a", &name)).unwrap();
    // A section that nobody reads.
    bytes.extend([0, 3, 1, b'x', number]);
    folder.write(&name, bytes);
    name
}

/// Publishes a component that is signed by acme.
pub async fn publish_variant(folder: &Folder, registry: &Fake, number: u8, name: &str) -> String {
    let component = variant(folder, number);
    done(folder, &["publish", &registry.source(name), &component, "--key", "acme.pem"]).await
}

/// The names of the files in the store.
pub fn stored(folder: &Folder) -> Vec<String> {
    let store = folder.home().join(".local/share/wharf/store");
    let Ok(entries) = std::fs::read_dir(store) else { return Vec::new() };
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub fn lock(folder: &Folder) -> String {
    std::fs::read_to_string(folder.join(LOCK)).unwrap_or_default()
}
