//! Existing MCP servers that become plugins: built once, rebuilt when their content has changed, served in between without any program.
//!
//! Programs of the test stand in for npm and the SDK: they log how they were started, and the build copies a component that is ready.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use e2e::{Folder, Pipe, Value, folder, json, text, with_sections};

/// A folder with the server `notes/index.ts` and the programs that build it.
pub struct Existing {
    pub folder: Folder,
    path: String,
    cache: String,
}

impl Existing {
    /// `component`: the plugin of this repository that the build makes. `then`: shell commands that the build runs first.
    pub fn new(component: &str, then: &str) -> Self {
        let folder = Folder::new();
        folder.write("notes/index.ts", "import { x } from 'x';\n");
        folder.write("notes/package.json", "{}");
        // A build may read what is next to its programs.
        let made = folder.join("bin/made.wasm");
        folder.write("bin/made.wasm", fs::read(folder.plugin(component)).unwrap());
        for program in ["node", "npm"] {
            let made = made.display();
            let build = format!(
                "case \"$*\" in *' build '*) {then}\n\
                 to=dist; case \"$*\" in *' --live dist/live/source') to=dist/live; mkdir -p dist/live/source;; esac\n\
                 mkdir -p $to; cp {made} $to/plugin.wasm;; esac"
            );
            folder.write(
                &format!("bin/{program}"),
                format!("#!/bin/sh\necho \"{program} $*\" >> \"$HOME/log\"\necho noise\n{build}\n"),
            );
            fs::set_permissions(folder.join(&format!("bin/{program}")), PermissionsExt::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:/usr/bin:/bin", folder.join("bin").display());
        let cache = folder.join("cache").display().to_string();
        Self { folder, path, cache }
    }

    pub fn environment(&self) -> [(&str, &str); 2] {
        [("PATH", &self.path), ("XDG_CACHE_HOME", &self.cache)]
    }

    /// Makes the step that installs the packages of a server run these shell commands.
    fn before_packages(&self, commands: &str) {
        let node = fs::read_to_string(self.folder.join("bin/node")).unwrap();
        let commands = format!("case \"$*\" in *' setup '*) {commands}\n;; esac");
        self.folder.write("bin/node", node.replace("echo noise", &commands));
        self.folder.set_mode("bin/node", 0o755);
    }

    pub fn start(&self, arguments: &[&str]) -> Pipe {
        Pipe::start_with(&self.folder, arguments, &self.environment())
    }

    /// Returns the folders of servers, and of what builds them.
    fn made(&self) -> Vec<PathBuf> {
        let all = ["servers", "tools"].map(|kind| fs::read_dir(self.folder.join("cache/wharf").join(kind)));
        let all = all.into_iter().flatten().flatten().flatten();
        all.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    }

    /// Returns what the programs have logged: those that install and those that build have home directories of their own.
    pub fn log(&self) -> String {
        let homes = self.made().into_iter().flat_map(|made| ["installing", "making"].map(|step| made.join(step)));
        homes.map(|home| fs::read_to_string(home.join("log")).unwrap_or_default()).collect()
    }

    /// Returns how often packages were installed and plugins built so far.
    pub fn counts(&self) -> (usize, usize) {
        let log = self.log();
        (log.matches("wharf-sdk.js setup").count(), log.matches("wharf-sdk.js build").count())
    }

    /// Runs a wharf whose tools are listed, and ends it.
    async fn tools(&self) -> Vec<String> {
        let mut pipe = self.start(&["run", "notes/index.ts"]);
        pipe.legacy("2025-11-25", json!({})).await;
        let names = names(&pipe.request("tools/list", json!({})).await.unwrap());
        assert!(pipe.close().await.status.success());
        names
    }
}

pub fn names(list: &Value) -> Vec<String> {
    list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_built_once_and_then_served_without_any_program() {
    let existing = Existing::new("hello", "");
    assert_eq!(existing.tools().await, ["greet"], "the server's own name, without a prefix");
    assert_eq!(existing.counts(), (1, 1));
    for (what, change, expected) in [
        ("nothing", None, (1, 1)),
        ("the same contents", Some(("notes/index.ts", "import { x } from 'x';\n")), (1, 1)),
        ("the source", Some(("notes/index.ts", "import { x } from 'x';\nx();\n")), (1, 2)),
        ("a module", Some(("notes/lib/more.ts", "more();")), (1, 3)),
        ("the packages", Some(("notes/package.json", "{ }")), (2, 4)),
        ("another file", Some(("notes/picture.png", "x")), (2, 4)),
    ] {
        if let Some((name, contents)) = change {
            existing.folder.write(name, contents);
        }
        assert_eq!(existing.tools().await, ["greet"], "{what}");
        assert_eq!(existing.counts(), expected, "{what}");
    }
    let log = existing.log();
    assert!(log.contains("wharf-sdk.js setup --mcp"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_answered_while_its_server_is_built() {
    let existing = Existing::new("hello", "cat ../../../../notes/gate > /dev/null");
    let gate = existing.folder.join("notes/gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let mut pipe = existing.start(&["run", "notes/index.ts"]);
    pipe.legacy("2025-11-25", json!({})).await;
    assert!(pipe.wait_for_log("building: ").await.contains("wharf-sdk.js build --mcp"));
    let list = pipe.begin("tools/list", json!({})).await;
    pipe.request("ping", json!({})).await.unwrap();
    assert!(pipe.inbox().is_empty(), "the list waits for the build: {:?}", pipe.inbox());
    // This returns when the build has opened the other end.
    tokio::task::spawn_blocking(move || fs::write(gate, "go")).await.unwrap().unwrap();
    assert_eq!(names(&pipe.answer(&list).await.unwrap()), ["greet"]);
    assert!(pipe.close().await.status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn not_all_servers_are_built_at_once() {
    let existing = Existing::new("hello", "flock -s ../../../../bin/gate true");
    existing.folder.write("bin/gate", "");
    let gate = fs::File::open(existing.folder.join("bin/gate")).unwrap();
    gate.lock().unwrap();
    let places = std::thread::available_parallelism().unwrap().get().clamp(2, 8);
    let servers: Vec<_> = (0..=places).map(|number| format!("server{number}/index.ts")).collect();
    for server in &servers {
        existing.folder.write(server, "");
        existing.folder.write(&server.replace("index.ts", "package.json"), "{}");
    }
    let arguments = ["run"].into_iter().chain(servers.iter().map(String::as_str));
    let mut pipe = existing.start(&arguments.collect::<Vec<_>>());
    pipe.legacy("2025-11-25", json!({})).await;
    pipe.wait_for_nth_log("wharf-sdk.js build --mcp", places).await;
    pipe.wait_for_log(&format!("{places} other servers are being built; waiting until one is")).await;
    assert!(existing.counts().1 <= places);
    drop(gate);
    pipe.wait_for_nth_log(" INFO built server", servers.len()).await;
    assert_eq!(existing.counts().1, servers.len());
    assert!(pipe.close().await.status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_goes_on_when_its_client_goes() {
    let existing = Existing::new("hello", "flock -s ../../../../bin/gate true");
    existing.folder.write("bin/gate", "");
    let gate = fs::File::open(existing.folder.join("bin/gate")).unwrap();
    gate.lock().unwrap();
    let mut pipe = existing.start(&["run", "notes/index.ts"]);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe.wait_for_log("building: ").await;
    assert!(pipe.close().await.status.success());
    let mut pipe = existing.start(&["run", "notes/index.ts"]);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe.wait_for_log("another wharf builds in").await;
    drop(gate);
    assert_eq!(names(&pipe.request("tools/list", json!({})).await.unwrap()), ["greet"]);
    assert!(pipe.close().await.status.success());
    assert_eq!(existing.counts(), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_build_is_told_to_the_client_and_tried_again() {
    let existing =
        Existing::new("hello", "test -e ../../../../good || { echo 'error: numpy has compiled parts' >&2; exit 3; }");
    let mut pipe = existing.start(&["run", "notes/index.ts"]);
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "e2e", "version": "1" } });
    pipe.request("initialize", params).await.ok();
    let refused = pipe.request("tools/list", json!({})).await.unwrap_err();
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("plugin notes did not load: its build failed; the server's log says more"), "{message}");
    let ended = pipe.wait().await;
    assert!(ended.log.contains("the build failed: numpy has compiled parts"), "{}", ended.log);
    assert_eq!(ended.status.code(), Some(2), "{}", ended.log);
    existing.folder.write("good", "");
    assert_eq!(existing.tools().await, ["greet"]);
    assert_eq!(existing.counts(), (1, 2), "packages that are installed stay");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_cannot_be_reached_is_said_in_a_sentence() {
    let existing = Existing::new("hello", "");
    existing
        .folder
        .write("bin/npm", "#!/bin/sh\necho 'npm error code EAI_AGAIN'; echo 'npm error see above'; exit 1\n");
    existing.folder.set_mode("bin/npm", 0o755);
    for (proxy, expected) in [
        ("HTTPS_PROXY", "; the proxy is the one that HTTPS_PROXY names: check it\n"),
        (
            "NOTHING",
            "; no proxy is set; if the network needs one, type HTTPS_PROXY=http://HOST:PORT before the command\n",
        ),
    ] {
        let environment = [&existing.environment()[..], &[(proxy, "http://user:secret@proxy.example")]].concat();
        let said = folder::stderr(&existing.folder.run(&["call", "notes/index.ts", "greet"], &environment).await);
        let reached =
            "error: the setup failed: the registry of packages cannot be reached (a name has no address here)";
        assert!(said.ends_with(&format!("{reached}{expected}")) && !said.contains("secret"), "{said}");
    }
    existing.folder.write(
        "bin/npm",
        "#!/bin/sh\necho \"npm error 404  The requested resource 'x@latest' could not be found\"; echo 'npm notice'; exit 1\n",
    );
    existing.folder.set_mode("bin/npm", 0o755);
    let said = folder::stderr(&existing.folder.run(&["call", "npm:x", "greet"], &existing.environment()).await);
    assert!(said.ends_with("error: the setup failed: npm: x is not in the registry (404)\n"), "{said}");
}

/// A build runs what is anywhere in the folder of the server, and where links in it lead. Wharfs that run already learn of it.
#[tokio::test(flavor = "multi_thread")]
async fn no_plugin_of_any_wharf_writes_what_a_build_may_run() {
    let existing = Existing::new("hello", "");
    let folder = &existing.folder;
    for name in ["notes/lib/a.ts", "notes/dist/a.js", "parts/common.ts", "linked/deep/a.ts", "other/a.ts"] {
        folder.write(name, "");
    }
    // Of a folder with so many files, only those next to the server decide whether it is built again.
    for at in 0..2100 {
        fs::write(folder.join(&format!("notes/lib/{at}.json")), "").unwrap();
    }
    fs::create_dir(folder.join("notes/handlers")).unwrap();
    std::os::unix::fs::symlink("../parts/common.ts", folder.join("notes/common.ts")).unwrap();
    std::os::unix::fs::symlink("../linked", folder.join("notes/linked")).unwrap();
    let reach = e2e::plugin("reach").display().to_string();
    let folders = ["notes/lib", "notes/dist", "notes/handlers", "parts", "linked/deep", "other"];
    let mut pipe = existing.start(&[&["run", &reach], &folders[..]].concat());
    pipe.legacy("2025-11-25", json!({})).await;
    let open = |access: [&str; 6]| {
        let line = |(access, name): (&str, &str)| format!("{access} {}", folder.join(name).display());
        access.into_iter().zip(folders).map(line).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(text(&pipe.call("reach_dirs", json!({})).await), open(["rw"; 6]));
    let shown = folder.run(&["inspect", "--build", "notes/index.ts"], &existing.environment()).await;
    assert!(folder::stdout(&shown).contains("greet"), "{}", folder::stderr(&shown));
    assert_eq!(text(&pipe.call("reach_dirs", json!({})).await), open(["ro", "ro", "ro", "ro", "ro", "rw"]));
    let written = pipe.call("reach_write", json!({ "path": folder.join("notes/lib/a.ts"), "text": "x" })).await;
    assert!(text(&written).starts_with("error: "), "{written}");
}

#[tokio::test(flavor = "multi_thread")]
async fn call_and_inspect_take_a_server() {
    let existing = Existing::new("hello", "");
    let outline = existing.folder.run(&["inspect", "notes/index.ts"], &existing.environment()).await;
    assert!(folder::stdout(&outline).contains("note: --build builds it"), "{}", folder::stderr(&outline));
    assert_eq!(existing.counts(), (0, 0), "nothing of it has run");
    let called = existing.folder.run(&["call", "notes/index.ts", "greet", "name=Ada"], &existing.environment()).await;
    assert_eq!(folder::stdout(&called), "Hello, Ada!\n", "{}", folder::stderr(&called));
    assert!(folder::stderr(&called).contains("its packages are installed in"), "{}", folder::stderr(&called));
    let shown = existing.folder.run(&["inspect", "notes/index.ts"], &existing.environment()).await;
    assert!(folder::stdout(&shown).contains("greet"), "{}", folder::stderr(&shown));
    assert_eq!(existing.counts(), (1, 1));
}

/// A plugin that could write the source of a server would write what the next build runs outside of the sandbox.
#[tokio::test(flavor = "multi_thread")]
async fn no_plugin_may_write_into_the_source_of_a_server() {
    let existing = Existing::new("reach", "");
    let path = existing.folder.join("notes/index.ts").display().to_string();
    for (arguments, own) in [
        (["run", "notes/index.ts", "notes"].as_slice(), ""),
        // Another wharf that does not serve the server knows of it too.
        (&["run", "plugins/reach.wasm", "notes"], "reach_"),
    ] {
        let mut pipe = existing.start(arguments);
        pipe.legacy("2025-11-25", json!({})).await;
        let written = pipe.call(&format!("{own}write"), json!({ "path": path, "text": "evil()" })).await;
        assert!(text(&written).starts_with("error: "), "{written}");
        pipe.wait_for_log("is read-only, because files that a wharf of this user runs or obeys are in it").await;
        assert_eq!(pipe.close().await.status.code(), Some(0));
    }
    assert_eq!(fs::read_to_string(path).unwrap(), "import { x } from 'x';\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_may_write_is_not_built() {
    let existing = Existing::new("hello", "");
    existing.folder.set_mode("notes/index.ts", 0o666);
    let refused = existing.folder.run(&["run", "notes/index.ts"], &existing.environment()).await;
    assert_eq!(refused.status.code(), Some(2));
    assert!(folder::stderr(&refused).contains("notes/index.ts"), "{}", folder::stderr(&refused));
    assert_eq!(existing.counts(), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_developed() {
    let existing = Existing::new("hello", "");
    let mut pipe = existing.start(&["dev", "notes/index.ts", "--stdio"]);
    pipe.legacy("2025-11-25", json!({})).await;
    assert_eq!(names(&pipe.request("tools/list", json!({})).await.unwrap()), ["greet"]);
    fs::copy(existing.folder.plugin("echo"), existing.folder.join("bin/made.wasm")).unwrap();
    existing.folder.write("notes/index.ts", "changed();\n");
    pipe.wait_for_nth_log("serving", 2).await;
    let now = names(&pipe.request("tools/list", json!({})).await.unwrap());
    assert!(!now.contains(&"greet".to_owned()) && !now.is_empty(), "{now:?}");
    assert!(pipe.close().await.status.success());
}

/// The builds of the SDKs say in the component that the server keeps state.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_keeps_stays_until_it_is_edited() {
    let existing = Existing::new("hostile", "");
    let component = fs::read(existing.folder.plugin("hostile")).unwrap();
    existing.folder.write("bin/made.wasm", with_sections(component, &[("wharf:instances", "kept")]));
    let gone = "The server `notes` was started again because its code, its config or its access has changed: what it kept in memory is gone.";
    for (arguments, expected) in [
        (&["run", "notes/index.ts"][..], "2 0"),
        (&["run", "notes/index.ts", "--instances", "fresh"], "1 0"),
        (&["dev", "notes/index.ts", "--stdio", "--instances", "fresh"], "1 0"),
        (&["dev", "notes/index.ts", "--stdio"], "2 0"),
    ] {
        let mut pipe = existing.start(arguments);
        pipe.legacy("2025-11-25", json!({})).await;
        assert_eq!(text(&pipe.call("remember", json!({})).await), "1 0");
        assert_eq!(text(&pipe.call("remember", json!({})).await), expected, "{arguments:?}");
        if arguments == ["dev", "notes/index.ts", "--stdio"] {
            existing.folder.write("notes/index.ts", "changed();\n");
            pipe.wait_for_nth_log("serving", 2).await;
            pipe.wait_for_log("what it kept in memory for this client is gone").await;
            let result = pipe.call("remember", json!({})).await;
            assert_eq!((text(&result), &result["content"][1]["text"]), ("1 0", &json!(gone)));
        }
        assert!(pipe.close().await.status.success());
    }
    // A call of its own is a client of its own.
    for _ in 0..2 {
        let called = existing.folder.run(&["call", "notes/index.ts", "remember"], &existing.environment()).await;
        assert_eq!(folder::stdout(&called), "1 0\n", "{}", folder::stderr(&called));
    }
    let install = ["install", "claude-code", "--dry-run", "--instances", "fresh", "notes/index.ts"];
    let shown = existing.folder.run(&install, &existing.environment()).await;
    assert!(folder::stdout(&shown).contains("--instances"), "{}{}", folder::stdout(&shown), folder::stderr(&shown));
    let refused = existing.folder.run(&["run", "--instances", "warm", "notes/index.ts"], &existing.environment()).await;
    assert!(folder::stderr(&refused).contains("expected fresh or reused"), "{}", folder::stderr(&refused));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_of_ones_own_is_made_from_a_server() {
    let existing = Existing::new("hello", "");
    existing.folder.write("notes/lib/more.ts", "more();");
    let made = existing.folder.run(&["new", "--from", "notes", "mine"], &existing.environment()).await;
    assert!(made.status.success(), "{}", folder::stderr(&made));
    for name in [
        "server/index.ts",
        "server/lib/more.ts",
        "server/package.json",
        "package.json",
        "plugin.toml",
        "sdk/package.json",
    ] {
        assert!(existing.folder.join("mine").join(name).is_file(), "{name}");
    }
    let built = existing.folder.run(&["build", "mine", "--setup"], &existing.environment()).await;
    assert!(folder::stdout(&built).contains("mine/dist/plugin.wasm"), "{}", folder::stderr(&built));
    let log = fs::read_to_string(existing.folder.home().join("log")).unwrap();
    assert!(log.contains("wharf-sdk.js build --mcp server/index.ts -o dist/plugin.wasm"), "{log}");
    let refused = existing.folder.run(&["new", "--from", "plugins"], &existing.environment()).await;
    assert!(folder::stderr(&refused).contains("which file is the server"), "{}", folder::stderr(&refused));
}

/// What a package manager leaves when it is stopped, or when the disk is full, may fail every time.
#[tokio::test(flavor = "multi_thread")]
async fn a_set_up_that_failed_begins_from_an_empty_folder() {
    let existing = Existing::new("hello", "");
    let fail = "#!/bin/sh\necho half > half-installed; exit 1\n";
    let npm = fs::read_to_string(existing.folder.join("bin/npm")).unwrap();
    let mut found = Vec::new();
    for (program, expected) in [(fail, false), (&*npm, true)] {
        existing.folder.write("bin/npm", program);
        existing.folder.set_mode("bin/npm", 0o755);
        let called = existing.folder.run(&["call", "notes/index.ts", "greet", "name=A"], &existing.environment()).await;
        assert_eq!(called.status.success(), expected, "{}", folder::stderr(&called));
        found.push(existing.made().iter().filter(|made| made.join("half-installed").exists()).count());
    }
    assert_eq!(found, [1, 0]);
}

/// What builds a server, and the packages that it brings, reach the server and what they make: no other file, no variable, and no socket while
/// their code runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_build_reaches_only_its_server_and_what_it_makes() {
    let existing = Existing::new("hello", "");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let top = existing.folder.join("");
    existing.folder.write("own/secret", "s");
    std::os::unix::fs::symlink("../own/secret", existing.folder.join("notes/linked")).unwrap();
    // Each line says what it has reached.
    let tries = format!(
        "{{ cat {top}/own/secret > /dev/null && echo read; cat notes.secret > /dev/null && echo linked; \
         cat {top}/notes/linked > /dev/null && echo followed; echo x > {top}/own/new && echo wrote; \
         rm -f {top}/own/secret && echo removed; test -e \"$1\" && echo x > \"$1\" && echo tools; echo x >> {top}/notes/index.ts && echo source; echo x >> plugin.toml && echo project; \
         cat /proc/$(cut -d' ' -f4 /proc/$PPID/stat)/environ > /dev/null && echo environ; \
         test -z \"$TOKEN\" || echo variable; bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && echo tcp; \
         bash -c 'exec 3<>/dev/udp/127.0.0.1/9' && echo udp; cat {top}/notes/index.ts > /dev/null && echo server; }} > $HOME/reached 2> /dev/null",
        top = top.display()
    );
    for program in ["npm", "node"] {
        let stand_in = fs::read_to_string(existing.folder.join(&format!("bin/{program}"))).unwrap();
        // Where a link leads that the build has made is not reached through it.
        let tries = format!("ln -sf {}/own/secret notes.secret 2> /dev/null\n{tries}", top.display());
        existing.folder.write(&format!("bin/{program}"), stand_in.replace("echo noise", &tries));
        existing.folder.set_mode(&format!("bin/{program}"), 0o755);
    }
    let environment = [existing.environment().as_slice(), &[("TOKEN", "t")]].concat();
    let called = existing.folder.run(&["call", "notes/index.ts", "greet", "name=A"], &environment).await;
    assert!(called.status.success(), "{}", folder::stderr(&called));
    let server = fs::read_dir(existing.folder.join("cache/wharf/servers")).unwrap().flatten().map(|entry| entry.path());
    let server = server.filter(|path| path.is_dir()).collect::<Vec<_>>();
    let [server] = server.as_slice() else { panic!("one: {server:?}") };
    let reached = |home: &str| {
        fs::read_to_string(server.join(home).join("reached"))
            .unwrap_or_else(|_| panic!("{home}: {}", folder::stderr(&called)))
    };
    // What installs packages needs the network, and owns the folder of the server in the cache.
    assert_eq!(reached("installing"), "project\ntcp\nudp\nserver\n");
    assert_eq!(reached("making"), "server\n");
    // What builds servers is installed without any of them.
    let tools = existing.made().into_iter().find(|made| made.join("sdk").exists()).unwrap();
    assert_eq!(fs::read_to_string(tools.join("installing/reached")).unwrap(), "project\ntcp\nudp\n");
    drop(listener);
}

/// What pip would build of a package runs apart from what fetches packages.
#[tokio::test(flavor = "multi_thread")]
async fn a_package_is_built_without_network_and_settings() {
    let existing = Existing::new("hello", "");
    let (folder, listener) = (&existing.folder, std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    folder.write("py/server.py", "import mcp\n");
    let secret = folder.write("own/secret", "s");
    folder.set_mode("own/secret", 0o600);
    let settings = folder.write("home/.config/pip/pip.conf", "[global]\nindex-url = https://ada:s@packages.example\n");
    // Each line says what it has reached.
    let tries = format!(
        "{{ cat {secret} > /dev/null && echo read; cat {settings} > /dev/null && echo settings; \
         test -z \"$PIP_INDEX_URL$PIP_CONFIG_FILE\" || echo variable; bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && echo tcp; \
         echo x >> plugin.toml && echo project; echo x > $(dirname \"$0\")/more && echo program; echo x > sources/more && echo sources; \
         cat {source} > /dev/null && echo source; chmod 666 {secret}; cat plugin.toml > /dev/null && echo own; }} 2> /dev/null",
        secret = secret.display(),
        settings = settings.display(),
        port = listener.local_addr().unwrap().port(),
        source = folder.join("py/server.py").display(),
    );
    let build = format!(
        "#!/bin/sh\ncase \"$*\" in *' build '*) mkdir -p dist; cp {} dist/plugin.wasm;;\n\
         *' wheel') {tries} > wheels/reached;;\n\
         *) test -e wheels/reached && cp wheels/reached sources/reached && exit FOUND\n\
         mkdir -p sources; touch sources/next; exit 75;; esac\n",
        folder.join("bin/made.wasm").display()
    );
    let venv = "#!/bin/sh\nmkdir -p .venv/bin; for name in pip python; do cp OWN/$name .venv/bin/$name; done\n";
    for (name, program) in [
        ("python3", venv.replace("OWN", &folder.join("bin").display().to_string())),
        ("pip", "#!/bin/sh\necho \"pip $*\" >> \"$HOME/log\"\n".to_owned()),
        ("python", build.replace("FOUND", "75")),
    ] {
        folder.write(&format!("bin/{name}"), program);
        folder.set_mode(&format!("bin/{name}"), 0o755);
    }
    let environment = [existing.environment().as_slice(), &[("PIP_INDEX_URL", "https://packages.example")]].concat();
    let call = ["call", "py/server.py", "greet", "name=A"];
    let endless = folder.run(&call, &environment).await;
    assert!(
        folder::stderr(&endless).contains("or one asks for something else each time"),
        "{}",
        folder::stderr(&endless)
    );
    let tools = existing.made().into_iter().find(|made| made.join(".venv").exists()).unwrap();
    fs::write(tools.join(".venv/bin/python"), build.replace("FOUND", "0")).unwrap();
    let called = folder.run(&call, &environment).await;
    assert_eq!(folder::stdout(&called), "Hello, A!\n", "{}", folder::stderr(&called));
    let server = fs::read_dir(folder.join("cache/wharf/servers")).unwrap().flatten().map(|entry| entry.path());
    let server = server.into_iter().find(|path| path.is_dir()).unwrap();
    assert_eq!(fs::read_to_string(server.join("sources/reached")).unwrap(), "own\n");
    assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(existing.log().matches("pip install").count(), 1, "what builds is installed once");
}

/// A build that would take the memory of the machine ends, and the others go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_build_has_a_limit_of_memory() {
    let existing = Existing::new("hello", "dd if=/dev/zero of=/dev/null bs=9G count=1 || exit 1");
    let called = existing.folder.run(&["call", "notes/index.ts", "greet", "name=A"], &existing.environment()).await;
    let said = folder::stderr(&called);
    assert!(said.contains("each process of this build may use 8 GiB of memory") && !called.status.success(), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_a_build_has_made_is_not_followed() {
    let existing = Existing::new("hello", "ln -s ../../../../../own/plugin.wasm dist/plugin.wasm; exit 0");
    existing.folder.plugin_as("echo", "own/plugin.wasm");
    let called = existing.folder.run(&["call", "notes/index.ts", "echo", "message=A"], &existing.environment()).await;
    assert!(
        folder::stderr(&called).contains("`plugin.wasm` is a link, and links are not followed here"),
        "{}",
        folder::stderr(&called)
    );
    assert!(!called.status.success());
}

/// What installs packages may change the folder of the server, and so put something else in place of what the next step writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_in_place_of_what_a_step_writes_is_not_followed() {
    for name in ["dist", "making"] {
        let existing = Existing::new("hello", "");
        existing.folder.write("own/secret", "s");
        let own = existing.folder.join("own").display().to_string();
        existing.before_packages(&format!("rm -rf {name}; ln -s {own} {name}"));
        let called = existing.folder.run(&["call", "notes/index.ts", "greet", "name=A"], &existing.environment()).await;
        let said = folder::stderr(&called);
        assert!(said.contains(&format!("`{name}` is a link, and links are not followed here")), "{said}");
        let names: Vec<_> = fs::read_dir(&own).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["secret"]);
    }
}

/// Nothing that a build starts runs on after its step, and it changes neither the modes of files nor other processes.
#[tokio::test(flavor = "multi_thread")]
async fn a_build_leaves_no_process_and_changes_no_mode() {
    let tries = "chmod 666 OWN; renice 19 -p TEST > /dev/null 2>&1 && touch dist/reniced; setsid sleep 300 & sleep 300 & \
                 (trap '' TERM HUP; sleep 300) &";
    let (own, test) = ("$(cat notes.own)", std::process::id().to_string());
    let existing =
        Existing::new("hello", &tries.replace("OWN", own).replace("TEST", &test).replace(" &", " > /dev/null 2>&1 &"));
    let secret = existing.folder.write("own/secret", "s");
    existing.folder.set_mode("own/secret", 0o600);
    existing.before_packages(&format!("echo {} > notes.own; sleep 300 > /dev/null 2>&1 &", secret.display()));
    let called = existing.folder.run(&["call", "notes/index.ts", "greet", "name=A"], &existing.environment()).await;
    assert!(called.status.success(), "{}", folder::stderr(&called));
    let home = format!("HOME={}", existing.folder.join("cache/wharf").display());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let environments = processes.filter_map(|process| fs::read(process.path().join("environ")).ok());
    let left = environments.filter(|environment| String::from_utf8_lossy(environment).contains(&home)).count();
    assert_eq!(left, 0, "processes of the build are left");
    let server = existing.made().into_iter().find(|made| made.join("notes.wasm").exists()).unwrap();
    assert!(server.join("dist").exists() && !server.join("dist/reniced").exists());
    assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
}
