//! The plugins that should be served, and which of them are still being loaded: for requests that name something that is not in the
//! catalog.

use std::sync::Arc;

use super::{catalog::Catalog, filter::Filter};
use wharf_config::config::{Origin, PluginConfig};
use wharf_policy::roles::{Entry, EntryKind};

/// What should be served, whether it is or not.
#[derive(Debug, Default)]
pub struct Expected {
    /// All plugins that should be served, in order of precedence.
    pub wanted: Arc<[Arc<PluginConfig>]>,
    /// The plugins of which a version is being loaded that is neither served nor has failed, in order of their ids.
    pub loading: Vec<Arc<PluginConfig>>,
}

/// Something that a request names, and that is not in the catalog: a tool, a prompt, or a resource.
#[derive(Debug, Clone, Copy)]
pub struct Sought<'a> {
    pub kind: EntryKind,
    /// The name that clients use, or the URI.
    pub name: &'a str,
}

impl Sought<'_> {
    /// Whether a plugin could offer it, as far as the plugin's config tells.
    fn fits(&self, config: &PluginConfig) -> bool {
        let allows = |own: &str| match self.kind {
            EntryKind::Tool => config.allows_tool(own),
            EntryKind::Prompt => config.allows_prompt(own),
            EntryKind::Resource => true,
        };
        match self.kind {
            // A plugin publishes its URIs as they are.
            EntryKind::Resource => true,
            EntryKind::Tool | EntryKind::Prompt => {
                let own = self.name.strip_prefix(config.prefix.as_str());
                own.is_some_and(allows) || config.publishes_own_name(self.name) && allows(self.name)
            }
        }
    }

    /// Whether the name says that the plugin is meant: it begins with the plugin's prefix or id.
    fn means(&self, config: &PluginConfig) -> bool {
        let of_id = || {
            let rest = self.name.strip_prefix(config.id.as_str());
            rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()))
        };
        self.kind != EntryKind::Resource && (self.name.starts_with(config.prefix.as_str()) || of_id())
    }

    /// Whether the client could see it if the plugin offered it.
    fn is_seen(&self, config: &PluginConfig, filter: &Filter) -> bool {
        filter.sees(&match self.kind {
            EntryKind::Resource => Entry::read(&config.id, self.name, None),
            kind => Entry::new(kind, &config.id, self.name),
        })
    }
}

impl Expected {
    /// Returns the plugins that are being loaded, could offer what is sought, and would then offer it to this client.
    pub fn loading_with<'a>(&'a self, sought: &Sought<'_>, filter: &Filter) -> Vec<&'a PluginConfig> {
        let could = self.loading.iter().filter(|config| sought.fits(config) && sought.is_seen(config, filter));
        could.map(|config| &**config).collect()
    }

    /// Returns the plugins that the name of what is sought means, and that would offer it to this client if they loaded; the one with the
    /// longest prefix first.
    pub fn meant<'a>(&'a self, sought: &Sought<'_>, filter: &Filter) -> Vec<&'a PluginConfig> {
        let meant = self.wanted.iter().filter(|config| sought.means(config) && sought.is_seen(config, filter));
        let mut meant: Vec<&PluginConfig> = meant.map(|config| &**config).collect();
        meant.sort_by_key(|config| std::cmp::Reverse(config.prefix.len()));
        meant
    }

    /// Returns the plugins that are being loaded, of which no version is served yet, and of which this client could see something.
    /// `all`: whether files of the plugin folder count too, in which anybody who may write there can put what takes long.
    pub fn coming<'a>(&'a self, catalog: &Catalog, filter: &Filter, all: bool) -> Vec<&'a PluginConfig> {
        let known = |config: &PluginConfig| all || config.origin != Origin::DroppedIn;
        let served = |config: &PluginConfig| catalog.served().iter().any(|served| served.config.id == config.id);
        let loading = self.loading.iter().map(|config| &**config);
        loading.filter(|config| known(config) && !served(config) && filter.could_see(&config.id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use wharf_config::config::{self, CommandLine, Config, Named};

    use super::*;

    /// A config with these `[plugins]` tables.
    fn config(tables: &str) -> Config {
        config::from_text(tables, None, &CommandLine::default()).unwrap()
    }

    fn expected(tables: &str) -> Expected {
        let plugins = config(tables).plugins;
        Expected { wanted: plugins.clone().into(), loading: plugins }
    }

    fn ids(plugins: &[&PluginConfig]) -> Vec<String> {
        plugins.iter().map(|config| config.id.clone()).collect()
    }

    fn tool(name: &str) -> Sought<'_> {
        Sought { kind: EntryKind::Tool, name }
    }

    const PLUGINS: &str = "[plugins.a]\npath = '/x/a.wasm'\n[plugins.b]\npath = '/x/b.wasm'\nprefix = 'long_'\n\
         tools = ['read_*']\n[plugins.c]\npath = '/x/c.wasm'\nprefix = ''\ntools = ['only']\n";

    #[test]
    fn what_is_sought_is_awaited_of_those_that_could_have_it() {
        let (all, open) = (expected(PLUGINS), Filter::default());
        let of = |sought: Sought<'_>| ids(&all.loading_with(&sought, &open));
        assert_eq!(of(tool("a_read")), ["a"]);
        assert_eq!(of(tool("b_read_x")), [""; 0], "the prefix of b is another");
        assert_eq!(of(tool("long_read_x")), ["b"]);
        assert_eq!(of(tool("long_write")), [""; 0], "the operator leaves this tool out");
        assert_eq!(of(tool("only")), ["c"]);
        assert_eq!(of(Sought { kind: EntryKind::Prompt, name: "a_x" }), ["a", "c"]);
        assert_eq!(of(Sought { kind: EntryKind::Resource, name: "note:///a" }), ["a", "b", "c"]);
    }

    #[test]
    fn a_name_means_the_plugin_with_its_prefix_or_its_id() {
        let (all, open) = (expected(PLUGINS), Filter::default());
        let of = |name: &str| ids(&all.meant(&tool(name), &open));
        assert_eq!(of("long_write"), ["b", "c"]);
        assert_eq!(of("b_write"), ["b", "c"]);
        assert_eq!(of("b"), ["b", "c"]);
        assert_eq!(of("bad"), ["c"], "another word that begins alike");
    }

    /// A client whose profile leaves a plugin out neither waits for it nor learns of it.
    #[test]
    fn what_a_profile_hides_is_not_coming() {
        let all = expected(PLUGINS);
        let profiles = format!("{PLUGINS}[profiles.some]\nplugins = ['a']\n[profiles.tools]\ntools = ['long_*']\n");
        let profiles = config(&profiles).profiles;
        let filter = |name| Filter { rights: None, profile: profiles.find(Some(name)) };
        let (some, tools) = (filter("some"), filter("tools"));
        let catalog = Catalog::default();
        assert_eq!(ids(&all.coming(&catalog, &Filter::default(), false)), ["a", "b", "c"]);
        assert_eq!(ids(&all.coming(&catalog, &some, false)), ["a"]);
        assert_eq!(ids(&all.coming(&catalog, &tools, false)), ["a", "b", "c"], "any plugin may have such a tool");
        assert_eq!(ids(&all.loading_with(&tool("a_x"), &some)), ["a"]);
        assert_eq!(ids(&all.loading_with(&tool("long_read_x"), &some)), [""; 0]);
        assert_eq!(ids(&all.loading_with(&tool("long_read_x"), &tools)), ["b"]);
        assert_eq!(ids(&all.meant(&tool("long_x"), &some)), [""; 0]);
        assert!(some.names("a") && !some.names("b") && !tools.names("b"));
    }

    #[test]
    fn files_of_the_plugin_folder_are_waited_for_only_with_progress() {
        let config = config("");
        let dropped = Arc::new(config.dropped_in("d", "/x/d.wasm".into()));
        let named = Named::File("/x/n.wasm".into());
        let named = Arc::new(config.on_command_line(&named, &CommandLine::default()).unwrap());
        let all = Expected { wanted: Arc::default(), loading: vec![dropped, named] };
        let (catalog, open) = (Catalog::default(), Filter::default());
        assert_eq!(ids(&all.coming(&catalog, &open, false)), ["n"]);
        assert_eq!(ids(&all.coming(&catalog, &open, true)), ["d", "n"]);
    }
}
