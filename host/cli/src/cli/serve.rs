//! `wharf run` and `wharf serve`: serve clients over stdin and stdout, over HTTP, or both.

use std::{
    io::IsTerminal,
    net::SocketAddr,
    path::{Path, PathBuf},
    pin::pin,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    task::JoinSet,
};

use super::{
    arguments::{Run, Serve, tell_of_servers, typed},
    log,
    manager::{self, Passed},
    standard,
};
use crate::authoring::existing::detached::Builds;
use wharf_app::{
    Wharf,
    operator::{Listener, Operator, Pipe, Setup, Socket},
};
use wharf_base::{
    failed::OrFailed,
    machine::{self, Weight},
    parent, text,
};
use wharf_config::config::{self, CommandLine, ListenAddress, Named, state::Keeps};
use wharf_plugins::plugins::making::Making;

/// The longest time that the first load delays the ready notification to the service manager. Slower plugins load while clients are served.
const FIRST_LOAD_TIMEOUT: Duration = Duration::from_secs(15);

/// How long wharf waits for the client's handshake, to answer it with the reason for which no plugin of the command line loads.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// The transports to serve, and what ends the process.
#[derive(Default)]
pub(super) struct Transports {
    pub stdio: bool,
    /// The profile for the client at stdin and stdout.
    pub profile: Option<String>,
    /// The sockets that the service manager passed. If the list is empty, wharf listens where the config says.
    pub http: Option<Vec<Passed>>,
    /// Whether wharf exits when the process that started it does, even if another process still holds its pipes.
    pub with_parent: bool,
    /// Whether SIGHUP ends wharf, as it is sent when a terminal is closed, in place of reloading the config.
    pub hangup_ends: bool,
    /// The plugins that the command line names. If none of them loads at the start, wharf exits.
    pub named: Vec<String>,
}

pub(super) async fn run(run: &Run) -> Result<()> {
    let setup = setup(run, None)?;
    let setup = Setup { roots_in_home: true, keeps: Keeps::Configured, ..setup };
    let transports = Transports { stdio: true, profile: run.profile.clone(), with_parent: true, ..named(&setup) };
    serve_all(setup, transports).await
}

pub(super) async fn serve(serve: &Serve, passed: Vec<Passed>) -> Result<()> {
    ensure!(
        serve.stdio || serve.run.profile.is_none(),
        "--profile is for the client at stdin and stdout, so it needs --stdio; HTTP clients choose theirs with the URL: /mcp/NAME"
    );
    let setup = setup(&serve.run, serve.listen.clone())?;
    let setup = Setup { keeps: Keeps::All, ..setup };
    let profile = serve.run.profile.clone();
    let transports = Transports { stdio: serve.stdio, profile, http: Some(passed), ..named(&setup) };
    serve_all(setup, transports).await
}

/// The plugins that the command line names, as those of which one has to load.
fn named(setup: &Setup) -> Transports {
    let named = setup.command_line.plugins.iter().map(|named| named.id().to_owned()).collect();
    Transports { named, ..Transports::default() }
}

/// Prepares to serve what a command line names, and begins to build the existing servers among it.
fn setup(run: &Run, listen: Option<ListenAddress>) -> Result<Setup> {
    let command_line = run.granted.command_line(&run.named)?;
    let servers = run.named.servers()?;
    // Of a client's log, others may see more than of a terminal.
    let hidden = if std::io::stderr().is_terminal() { 0 } else { servers.iter().map(|server| server.args.len()).sum() };
    let command_line = CommandLine { listen, typed: typed(hidden), ..command_line };
    tell_of_servers(&servers, &command_line, hidden);
    let file = run.config.file(&command_line)?;
    if file.is_none()
        && let Some(unread) = config::find(None)?
    {
        tracing::info!(
            "only the plugins on the command line are served; -c {} adds those of the config",
            text::path(&unread)
        );
    }
    refuse_nothing(file.as_deref(), &command_line.plugins)?;
    refuse_unused_roots(file.as_deref(), &command_line)?;
    config::builtin::make_folders(&command_line)?;
    tell_of_machine(file.as_deref());
    let builds = Builds::new(log::options());
    for server in servers {
        builds.admit(server)?;
    }
    let (making, say) = (Making::by(builds), |text: &str| tracing::info!("{text}"));
    Ok(Setup { file, command_line, making, progress: Some(say), ..Setup::default() })
}

/// Logs the properties of the machine that wharf relies on and does not find.
fn tell_of_machine(file: Option<&Path>) {
    let trusted: Vec<PathBuf> = file.map(Path::to_path_buf).into_iter().chain(config::cache_dir()).collect();
    for lack in machine::lacks(Path::new("/proc"), Path::new("/sys"), &trusted) {
        match lack.weight {
            Weight::Weaker => tracing::info!("{}; {}", lack.says, lack.remedy),
            Weight::Wrong => tracing::warn!("{}; {}", lack.says, lack.remedy),
        }
    }
}

/// Refuses `--root` where no plugin is granted roots, which is a mistake.
fn refuse_unused_roots(file: Option<&Path>, command_line: &CommandLine) -> Result<()> {
    if !command_line.roots.is_empty() && command_line.allow_roots.is_none() {
        let config = config::load(file, command_line)?;
        ensure!(
            config.plugin_dir.is_some() || config.plugins.iter().any(|plugin| plugin.grants.roots.0.is_some()),
            "--root opens a folder to plugins that are granted roots, and no plugin is: add --allow roots=read or --allow roots=read-write"
        );
    }
    Ok(())
}

/// Refuses to serve nothing, which is more often a mistake than intended.
pub(super) fn refuse_nothing(file: Option<&Path>, plugins: &[Named]) -> Result<()> {
    if file.is_none() && plugins.is_empty() {
        let default = config::default_path().map(|path| path.display().to_string()).unwrap_or_default();
        bail!(
            "nothing to serve: name a plugin (wharf run hello.wasm, wharf run server.py, wharf run npx -y NAME, wharf run --builtin files DIR), or \
             write a config to {default}"
        );
    }
    Ok(())
}

/// Starts, serves until something ends that, lets requests under way finish, and stops. Stdin that is closed, the end of the parent process,
/// SIGTERM and SIGINT end it; a second signal ends the requests under way.
pub(super) async fn serve_all(setup: Setup, transports: Transports) -> Result<()> {
    let Transports { stdio, profile, http, with_parent, hangup_ends, named } = transports;
    // A systemd service may start `wharf run`, which must not send notifications in the name of that service.
    let is_service = http.is_some();

    // Starting. Signal handlers are installed before wharf reports that it serves, so that a signal right after that does not kill the
    // process.
    let (mut ends, hangup) = (Ends::new()?, signal(SignalKind::hangup()).context("SIGHUP cannot be watched")?);
    let operator = Operator::start(Setup { enters: true, windows: config::window_folder(), ..setup })?;
    operator.require_one_of(named);
    let opened = open(&operator, http).await;
    if opened.is_err() {
        operator.wharf.stop().await;
    }
    let (http, admin) = opened?;

    // Serving. What is in `background` ends with this function.
    let mut background = JoinSet::new();
    if is_service {
        background.spawn(manager::watched());
        background.spawn(report_ready(operator.clone()));
    }
    let hangup = if hangup_ends {
        Some(hangup)
    } else {
        background.spawn(reload(operator.wharf.clone(), hangup, is_service));
        None
    };
    let stop = operator.stop_token();
    let pipe = stdio.then(|| Pipe { alone: !is_service, profile: profile.map(Into::into), ..Pipe::default() });
    let mut served = pin!(serve_clients(&operator, pipe, http, admin));
    tokio::select! {
        biased;
        () = ends.next() => {}
        () = received(hangup) => {}
        () = parent::ended(), if with_parent => tracing::info!("the client that started wharf is gone"),
        () = parent::stdout_closed(), if stdio => tracing::info!("the client at stdout is gone"),
        () = stop.cancelled() => {}
        ended = &mut served => return ended,
    }

    // Draining. Clients of HTTP are many, and their requests may finish; a client at stdin is gone.
    if is_service {
        manager::stopping();
    }
    let drained = async {
        if is_service && !stop.is_cancelled() {
            tracing::info!("requests under way may finish; a second signal ends them");
            operator.wharf.drain().await;
        } else {
            stop.cancel();
        }
        std::future::pending().await
    };

    // Stopped.
    tokio::select! {
        ended = served => ended,
        ended = drained => ended,
        () = ends.next() => {
            tracing::info!("stopped by a second signal");
            operator.abandon().await;
            Ok(())
        }
    }
}

/// Opens the listeners for clients and for metrics. `http`: the sockets that the service manager passed, if clients are served over HTTP.
async fn open(operator: &Operator, http: Option<Vec<Passed>>) -> Result<(Option<Listener>, Option<TcpListener>)> {
    let Some(passed) = http else {
        // Several clients may each start a `wharf run` with the same config, and only one of these can listen on the metrics port.
        let admin = admin(operator).await.inspect_err(|error| tracing::warn!("metrics are not served: {error:#}"));
        return Ok((None, admin.ok().flatten()));
    };
    Ok((Some(listen(operator, passed).await?), admin(operator).await?))
}

/// Tells the service manager when the plugins are loaded.
async fn report_ready(operator: Operator) {
    if operator.tried(FIRST_LOAD_TIMEOUT).await {
        manager::ready();
    }
}

/// Reads the config again with each SIGHUP.
async fn reload(wharf: Wharf, mut hangup: Signal, is_service: bool) {
    while hangup.recv().await.is_some() {
        if is_service {
            manager::reloading();
        }
        wharf.reload();
        if is_service {
            manager::ready();
        }
    }
}

/// Resolves with the first signal, and never without one to wait for.
async fn received(signal: Option<Signal>) {
    match signal {
        Some(mut signal) => _ = signal.recv().await,
        None => std::future::pending().await,
    }
}

/// Serves until the client at stdin has finished or wharf stops, and then stops wharf. An error also says why no plugin of the command line
/// loads.
async fn serve_clients(
    operator: &Operator,
    pipe: Option<Pipe>,
    http: Option<Listener>,
    admin: Option<TcpListener>,
) -> Result<()> {
    let stop = operator.stop_token();
    // A person at a terminal sees the reason when wharf exits.
    let tells = pipe.is_some() && !std::io::stdin().is_terminal();
    let refused = async {
        let refused = operator.none_loads().await;
        if refused.is_some() {
            if tells {
                tokio::time::timeout(HANDSHAKE_TIMEOUT, stop.run_until_cancelled(operator.told())).await.ok();
            }
            stop.cancel();
        }
        refused
    };
    let clients = async {
        let pipe = async {
            let Some(pipe) = pipe else { return Ok(()) };
            let served = serve_stdio(operator, pipe).await;
            // Wharf stops when the client at stdin has finished, even if it also serves HTTP.
            stop.cancel();
            served
        };
        let web = async {
            if let Some(listener) = http {
                listener.serve().await;
                stop.cancel();
            }
        };
        let metrics = async {
            if let Some(listener) = admin {
                operator.serve_admin(listener).await;
            }
        };
        let (served, (), ()) = tokio::join!(pipe, web, metrics);
        operator.wharf.stop().await;
        served
    };
    let (mut refused, mut clients) = (pin!(refused), pin!(clients));
    let (refused, served) = tokio::select! {
        // Polled first, so that the reason is not lost if the input ends at the same moment.
        biased;
        refused = &mut refused => (refused, clients.await),
        served = &mut clients => (operator.none_loads_now(), served),
    };
    refused.map_or(served, |problem| Err(anyhow!(problem)))
}

/// Serves the client at stdin and stdout.
async fn serve_stdio(operator: &Operator, pipe: Pipe) -> Result<()> {
    let stop = operator.stop_token();
    let mut input = BufReader::new(standard::input());
    if std::io::stdin().is_terminal() {
        tracing::info!(
            "waiting for an MCP client at stdin; `wharf install CLIENT` sets one up, `wharf call` calls a tool, Ctrl-D ends this"
        );
    }
    let silent = tokio::select! {
        read = input.fill_buf() => read.is_ok_and(<[u8]>::is_empty),
        () = stop.cancelled() => false,
    };
    if silent {
        // A person who starts wharf without any input wants to see whether it starts, so what did not load must be said.
        stop.run_until_cancelled(operator.none_loads()).await;
    }
    // On a worker thread, so that calls and what wakes them mostly stay on one thread.
    let mut serving = JoinSet::new();
    serving.spawn(operator.serve_pipe(input, standard::output(), pipe));
    serving.join_next().await.transpose()?.transpose()?;
    Ok(())
}

/// The signals that stop wharf.
struct Ends {
    terminate: Signal,
    interrupt: Signal,
}

impl Ends {
    fn new() -> Result<Self> {
        let terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be watched")?;
        let interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be watched")?;
        Ok(Self { terminate, interrupt })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

async fn listen(operator: &Operator, passed: Vec<Passed>) -> Result<Listener> {
    let http = operator.http();
    let mut sockets = passed.into_iter().map(Passed::into_socket).collect::<Result<Vec<_>>>()?;
    if sockets.is_empty() {
        sockets.push(match &http.listen {
            ListenAddress::Unix(path) => Socket::bind_unix(path, http.socket_mode).await?,
            ListenAddress::Address(address) => {
                check_reachable(operator, *address)?;
                TcpListener::bind(address)
                    .await
                    .map(Socket::from)
                    .with_context(|| {
                        format!(
                            "cannot listen on {address}; if another program uses the port, choose another port with --listen"
                        )
                    })
                    .or_failed()?
            }
        });
    }
    for socket in &mut sockets {
        let Some(address) = socket.address() else { continue };
        check_reachable(operator, address)?;
        if wants_authentication(operator) {
            continue;
        }
        if socket.serve_owner() {
            tracing::info!("only programs of this user and of root are served at {address}, because there is no login");
        } else {
            tracing::warn!(
                "every user of this machine can call everything that is served at {address}; for clients of your own only, set \
                 `token` in [http], or listen on a Unix socket"
            );
        }
    }
    let names: Vec<String> = sockets.iter().map(|socket| socket.name(http.tls.is_some())).collect();
    let listener = operator.listener(sockets).await?;
    for name in names {
        tracing::info!("serving MCP at {name}");
    }
    Ok(listener)
}

/// Whether clients have to show who they are.
fn wants_authentication(operator: &Operator) -> bool {
    let http = operator.http();
    let certificates = http.tls.as_ref().is_some_and(|tls| tls.clients.is_some());
    http.token.is_some() || operator.wants_login() || certificates
}

/// Refuses to listen without authentication on an address that other machines can reach.
fn check_reachable(operator: &Operator, address: SocketAddr) -> Result<()> {
    if !address.ip().is_loopback() && !wants_authentication(operator) {
        bail!(
            "{address} can be reached from other machines, so clients must authenticate: name an identity provider in [auth], set \
             `token` in [http] to {{ env = \"NAME\" }} for an environment variable that holds a token, require client certificates with \
             `client_ca` in [http.tls], or listen on 127.0.0.1"
        );
    }
    Ok(())
}

/// Opens the listener for metrics, if the config has [admin].
async fn admin(operator: &Operator) -> Result<Option<TcpListener>> {
    let Some(admin) = operator.admin() else { return Ok(None) };
    let listener = TcpListener::bind(admin.listen)
        .await
        .with_context(|| {
            format!(
                "cannot listen on {}; if another program uses the port, choose another port in [admin]",
                admin.listen
            )
        })
        .or_failed()?;
    tracing::info!("serving metrics at {}", format_args!("http://{}/metrics", listener.local_addr()?));
    Ok(Some(listener))
}
