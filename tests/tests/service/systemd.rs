//! systemd: the sockets that it passes, the notifications that it gets, and the units in `examples/systemd`.

use std::{
    collections::BTreeSet,
    os::{fd::OwnedFd, unix::net::UnixListener as StdUnixListener},
    path::{Path, PathBuf},
    process::Stdio,
};

use e2e::{Folder, PATIENCE, Server, given, http::Over, json};
use rustix::process::Signal;
use tokio::{net::UnixDatagram, process::Command, time::timeout};

/// Starts `wharf serve` through a shell that passes its standard input as the first socket, as systemd does.
fn activated(folder: &Folder, socket: OwnedFd, environment: &[(&str, &str)]) -> Command {
    let mut command =
        folder.limited("exec 3<&0 0</dev/null; export LISTEN_PID=$$ LISTEN_FDS=1", &["serve"], environment);
    command.stdin(Stdio::from(socket));
    command
}

/// Returns wharf's next notification that contains this text; other messages before it are dropped.
async fn told(manager: &UnixDatagram, wanted: &str) -> String {
    let wait = async {
        loop {
            let mut bytes = [0; 1024];
            let length = manager.recv(&mut bytes).await.unwrap();
            let text = String::from_utf8(bytes[..length].to_vec()).unwrap();
            if text.contains(wanted) {
                return text;
            }
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{wanted} was never told"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_is_passed_is_served_and_left_and_the_manager_hears_of_it() {
    let folder = Folder::new();
    // It would refuse to listen at this address itself: there is no token.
    folder.config(&format!("[http]\nlisten = \"0.0.0.0:0\"\n{}", given("g", &json!({}), "")));
    let path = folder.join("mcp.sock");
    let socket = StdUnixListener::bind(&path).unwrap();
    let manager = UnixDatagram::bind(folder.join("notify")).unwrap();
    let notify = folder.join("notify");
    let environment = [("NOTIFY_SOCKET", notify.to_str().unwrap()), ("WATCHDOG_USEC", "200000")];
    let socket: OwnedFd = socket.into();
    let started = activated(&folder, socket.try_clone().unwrap(), &environment);
    let server = Server::of(started, Over::Unix(path.clone())).await;
    told(&manager, "READY=1").await;
    assert_eq!(server.send("GET", "/readyz", &[], b"").await.status(), 200, "everything was loaded by then");
    let call = json!({ "name": "g_t", "arguments": { "text": "called" } });
    assert_eq!(e2e::text(&server.modern("tools/call", call.clone(), json!({})).await.unwrap()), "called");
    for _ in 0..3 {
        told(&manager, "WATCHDOG=1").await;
    }
    server.signal(Signal::HUP);
    let reloading = told(&manager, "RELOADING=1").await;
    let time = reloading.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC=")).unwrap();
    assert!(time.parse::<u64>().unwrap() > 0, "{reloading}");
    told(&manager, "READY=1").await;
    server.signal(Signal::TERM);
    told(&manager, "STOPPING=1").await;
    assert!(server.terminated().await.0.success());
    assert!(path.exists(), "the socket belongs to systemd");
    // Connections that arrive while wharf restarts wait.
    let waiting = tokio::net::UnixStream::connect(&path).await.unwrap();
    let server = Server::of(activated(&folder, socket, &[]), Over::Unix(path)).await;
    assert_eq!(e2e::text(&server.modern("tools/call", call, json!({})).await.unwrap()), "called");
    drop(waiting);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_passed_has_to_be_a_socket_that_accepts_connections() {
    let folder = Folder::new();
    folder.config(&given("g", &json!({}), ""));
    let (connection, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let file = std::fs::File::open(folder.path()).unwrap();
    for (passed, expected) in [(OwnedFd::from(connection), "Accept=no"), (OwnedFd::from(file), "not a stream socket")] {
        let output = timeout(PATIENCE, activated(&folder, passed, &[]).output()).await.unwrap().unwrap();
        let said = e2e::folder::stderr(&output);
        assert!(!output.status.success() && said.contains(expected), "{said}");
    }
}

fn units() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("examples/systemd")
}

/// The assignments of a unit: section, key and value.
fn assignments(name: &str) -> Vec<(String, String, String)> {
    let (text, mut section) = (std::fs::read_to_string(units().join(name)).unwrap(), String::new());
    let mut all = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(named) => section = named.to_owned(),
            None => {
                let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("{name}: {line}"));
                all.push((section.clone(), key.to_owned(), value.to_owned()));
            }
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn the_unit_starts_what_there_is_and_lets_it_do_what_it_has_to() {
    let service = assignments("wharf.service");
    let value = |wanted: &str| {
        let found = service.iter().find(|(_, key, _)| key == wanted);
        found.map(|(_, _, value)| value.as_str()).unwrap_or_else(|| panic!("there is no {wanted}"))
    };
    // wharf understands the unit's command: it fails only because the config does not exist.
    let arguments: Vec<&str> = value("ExecStart").split(' ').skip(1).collect();
    let at = arguments.iter().position(|argument| *argument == "-c").unwrap() + 1;
    let folder = Folder::new();
    let missing = folder.join("missing.toml");
    let mut here = arguments.clone();
    here[at] = missing.to_str().unwrap();
    let said = e2e::folder::stderr(&folder.run(&here, &[]).await);
    assert!(said.contains("there is no such config file"), "{said}");
    for (key, expected) in [
        ("Type", "notify-reload"),
        ("MemoryDenyWriteExecute", "no"),
        ("ProtectSystem", "strict"),
        ("CapabilityBoundingSet", ""),
        ("NoNewPrivileges", "yes"),
        ("RestrictAddressFamilies", "AF_INET AF_INET6 AF_UNIX AF_NETLINK"),
        ("CacheDirectory", "wharf"),
        ("StateDirectory", "wharf"),
    ] {
        assert_eq!(value(key), expected, "{key}");
    }
    let stop: u64 = value("TimeoutStopSec").parse().unwrap();
    assert!(stop > 30, "longer than drain_s");
    let twice = |name: &str| {
        let (mut seen, mut twice) = (BTreeSet::new(), Vec::new());
        for (_, key, _) in assignments(name) {
            if !seen.insert(key.clone()) && key != "SystemCallFilter" {
                twice.push(key);
            }
        }
        twice
    };
    assert_eq!((twice("wharf.service"), twice("wharf.socket")), (vec![], vec![]));
}

/// If systemd is installed, it validates the units itself.
#[tokio::test(flavor = "multi_thread")]
async fn systemd_knows_every_line() {
    let run = async |arguments: &[&str]| {
        let ran = timeout(PATIENCE, Command::new("systemd-analyze").args(arguments).output()).await.unwrap();
        ran.ok().map(|output| {
            let both = [output.stdout, output.stderr].concat();
            (output.status.success(), String::from_utf8_lossy(&both).into_owned())
        })
    };
    let Some((_, version)) = run(&["--version"]).await else { return };
    let version: u32 =
        version.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{version}"));
    // Copied, because systemd checks who may write the folder, and changed to an existing command.
    let folder = Folder::new();
    let unit = std::fs::read_to_string(units().join("wharf.service")).unwrap();
    let here = unit.replace("/usr/local/bin/wharf ", &format!("{} ", e2e::binary().display()));
    let service = folder.write("units/wharf.service", here);
    let socket = folder.write("units/wharf.socket", std::fs::read(units().join("wharf.socket")).unwrap());
    for unit in [service.to_str().unwrap(), socket.to_str().unwrap()] {
        let (_, said) = run(&["verify", "--man=no", unit]).await.unwrap();
        // This type needs systemd 253.
        let problems: Vec<&str> = said
            .lines()
            .filter(|line| line.contains("wharf.") && !(version < 253 && line.contains("notify-reload")))
            .collect();
        assert_eq!(problems, Vec::<&str>::new(), "{unit}");
    }
    if version >= 250 {
        let arguments = ["security", "--offline=true", "--threshold=20", "--no-pager", service.to_str().unwrap()];
        let (fits, said) = run(&arguments).await.unwrap();
        assert!(fits, "more is open than 2.0 of 10: {said}");
    }
}
