//! Memory that unauthenticated clients make the host use, in addition to the bytes that they send, in ways that look small: for all mixes
//! of these, the process stays within the configured limits, and a client at another address is answered.

use std::time::{Duration, Instant};

use e2e::{Folder, Server, Session, http::Over, json, memory_kib, modern_params, plugin, random::Random};

use crate::{
    bystander::{config, during, within},
    raw::{Certified, Clients, certified},
};

/// The limits for wharf's own memory for plugins and clients, and for all guests together.
const HOST_MIB: u64 = 128;
const GUESTS_MIB: u64 = 64;

async fn started(tls: bool) -> (Folder, Option<Certified>, Server) {
    let folder = Folder::new();
    let certified = tls.then(|| certified(&folder));
    let files = if tls { "[http.tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n" } else { "" };
    let hostile = plugin("hostile");
    config(
        &folder,
        &format!(
            "[http]\nin_flight = 4096\n{files}[limits]\ntotal_memory_mib = {GUESTS_MIB}\ntotal_host_memory_mib = {HOST_MIB}\n\
             [plugins.hostile]\npath = {hostile:?}\nprefix = \"\"\n\
             limits = {{ concurrency = 2, memory_mib = 16 }}\n"
        ),
    );
    let over = certified.as_ref().map_or(Over::Tcp, Certified::over);
    let server = Server::of(folder.command(&["serve", "--listen", "127.0.0.1:0"], &[]), over).await;
    server.modern("tools/list", json!({}), json!({})).await.unwrap();
    (folder, certified, server)
}

/// What a client does on one connection, and from which address, to make the host use memory.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Unfinished headers, of the maximum length or longer.
    EndlessHeaders,
    LongHeaders,
    /// An unfinished TLS message.
    EndlessHandshake,
    /// Unfinished bodies below the limit for small messages.
    SmallBody,
    LargeBody,
    /// Unread answers, of which the HTTP library buffers everything or the beginning.
    UnreadSmall,
    UnreadLarge,
    /// Sessions with long subscriptions.
    Sessions,
}

impl Way {
    const PLAIN: &[Self] = &[
        Self::EndlessHeaders,
        Self::LongHeaders,
        Self::SmallBody,
        Self::LargeBody,
        Self::UnreadSmall,
        Self::UnreadLarge,
        Self::Sessions,
    ];
    const SECURE: &[Self] = &[
        Self::EndlessHeaders,
        Self::LongHeaders,
        Self::EndlessHandshake,
        Self::SmallBody,
        Self::LargeBody,
        Self::UnreadSmall,
        Self::UnreadLarge,
        Self::Sessions,
    ];

    async fn go(self, clients: &mut Clients, from: u8, seed: u64) {
        match self {
            Self::EndlessHeaders => clients.send(from, &head(31 << 10)).await,
            Self::LongHeaders => clients.send(from, &head(120 << 10)).await,
            Self::EndlessHandshake => {
                // A record of a handshake whose message declares 60,000 bytes, and then more of it.
                let mut bytes = Vec::new();
                for at in 0..4 {
                    let mut body = vec![b'x'; 14_000];
                    if at == 0 {
                        body[..4].copy_from_slice(&[1, 0, 0xea, 0x60]);
                    }
                    bytes.extend([22, 3, 1]);
                    bytes.extend(u16::try_from(body.len()).unwrap().to_be_bytes());
                    bytes.extend(body);
                }
                clients.bytes(from, &bytes).await;
            }
            Self::SmallBody => clients.send(from, &unfinished(64_000)).await,
            Self::LargeBody => clients.send(from, &unfinished(7_000_000)).await,
            Self::UnreadSmall => clients.send(from, &big(180_000).repeat(8)).await,
            Self::UnreadLarge => clients.send(from, &big(3_500_000).repeat(4)).await,
            Self::Sessions => {
                let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                    "clientInfo": { "name": format!("{seed}"), "version": "x".repeat(15_000) } });
                clients.send(from, &request("initialize", "", &params).repeat(20)).await;
            }
        }
    }
}

fn big(bytes: usize) -> Vec<u8> {
    let params = modern_params(json!({ "name": "big", "arguments": { "bytes": bytes } }), json!({}));
    request("tools/call", "big", &params)
}

fn head(bytes: usize) -> Vec<u8> {
    format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: {}", "x".repeat(bytes)).into_bytes()
}

fn request(method: &str, name: &str, params: &e2e::Value) -> Vec<u8> {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let modern = if name.is_empty() {
        String::new()
    } else {
        format!("MCP-Protocol-Version: {}\r\nMcp-Method: {method}\r\nMcp-Name: {name}\r\n", e2e::MODERN)
    };
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{modern}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A body that is one byte short.
fn unfinished(bytes: usize) -> Vec<u8> {
    let mut all = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n",
        bytes + 1
    )
    .into_bytes();
    all.resize(all.len() + bytes, b' ');
    all
}

async fn bystander(server: &Server) -> Session<'_> {
    let mut session = server.legacy("2025-11-25", json!({})).await;
    session.request("ping", json!({})).await.unwrap();
    session
}

async fn tried(way: Way, tls: bool, connections: usize) {
    let (_folder, certified, server) = started(tls).await;
    let before = memory_kib(server.pid(), "VmRSS") >> 10;
    let mut session = bystander(&server).await;
    let mut clients = Clients::of(&server, certified.as_ref());
    let what = format!("{connections} connections, {way:?}, {before} MiB before");
    during(&mut session, &what, async {
        for at in 0..connections {
            way.go(&mut clients, 2 + u8::try_from(at % 4).unwrap(), 0).await;
        }
    })
    .await;
    // Few guests run for this.
    within(&server, HOST_MIB, &what);
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_do_not_end_take_no_more_than_there_is() {
    tried(Way::LongHeaders, false, 3000).await;
    tried(Way::EndlessHeaders, false, 3000).await;
    tried(Way::EndlessHeaders, true, 1500).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn handshakes_that_do_not_end_take_no_more_than_there_is() {
    tried(Way::EndlessHandshake, true, 3000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn small_bodies_that_do_not_end_leave_room_for_other_clients() {
    tried(Way::SmallBody, false, 2500).await;
}

/// Answers are charged until they are sent, and not only until the HTTP library has accepted them.
#[tokio::test(flavor = "multi_thread")]
async fn answers_count_until_they_are_sent() {
    tried(Way::UnreadSmall, false, 1200).await;
}

/// The total duration of the mixes: `MEMORY_MIXES_S`, or a default that is short enough for every change.
fn patience() -> Duration {
    let given = std::env::var("MEMORY_MIXES_S").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(given.unwrap_or(12))
}

/// Random mixes of all of these. To repeat a seed that failed, set `MEMORY_MIX=<seed>`.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_clients_mix_takes_no_more_than_there_is() {
    let (began, patience) = (Instant::now(), patience());
    let given: Option<u64> = std::env::var("MEMORY_MIX").ok().and_then(|text| text.parse().ok());
    for number in 0.. {
        let seed = given.unwrap_or_else(|| number + u64::from(std::process::id()) * 1000);
        println!("MEMORY_MIX={seed}");
        mixed(seed, patience / 2).await;
        if given.is_some() || began.elapsed() > patience {
            break;
        }
    }
}

async fn mixed(seed: u64, patience: Duration) {
    let began = Instant::now();
    let mut random = Random::new(seed);
    let tls = seed % 2 == 1;
    let (_folder, certified, server) = started(tls).await;
    let mut session = bystander(&server).await;
    let mut clients = Clients::of(&server, certified.as_ref());
    let ways = if tls { Way::SECURE } else { Way::PLAIN };
    while began.elapsed() < patience {
        let (way, from, times) =
            (*random.pick(ways), 2 + u8::try_from(random.below(5)).unwrap(), 1 + random.below(200));
        let what = format!("seed {seed}: {times} times {way:?} from 127.0.0.{from} with {}", clients.held());
        during(&mut session, &what, async {
            let step = Instant::now();
            for _ in 0..times {
                if step.elapsed() > patience / 4 {
                    break;
                }
                way.go(&mut clients, from, seed).await;
            }
        })
        .await;
        if random.below(6) == 0 {
            clients.leave(random.below(1 + clients.held()));
        }
        within(&server, HOST_MIB + GUESTS_MIB, &what);
    }
}
