//! What is let in, and what every answer says.

use super::*;

const HEADERS: [(&str, &str); 6] = [
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),
    ("cache-control", "no-store"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

fn assert_headers(answer: &Reply) {
    for (name, value) in HEADERS {
        assert_eq!(answer.header(name), Some(value), "{}", answer.head);
    }
    let policy = answer.header("content-security-policy").unwrap();
    for part in
        ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"]
    {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
}

#[tokio::test]
async fn nothing_is_shown_without_the_cookie() {
    let stage = Stage::closed().await;
    let _process = stage.process("1-a", &SeenState { questions: vec![question(1)], ..state(1) }).await;
    for path in [
        "/",
        "/refused",
        "/waiting",
        "/plugins",
        "/record",
        "/machine",
        "/events",
        "/style.css",
        "/script.js",
        "/icon.svg",
        "/nowhere",
        "/open/",
        "/open/wrong",
        "/answer",
    ] {
        let answer = stage.get(path).await;
        assert_eq!(answer.status, 403, "{path}");
        assert!(answer.body.contains("wharf open") && !answer.body.contains("files"), "{path}: {}", answer.body);
        assert_headers(&answer);
        assert!(answer.header("set-cookie").is_none(), "{path}");
    }
    let answer = stage.post("/answer", "process=1-a.sock&question=1&word=once").await;
    assert_eq!(answer.status, 403);
    assert_eq!(stage.viewer.read(|view| view.waiting().count()), 1);
}

#[tokio::test]
async fn a_link_works_once() {
    let stage = Stage::closed().await;
    let path = stage.fresh_path();
    let host = stage.address.to_string();
    // Programs that only look at a link do not use it up.
    assert_eq!(stage.request(&format!("HEAD {path}"), &[("Host", &host)], "").await.status, 403);
    let wrong_host = stage.request(&format!("GET {path}"), &[("Host", "evil.example")], "").await;
    assert_eq!(wrong_host.status, 403);
    let first = stage.get(&path).await;
    assert_eq!(first.status, 303);
    assert_headers(&first);
    let cookie = first.header("set-cookie").unwrap();
    assert!(cookie.starts_with(&format!("wharf-window-{}=", stage.address.port())), "{cookie}");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    let second = stage.get(&path).await;
    assert_eq!((second.status, second.header("set-cookie")), (403, None));
    assert!(second.body.contains("works once"), "{}", second.body);
    // A browser that has the cookie is led to the page all the same.
    let pair = cookie.split(';').next().unwrap();
    let again = stage.request(&format!("GET {path}"), &[("Host", &host), ("Cookie", pair)], "").await;
    assert_eq!(again.status, 303);
    // After a link on another page, the browser would send no cookie to a redirect.
    let path = stage.fresh_path();
    let from_page =
        stage.request(&format!("GET {path}"), &[("Host", &host), ("Sec-Fetch-Site", "cross-site")], "").await;
    assert_eq!((from_page.status, from_page.header("refresh")), (200, Some("0; url=/")));
    assert!(from_page.header("set-cookie").is_some());
}

#[tokio::test]
async fn only_forms_of_the_page_are_accepted() {
    let stage = Stage::open().await;
    let mut process = stage.process("1-a", &SeenState { questions: vec![question(1)], ..state(1) }).await;
    let (host, own) = (stage.address.to_string(), format!("http://{}", stage.address));
    let form = "process=1-a.sock&question=1&word=once";
    for headers in [
        vec![("Host", &*host)],
        vec![("Host", &host), ("Origin", "null")],
        vec![("Host", &host), ("Origin", "http://127.0.0.1:1")],
        vec![("Host", &host), ("Origin", "http://evil.example")],
        vec![("Host", &host), ("Origin", &own), ("Sec-Fetch-Site", "same-site")],
        vec![("Host", "localhost"), ("Origin", &own)],
        vec![("Host", "evil.example"), ("Origin", "http://evil.example")],
        vec![("Origin", &own)],
    ] {
        for path in ["/answer", "/allow", "/take-back", "/undo"] {
            let answer = stage.request(&format!("POST {path}"), &headers, form).await;
            assert!([400, 403].contains(&answer.status), "{path} {headers:?}: {}", answer.status);
        }
    }
    assert_eq!(stage.viewer.read(|view| view.waiting().count()), 1);
    assert!(stage.actions.done.lock().is_empty());
    // A page of another host that the browser believes to be here.
    assert_eq!(stage.request("GET /", &[("Host", "evil.example")], "").await.status, 403);
    stage.act("/answer", form).await;
    assert_eq!(process.hear().await, SeenAnswer { question: 1, word: "once".into() });
}

#[tokio::test]
async fn addresses_are_used_in_one_way_only() {
    let stage = Stage::open().await;
    for (answer, status) in [
        (stage.get("/answer").await, 405),
        (stage.get("/allow").await, 405),
        (stage.get("/take-back?process=a").await, 405),
        (stage.get("/undo?id=4-2").await, 405),
        (stage.post("/", "").await, 405),
        (stage.post("/waiting", "").await, 405),
        (stage.get("/nowhere").await, 404),
        (stage.get("/../etc/passwd").await, 404),
        (stage.get("/style.css").await, 200),
        (stage.get("/script.js").await, 200),
        (stage.get("/icon.svg").await, 200),
    ] {
        assert_eq!(answer.status, status, "{}", answer.body);
        assert_headers(&answer);
    }
    assert!(stage.actions.done.lock().is_empty());
}

#[tokio::test]
async fn a_form_has_a_most_size() {
    let stage = Stage::open().await;
    let padded = |bytes: usize| {
        let form = "id=4-2&padding=";
        format!("{form}{}", "x".repeat(bytes - form.len()))
    };
    let answer = stage.post("/undo", &padded((64 << 10) + 1)).await;
    assert_eq!(answer.status, 413);
    assert!(answer.body.contains("64 KiB"), "{}", answer.body);
    assert_headers(&answer);
    assert!(stage.actions.done.lock().is_empty());
    assert_eq!(stage.post("/undo", &padded(64 << 10)).await.status, 303);
    assert_eq!(*stage.actions.done.lock(), ["undo 4-2"]);
    // The head of a request is bounded too.
    let head = [("Host", stage.address.to_string()), ("X", "x".repeat(1 << 20))];
    let answer = stage.request("GET /", &head.each_ref().map(|(name, value)| (*name, value.as_str())), "").await;
    // The client may still be writing when the connection is closed, and then gets no answer.
    assert!([0, 431].contains(&answer.status), "{}", answer.head);
}

#[tokio::test]
async fn connections_and_streams_are_bounded() {
    let stage = Stage::open().await;
    let host = stage.address;
    let ask = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {}\r\n\r\n", stage.cookie);
    let mut streams = Vec::new();
    for at in 0..9 {
        let mut stream = BufReader::new(TcpStream::connect(host).await.unwrap());
        stream.write_all(ask("/events").as_bytes()).await.unwrap();
        let mut line = String::new();
        soon("the head of the answer", stream.read_line(&mut line)).await.unwrap();
        assert!(line.contains(if at < 8 { " 200 " } else { " 503 " }), "{at}: {line}");
        streams.push(stream);
    }
    // Idle ones take the other places, so that the next one waits until a place is free.
    let mut idle = Vec::new();
    for _ in streams.len()..16 {
        let mut stream = BufReader::new(TcpStream::connect(host).await.unwrap());
        // An answer shows that it has its place.
        stream.write_all(ask("/icon.svg").as_bytes()).await.unwrap();
        let mut line = String::new();
        soon("the head of the answer", stream.read_line(&mut line)).await.unwrap();
        idle.push(stream);
    }
    let mut late = BufReader::new(TcpStream::connect(host).await.unwrap());
    late.write_all(ask("/icon.svg").as_bytes()).await.unwrap();
    // A place that is taken answers once more. By then, the late one would have had its answer too.
    let taken = idle.first_mut().unwrap();
    taken.write_all(ask("/icon.svg").as_bytes()).await.unwrap();
    let (mut line, mut ends) = (String::new(), 0);
    while ends < 2 {
        line.clear();
        soon("another answer", taken.read_line(&mut line)).await.unwrap();
        ends += line.matches("</svg>").count();
    }
    let waits = late.get_ref().try_read(&mut [0]);
    assert!(waits.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock));
    line.clear();
    drop(streams);
    soon("the place", late.read_line(&mut line)).await.unwrap();
    assert!(line.contains(" 200 "), "{line}");
}

#[tokio::test]
async fn a_change_is_an_event() {
    let stage = Stage::open().await;
    let mut stream = BufReader::new(TcpStream::connect(stage.address).await.unwrap());
    let request = format!("GET /events HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\r\n", stage.address, stage.cookie);
    stream.write_all(request.as_bytes()).await.unwrap();
    let event = async |stream: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        while !line.contains("data: now") {
            line.clear();
            assert!(soon("an event", stream.read_line(&mut line)).await.unwrap() > 0);
        }
    };
    event(&mut stream).await;
    let _process = stage.process("1-a", &state(1)).await;
    event(&mut stream).await;
}
