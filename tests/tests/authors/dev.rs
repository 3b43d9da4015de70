//! `wharf dev`: processes that it starts end with it.

use e2e::{Folder, Held, Pipe, json, text};
use rustix::process::Signal;

#[tokio::test(flavor = "multi_thread")]
async fn a_build_ends_with_all_that_it_started() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let folder = Folder::new();
        let mut held = Held::new(&folder);
        folder.write("build.sh", &held.script);
        folder.write("p/plugin.toml", "name = 'p'\n[build]\ncommand = 'sh ../build.sh'\nartifact = 'p.wasm'\n");
        let pipe = Pipe::start(&folder, &["dev", "p", "--listen", "127.0.0.1:0"]);
        held.begun().await;
        e2e::pipe::signal(pipe.pid(), signal);
        let ended = pipe.wait().await;
        assert!(ended.status.success(), "{signal:?}: {}", ended.log);
        assert!(held.ends().await, "{signal:?}: the build is left");
    }
}

/// A client that reads the lists once, right after its handshake, gets the tools of the component that an earlier build made, and the
/// plugin's instructions. Several clients may do so at once: none of them opens a port.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_built_is_served_at_once_and_to_several_clients() {
    let folder = Folder::new();
    let mut held = Held::new(&folder);
    folder.write("build.sh", &held.script);
    folder.write("p/plugin.toml", "name = 'p'\n[build]\ncommand = 'sh ../build.sh'\nartifact = 'dist/p.wasm'\n");
    folder.plugin_as("hello", "p/dist/p.wasm");
    let both = [(); 2].map(|()| Pipe::start(&folder, &["dev", "p", "--stdio"]));
    held.begun().await;
    for mut pipe in both {
        pipe.legacy("2025-11-25", json!({})).await;
        let list = pipe.request("tools/list", json!({})).await.unwrap();
        assert_eq!(list["tools"][0]["name"], "p_greet", "{list}");
        pipe.wait_for_log("with the prefix `p_`").await;
        assert!(!pipe.log().contains("serving MCP at"), "{}", pipe.log());
        assert!(pipe.close().await.status.success());
    }
    assert!(held.ends().await, "a build is left");
}

/// A build for development is a component and the folder that it reads. After a change of the source, the same component reads the new folder.
#[tokio::test(flavor = "multi_thread")]
async fn a_component_reads_the_source_of_the_last_build() {
    let folder = Folder::new();
    folder.write("p/source.txt", "one");
    folder.write(
        "p/plugin.toml",
        "name = 'p'\n[build]\ncommand = 'exit 1'\nartifact = 'dist/p.wasm'\nwatch = ['*.txt']\n\
         [build.live]\ncommand = '''grep -q none source.txt || { mkdir -p live/source && cp source.txt live/source/; }'''\n\
         artifact = 'live/p.wasm'\nsource = 'live/source'\n",
    );
    folder.plugin_as("files", "p/live/p.wasm");
    let mut pipe = Pipe::start(&folder, &["dev", "p", "--stdio"]);
    pipe.legacy("2025-11-25", json!({})).await;
    let read = json!({ "name": "p_read_text_file", "arguments": { "path": "/.wharf-live/source.txt" } });
    assert_eq!(text(&pipe.request("tools/call", read.clone()).await.unwrap()), "one");
    folder.write("p/source.txt", "two");
    // Until then, the folder of the last build is taken away and that of the new one is not given yet.
    pipe.wait_for_nth_log("serving plugin=\"p\"", 2).await;
    assert_eq!(text(&pipe.request("tools/call", read.clone()).await.unwrap()), "two");
    // No build is lost: what a failed one leaves is not served.
    std::fs::remove_dir_all(folder.join("p/live/source")).unwrap();
    folder.write("p/source.txt", "none");
    pipe.wait_for_log("which is `build.live.source` in plugin.toml; the previous build is still served").await;
    assert_eq!(text(&pipe.request("tools/call", read).await.unwrap()), "two");
    assert!(pipe.close().await.status.success());
}
