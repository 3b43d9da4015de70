//! Which clients list a server's tools again when it says that they changed, and what helps the others.

use super::clients::Client;

/// The clients that were seen not to list again, or to list again only when they are started.
const DEAF: &[&str] = &["codex", "qwen-code", "cline", "cline-vscode", "continue"];

impl Client {
    /// Whether the client lists tools again when they change, as far as is known.
    pub fn hears_changes(&self) -> bool {
        !DEAF.contains(&self.id)
    }

    /// Returns what to tell a person whose client will not show the tools of later plugins.
    pub fn remedy(&self) -> Option<String> {
        let says = "does not list tools again when they change, so a tool of a later plugin is unknown until it starts again; with --profile \
                    search, its model looks for tools, and finds such a tool at once";
        (!self.hears_changes()).then(|| format!("{} {says}", self.title))
    }
}

#[cfg(test)]
mod tests {
    use super::super::client_list::find;

    #[test]
    fn only_clients_that_do_not_list_again_get_a_remedy() {
        for (id, hears) in [("claude-code", true), ("codex", false), ("other", true)] {
            let client = find(id).unwrap();
            assert_eq!((client.hears_changes(), client.remedy().is_none()), (hears, hears), "{id}");
        }
        assert!(find("codex").unwrap().remedy().unwrap().contains("--profile search"));
    }
}
