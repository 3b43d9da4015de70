//! Checks whether `wharf serve` could listen on the address of the config, and if not, which program does.

#![expect(clippy::disallowed_methods, reason = "looks in /proc for the program that listens")]

use std::{net::SocketAddr, path::Path, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::finding::Finding;
use wharf_config::config::{self, CommandLine, Config, ListenAddress};

/// How long the program that listens may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest answer that is read; wharf's is shorter.
const MAX_ANSWER_BYTES: u64 = 4096;

pub async fn look(config: Option<&Config>) -> Option<Finding> {
    let usual = config::load(None, &CommandLine::default()).ok();
    let http = &config.or(usual.as_ref())?.startup.http;
    let ListenAddress::Address(address) = http.listen else { return None };
    let (about, can) =
        (format!("port {}", address.port()), "choose another address with --listen, or with `listen` in [http]");
    // A socket on the unspecified address is reachable at the loopback address.
    let mut at = address;
    if at.ip().is_unspecified() {
        at.set_ip(if at.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
    }
    let Ok(Ok(stream)) = timeout(ANSWER_TIMEOUT, TcpStream::connect(at)).await else {
        return Some(match std::net::TcpListener::bind(address) {
            Ok(_) => Finding::fine(about, format!("no program listens at {address} yet")),
            Err(error) => Finding::wrong(about, format!("{address}: {error}"), can),
        });
    };
    let who = listener(Path::new("/proc"), at).map(|name| format!(" ({name})")).unwrap_or_default();
    Some(match timeout(ANSWER_TIMEOUT, answers(stream, at)).await {
        Ok(Ok(true)) => Finding::fine(about, format!("a wharf serves at {address}{who}")),
        // This check does not speak TLS, so the program's name has to do.
        _ if http.tls.is_some() && who == " (wharf)" => Finding::fine(about, format!("a wharf serves at {address}")),
        _ => Finding::wrong(about, format!("another program{who} listens at {address}"), can),
    })
}

/// Whether the program answers `/livez` as wharf does.
async fn answers(mut stream: TcpStream, at: SocketAddr) -> std::io::Result<bool> {
    stream.write_all(format!("GET /livez HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n\r\n").as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    Ok(answer.starts_with("HTTP/1.1 200") && answer.ends_with("{\"alive\":true}"))
}

/// Returns the name of the program that listens at this address, if procfs shows it.
fn listener(proc: &Path, at: SocketAddr) -> Option<String> {
    let port = format!(":{:04X}", at.port());
    let sockets = ["net/tcp", "net/tcp6"].map(|name| std::fs::read_to_string(proc.join(name)).unwrap_or_default());
    let listens = sockets.iter().flat_map(|table| table.lines()).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // 0A is the state of a socket that listens.
        let matches = fields.get(1)?.ends_with(&port) && *fields.get(3)? == "0A";
        matches.then(|| fields.get(9).map(|inode| format!("socket:[{inode}]"))).flatten()
    })?;
    std::fs::read_dir(proc).ok()?.flatten().find_map(|process| {
        let mut files = std::fs::read_dir(process.path().join("fd")).ok()?.flatten();
        let has = files.any(|file| std::fs::read_link(file.path()).is_ok_and(|to| to == Path::new(&listens)));
        let name = has.then(|| std::fs::read_to_string(process.path().join("comm")).ok()).flatten()?;
        Some(name.trim().to_owned())
    })
}
