//! What Rust's library has no name for: WASI's own calls, and a crash without a panic.

use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};

use wasip2::{
    filesystem::{
        preopens::get_directories,
        types::{DescriptorType, NewTimestamp, PathFlags},
    },
    http::{
        outgoing_handler,
        types::{Fields, Method, OutgoingRequest, Scheme},
    },
    random::random::get_random_bytes,
    sockets::{network::IpAddressFamily, tcp::TcpSocket, tcp_create_socket::create_tcp_socket},
};

pub fn trap() -> ! {
    #[cfg(target_arch = "wasm32")]
    core::arch::wasm32::unreachable();
    #[cfg(not(target_arch = "wasm32"))]
    std::process::abort();
}

/// As many sockets as there are to have, connected to nothing.
pub fn sockets(n: u64) -> Vec<TcpSocket> {
    (0..n).map_while(|_| create_tcp_socket(IpAddressFamily::Ipv4).ok()).collect()
}

/// Every way of Rust's library onto the network; one word for each.
pub fn connect(address: &str) -> String {
    let mut words = Vec::new();
    let mut note = |what: &str, failed: bool| words.push(format!("{what}:{}", if failed { "refused" } else { "OPEN" }));
    note("connect", TcpStream::connect(address).is_err());
    note("listen", TcpListener::bind("127.0.0.1:0").is_err());
    note("udp", UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(b"x", address)).is_err());
    note("lookup", ("localhost", 80).to_socket_addrs().is_err());
    words.join(" ")
}

pub fn http_get(authority: &str) -> String {
    let request = OutgoingRequest::new(Fields::new());
    let _ = request.set_scheme(Some(&Scheme::Http));
    let _ = request.set_authority(Some(authority));
    let _ = request.set_path_with_query(Some("/"));
    let response = match outgoing_handler::handle(request, None) {
        Ok(response) => response,
        Err(error) => return format!("refused: {error:?}"),
    };
    response.subscribe().block();
    match response.get() {
        Some(Ok(Err(error))) => format!("refused: {error:?}"),
        other => format!("OPEN: {other:?}"),
    }
}

/// Header fields live in the host: fills as many as it is given.
pub fn fields(n: u64, bytes: u64, ms: u64) -> String {
    let value = vec![b'v'; usize::try_from(bytes).unwrap_or_default()];
    let mut held = Vec::new();
    let mut stored = 0_u64;
    for _ in 0..n {
        let fields = Fields::new();
        for at in 0..1024 {
            if fields.append(&format!("f{at}"), &value).is_err() {
                break;
            }
            stored += bytes;
        }
        held.push(fields);
    }
    std::thread::sleep(std::time::Duration::from_millis(ms));
    format!("{stored} bytes in {} sets", held.len())
}

/// Requests with names of methods as long as it is told, all kept.
pub fn methods(n: u64, bytes: u64) -> String {
    let method = Method::Other("M".repeat(usize::try_from(bytes).unwrap_or_default()));
    let (mut held, mut refused) = (Vec::new(), 0);
    for _ in 0..n {
        let request = OutgoingRequest::new(Fields::new());
        refused += u64::from(request.set_method(&method).is_err());
        held.push(request);
    }
    format!("{} requests, {refused} refused", held.len())
}

/// The same with the hosts they are for.
pub fn authorities(n: u64, bytes: u64) -> String {
    let authority = "a".repeat(usize::try_from(bytes).unwrap_or_default());
    let (mut held, mut refused) = (Vec::new(), 0);
    for _ in 0..n {
        let request = OutgoingRequest::new(Fields::new());
        refused += u64::from(request.set_authority(Some(&authority)).is_err());
        held.push(request);
    }
    format!("{} requests, {refused} refused", held.len())
}

/// Requests with as much of a body as they take, all kept.
pub fn bodies(n: u64, ms: u64) -> String {
    let piece = vec![b'b'; 4096];
    let (mut held, mut written) = (Vec::new(), 0_u64);
    for _ in 0..n {
        let request = OutgoingRequest::new(Fields::new());
        let Ok(body) = request.body() else { continue };
        if let Ok(stream) = body.write() {
            while let Ok(room @ 1..) = stream.check_write() {
                let take = usize::try_from(room).unwrap_or_default().min(piece.len());
                if stream.write(&piece[..take]).is_err() {
                    break;
                }
                written += take as u64;
            }
        }
        drop(body);
        held.push(request);
    }
    std::thread::sleep(std::time::Duration::from_millis(ms));
    format!("{written} bytes in {} requests", held.len())
}

/// Copies of one set of fields, each changed so that it is a copy.
pub fn clones(n: u64, bytes: u64) -> String {
    let fields = Fields::new();
    let value = vec![b'v'; usize::try_from(bytes).unwrap_or_default()];
    let _ = fields.append("f", &value);
    let mut held = Vec::new();
    for _ in 0..n {
        let copy = fields.clone();
        let _ = copy.append("g", b"x");
        held.push(copy);
    }
    format!("{} copies", held.len())
}

/// More at once than any stream offers to take.
pub fn write_wide(bytes: u64) -> String {
    let wide = vec![b'w'; usize::try_from(bytes).unwrap_or_default()];
    match wasip2::cli::stdout::get_stdout().write(&wide) {
        Ok(()) => "written".into(),
        Err(error) => format!("refused: {error:?}"),
    }
}

/// Sets the times of what a path leads to, links followed.
pub fn touch(path: &str) -> String {
    for (directory, shown) in get_directories() {
        if let Some(below) = path.strip_prefix(&shown) {
            let below = below.trim_start_matches('/');
            let now = NewTimestamp::Now;
            return match directory.set_times_at(PathFlags::SYMLINK_FOLLOW, below, now, now) {
                Ok(()) => "touched".into(),
                Err(error) => format!("refused: {}", error.name()),
            };
        }
    }
    "no such folder".into()
}

/// Of each entry of a folder, whether what the listing knows of its identity is what looking at it tells; and where links say that
/// they lead.
pub fn identities(path: &str) -> String {
    let mut lines = Vec::new();
    for (directory, _) in get_directories().into_iter().filter(|(_, shown)| shown == path) {
        let Ok(stream) = directory.read_directory() else { continue };
        while let Ok(Some(entry)) = stream.read_directory_entry() {
            let ask =
                || directory.metadata_hash_at(PathFlags::empty(), &entry.name).map(|hash| (hash.lower, hash.upper));
            // What the listing knows is told once.
            let same = matches!((ask(), ask()), (Ok(told), Ok(looked)) if told == looked);
            let leads = match (entry.type_, directory.readlink_at(&entry.name)) {
                (DescriptorType::SymbolicLink, Ok(target)) => target,
                (DescriptorType::SymbolicLink, Err(error)) => error.name().to_owned(),
                _ => String::new(),
            };
            lines.push(format!("{} {same} {leads}", entry.name));
        }
    }
    lines.sort();
    lines.join("\n")
}

pub fn random(bytes: u64) -> String {
    format!("{} bytes", get_random_bytes(bytes).len())
}
