//! Says what a new entry opens to the plugins.

use std::path::{Path, PathBuf};

use crate::{
    cli::{arguments::Run, missing_grants::is_variable},
    setup::clients::Client,
};
use wharf_base::text;
use wharf_config::config::{self, Config, Origin, PluginConfig};
use wharf_policy::access::{capability::Access, scope::RootsFrom};

/// Returns one line for each folder and URL that the command line opens.
pub fn opened(run: &Run, config: &Config, client: &Client, home: &Path) -> Vec<String> {
    let all = config.plugins.iter().map(|plugin| &**plugin);
    let plugins: Vec<&PluginConfig> = all.filter(|plugin| plugin.origin == Origin::CommandLine).collect();
    let mut lines = Vec::new();
    let with_roots = plugins.iter().filter(|plugin| plugin.grants.roots.0.is_some());
    let to = with_roots.clone().map(|plugin| format!("`{}`", plugin.id)).collect::<Vec<_>>().join(" and ");
    if let Some(access) = with_roots.filter_map(|plugin| plugin.grants.roots.0).max() {
        let rules = config.folder_rules(config::cache_dir().as_deref());
        let all = [&rules.named.1, &rules.own, &rules.always].map(|one| &one.trusted);
        let trusted: Vec<PathBuf> = all.iter().flat_map(|one| one.files.iter().chain(&one.trees)).cloned().collect();
        let variables = run.named.paths.iter().chain(&run.granted.roots).filter(|path| is_variable(path));
        for folder in config.roots.fixed.iter().chain(variables) {
            lines.push(format!("opens {} to {to} {}", text::path(folder), how(folder, access, home, &trusted)));
        }
        // A folder without an option takes the place of those of the client.
        let are_replaced =
            config.roots.from == RootsFrom::Operator || run.named.paths.iter().any(|path| is_variable(path));
        if !are_replaced && client.has_roots {
            let for_what = if access == Access::ReadWrite { "reading and writing" } else { "reading" };
            let within = config
                .roots
                .within
                .as_deref()
                .map(|folders| folders.iter().map(|folder| text::path(folder)).collect::<Vec<_>>().join(" or "));
            lines.push(format!(
                "opens the folders that {} has open to {to} for {for_what}, as far as they lie within {}",
                client.title,
                within.as_deref().unwrap_or("your home directory")
            ));
        }
    }
    for plugin in plugins {
        let rules = plugin.grants.http.0.rules.iter().map(|rule| format!("lets `{}` send {rule}", plugin.id));
        lines.extend(rules);
    }
    lines
}

/// Says what may be done in a folder, and what is in it that a person may not think of.
fn how(folder: &Path, access: Access, home: &Path, trusted: &[PathBuf]) -> String {
    let hidden = if folder == home {
        ": your whole home directory, with all hidden files, such as the keys in .ssh"
    } else if home.starts_with(folder) {
        ": your home directory is in it, with all hidden files, such as the keys in .ssh"
    } else if folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')) {
        ", with all hidden files"
    } else {
        ""
    };
    // The sandbox decides by the identity of files; this is what a person can follow.
    let is_trusted = trusted.iter().any(|file| file.starts_with(folder));
    match access {
        Access::ReadWrite if is_trusted => {
            format!("for reading only, since files that wharf trusts are in it{hidden}")
        }
        Access::ReadWrite => format!("for reading and writing{hidden}"),
        Access::Read => format!("for reading{hidden}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_directory_is_more_than_it_looks() {
        let home = Path::new("/home/me");
        let says = |folder: &str, access, trusted: &[&str]| {
            how(Path::new(folder), access, home, &trusted.iter().map(PathBuf::from).collect::<Vec<_>>())
        };
        for (folder, expected) in [
            ("/home/me/docs", "for reading and writing"),
            (
                "/home/me",
                "for reading and writing: your whole home directory, with all hidden files, such as the keys in .ssh",
            ),
            (
                "/",
                "for reading and writing: your home directory is in it, with all hidden files, such as the keys in .ssh",
            ),
            ("/home/me/.config", "for reading and writing, with all hidden files"),
        ] {
            assert_eq!(says(folder, Access::ReadWrite, &[]), expected, "{folder}");
        }
        assert!(
            says("/home/me", Access::ReadWrite, &["/home/me/.config/wharf/wharf.toml"]).starts_with("for reading only")
        );
        assert_eq!(says("/srv", Access::Read, &["/srv/wharf.toml"]), "for reading");
    }
}
