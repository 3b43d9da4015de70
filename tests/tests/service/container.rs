//! wharf in a minimal environment: no variables, no home, nothing writable, no privileges.

use std::{path::Path, process::Stdio};

use e2e::{Folder, PATIENCE, Server, given, http::Over, json};
use tokio::{process::Command, time::timeout};

/// As an unknown user, without capabilities and without a way to gain any.
const NOBODY: [&str; 7] = [
    "--reuid=65532",
    "--regid=65532",
    "--clear-groups",
    "--bounding-set=-all",
    "--inh-caps=-all",
    "--no-new-privs",
    "--",
];

/// Whether this process may become that user, and that user may run this file.
async fn can_become_nobody(binary: &Path) -> bool {
    let tried = Command::new("setpriv").args(NOBODY).arg(binary).arg("--version").output();
    timeout(PATIENCE, tried).await.unwrap().is_ok_and(|output| output.status.success())
}

#[tokio::test(flavor = "multi_thread")]
async fn it_needs_no_variables_no_home_and_no_rights() {
    let folder = Folder::new();
    let config = folder.config(&given("g", &json!({}), ""));
    // The user that it runs as may read its config.
    folder.set_mode("", 0o755);
    let binary = e2e::binary();
    let mut command = if can_become_nobody(&binary).await {
        let mut command = Command::new("setpriv");
        command.args(NOBODY).arg(&binary);
        command
    } else {
        Command::new(&binary)
    };
    // No user can create files in this folder.
    command.env_clear().current_dir("/proc").args(["serve", "--listen", "127.0.0.1:0", "-c"]).arg(config);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let server = Server::of(command, Over::Tcp).await;
    let call = json!({ "name": "g_t", "arguments": { "text": "called" } });
    assert_eq!(e2e::text(&server.modern("tools/call", call, json!({})).await.unwrap()), "called");
    assert_eq!(server.send("GET", "/readyz", &[], b"").await.status(), 200);
    let (status, _, log) = server.terminate().await;
    assert!(status.success() && !log.contains("ERROR"), "{log}");
}

/// Every path in the image's recipe is one that a build creates, and its command exists.
#[test]
fn the_recipe_takes_what_is_built() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("examples/container/Containerfile")).unwrap();
    let copied: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("COPY "))
        .flat_map(|line| line.split(' ').filter(|word| word.starts_with("target/")))
        .collect();
    assert!(copied.len() >= 2, "{text}");
    for path in copied {
        match path.strip_prefix("target/plugins/") {
            Some(name) => drop(e2e::plugin(name.trim_end_matches(".wasm"))),
            None => assert!(path.ends_with("/release/wharf"), "{path}"),
        }
    }
    for line in ["USER 65532:65532", "FROM scratch", "STOPSIGNAL SIGTERM", "ENTRYPOINT [\"/wharf\"]"] {
        assert!(text.lines().any(|other| other == line), "{line}");
    }
}
