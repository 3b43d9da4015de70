//! Tools for plugin authors: `wharf test`, with the real binary on the plugins of this repository.

#![expect(clippy::disallowed_methods, reason = "tests write what wharf is to read; what they spawn ends with them")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adopt;
mod cases;
mod configured;
mod dev;
mod existing;
mod failing;
mod line;
mod pack;
mod snapshots;
mod stranger;

use e2e::{Folder, folder};

/// The folder `p` of a plugin of this repository: its `plugin.toml`, with these lines below `[dev]`, and a file of cases.
pub fn project(plugin: &str, dev: &str, cases: &str) -> Folder {
    let folder = Folder::new();
    folder.plugin_as(plugin, &format!("p/dist/{plugin}.wasm"));
    folder.write("p/plugin.toml", manifest(plugin, dev));
    folder.write("p/tests/a.toml", cases);
    folder
}

/// A `plugin.toml` whose plugin is already built.
pub fn manifest(plugin: &str, dev: &str) -> String {
    format!("name = '{plugin}'\n[build]\ncommand = 'true'\nartifact = 'dist/{plugin}.wasm'\n[dev]\n{dev}\n")
}

/// Returns the output of a command and its exit status.
pub struct Played {
    pub code: Option<i32>,
    pub shown: String,
    pub complained: String,
}

impl Played {
    /// Checks that all of these texts are shown.
    pub fn shows(&self, lines: &[&str]) -> &Self {
        for line in lines {
            assert!(self.shown.contains(line), "`{line}` is missing in:\n{}{}", self.shown, self.complained);
        }
        self
    }
}

pub async fn play(folder: &Folder, more: &[&str], environment: &[(&str, &str)]) -> Played {
    let output = folder.run(&[&["test", "p"], more].concat(), environment).await;
    Played { code: output.status.code(), shown: folder::stdout(&output), complained: folder::stderr(&output) }
}

/// Runs cases that all pass once their snapshots exist.
pub async fn all_pass(plugin: &str, dev: &str, cases: &str) {
    let folder = project(plugin, dev, cases);
    let all = cases.matches("[[case]]").count() + 1;
    for more in [&["--accept"][..], &[]] {
        let played = play(&folder, more, &[]).await;
        played.shows(&[&format!("{all} passed, 0 failed")]);
        assert_eq!(played.code, Some(0), "{}", played.complained);
    }
}
