//! The supported MCP clients and where their configs are. Taken from the documentation of each client as of November 2026;
//! examples/clients.md says which of them were tried with the real program.

#![expect(clippy::disallowed_methods, reason = "looks which of a client's possible configs exists")]

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{
    clients::{Client, Kind},
    format::Format,
};

/// A client with `mcpServers` in JSON, as most have it. The other clients are described by how they differ from it.
const PLAIN: Client = Client {
    id: "other",
    names: &[],
    title: "another client with `mcpServers` in JSON",
    format: Format::Json,
    key: "mcpServers",
    kind: Kind::Plain,
    has_roots: false,
    has_variables: false,
    next_step: "start the client again",
};

pub const ALL: &[Client] = &[
    // Opened with Settings, Developer, Edit Config. On Linux it is in the config folder in place of Application Support.
    Client {
        id: "claude-desktop",
        title: "Claude Desktop",
        next_step: "quit Claude Desktop and start it again",
        ..PLAIN
    },
    // The user scope, to which `claude mcp add --scope user` writes. Claude Code expands ${NAME} from the environment.
    Client {
        id: "claude-code",
        title: "Claude Code",
        kind: Kind::Typed,
        has_roots: true,
        has_variables: true,
        next_step: "start a new session of Claude Code",
        ..PLAIN
    },
    // The user's mcp.json ("MCP: Open User Configuration"). A folder's .vscode/mcp.json has the same format. `type` is required.
    Client {
        id: "vscode",
        names: &["github-copilot"],
        title: "Visual Studio Code",
        key: "servers",
        kind: Kind::Typed,
        has_roots: true,
        has_variables: true,
        next_step: "start the server with \"MCP: List Servers\" in Visual Studio Code",
        ..PLAIN
    },
    // For all projects. A folder's .cursor/mcp.json has the same format, and there ${workspaceFolder} is that folder.
    Client {
        id: "cursor",
        title: "Cursor",
        has_roots: true,
        has_variables: true,
        next_step: "turn it on in Cursor's settings, under MCP",
        ..PLAIN
    },
    // Shared by the command line, the extension and the app.
    Client {
        id: "codex",
        title: "Codex",
        format: Format::Toml,
        key: "mcp_servers",
        next_step: "start Codex again",
        ..PLAIN
    },
    // Gemini CLI replaces ${NAME} in all texts of its settings. It starts servers only in folders that the user trusts.
    Client {
        id: "gemini-cli",
        names: &["gemini"],
        title: "Gemini CLI",
        has_roots: true,
        has_variables: true,
        next_step: "start Gemini CLI again, in a folder that it trusts",
        ..PLAIN
    },
    // `tools` names the tools that the agent may use; without it, the agent may use no tool.
    Client {
        id: "copilot-cli",
        names: &["copilot", "github-copilot-cli"],
        title: "GitHub Copilot CLI",
        kind: Kind::Copilot,
        next_step: "start Copilot CLI again",
        ..PLAIN
    },
    Client {
        id: "opencode",
        title: "opencode",
        key: "mcp",
        kind: Kind::Local,
        has_roots: true,
        next_step: "start opencode again",
        ..PLAIN
    },
    Client { id: "cline", names: &["cline-cli"], title: "Cline", next_step: "start Cline again", ..PLAIN },
    // The extension's settings in Visual Studio Code ("Configure MCP Servers").
    Client {
        id: "cline-vscode",
        title: "Cline in Visual Studio Code",
        next_step: "turn it on in Cline's list of MCP servers",
        ..PLAIN
    },
    // Qwen Code replaces ${NAME} in all texts of its settings.
    Client {
        id: "qwen-code",
        names: &["qwen"],
        title: "Qwen Code",
        has_roots: true,
        has_variables: true,
        next_step: "start Qwen Code again",
        ..PLAIN
    },
    Client {
        id: "windsurf",
        names: &["cascade", "codeium"],
        title: "Windsurf",
        next_step: "refresh the list of MCP servers in Windsurf",
        ..PLAIN
    },
    // Some versions need `source` to distinguish the server from those of extensions, and later ones still read it.
    Client {
        id: "zed",
        title: "Zed",
        key: "context_servers",
        kind: Kind::Custom,
        next_step: "Zed starts it at once; its agent panel shows it",
        ..PLAIN
    },
    Client {
        id: "goose",
        title: "goose",
        format: Format::Yaml,
        key: "extensions",
        kind: Kind::Goose,
        has_roots: true,
        next_step: "start a new session of goose",
        ..PLAIN
    },
    // The command line and the extensions.
    Client {
        id: "continue",
        title: "Continue",
        format: Format::Yaml,
        kind: Kind::Named,
        next_step: "start Continue again",
        ..PLAIN
    },
    // The command line and the extension.
    Client {
        id: "kilo-code",
        names: &["kilo", "kilocode"],
        title: "Kilo Code",
        key: "mcp",
        kind: Kind::Local,
        next_step: "start Kilo Code again",
        ..PLAIN
    },
    // The command line and the editor.
    Client { id: "kiro", names: &["kiro-cli"], title: "Kiro", next_step: "start a new session of Kiro", ..PLAIN },
    Client {
        id: "kimi-code",
        names: &["kimi"],
        title: "Kimi Code",
        next_step: "start a new session of Kimi Code",
        ..PLAIN
    },
    // The command line and the editor.
    Client {
        id: "antigravity",
        title: "Antigravity",
        next_step: "refresh the list of MCP servers in Antigravity",
        ..PLAIN
    },
    // Grok replaces ${NAME} in arguments.
    Client {
        id: "grok-build",
        names: &["grok"],
        title: "Grok Build",
        format: Format::Toml,
        key: "mcp_servers",
        has_variables: true,
        next_step: "start Grok again",
        ..PLAIN
    },
    Client {
        id: "mastracode",
        names: &["mastra"],
        title: "Mastra Code",
        next_step: "start Mastra Code again",
        ..PLAIN
    },
    Client { id: "mcporter", title: "MCPorter", next_step: "run `mcporter list`", ..PLAIN },
    // Read by the package pi-mcp-adapter.
    Client {
        id: "pi",
        names: &["pi-agent"],
        title: "Pi",
        next_step: "type /reload in Pi, with the package pi-mcp-adapter installed",
        ..PLAIN
    },
    Client { id: "fx", title: "fx", key: "mcp", kind: Kind::Local, next_step: "type /mcp reload in fx", ..PLAIN },
    PLAIN,
];

/// Returns the client of that id, or that is also known by that name.
pub fn find(name: &str) -> Option<&'static Client> {
    ALL.iter().find(|client| client.id == name || client.names.contains(&name))
}

/// The environment variables with which users move the configs of clients.
const VARIABLES: [&str; 12] = [
    "CLAUDE_CONFIG_DIR",
    "CLINE_DIR",
    "CLINE_MCP_SETTINGS_PATH",
    "CODEX_HOME",
    "CONTINUE_GLOBAL_DIR",
    "COPILOT_HOME",
    "GEMINI_CLI_HOME",
    "GROK_HOME",
    "KIMI_CODE_HOME",
    "PI_CODING_AGENT_DIR",
    "QWEN_HOME",
    "XDG_CONFIG_HOME",
];

/// The folders in which clients look for their configs.
#[derive(Debug, Clone)]
pub struct ConfigPaths {
    pub home: PathBuf,
    /// Those of the variables that are set to an absolute path.
    pub variables: Vec<(&'static str, PathBuf)>,
    pub is_mac: bool,
}

impl ConfigPaths {
    pub fn here() -> Result<Self> {
        let home = std::env::home_dir().filter(|home| home.is_absolute()).context("there is no home directory")?;
        let set = |name| Some((name, PathBuf::from(std::env::var_os(name)?)));
        let variables = VARIABLES.into_iter().filter_map(set).filter(|(_, path)| path.is_absolute()).collect();
        Ok(Self { home, variables, is_mac: cfg!(target_os = "macos") })
    }

    /// Returns the path in a variable, or else this path below the home directory.
    fn at(&self, variable: &str, otherwise: &str) -> PathBuf {
        let set = self.variables.iter().find(|(name, _)| *name == variable);
        set.map_or_else(|| self.home.join(otherwise), |(_, path)| path.clone())
    }

    /// Returns the possible configs of a client. The first one that exists counts, or else the last one. The list is empty if the user
    /// has to name the config.
    fn possible(&self, client: &Client) -> Vec<PathBuf> {
        let home = |path: &str| self.home.join(path);
        let config = self.at("XDG_CONFIG_HOME", ".config");
        let application = if self.is_mac { home("Library/Application Support") } else { config.clone() };
        let one = match client.id {
            "claude-desktop" => application.join("Claude/claude_desktop_config.json"),
            "claude-code" => self.at("CLAUDE_CONFIG_DIR", "").join(".claude.json"),
            "vscode" => application.join("Code/User/mcp.json"),
            "cursor" => home(".cursor/mcp.json"),
            "codex" => self.at("CODEX_HOME", ".codex").join("config.toml"),
            "gemini-cli" => self.at("GEMINI_CLI_HOME", "").join(".gemini/settings.json"),
            "copilot-cli" => self.at("COPILOT_HOME", ".copilot").join("mcp-config.json"),
            "opencode" => {
                let folder = config.join("opencode");
                return vec![folder.join("opencode.jsonc"), folder.join("opencode.json")];
            }
            "cline" => {
                let usual = self.at("CLINE_DIR", ".cline").join("data/settings/cline_mcp_settings.json");
                self.at("CLINE_MCP_SETTINGS_PATH", &usual.to_string_lossy())
            }
            "cline-vscode" => {
                application.join("Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json")
            }
            "qwen-code" => self.at("QWEN_HOME", ".qwen").join("settings.json"),
            "windsurf" => home(".codeium/windsurf/mcp_config.json"),
            "zed" if self.is_mac => home(".config/zed/settings.json"),
            "zed" => config.join("zed/settings.json"),
            "goose" => config.join("goose/config.yaml"),
            "continue" => self.at("CONTINUE_GLOBAL_DIR", ".continue").join("config.yaml"),
            "kilo-code" => {
                let folder = config.join("kilo");
                return vec![folder.join("kilo.jsonc"), folder.join("kilo.json")];
            }
            "kiro" => home(".kiro/settings/mcp.json"),
            "kimi-code" => self.at("KIMI_CODE_HOME", ".kimi-code").join("mcp.json"),
            "antigravity" => home(".gemini/config/mcp_config.json"),
            "grok-build" => self.at("GROK_HOME", ".grok").join("config.toml"),
            "mastracode" => home(".mastracode/mcp.json"),
            "mcporter" => {
                let [json, jsonc] = ["mcporter.json", "mcporter.jsonc"].map(|name| home(".mcporter").join(name));
                return vec![json.clone(), jsonc, json];
            }
            "pi" => self.at("PI_CODING_AGENT_DIR", ".pi/agent").join("mcp.json"),
            "fx" => home(".fx/mcp.json"),
            _ => return Vec::new(),
        };
        vec![one]
    }
}

impl Client {
    /// Returns the path of the client's config, or `None` if the user has to name it.
    pub fn path(&self, places: &ConfigPaths) -> Option<PathBuf> {
        let possible = places.possible(self);
        possible.iter().find(|path| Path::is_file(path)).or(possible.last()).cloned()
    }
}
