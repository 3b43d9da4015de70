//! Test cases that pass: every kind of request, and every part of the environment that a case can set.

use crate::{all_pass, manifest, play, project};

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_request_and_expectation() {
    let cases = r#"
        [[case]]
        name = "structured"
        tool = "sum"
        args = { n = 3 }
        structured = { sum = 6 }
        [[case]]
        name = "text with structured"
        tool = "own_words"
        args = { n = 2 }
        text = "2 of them"
        structured = { sum = 2 }
        [[case]]
        name = "a failed tool"
        tool = "fail"
        error = "it is Sunday"
        [[case]]
        name = "a refused request"
        tool = "refuse"
        error = "not today"
        [[case]]
        name = "no such tool"
        tool = "nothing"
        error = "nothing"
        [[case]]
        name = "wrong arguments"
        tool = "sum"
        args = { n = "three" }
        error = "at /n"
        [[case]]
        name = "said"
        tool = "progress"
        args = { n = 2 }
        text = "counted"
        logs = ["info: step 1", "step 2"]
        progress = ["1/2 counting", "2/2"]
        [[case]]
        name = "resource"
        resource = "show:///fixed"
        text = "fixed text"
        structured = { contents = [{ uri = "show:///fixed", mimeType = "text/plain" }] }
        [[case]]
        name = "bytes"
        resource = "show:///bytes"
        snapshot = true
        [[case]]
        name = "from a template"
        resource = "show:///items/7"
        text_matches = "^item \\d$"
        [[case]]
        name = "missing resource"
        resource = "show:///items/none"
        error = "Resource not found"
        [[case]]
        name = "prompt"
        prompt = "review"
        args = { code = "let x;", language = "Rust" }
        text = "Review this Rust: let x;"
        [[case]]
        name = "completion"
        complete = { prompt = "review", argument = "language", value = "p", others = { code = "x" } }
        text = "python\nperl\ncode=x"
        structured = { completion = { total = 3 } }
        [[case]]
        name = "completion of a template"
        complete = { resource = "show:///items/{id}", argument = "id" }
        structured = { completion = { hasMore = true, total = 150 } }
        [[case]]
        name = "prompts"
        list = "prompts"
        text = "review\nconversation\nessay"
        [[case]]
        name = "templates"
        list = "templates"
        structured = { resourceTemplates = [{ uriTemplate = "show:///items/{id}" }] }
    "#;
    all_pass("showcase", "", cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_answered() {
    let cases = r#"
        [[case]]
        name = "accepted"
        tool = "purge"
        text = "deleted: old"
        given = { answers = { sure = { accepted = { really = true, reason = "old" } } } }
        progress = ["2/3 found them"]
        [[case]]
        name = "declined"
        tool = "purge"
        text = "declined"
        given = { answers = { sure = "declined" } }
        [[case]]
        name = "cancelled"
        tool = "purge"
        text = "cancelled"
        given = { answers = { sure = "cancelled" } }
        [[case]]
        name = "several rounds"
        tool = "introduce"
        text = "Ada Lovelace after 2 rounds"
        [case.given.answers]
        first = { accepted = { name = "Ada" } }
        last = { accepted = { name = "Lovelace" } }
        [[case]]
        name = "two at once"
        tool = "both"
        text = "2 answers"
        given = { answers = { a = { accepted = { v = "1" } }, b = "declined" } }
        [[case]]
        name = "page"
        tool = "sign_in"
        text = "signed in"
        given = { answers = { page = { accepted = {} } } }
        [[case]]
        name = "model"
        tool = "write_poem"
        text = "Roses."
        given = { answers = { poem = { sampled = "Roses." } } }
        [[case]]
        name = "whole answer of a model"
        tool = "write_poem"
        text = "Violets."
        [case.given.answers.poem.sampled]
        role = "assistant"
        model = "m"
        content = { type = "text", text = "Violets." }
        [[case]]
        name = "question of a resource"
        resource = "show:///secret"
        text = "the secret"
        given = { answers = { sure = { accepted = { really = true } } } }
        [[case]]
        name = "question of a prompt"
        prompt = "essay"
        text = "Write about tea."
        given = { answers = { name = { accepted = { name = "tea" } } } }
    "#;
    all_pass("showcase", "grants = { ask = ['elicitation', 'sampling'] }", cases).await;
    // Without the grant, the plugin may not even ask.
    let refused =
        "[[case]]\nname = 'a'\ntool = 'purge'\nerror = 'not allowed'\ngiven = { answers = { sure = 'declined' } }";
    all_pass("showcase", "", refused).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_are_copied_for_each_case() {
    let cases = r#"
        [[case]]
        name = "reads"
        tool = "read"
        args = { path = "/w/a.txt" }
        text = "from the fixture"
        given = { dirs = { "/w" = "fixtures/w" } }
        [[case]]
        name = "writes"
        tool = "write"
        args = { path = "/w/a.txt", text = "changed" }
        given = { dirs = { "/w" = "fixtures/w" } }
        [case.after]
        files = { "/w/a.txt" = "changed", "/w/in/b.txt" = "b" }
        absent = ["/w/c.txt"]
        [[case]]
        name = "reads again"
        tool = "read"
        args = { path = "/w/a.txt" }
        text = "from the fixture"
        given = { dirs = { "/w" = "fixtures/w" }, roots = ["/w"] }
        [[case]]
        name = "files of the case"
        tool = "read"
        args = { path = "/v/in/x.txt" }
        text = "written here"
        given = { dirs = { "/v" = { "in/x.txt" = "written here" } } }
        [[case]]
        name = "read only"
        tool = "write"
        args = { path = "/d/a.txt", text = "changed" }
        text_matches = "^error: "
        given = { dirs = { "/d" = {} } }
        after = { absent = ["/d/a.txt"] }
        [[case]]
        name = "nothing of the machine"
        tool = "read"
        args = { path = "/d/a.txt" }
        text_matches = "^error: "
    "#;
    let folder = project("reach", "", cases);
    let host = folder.write("mine/a.txt", "of the machine");
    let host = host.parent().unwrap().display();
    let dev =
        format!("grants = {{ roots = 'read-write', dirs = [{{ host = '{host}', guest = '/d', access = 'read' }}] }}");
    folder.write("p/plugin.toml", manifest("reach", &dev));
    folder.write("p/tests/fixtures/w/a.txt", "from the fixture");
    folder.write("p/tests/fixtures/w/in/b.txt", "b");
    play(&folder, &["--accept"], &[]).await.shows(&["7 passed, 0 failed"]);
    let fixture = std::fs::read_to_string(folder.join("p/tests/fixtures/w/a.txt")).unwrap();
    assert_eq!(fixture, "from the fixture", "cases work on copies");
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_played() {
    let dev = r#"grants = { http = ["https://api.example.com/v1/", { url = "https://api.example.com/v2/", methods = ["POST"], headers = { authorization = "Bearer {token}" } }] }"#;
    let cases = r#"
        [[case]]
        name = "answers"
        tool = "send"
        args = { url = "https://API.example.com/v1/x?q=1" }
        text_matches = '"status":201.*"x-mine":"yes".*"body":"hello"'
        [[case.given.http]]
        url = "https://api.example.com/v1/x?q=1"
        status = 201
        headers = { x-mine = "yes" }
        body = "hello"
        [[case]]
        name = "json and secrets"
        tool = "send"
        args = { url = "https://api.example.com/v2/x", method = "POST", body = "sent" }
        text_matches = '"content-type":"application/json".*\{\\"n\\":1\}'
        given = { http = [{ method = "POST", url = "https://api.example.com/v2/x", json = { n = 1 } }] }
        [[case]]
        name = "one after the other"
        tool = "many"
        args = { url = "https://api.example.com/v1/", times = 3 }
        text = '{"200":1,"503":2}'
        given = { http = [{ url = "https://api.example.com/v1/", status = 200 }, { url = "https://api.example.com/v1/", status = 503 }] }
        [[case]]
        name = "only what is granted"
        tool = "send"
        args = { url = "https://other.example.com/" }
        text = "error: ErrorCode::HttpRequestDenied"
        given = { http = [{ url = "https://other.example.com/", body = "never" }] }
    "#;
    all_pass("outgoing", dev, cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_fetched_without_a_network() {
    let cases = r#"
        [[case]]
        name = "fetches"
        tool = "fetch"
        args = { url = "https://www.example.com/page" }
        text_matches = "Heading"
        [[case.given.http]]
        url = "https://www.example.com/robots.txt"
        status = 404
        [[case.given.http]]
        url = "https://www.example.com/page"
        headers = { content-type = "text/html" }
        body = "<html><body><article><h1>Heading</h1><p>Words.</p></article></body></html>"
    "#;
    all_pass("fetch", "grants = { http = ['https://www.example.com'] }", cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn time_settings_and_variables_are_given() {
    let cases = r#"
        [[case]]
        name = "utc"
        tool = "get_current_time"
        text_matches = '"datetime": "2026-01-01T00:00:00\+00:00"(.|\n)*"day_of_week": "Thursday"'
        given = { now = 2026-01-01T00:00:00Z }
        [[case]]
        name = "settings"
        tool = "get_current_time"
        text_matches = '"timezone": "Asia/Tokyo"(.|\n)*"datetime": "2026-01-01T09:00:00\+09:00"'
        given = { now = "2026-01-01T00:00:00Z", config = { timezone = "Asia/Tokyo" } }
        [[case]]
        name = "variables"
        tool = "get_current_time"
        text_matches = '"timezone": "Europe/Paris"'
        given = { now = 2026-01-01T00:00:00Z, config = { timezone = { env = "TZ" } }, env = { TZ = "Europe/Paris" } }
        [[case]]
        name = "variables in settings"
        tool = "get_current_time"
        text_matches = '"timezone": "Europe/Paris"'
        given = { now = 2026-01-01T00:00:00Z, config = { timezone = { env = "ZONE" } }, env = { ZONE = "Europe/Paris" } }
    "#;
    let folder = project("time", "grants = { env = ['TZ'] }", cases);
    // The machine's own variable is not visible.
    let machine = [("TZ", "America/Lima"), ("ZONE", "America/Lima")];
    play(&folder, &["--accept"], &machine).await.shows(&["5 passed, 0 failed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn seeded_chance_is_the_same_in_every_run() {
    let given = |seed: &str| format!("given = {{ now = 2026-01-01T00:00:00Z{seed} }}");
    let case = |name: &str, seed: &str| {
        format!(
            "[[case]]\nname = '{name}'\ntool = 'chance'\nsnapshot = true\ntext_matches = 'slept true now 1767225600000$'\n{}\n",
            given(seed)
        )
    };
    let folder =
        project("reach", "", &[case("seeded", ", seed = 7"), case("other", ", seed = 8"), case("free", "")].concat());
    play(&folder, &["--accept"], &[]).await.shows(&["4 passed, 0 failed"]);
    let played = play(&folder, &[], &[]).await;
    played.shows(&["ok    seeded", "ok    other", "FAIL  free", "3 passed, 1 failed"]);
    let taken = |name: &str| std::fs::read_to_string(folder.join(&format!("p/tests/snapshots/{name}.json"))).unwrap();
    assert_ne!(taken("seeded"), taken("other"), "another seed is another chance");
    let same = "random 2865533423d743bb insecure fdfad737a8d7aac7 ";
    assert!(taken("seeded").contains(same), "on every machine and in every version: {}", taken("seeded"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cases_of_this_repository_pass() {
    for (plugin, dev, file, count) in [
        ("hello", "", "examples/rust/tests/greet.toml", 3),
        ("files", "grants = { roots = 'read-write' }", "plugins/files/tests/files.toml", 9),
    ] {
        let folder = project(plugin, dev, "");
        let file = format!("{}/../{file}", env!("CARGO_MANIFEST_DIR"));
        let played = play(&folder, &["--accept", "--file", &file], &[]).await;
        played.shows(&[&format!("{count} passed, 0 failed")]);
    }
}
