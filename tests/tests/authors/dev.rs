//! `wharf dev`: processes that it starts end with it.

use e2e::{Folder, Held, Pipe};
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
