//! How each MCP client describes a server in its config, and edits that add, replace and remove one.

use anyhow::Result;
use serde_json::{Value, json};

use super::{format::Format, server::Server};

/// A client and its config.
#[derive(Debug, PartialEq, Eq)]
pub struct Client {
    /// The name on the command line.
    pub id: &'static str,
    /// Other names by which it is known.
    pub names: &'static [&'static str],
    pub title: &'static str,
    pub format: Format,
    /// The key of the mapping from names to servers.
    pub key: &'static str,
    pub kind: Kind,
    /// Whether the client tells servers which folders the user has opened (roots). Most clients do not.
    pub has_roots: bool,
    /// Whether the client expands variables such as `${workspaceFolder}` in arguments.
    pub has_variables: bool,
    /// What the user has to do to make the client use a changed config.
    pub next_step: &'static str,
}

/// The members that describe a server in a client's config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `command` and `args`.
    Plain,
    /// `command`, `args`, and `type = "stdio"`.
    Typed,
    /// `command`, `args`, and `source = "custom"`: the server does not come from an extension of the editor.
    Custom,
    /// goose's own names, such as `cmd` and `envs`.
    Goose,
    /// `type = "local"`, and `command` with the arguments.
    Local,
    /// `command`, `args`, `type`, and the tools that may be used.
    Copilot,
    /// An element of a list: `name`, `command` and `args`.
    Named,
}

/// A server that an edit has removed.
#[derive(Debug, PartialEq, Eq)]
pub struct Undone {
    /// The text without the server; `None` to delete the file.
    pub text: Option<String>,
    /// Whether the text has again what was replaced by force.
    pub is_restored: bool,
}

impl Client {
    /// Returns a server as this client's config describes it.
    fn written(&self, server: &Server) -> Value {
        let Server { name, command, args } = server;
        match self.kind {
            Kind::Plain => json!({ "command": command, "args": args }),
            Kind::Typed => json!({ "type": "stdio", "command": command, "args": args }),
            Kind::Custom => json!({ "source": "custom", "command": command, "args": args, "env": {} }),
            Kind::Local => {
                let line: Vec<&String> = std::iter::once(command).chain(args).collect();
                json!({ "type": "local", "command": line, "enabled": true })
            }
            Kind::Copilot => json!({ "type": "local", "command": command, "args": args, "tools": ["*"] }),
            Kind::Named => json!({ "name": name, "command": command, "args": args }),
            Kind::Goose => json!({
                "enabled": true, "type": "stdio", "name": name, "description": "Sandboxed plugins, served by wharf",
                "cmd": command, "args": args, "envs": {}, "timeout": 300
            }),
        }
    }

    /// Whether wharf edits the client's config. If not, a person adds `lines`.
    pub fn is_edited(&self) -> bool {
        self.format != Format::Yaml
    }

    /// Returns the lines of YAML that a person adds for this server. Values are written as JSON, which is valid YAML. `is_new`: the config
    /// does not exist yet.
    pub fn lines(&self, server: &Server, is_new: bool) -> String {
        let is_list = self.kind == Kind::Named;
        // A config of Continue without these three lines is invalid.
        let mut text =
            if is_list && is_new { "name: Local Config\nversion: 1.0.0\nschema: v1\n" } else { "" }.to_owned();
        text += &format!("{}:\n", self.key);
        if !is_list {
            text += &format!("  {}:\n", Value::from(server.name.as_str()));
        }
        for (at, (key, value)) in self.written(server).as_object().into_iter().flatten().enumerate() {
            text += if is_list && at == 0 { "  - " } else { "    " };
            text += &format!("{key}: {value}\n");
        }
        text
    }

    /// Returns the text with this server added, or replacing one of the same name. If the replaced server was wharf, or the one that wharf runs
    /// now, its other members stay, such as environment variables or that it is turned off.
    pub fn set(&self, text: &str, server: &Server) -> Result<String> {
        let servers = self.format.servers(text, self.key)?;
        let before = servers.get(&server.name);
        let is_kept = self
            .servers(text)?
            .iter()
            .any(|known| known.name == server.name && (known.is_wharf() || server.is_wharf() && server.runs(known)));
        let written = match (before.filter(|_| is_kept), self.written(server)) {
            (Some(Value::Object(before)), Value::Object(new)) => {
                let own = ["type", "source", "command", "args"];
                let new = new.into_iter().filter(|(key, _)| own.contains(&key.as_str()));
                // Cline's own form, which would be a second description of the same server.
                let kept = before.clone().into_iter().filter(|(key, _)| key != "transport");
                kept.chain(new).collect()
            }
            (_, new) => new,
        };
        if before == Some(&written) {
            return Ok(text.to_owned());
        }
        self.format.set(text, self.key, &server.name, &written)
    }

    /// Removes this server. If only servers were added since the backup, the result is the exact text without the server ever having been
    /// added, so a server that was replaced by force is there again. `backup`: an earlier text; `None` if the file did not exist.
    pub fn undo(&self, text: &str, name: &str, backup: Option<&str>) -> Result<Undone> {
        for before in backup.into_iter().chain(std::iter::once("")) {
            let Some(mut added) = self.added(before, text) else { continue };
            let all = added.len();
            added.retain(|server| server.name != name);
            if added.len() == all {
                continue;
            }
            let was_there = backup == Some(before) || !added.is_empty();
            let text = was_there.then(|| self.with(before, &added)).transpose()?;
            return Ok(Undone { text, is_restored: self.has(before, name)? });
        }
        let text = self.format.remove(text, self.key, name)?;
        // Something else was changed since, so only the replaced server is taken from the backup.
        let replaced = backup.map(|backup| self.format.servers(backup, self.key)).transpose()?;
        let replaced = replaced.and_then(|servers| servers.get(name).cloned());
        match replaced.filter(|written| !program(name, written).is_some_and(|server| server.is_wharf())) {
            Some(replaced) => {
                let text = self.format.set(&text, self.key, name, &replaced)?;
                Ok(Undone { text: Some(text), is_restored: true })
            }
            None => Ok(Undone { text: Some(text), is_restored: false }),
        }
    }

    /// Whether `text` differs from `before` only by servers that were added, or replaced by wharf. Then `before` is the text to restore
    /// when the servers are removed.
    pub fn only_adds_servers(&self, before: &str, text: &str) -> bool {
        self.added(before, text).is_some()
    }

    /// Returns the servers whose addition turns `before` into `text`, in the order of addition, or `None` if something else was changed.
    fn added(&self, before: &str, text: &str) -> Option<Vec<Server>> {
        let known = self.format.servers(before, self.key).ok()?;
        let mut added = self.servers(text).ok()?;
        // What was wharf before it was replaced is not worth restoring.
        added.retain(|server| match known.get(&server.name) {
            Some(before) => server.is_wharf() && !program(&server.name, before).is_some_and(|server| server.is_wharf()),
            None => true,
        });
        let reproduces = |added: &[Server]| self.with(before, added).is_ok_and(|made| made == text);
        if reproduces(&added) {
            return Some(added);
        }
        // Some formats add a new server before the others.
        added.reverse();
        reproduces(&added).then_some(added)
    }

    /// Returns the text with all of these servers, added one after the other.
    fn with(&self, text: &str, servers: &[Server]) -> Result<String> {
        servers.iter().try_fold(text.to_owned(), |text, server| self.set(&text, server))
    }

    /// Returns the servers of a config that are started as programs.
    pub fn servers(&self, text: &str) -> Result<Vec<Server>> {
        let servers = self.format.servers(text, self.key)?;
        Ok(servers.iter().filter_map(|(name, written)| program(name, written)).collect())
    }

    /// Returns the names of the servers of a config that are elsewhere, at a URL.
    pub fn remote(&self, text: &str) -> Result<Vec<String>> {
        let has_url = |written: &Value| {
            let mut keys = described(written).as_object().into_iter().flat_map(|entry| entry.keys());
            keys.any(|key| key == "uri" || key.to_ascii_lowercase().ends_with("url"))
        };
        let servers = self.format.servers(text, self.key)?.into_iter();
        let remote = servers.filter(|(name, written)| program(name, written).is_none() && has_url(written));
        Ok(remote.map(|(name, _)| name).collect())
    }

    /// Whether the config has a server of any kind under this name.
    pub fn has(&self, text: &str, name: &str) -> Result<bool> {
        Ok(self.format.servers(text, self.key)?.contains_key(name))
    }

    /// Returns the names of the variables that the entry of a server sets.
    pub fn variables(&self, text: &str, name: &str) -> Result<Vec<String>> {
        let servers = self.format.servers(text, self.key)?;
        let entry = servers.get(name).map(described);
        let set =
            entry.and_then(|entry| ["env", "envs", "environment"].iter().find_map(|key| entry.get(key)?.as_object()));
        Ok(set.into_iter().flatten().map(|(name, _)| name.clone()).collect())
    }

    /// Returns the folder in which the client starts a server, if its entry names one.
    pub fn folder(&self, text: &str, name: &str) -> Result<Option<String>> {
        let servers = self.format.servers(text, self.key)?;
        let folder = servers.get(name).map(described).and_then(|entry| entry.get("cwd")?.as_str());
        Ok(folder.map(str::to_owned))
    }

    /// Returns what keeps the client from using this server as it is written, and how to mend it.
    pub fn fault(&self, text: &str, name: &str) -> Result<Option<(String, String)>> {
        let servers = self.format.servers(text, self.key)?;
        let Some(written) = servers.get(name) else { return Ok(None) };
        let described = described(written);
        let (list, args) = match described.get("command") {
            Some(Value::Object(command)) => ("args", command.get("args")),
            Some(command @ Value::Array(_)) => ("command", Some(command)),
            _ => ("args", described.get("args")),
        };
        let is_list = |args: &Value| args.as_array().is_some_and(|args| args.iter().all(Value::is_string));
        if args.is_some_and(|args| !is_list(args)) {
            let says = format!("`{list}` is not a list of texts, so the client does not start it");
            return Ok(Some((
                says,
                format!("write a list, with one text for each argument, as the value of `{list}`"),
            )));
        }
        for (key, off) in [("disabled", true), ("enabled", false)] {
            if written.get(key) == Some(&Value::Bool(off)) {
                let says = format!("it is disabled (`{key}` is {off}), so the client does not start it");
                return Ok(Some((says, format!("set `{key}` to {}, or remove the entry", !off))));
            }
        }
        Ok(None)
    }
}

/// Returns the part of an entry that describes the program.
fn described(written: &Value) -> &Value {
    // Cline writes its entries this way.
    written.get("transport").filter(|transport| transport.is_object()).unwrap_or(written)
}

/// Returns the program that an entry starts, or `None` if it starts no program.
fn program(name: &str, written: &Value) -> Option<Server> {
    let described = described(written);
    let words = |args: Option<&Value>| -> Vec<String> {
        let args = args.and_then(Value::as_array).into_iter().flatten();
        args.filter_map(|argument| argument.as_str().map(str::to_owned)).collect()
    };
    let (command, args) = match described.get("command")? {
        // Some versions of Zed have the arguments inside `command`.
        Value::Object(command) => (command.get("path")?.as_str()?.to_owned(), words(command.get("args"))),
        line @ Value::Array(_) => {
            let mut line = words(Some(line)).into_iter();
            (line.next()?, line.collect())
        }
        command => (command.as_str()?.to_owned(), words(described.get("args"))),
    };
    Some(Server { name: name.to_owned(), command, args })
}
