//! The supported MCP clients: where their configs are, and how each describes a server. Taken from the documentation of each client as of
//! November 2026.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::format::Format;

/// A client and its config.
#[derive(Debug, PartialEq, Eq)]
pub struct Client {
    /// The name on the command line.
    pub id: &'static str,
    pub title: &'static str,
    pub format: Format,
    /// The key of the mapping from names to servers.
    pub key: &'static str,
    kind: Kind,
    /// Whether the client tells servers which folders the user has opened (roots). Most clients do not.
    pub has_roots: bool,
    /// Whether the client expands variables such as `${workspaceFolder}` in arguments.
    pub has_variables: bool,
    /// What the user has to do to make the client use a changed config.
    pub next_step: &'static str,
}

/// The members that describe a server in a client's config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `command` and `args`.
    Plain,
    /// `command`, `args`, and `type = "stdio"`.
    Typed,
    /// `command`, `args`, and `source = "custom"`: the server does not come from an extension of the editor.
    Custom,
    /// goose's own names, such as `cmd` and `envs`.
    Goose,
}

/// An MCP server, in the members that all clients have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub name: String,
    pub command: String,
    pub args: Vec<String>,
}

pub const ALL: &[Client] = &[
    // Opened with Settings, Developer, Edit Config. On Linux it is in the config folder in place of Application Support.
    Client {
        id: "claude-desktop",
        title: "Claude Desktop",
        format: Format::Json,
        key: "mcpServers",
        kind: Kind::Plain,
        has_roots: false,
        has_variables: false,
        next_step: "quit Claude Desktop and start it again",
    },
    // The user scope, to which `claude mcp add --scope user` writes. Claude Code expands ${NAME} from the environment.
    Client {
        id: "claude-code",
        title: "Claude Code",
        format: Format::Json,
        key: "mcpServers",
        kind: Kind::Typed,
        has_roots: true,
        has_variables: true,
        next_step: "start a new session of Claude Code",
    },
    // The user's mcp.json ("MCP: Open User Configuration"). A folder's .vscode/mcp.json has the same format. `type` is required.
    Client {
        id: "vscode",
        title: "Visual Studio Code",
        format: Format::Json,
        key: "servers",
        kind: Kind::Typed,
        has_roots: true,
        has_variables: true,
        next_step: "start the server with \"MCP: List Servers\" in Visual Studio Code",
    },
    // For all projects. A folder's .cursor/mcp.json has the same format, and there ${workspaceFolder} is that folder.
    Client {
        id: "cursor",
        title: "Cursor",
        format: Format::Json,
        key: "mcpServers",
        kind: Kind::Plain,
        has_roots: true,
        has_variables: true,
        next_step: "turn it on in Cursor's settings, under MCP",
    },
    // Shared by the command line, the extension and the app.
    Client {
        id: "codex",
        title: "Codex",
        format: Format::Toml,
        key: "mcp_servers",
        kind: Kind::Plain,
        has_roots: false,
        has_variables: false,
        next_step: "start Codex again",
    },
    // Some versions need `source` to distinguish the server from those of extensions, and later ones still read it.
    Client {
        id: "zed",
        title: "Zed",
        format: Format::Json,
        key: "context_servers",
        kind: Kind::Custom,
        has_roots: false,
        has_variables: false,
        next_step: "Zed starts it at once; its agent panel shows it",
    },
    Client {
        id: "goose",
        title: "goose",
        format: Format::Yaml,
        key: "extensions",
        kind: Kind::Goose,
        has_roots: true,
        has_variables: false,
        next_step: "start a new session of goose",
    },
    // The format that most other clients read.
    Client {
        id: "other",
        title: "another client with `mcpServers` in JSON",
        format: Format::Json,
        key: "mcpServers",
        kind: Kind::Plain,
        has_roots: false,
        has_variables: false,
        next_step: "start the client again",
    },
];

pub fn find(id: &str) -> Option<&'static Client> {
    ALL.iter().find(|client| client.id == id)
}

/// The folders in which clients look for their configs.
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
    /// Returns the path of the client's config, or `None` if the user has to name it.
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

    /// Returns a server as this client's config describes it.
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

    /// Returns the text with this server added, or replacing one of the same name. If the replaced server was wharf, other members that
    /// a person has added stay, such as environment variables or that it is turned off.
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

    /// Returns the text without this server. If only servers were added since the backup, the result is the exact text without the
    /// server ever having been added. `backup`: an earlier text; `None` if the file did not exist. Returns `None` to delete the file.
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

    /// Whether `text` differs from `before` only by added servers. Then `before` is the text to restore when the servers are removed.
    pub fn only_adds_servers(&self, before: &str, text: &str) -> bool {
        self.added(before, text).is_some()
    }

    /// Returns the servers whose addition turns `before` into `text`, in the order of addition, or `None` if something else was changed.
    fn added(&self, before: &str, text: &str) -> Option<Vec<Server>> {
        let known = self.format.servers(before, self.key).ok()?;
        let mut added = self.servers(text).ok()?;
        added.retain(|server| !known.contains_key(&server.name));
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
        let program = |(name, written): (String, Value)| {
            let command = written.get("command").or_else(|| written.get("cmd"))?;
            // Some versions of Zed have the arguments inside `command`.
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

    /// Whether the config has a server of any kind under this name.
    pub fn has(&self, text: &str, name: &str) -> Result<bool> {
        Ok(self.format.servers(text, self.key)?.contains_key(name))
    }
}

impl Server {
    /// Whether this server is wharf.
    pub fn is_wharf(&self) -> bool {
        std::path::Path::new(&self.command).file_name().is_some_and(|name| name == "wharf")
    }

    /// Returns the command line, quoted for a shell.
    pub fn line(&self) -> String {
        let words = std::iter::once(&self.command).chain(&self.args);
        let quoted = words.map(|word| {
            let plain = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./:=,@+".contains(c));
            if plain { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) }
        });
        quoted.collect::<Vec<_>>().join(" ")
    }
}
