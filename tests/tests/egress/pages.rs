//! Web pages, as the built-in plugin `fetch` gets them without a config: odd headers, encodings, and refusals with their remedies.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use e2e::{Folder, Pipe, is_error, json, text};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// A server that answers each path with bytes. It has no `robots.txt`.
struct Site {
    origin: String,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Site {
    async fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let connections: Arc<AtomicUsize> = Arc::default();
        let (answer, seen) = (Arc::new(answer), Arc::clone(&connections));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                seen.fetch_add(1, Ordering::SeqCst);
                open.spawn(respond(stream, Arc::clone(&answer)));
            }
        });
        Self { origin, connections, _tasks: tasks }
    }
}

async fn respond(mut stream: TcpStream, answer: Arc<impl Fn(&str) -> Vec<u8>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap();
    let bytes = match path {
        "/robots.txt" => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
        path => answer(path),
    };
    // A client that has read enough closes the connection.
    stream.write_all(&bytes).await.ok();
}

/// Returns a response with these header lines.
fn response(status: &str, headers: &[u8], body: &[u8]) -> Vec<u8> {
    [b"HTTP/1.1 ", status.as_bytes(), b"\r\n", headers, b"Connection: close\r\n\r\n", body].concat()
}

/// Starts a wharf with the plugin and these options.
async fn fetching(folder: &Folder, options: &[&str]) -> Pipe {
    let mut pipe = Pipe::start(folder, &[&["run", "--builtin", "fetch"], options].concat());
    pipe.legacy("2025-11-25", json!({})).await;
    pipe
}

/// Fetches a page; the text of the answer, and whether it is an error.
async fn fetch(pipe: &mut Pipe, url: String) -> (String, bool) {
    let result = pipe.call("fetch", json!({ "url": url, "raw": true })).await;
    assert!(result.get("structuredContent").is_none(), "{result}");
    (text(&result).to_owned(), is_error(&result))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_goes_where_its_bytes_say() {
    let site = Site::start(|path| match path {
        "/bytes" => response("302 Found", b"Location: /caf\xe9?a=\xff\r\n", b"the body of the redirect"),
        "/letters" => response("301 Moved", "Location: /caf\u{e9}\r\n".as_bytes(), b"the body of the redirect"),
        "/folded" => response("302 Found", b"Location:\r\n /further\r\n", b"the body of the redirect"),
        path => response("200 OK", b"Content-Type: text/plain\r\n", format!("arrived at {path}").as_bytes()),
    })
    .await;
    let folder = Folder::new();
    let mut pipe = fetching(&folder, &["--allow", &format!("http-private={}", site.origin)]).await;
    for (path, expected) in [
        ("/bytes", "arrived at /caf%E9?a=%FF"),
        ("/letters", "arrived at /caf%C3%A9"),
        ("/folded", "arrived at /further"),
    ] {
        let (said, failed) = fetch(&mut pipe, format!("{}{path}", site.origin)).await;
        assert!(said.ends_with(expected) && !failed, "{path}: {said}");
    }
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_may_have_a_thousand_header_lines() {
    let site = Site::start(|path| {
        let count: usize = path.trim_start_matches('/').parse().unwrap();
        let cookies: Vec<u8> = (0..count).flat_map(|at| format!("Set-Cookie: c{at}=1\r\n").into_bytes()).collect();
        response("200 OK", &[b"Content-Type: text/plain\r\nX-Odd: \xff\xfe\r\n".as_slice(), &cookies].concat(), b"here")
    })
    .await;
    let folder = Folder::new();
    let mut pipe = fetching(&folder, &["--allow", &format!("http-private={}", site.origin)]).await;
    for count in [0, 150, 1000] {
        let (said, failed) = fetch(&mut pipe, format!("{}/{count}", site.origin)).await;
        assert!(said.ends_with("here") && !failed, "{count}: {said}");
    }
    for count in [1100, 20_000] {
        let (said, failed) = fetch(&mut pipe, format!("{}/{count}", site.origin)).await;
        assert!(failed && said.contains("its headers are more, or longer, than this server reads"), "{count}: {said}");
    }
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_read_in_its_own_encoding() {
    let site = Site::start(|path| match path {
        "/header" => response("200 OK", b"Content-Type: text/plain; charset=ISO-8859-1\r\n", b"caf\xe9"),
        "/meta" => response("200 OK", b"Content-Type: text/html\r\n", b"<html><meta charset=windows-1252>caf\xe9"),
        "/xml" => response("200 OK", b"Content-Type: text/xml\r\n", b"<?xml version='1.0' encoding='latin1'?>caf\xe9"),
        "/none" => response("200 OK", b"Content-Type: text/plain\r\n", b"un caf\xe9 cr\xe8me"),
        "/odd" => response("200 OK", b"Content-Type: text/plain; charset=\"latin1\"; x=\xff\r\n", b"caf\xe9"),
        _ => response("200 OK", b"Content-Type: text/plain\r\n", "café".as_bytes()),
    })
    .await;
    let folder = Folder::new();
    let mut pipe = fetching(&folder, &["--allow", &format!("http-private={}", site.origin)]).await;
    for path in ["/header", "/meta", "/xml", "/none", "/odd", "/utf-8"] {
        let (said, failed) = fetch(&mut pipe, format!("{}{path}", site.origin)).await;
        assert!(said.contains("café") && !failed, "{path}: {said}");
    }
    pipe.close().await;
}

/// Counts how often a text occurs in another.
fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn any_is_every_public_address_and_no_other() {
    let site = Site::start(|_| response("200 OK", b"Content-Type: text/plain\r\n", b"a private page")).await;
    let port = site.origin.rsplit(':').next().unwrap();
    let folder = Folder::new();
    let mut pipe = fetching(&folder, &["--allow", "http=any"]).await;
    for (url, remedy) in [
        (site.origin.clone(), Some(format!("`--allow http-private={}`", site.origin))),
        (format!("http://localhost:{port}"), Some(format!("`--allow http-private=http://localhost:{port}`"))),
        (format!("http://[::1]:{port}"), Some(format!("`--allow http-private=http://[::1]:{port}`"))),
        ("http://10.0.0.1".to_owned(), Some("`--allow http-private=http://10.0.0.1`".to_owned())),
        ("http://169.254.169.254".to_owned(), None),
    ] {
        let (said, failed) = fetch(&mut pipe, format!("{url}/")).await;
        assert!(failed && said.contains("addresses of a private network"), "{url}: {said}");
        match remedy {
            Some(remedy) => {
                assert!(said.contains(&remedy), "{url}: {said}");
                pipe.wait_for_log(&remedy).await;
            }
            None => assert!(!said.contains("http-private"), "{url}: {said}"),
        }
    }
    assert_eq!(site.connections.load(Ordering::SeqCst), 0, "nothing was sent");
    pipe.close().await;
    let private = format!("http-private=http://localhost:{port}");
    let mut pipe = fetching(&folder, &["--allow", "http=any", "--allow", &private]).await;
    let (said, failed) = fetch(&mut pipe, format!("http://localhost:{port}/")).await;
    assert!(!failed && said.ends_with("a private page"), "{said}");
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_names_once_what_would_allow_it() {
    let folder = Folder::new();
    let mut by_flags = fetching(&folder, &[]).await;
    let (said, failed) = fetch(&mut by_flags, "https://a.example/x".into()).await;
    assert!(failed && count(&said, "does not allow this request to a.example") == 1, "{said}");
    let remedy =
        "The operator of this server can allow this with `--allow http=https://a.example`, or with `--allow http=any`";
    assert!(said.contains(remedy) && count(&said, "can allow") == 1 && !said.contains("Only the operator"), "{said}");
    by_flags.wait_for_log("which `--allow http=https://a.example` would allow").await;
    by_flags.close().await;
    folder.config("[plugins.web]\nbuiltin = 'fetch'\n");
    let mut by_config = Pipe::start(&folder, &["run"]);
    by_config.legacy("2025-11-25", json!({})).await;
    let result = by_config.call("web_fetch", json!({ "url": "https://a.example/x" })).await;
    let remedy = "can allow this with `http = [\"https://a.example\"]` in [plugins.web.grants].";
    assert!(is_error(&result) && text(&result).contains(remedy), "{result}");
    by_config.wait_for_log("to allow it, edit [plugins.web.grants]").await;
    by_config.close().await;
}
