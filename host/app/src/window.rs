//! What the windows of the user are told of this process, besides its board: the plugins, and the memory.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use wharf_base::{machine, text::escaped};
use wharf_config::config::{CommandLine, Config};
use wharf_plugins::plugins::{
    snapshot::{PluginStatus, Serving, Wanted},
    status::{Status, Subject},
};
use wharf_serve::client::server::Server;
use wharf_window::{
    socket::Complete,
    state::{MAX_PLUGINS, SeenPlugin, SeenProcess, SeenState, shown},
};

/// How long the list of plugins is used before it is made again.
const PLUGINS_LAST: Duration = Duration::from_secs(1);
/// The tools, grants and wants of a plugin that are shown.
const MAX_SHOWN: usize = 64;

/// Describes this process. The words of the command line are those that its log may have too.
pub fn process(config: &Config, command_line: &CommandLine) -> SeenProcess {
    let typed = command_line.typed.as_ref().map(|typed| format!("{} {}", typed.command, typed.rest));
    let path = |path: &Path| escaped(&path.display().to_string());
    SeenProcess {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: shown(typed.as_deref().unwrap_or("wharf")),
        folder: std::env::current_dir().map(|folder| path(&folder)).unwrap_or_default(),
        config: config.file.as_deref().map(path),
        memory_limit: config.startup.total_memory_bytes as u64,
        ..SeenProcess::default()
    }
}

/// Returns what adds the plugins and the memory to a state.
pub fn complete(server: &Arc<Server>) -> Arc<Complete> {
    let server = Arc::downgrade(server);
    let known = Mutex::new(None::<(Instant, Vec<SeenPlugin>)>);
    Arc::new(move |state: &mut SeenState| {
        state.process.resident = machine::resident();
        let Some(server) = server.upgrade() else { return };
        let mut known = known.lock();
        if known.as_ref().is_none_or(|(at, _)| at.elapsed() > PLUGINS_LAST) {
            *known = Some((Instant::now(), plugins(&server)));
        }
        state.plugins = known.as_ref().map(|(_, plugins)| plugins.clone()).unwrap_or_default();
    })
}

fn plugins(server: &Server) -> Vec<SeenPlugin> {
    let all = server.published.plugins(&server.scopes, server.startup.face.instructions.as_deref());
    all.into_iter().take(MAX_PLUGINS).map(plugin).collect()
}

fn plugin(PluginStatus { subject, status, serving, .. }: PluginStatus) -> SeenPlugin {
    let id = match &subject {
        Subject::Plugin(id) => id.clone(),
        other => shown(&other.to_string()),
    };
    let problem = match &status {
        Status::Failed { problem, .. } => Some(shown(&problem.text.to_string())),
        _ => None,
    };
    let Some(serving) = serving else {
        return SeenPlugin { id, problem, ..SeenPlugin::default() };
    };
    let tokens = serving.tokens() as u64;
    let Serving { sha256, tools, granted, wants, .. } = serving;
    let lacking = wants.into_iter().flatten().filter(|want| !want.granted);
    let wanted = lacking.map(|Wanted { what, .. }| shown(&what));
    SeenPlugin {
        id,
        served: true,
        problem,
        sha256: Some(sha256.to_string()),
        tools: tools.iter().take(MAX_SHOWN).map(|tool| shown(&tool.name)).collect(),
        tokens,
        granted: granted.iter().take(MAX_SHOWN).map(|grant| shown(grant)).collect(),
        wanted: wanted.take(MAX_SHOWN).collect(),
        ..SeenPlugin::default()
    }
}
