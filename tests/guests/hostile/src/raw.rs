//! WASI calls that Rust's standard library does not offer, and a crash without a panic.

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

/// Opens as many sockets as possible, without connecting them.
pub fn sockets(n: u64) -> Vec<TcpSocket> {
    (0..n).map_while(|_| create_tcp_socket(IpAddressFamily::Ipv4).ok()).collect()
}

/// Tries every way to the network that Rust's standard library has; returns one word for each.
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

/// Header fields are in host memory: creates as many as requested.
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

/// Creates requests with method names of the requested length, and keeps all of them.
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

/// The same with host names.
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

/// Creates requests with as much of a body as the host accepts, and keeps all of them.
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

/// Copies one set of fields, and changes each copy so that it really is one.
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

/// Writes more at once than any stream accepts.
pub fn write_wide(bytes: u64) -> String {
    let wide = vec![b'w'; usize::try_from(bytes).unwrap_or_default()];
    match wasip2::cli::stdout::get_stdout().write(&wide) {
        Ok(()) => "written".into(),
        Err(error) => format!("refused: {error:?}"),
    }
}

/// Sets the times of the file that a path leads to, following links.
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

/// For each entry of a folder, whether the identity in the listing equals that of a lookup; and for links, their target.
pub fn identities(path: &str) -> String {
    let mut lines = Vec::new();
    for (directory, _) in get_directories().into_iter().filter(|(_, shown)| shown == path) {
        let Ok(stream) = directory.read_directory() else { continue };
        while let Ok(Some(entry)) = stream.read_directory_entry() {
            let ask =
                || directory.metadata_hash_at(PathFlags::empty(), &entry.name).map(|hash| (hash.lower, hash.upper));
            // The identity from the listing is reported once.
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
