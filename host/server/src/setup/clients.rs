//! Which clients there are, where their configs are and how they name a server. Taken from the documentation of each client, as it
//! was in November 2026.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::format::Format;

/// A client and its config.
#[derive(Debug, PartialEq, Eq)]
pub struct Client {
    /// As the command line names it.
    pub id: &'static str,
    pub title: &'static str,
    pub format: Format,
    /// The mapping in which its servers are, by their names.
    pub key: &'static str,
    kind: Kind,
    /// Whether it tells servers which folders its person has opened. Most clients do not.
    pub has_roots: bool,
    /// Whether it replaces variables such as `${workspaceFolder}` in arguments.
    pub has_variables: bool,
    /// What is to be done before it knows of a change.
    pub then: &'static str,
}

/// How a server is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `command` and `args`.
    Plain,
    /// The same, and that it is a program.
    Typed,
    /// The same, and that it comes from no extension of the editor.
    Custom,
    /// goose has other words for all of it.
    Goose,
}

/// A server as every client knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub name: String,
    pub command: String,
    pub args: Vec<String>,
}

pub const ALL: &[Client] = &[
    // Settings, Developer, Edit Config opens it. The same on Linux, where the config folder takes the place of Application Support.
    Client {
        id: "claude-desktop",
        title: "Claude Desktop",
        format: Format::Json,
        key: "mcpServers",
        kind: Kind::Plain,
        has_roots: false,
        has_variables: false,
        then: "quit Claude Desktop and start it again",
    },
    // The user's scope: what `claude mcp add --scope user` writes. It replaces ${NAME} by the environment.
    Client {
        id: "claude-code",
        title: "Claude Code",
        format: Format::Json,
        key: "mcpServers",
        kind: Kind::Typed,
        has_roots: true,
        has_variables: true,
        then: "start a new session of Claude Code",
    },
    // The user's own mcp.json ("MCP: Open User Configuration"); .vscode/mcp.json of a folder is written alike. `type` is required.
    Client {
        id: "vscode",
        title: "Visual Studio Code",
        format: Format::Json,
        key: "servers",
        kind: Kind::Typed,
        has_roots: true,
        has_variables: true,
        then: "start the server with \"MCP: List Servers\" in Visual Studio Code",
    },
    // Of all projects; .cursor/mcp.json of a folder is written alike. ${workspaceFolder} is the folder of the latter.
    Client {
        id: "cursor",
        title: "Cursor",
        format: Format::Json,
        key: "mcpServers",
        kind: Kind::Plain,
        has_roots: true,
        has_variables: true,
        then: "turn it on in Cursor's settings, under MCP",
    },
    // The command line, the extension and the app share it.
    Client {
        id: "codex",
        title: "Codex",
        format: Format::Toml,
        key: "mcp_servers",
        kind: Kind::Plain,
        has_roots: false,
        has_variables: false,
        then: "start Codex again",
    },
    // `source` was needed for a while to tell it from servers of extensions, and is read still.
    Client {
        id: "zed",
        title: "Zed",
        format: Format::Json,
        key: "context_servers",
        kind: Kind::Custom,
        has_roots: false,
        has_variables: false,
        then: "Zed starts it at once; its agent panel shows it",
    },
    Client {
        id: "goose",
        title: "goose",
        format: Format::Yaml,
        key: "extensions",
        kind: Kind::Goose,
        has_roots: true,
        has_variables: false,
        then: "start a new session of goose",
    },
    // What most other clients read.
    Client {
        id: "other",
        title: "another client with `mcpServers` in JSON",
        format: Format::Json,
        key: "mcpServers",
        kind: Kind::Plain,
        has_roots: false,
        has_variables: false,
        then: "start the client again",
    },
];

pub fn find(id: &str) -> Option<&'static Client> {
    ALL.iter().find(|client| client.id == id)
}

/// Where clients look for their configs.
#[derive(Debug, Clone)]
pub struct Places {
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`.
    pub config: Option<PathBuf>,
    /// `$CODEX_HOME`.
    pub codex: Option<PathBuf>,
    /// `$CLAUDE_CONFIG_DIR`.
    pub claude: Option<PathBuf>,
    pub is_mac: bool,
}

impl Places {
    pub fn here() -> Result<Self> {
        let home = std::env::home_dir().filter(|home| home.is_absolute()).context("there is no home directory")?;
        let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        Ok(Self {
            home,
            config: named("XDG_CONFIG_HOME"),
            codex: named("CODEX_HOME"),
            claude: named("CLAUDE_CONFIG_DIR"),
            is_mac: cfg!(target_os = "macos"),
        })
    }
}

impl Client {
    /// Its config. None for clients whose config has to be named.
    pub fn path(&self, places: &Places) -> Option<PathBuf> {
        let Places { home, config, codex, claude, is_mac } = places;
        let config = || config.clone().unwrap_or_else(|| home.join(".config"));
        let application = || if *is_mac { home.join("Library/Application Support") } else { config() };
        Some(match self.id {
            "claude-desktop" => application().join("Claude/claude_desktop_config.json"),
            "claude-code" => claude.as_ref().unwrap_or(home).join(".claude.json"),
            "vscode" => application().join("Code/User/mcp.json"),
            "cursor" => home.join(".cursor/mcp.json"),
            "codex" => codex.clone().unwrap_or_else(|| home.join(".codex")).join("config.toml"),
            "zed" if *is_mac => home.join(".config/zed/settings.json"),
            "zed" => config().join("zed/settings.json"),
            "goose" => config().join("goose/config.yaml"),
            _ => return None,
        })
    }

    /// The server as this client's config has it.
    fn written(&self, server: &Server) -> Value {
        let Server { name, command, args } = server;
        match self.kind {
            Kind::Plain => json!({ "command": command, "args": args }),
            Kind::Typed => json!({ "type": "stdio", "command": command, "args": args }),
            Kind::Custom => json!({ "source": "custom", "command": command, "args": args, "env": {} }),
            Kind::Goose => json!({
                "enabled": true, "type": "stdio", "name": name, "description": "Sandboxed plugins, served by wharf",
                "cmd": command, "args": args, "envs": {}, "timeout": 300
            }),
        }
    }

    /// The text with this server in it, in place of one of the same name. What a person has added to one that was wharf's already,
    /// such as variables of the environment or that it is turned off, stays.
    pub fn set(&self, text: &str, server: &Server) -> Result<String> {
        let servers = self.format.servers(text, self.key)?;
        let before = servers.get(&server.name);
        let is_wharf = self.servers(text)?.iter().any(|known| known.name == server.name && known.is_wharf());
        let written = match (before.filter(|_| is_wharf), self.written(server)) {
            (Some(Value::Object(before)), Value::Object(new)) => {
                let own = ["type", "source", "command", "cmd", "args", "name"];
                let new = new.into_iter().filter(|(key, _)| own.contains(&key.as_str()));
                before.clone().into_iter().chain(new).collect()
            }
            (_, new) => new,
        };
        if before == Some(&written) {
            return Ok(text.to_owned());
        }
        self.format.set(text, self.key, &server.name, &written)
    }

    /// The text without this server: exactly as it would be if the server had never been put in, if nothing but servers came in
    /// since the backup. `backup`: a text from before. None: there was no file.
    pub fn undo(&self, text: &str, name: &str, backup: Option<&str>) -> Result<Option<String>> {
        for before in backup.into_iter().chain(std::iter::once("")) {
            let Some(mut added) = self.added(before, text) else { continue };
            let all = added.len();
            added.retain(|server| server.name != name);
            if added.len() == all {
                continue;
            }
            let was_there = backup == Some(before) || !added.is_empty();
            return was_there.then(|| self.with(before, &added)).transpose();
        }
        self.format.remove(text, self.key, name).map(Some)
    }

    /// Whether one text becomes the other by putting in servers and in no other way. Then the earlier one is what to come back to
    /// when the servers are taken out.
    pub fn leads(&self, before: &str, text: &str) -> bool {
        self.added(before, text).is_some()
    }

    /// The servers that make one text of the other, in the order in which they were put in. None: something else was changed.
    fn added(&self, before: &str, text: &str) -> Option<Vec<Server>> {
        let known = self.format.servers(before, self.key).ok()?;
        let mut added = self.servers(text).ok()?;
        added.retain(|server| !known.contains_key(&server.name));
        let leads = |added: &[Server]| self.with(before, added).is_ok_and(|made| made == text);
        if leads(&added) {
            return Some(added);
        }
        // Some formats take a new server in before the others.
        added.reverse();
        leads(&added).then_some(added)
    }

    /// The text with all of these servers, put in one after the other.
    fn with(&self, text: &str, servers: &[Server]) -> Result<String> {
        servers.iter().try_fold(text.to_owned(), |text, server| self.set(&text, server))
    }

    /// The servers of a config that are programs.
    pub fn servers(&self, text: &str) -> Result<Vec<Server>> {
        let servers = self.format.servers(text, self.key)?;
        let program = |(name, written): (String, Value)| {
            let command = written.get("command").or_else(|| written.get("cmd"))?;
            // Zed had the arguments within the command for a while.
            let (command, args) = match command {
                Value::Object(command) => (command.get("path")?.as_str()?, command.get("args")),
                command => (command.as_str()?, written.get("args")),
            };
            let args = args.and_then(Value::as_array).into_iter().flatten();
            let args = args.filter_map(|argument| argument.as_str().map(str::to_owned)).collect();
            Some(Server { name, command: command.to_owned(), args })
        };
        Ok(servers.into_iter().filter_map(program).collect())
    }

    /// Whether there is anything under this name.
    pub fn has(&self, text: &str, name: &str) -> Result<bool> {
        Ok(self.format.servers(text, self.key)?.contains_key(name))
    }
}

impl Server {
    /// Whether it starts a wharf.
    pub fn is_wharf(&self) -> bool {
        std::path::Path::new(&self.command).file_name().is_some_and(|name| name == "wharf")
    }

    /// The command as one would type it.
    pub fn line(&self) -> String {
        let words = std::iter::once(&self.command).chain(&self.args);
        let quoted = words.map(|word| {
            let plain = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./:=,@+".contains(c));
            if plain { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) }
        });
        quoted.collect::<Vec<_>>().join(" ")
    }
}
