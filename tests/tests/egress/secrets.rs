//! Secrets that are added to a plugin's requests, and that the plugin never sees.

use e2e::{Folder, Value, is_error, json, text};

use crate::{config, connected, send, web::Web};

const SECRET: &str = "ghp_s3cr3t/with+chars=0123456789";

/// A rule that adds the secret, and one that lets the plugin place it.
fn rules(web: &Web) -> String {
    format!(
        "{{ url = \"{0}/echo\", methods = \"any\", private = true, headers = {{ authorization = \"Bearer {{api}}\", x-team = \"ours\" }} }}, \
         {{ url = \"{0}/echo/placed\", methods = \"any\", private = true, secrets = [\"api\"] }}, \
         {{ url = \"{0}/plain\", methods = \"any\", private = true }}, {{ url = \"{0}/upload\", methods = \"any\", private = true }}",
        web.url("")
    )
}

const SOURCES: &str = "[secrets]\napi = { env = \"WHARF_TEST_API\" }\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_sent_and_never_comes_back() {
    let (folder, web) = (Folder::new(), Web::start().await);
    config(&folder, &rules(&web), SOURCES);
    let mut pipe = connected(&folder, &[("WHARF_TEST_API", SECRET), ("RUST_LOG", "wharf=debug")]).await;
    let mask = "*".repeat(SECRET.len());
    let direct = send(
        &mut pipe,
        json!({ "url": web.url("/echo"), "headers": {
            "Authorization": "guest", "Range": "bytes=0-3", "Host": "evil.example", "Connection": "close",
            "Transfer-Encoding": "chunked", "Proxy-Authorization": "guest",
            // Programs behind CGI or WSGI treat this as the same header.
            "x_team": "guest", "X.Team": "guest", "accept_encoding": "gzip", "keep_alive": "1", "proxy_authorization": "guest",
            "x-http-method-override": "DELETE", "x_http_method_override": "DELETE", "x-original_url": "/admin",
            "Trailer": "x-checksum, x_team"
        } }),
    );
    let echoed: Value = serde_json::from_str(direct.await.unwrap()["body"].as_str().unwrap()).unwrap();
    assert_eq!(echoed["headers"]["authorization"], format!("Bearer {mask}"), "{echoed}");
    assert_eq!(echoed["headers"]["accept-encoding"], "identity", "{echoed}");
    assert_eq!(echoed["headers"]["host"], format!("localhost:{}", web.address.port()), "{echoed}");
    assert_eq!(echoed["headers"]["x-team"], "ours", "{echoed}");
    for gone in [
        "range",
        "connection",
        "transfer-encoding",
        "proxy-authorization",
        "x_team",
        "x.team",
        "accept_encoding",
        "keep_alive",
        "proxy_authorization",
        "x-http-method-override",
        "x_http_method_override",
        "x-original_url",
        "trailer",
    ] {
        assert_eq!(echoed["headers"].get(gone), None, "{echoed}");
    }
    let forms = ["base64", "hex", "percent", "split", "header", "trailers", "name"];
    for path in forms.map(|form| format!("/echo/{form}")) {
        let answer = send(&mut pipe, json!({ "url": web.url(&path), "headers": { "te": "trailers" } })).await.unwrap();
        let all = answer.to_string();
        assert!(all.contains("*****"), "{path}: {all}");
        assert!(
            !all.contains("s3cr3t") && !all.contains("3cjNjcjN0") && !all.contains("733363723374"),
            "{path}: {all}"
        );
    }
    // The announced lengths are those of the bodies, also of an empty body.
    let answer = send(&mut pipe, json!({ "url": web.url("/echo") })).await.unwrap();
    assert_eq!(answer["headers"]["content-length"], answer["length"].to_string(), "{answer}");
    let empty = send(&mut pipe, json!({ "url": web.url("/echo/header"), "method": "HEAD" })).await.unwrap();
    assert_eq!((&empty["status"], &empty["length"]), (&json!(200), &json!(0)), "{empty}");
    assert_eq!(empty["headers"]["x-echo"], format!("Bearer {mask}"), "{empty}");
    let refused = send(&mut pipe, json!({ "url": web.url("/echo/gzip") })).await.unwrap_err();
    assert!(refused.contains("HttpResponseContentCoding"), "{refused}");
    let backwards: String = SECRET.chars().rev().collect();
    let found = pipe.call("look_for", json!({ "backwards": backwards, "url": web.url("/echo") })).await;
    assert_eq!(text(&found), "0 true", "the secret is nowhere in the memory of the plugin");
    // A plugin that learnt the secret in another way still cannot return it.
    let failed = pipe.call("fail", json!({ "url": "", "body": format!("it is {SECRET}") })).await;
    assert!(is_error(&failed) && text(&failed).contains(&mask) && !text(&failed).contains("s3cr3t"), "{failed}");
    let ended = pipe.close().await;
    assert!(!ended.log.contains("s3cr3t"), "{}", ended.log);
}

/// A server may know a secret from before this process began, and repeat it in a response to a request with another secret.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_was_not_needed_yet_is_masked_too() {
    let (folder, web) = (Folder::new(), Web::start().await);
    let rules = format!(
        "{{ url = \"{0}/echo\", methods = \"any\", private = true, headers = {{ authorization = \"Bearer {{other}}\" }} }}, \
         {{ url = \"{0}/plain\", methods = \"any\", private = true, headers = {{ authorization = \"Bearer {{api}}\" }} }}",
        web.url("")
    );
    config(&folder, &rules, &format!("{SOURCES}other = {{ env = \"WHARF_TEST_OTHER\" }}\n"));
    let variables = [("WHARF_TEST_API", SECRET), ("WHARF_TEST_OTHER", "another-secret-of-the-same-plugin")];
    let mut pipe = connected(&folder, &variables).await;
    let request = json!({ "url": web.url("/echo"), "headers": { "x-log": SECRET } });
    let answer = send(&mut pipe, request).await.unwrap().to_string();
    assert!(answer.contains(&"*".repeat(SECRET.len())) && !answer.contains("s3cr3t"), "{answer}");
    pipe.close().await;
}

/// The chunks of the body that arrived, and the reason why no more arrived.
async fn pieces(pipe: &mut e2e::Pipe, url: String, most: Option<usize>) -> (Vec<String>, Value) {
    let result = pipe.call("pieces", json!({ "url": url, "most": most })).await;
    let told: Value = serde_json::from_str(text(&result)).unwrap_or_else(|_| panic!("{result}"));
    let pieces = told["pieces"].as_array().unwrap().iter().map(|piece| piece.as_str().unwrap().to_owned()).collect();
    (pieces, told["error"].clone())
}

/// A plugin that has a server repeat a guess at the end of a response sees the same for each guess.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_ends_with_a_guess_does_not_tell_whether_it_is_right() {
    let (folder, web) = (Folder::new(), Web::start().await);
    config(&folder, &rules(&web), SOURCES);
    let mut pipe = connected(&folder, &[("WHARF_TEST_API", SECRET)]).await;
    for padding in [0, 700] {
        for length in 1..SECRET.len() {
            let right = &SECRET[..length];
            // The next character of the secret at this position.
            let last = right.chars().last().unwrap();
            let other = match last {
                '0'..='8' | 'a'..='y' => char::from(last as u8 + 1),
                'z' => 'a',
                '9' => '0',
                _ => '.',
            };
            let wrong = format!("{}{other}", &right[..length - 1]);
            let mut seen = Vec::new();
            for guess in [right, &wrong] {
                let url = web.url(&format!("/echo/missing?{}{guess}", "x".repeat(padding)));
                let (pieces, error) = pieces(&mut pipe, url, None).await;
                assert_eq!(error, Value::Null);
                assert!(pieces.concat().ends_with(guess), "{pieces:?}");
                seen.push(pieces.iter().map(String::len).collect::<Vec<_>>());
            }
            assert_eq!(seen[0], seen[1], "{right} is told from {wrong}");
        }
    }
    let whole = web.url(&format!("/echo/missing?{SECRET}"));
    let (pieces, _) = pieces(&mut pipe, whole, None).await;
    assert_eq!(pieces.concat(), format!("there is no page {}", "*".repeat(SECRET.len())), "all of it is masked");
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_passed_on_when_they_come_and_half_a_secret_is_not() {
    let (folder, web) = (Folder::new(), Web::start().await);
    config(&folder, &rules(&web), SOURCES);
    let mut pipe = connected(&folder, &[("WHARF_TEST_API", SECRET)]).await;
    // The server sends no more data.
    let (events, _) = pieces(&mut pipe, web.url("/echo/events"), Some(1)).await;
    assert_eq!(events, ["data: one\n\n"]);
    let (pieces, error) = pieces(&mut pipe, web.url("/echo/broken"), None).await;
    assert!(error.is_string(), "the guest is told that it broke off: {error}");
    let all = pieces.concat();
    assert!(all.starts_with("xxx") && !all.contains("ghp_") && !all.contains("Bearer"), "{all}");
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placeholder_becomes_the_secret_only_where_it_belongs() {
    let (folder, web) = (Folder::new(), Web::start().await);
    let placeholder = "env = [{ name = \"API_KEY\", secret = \"api\" }]";
    config(&folder, &format!("{}]\n{placeholder}\nask = [", rules(&web)), SOURCES);
    let mut pipe = connected(&folder, &[("WHARF_TEST_API", SECRET)]).await;
    let key = pipe.call("variable", json!({ "url": "API_KEY" })).await;
    let key = text(&key).to_owned();
    assert!(key.starts_with("wharf_") && key != SECRET, "{key}");
    let placed =
        send(&mut pipe, json!({ "url": web.url("/echo/placed"), "headers": { "x-api-key": format!("k={key}") } }))
            .await;
    let echoed: Value = serde_json::from_str(placed.unwrap()["body"].as_str().unwrap()).unwrap();
    assert_eq!(echoed["headers"]["x-api-key"], format!("k={}", "*".repeat(SECRET.len())), "{echoed}");
    let before = web.requests();
    for arguments in [
        json!({ "url": web.url("/plain"), "headers": { "x-api-key": key } }),
        json!({ "url": web.url(&format!("/plain?key={key}")) }),
        json!({ "url": web.url(&format!("/echo/placed?key={key}")) }),
    ] {
        let refused = send(&mut pipe, arguments).await.unwrap_err();
        assert!(refused.contains("HttpRequestDenied"), "{refused}");
    }
    assert_eq!(web.requests(), before);
    let body = format!("{}{key}", "x".repeat(6000));
    // It answers only when it has the whole body.
    let refused = send(&mut pipe, json!({ "url": web.url("/upload"), "method": "POST", "body": body })).await;
    assert!(refused.is_err(), "{refused:?}");
    pipe.wait_for_log("had the placeholder of the secret `api`").await;
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_missing_is_named() {
    let (folder, web) = (Folder::new(), Web::start().await);
    config(&folder, &rules(&web), SOURCES);
    let mut pipe = connected(&folder, &[]).await;
    let refused = send(&mut pipe, json!({ "url": web.url("/echo") })).await.unwrap_err();
    assert!(refused.contains("ConfigurationError"), "{refused}");
    pipe.wait_for_log("the secret `api`: the variable WHARF_TEST_API").await;
    assert_eq!(web.connections(), 0);
    pipe.close().await;
    let checked = folder.run(&["check"], &[]).await;
    let out = e2e::folder::stdout(&checked);
    assert!(out.contains("the secret `api`: the variable WHARF_TEST_API"), "{out}");
    config(&folder, &rules(&web), "");
    let wrong = folder.run(&["check"], &[]).await;
    assert!(e2e::folder::stderr(&wrong).contains("there is no secret `api` in [secrets]"));
}

/// A folder that contains the file of a secret is not opened, however it is granted; other folders are.
#[tokio::test(flavor = "multi_thread")]
async fn no_plugin_reads_the_file_of_a_secret() {
    let folder = Folder::new();
    folder.plugin("files");
    folder.write("private/deep/api.token", SECRET);
    folder.set_mode("private/deep/api.token", 0o600);
    folder.write("open/notes.txt", "notes");
    std::os::unix::fs::symlink(folder.join("private"), folder.join("link")).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    for granted in ["private", "private/deep", "link"] {
        let (place, open, file) = (path(granted), path("open"), path("private/deep/api.token"));
        folder.config(&format!(
            "[secrets]\napi = {{ file = {file:?} }}\n[plugins.files]\npath = \"../../plugins/files.wasm\"\nprefix = \"\"\n\
             [plugins.files.grants]\ndirs = [{{ host = {place:?}, access = \"read\" }}, {{ host = {open:?}, access = \"read\" }}]\n"
        ));
        let mut pipe = connected(&folder, &[]).await;
        for place in [file, path(&format!("{granted}/api.token")), path(&format!("{granted}/deep/api.token"))] {
            let read = pipe.call("read_text_file", json!({ "path": place })).await;
            assert!(is_error(&read) && !read.to_string().contains("s3cr3t"), "{granted}: {read}");
        }
        let read = pipe.call("read_text_file", json!({ "path": path("open/notes.txt") })).await;
        assert!(text(&read).contains("notes"), "{granted}: {read}");
        pipe.close().await;
        let checked = folder.run(&["check"], &[]).await;
        let said = e2e::folder::stdout(&checked);
        assert!(said.contains("is not open, because a file with a secret of wharf could be read through it"), "{said}");
    }
}
