//! wharf in a minimal environment: no variables, no home, nothing writable, no privileges.

use std::{
    collections::BTreeSet,
    os::unix::fs::{chown, symlink},
    path::Path,
    process::{Output, Stdio},
};

use e2e::{Folder, PATIENCE, Pipe, Server, folder::stderr, given, http::Over, json, plugin};
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

/// Runs a command of wharf as `before` does, which is a program with arguments. None: this machine does not let it.
async fn run_by(before: &[&str], folder: &Folder, arguments: &[&str]) -> Option<Output> {
    let (program, more) = before.split_first().unwrap();
    let by = |program: &str, command: &[&str]| {
        let plain = folder.command(&[], &[]);
        let plain = plain.as_std().get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let mut by = Command::new(program);
        by.args(more).args(command).env_clear().envs(plain).stdin(Stdio::null());
        by.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").output()
    };
    if !timeout(PATIENCE, by(program, &["true"])).await.unwrap().is_ok_and(|tried| tried.status.success()) {
        println!("{program} is not possible on this machine: not tried");
        return None;
    }
    let binary = e2e::binary();
    let command: Vec<&str> = [binary.to_str().unwrap()].into_iter().chain(arguments.iter().copied()).collect();
    Some(timeout(PATIENCE, by(program, &command)).await.unwrap().unwrap())
}

/// Such a volume is a folder that everybody may write by its mode, and that is mounted read-only. The files are links into a folder in it.
#[tokio::test(flavor = "multi_thread")]
async fn a_config_in_a_folder_that_is_mounted_read_only_is_trusted() {
    let folder = Folder::new();
    let hello = plugin("hello");
    folder.write("map/..first/wharf.toml", format!("[plugins.hello]\npath = {hello:?}\n"));
    symlink("..first", folder.join("map/..data")).unwrap();
    symlink("..data/wharf.toml", folder.join("map/wharf.toml")).unwrap();
    let map = folder.join("map");
    let config = map.join("wharf.toml");
    let check = ["check", "-c", config.to_str().unwrap()];
    for mode in [0o777, 0o2777] {
        folder.set_mode("map", mode);
        let refused = folder.run(&check, &[]).await;
        assert!(stderr(&refused).contains("others may write this folder"), "{mode:o}: {}", stderr(&refused));
        let mount = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && exec \"$@\"";
        let map = map.to_str().unwrap();
        let before = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, map];
        let Some(checked) = run_by(&before, &folder, &check).await else { return };
        assert!(checked.status.success(), "{mode:o}: {}", stderr(&checked));
    }
}

/// With `fsGroup`, each file of a volume belongs to a group that only the processes of the pod have, and the group may write it.
#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_only_the_pod_has_may_write() {
    let folder = Folder::new();
    let hello = folder.plugin_as("hello", "volume/hello.wasm");
    let config = folder.write("volume/wharf.toml", "[plugins.hello]\npath = \"hello.wasm\"\n");
    folder.set_mode("", 0o755);
    for path in [&folder.join("volume"), &hello, &config] {
        if chown(path, Some(0), Some(20_002)).is_err() {
            println!("this user cannot give files away: not tried");
            return;
        }
    }
    folder.set_mode("volume", 0o2775);
    folder.set_mode("volume/hello.wasm", 0o664);
    folder.set_mode("volume/wharf.toml", 0o664);
    let check = ["check", "-c", config.to_str().unwrap()];
    for (groups, fits) in [("--groups=20002", true), ("--clear-groups", false)] {
        let before = ["setpriv", "--reuid=65532", "--regid=65532", groups, "--"];
        let Some(checked) = run_by(&before, &folder, &check).await else { return };
        let said = stderr(&checked);
        assert_eq!(checked.status.success(), fits, "{groups}: {said}");
        assert!(fits || said.contains("others may write"), "{groups}: {said}");
    }
}

/// Some programs ignore the ends of their children, and what they start inherits that.
#[tokio::test(flavor = "multi_thread")]
async fn plugins_are_compiled_where_ends_of_children_are_ignored() {
    let folder = Folder::new();
    folder.config(&given("g", &json!({}), ""));
    let limits = format!("trap '' CHLD && export XDG_CACHE_HOME='{}'", folder.join("own-cache").display());
    let mut pipe = Pipe::start_limited(&folder, &limits, &["run"]);
    pipe.wait_for_log("serving plugin=\"g\"").await;
    pipe.legacy("2025-11-25", json!({})).await;
    assert_eq!(e2e::text(&pipe.call("g_t", json!({ "text": "called" })).await), "called");
}

/// Each container gets the secrets that it needs, and no other: Redis does not know the key that protects what is stored in it.
#[test]
fn each_container_of_the_example_gets_its_own_secrets() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("examples/kubernetes/wharf.yaml")).unwrap();
    let after = |line: &str, before: &str, ends: &[char]| {
        let (_, rest) = line.split_once(before)?;
        Some(rest.split(ends).next()?.to_owned())
    };
    let config: Vec<&str> = text.split("---\n").filter(|part| part.contains("kind: ConfigMap")).collect();
    let of_config: BTreeSet<String> = config[0].lines().filter_map(|line| after(line, "env = \"", &['"'])).collect();
    let mut seen = 0;
    for part in text.split("---\n").filter(|part| part.contains("kind: Deployment")) {
        let is_redis = part.contains("name: redis\n");
        let of_command = || part.lines().filter_map(|line| after(line, " $", &[' ', '"'])).collect();
        let needed = if is_redis { of_command() } else { of_config.clone() };
        let given: Vec<String> =
            part.lines().filter_map(|line| after(line, "secretKeyRef: { name: wharf, key: ", &[' '])).collect();
        assert_eq!(given.iter().cloned().collect::<BTreeSet<_>>(), needed, "{part}");
        assert!(!needed.is_empty() && !part.contains("envFrom"), "{part}");
        let image = part.lines().find_map(|line| after(line, "image: ", &[' '])).unwrap();
        assert!(image.rsplit(':').next().unwrap().split('.').count() == 3, "{image} has no version");
        seen += 1;
    }
    assert_eq!(seen, 2);
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
