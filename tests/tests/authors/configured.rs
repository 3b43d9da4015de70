//! Existing servers that a config names.

use std::path::Path;

use e2e::{folder, json, text};

use crate::existing::{Existing, names};

/// Where a folder has its config.
const CONFIG: &str = "config/wharf/wharf.toml";

/// The server is built when the config is read, and its source is protected from then on.
#[tokio::test(flavor = "multi_thread")]
async fn a_config_names_a_server() {
    let existing = Existing::new("reach", "");
    let folder = &existing.folder;
    let config = |path: &str| {
        format!(
            "[plugins.own]\npath = {path:?}\nprefix = \"\"\n[plugins.own.grants]\n\
             dirs = [{{ host = \"../../notes\", guest = \"/notes\", access = \"read-write\" }}]\n"
        )
    };
    folder.config(&config("../../notes/missing.ts"));
    let mut pipe = existing.start(&["run", "-c", CONFIG]);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe.wait_for_log("notes/missing.ts").await;
    assert_eq!(existing.counts(), (0, 0));
    folder.config(&config("../../notes/index.ts"));
    pipe.wait_for_log("serving").await;
    assert!(names(&pipe.request("tools/list", json!({})).await.unwrap()).contains(&"write".to_owned()));
    assert_eq!(existing.counts(), (1, 1));
    let written = pipe.call("write", json!({ "path": "/notes/index.ts", "text": "evil()" })).await;
    assert!(text(&written).starts_with("error: "), "{written}");
    assert!(pipe.close().await.status.success());
    let checked = folder.run(&["check", "-c", CONFIG], &existing.environment()).await;
    assert!(checked.status.success(), "{}{}", folder::stdout(&checked), folder::stderr(&checked));
    assert_eq!(existing.counts(), (1, 1), "it is built already");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_of_a_config_is_allowed_and_added() {
    let existing = Existing::new("hello", "");
    let folder = &existing.folder;
    for (sources, expected) in [
        ("allow = [\"registry.example/\", \"npm:@other/\"]", "npm:@scope/notes is not in `allow` of [sources]"),
        (
            "allow = [\"npm:@scope/\"]\nsigners = [{ minisign = \"RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\" }]",
            "packages of npm and PyPI have no signature",
        ),
    ] {
        folder.config(&format!("[sources]\n{sources}\n[plugins.own]\nsource = \"npm:@scope/notes@1.2.3\"\n"));
        let refused = folder.run(&["check", "-c", CONFIG], &existing.environment()).await;
        assert!(folder::stderr(&refused).contains(expected), "{}", folder::stderr(&refused));
    }
    folder.config("[sources]\nallow = [\"npm:@scope/\"]\n[plugins.own]\nsource = \"npm:@scope/notes@1.2.3\"\n");
    let mut pipe = existing.start(&["run", "-c", CONFIG]);
    pipe.legacy("2025-11-25", json!({})).await;
    assert_eq!(names(&pipe.request("tools/list", json!({})).await.unwrap()), ["own_greet"]);
    assert!(pipe.close().await.status.success());
    assert!(existing.log().contains("npm:@scope/notes@1.2.3"), "{}", existing.log());
    let added = folder.run(&["add", "-c", CONFIG, "npm:@scope/more"], &existing.environment()).await;
    let said = folder::stderr(&added);
    assert!(said.contains("[plugins.more]\nsource = \"npm:@scope/more\"\n") && !said.contains("sha256"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cache_keeps_is_listed_and_removed() {
    let existing = Existing::new("hello", "");
    let folder = &existing.folder;
    let cache = async |arguments: &[&str]| {
        let output = folder.run(&[&["cache"], arguments].concat(), &existing.environment()).await;
        assert!(output.status.success(), "{}", folder::stderr(&output));
        folder::stdout(&output)
    };
    folder.write("other/index.ts", "import { x } from 'x';\n");
    folder.write("other/package.json", "{}");
    for server in ["notes/index.ts", "other/index.ts"] {
        let called = folder.run(&["call", server, "greet", "name=Ada"], &existing.environment()).await;
        assert!(called.status.success(), "{}", folder::stderr(&called));
    }
    let (notes, other) = (folder.join("notes/index.ts"), folder.join("other/index.ts"));
    let shown = |path: &Path| format!("  {}  (used today)", path.display());
    let listed = cache(&[]).await;
    assert!(listed.contains(&shown(&notes)) && listed.contains(&shown(&other)), "{listed}");
    assert!(listed.contains("compiled code, 1 files") && listed.contains("  node-"), "{listed}");
    assert!(cache(&["clean"]).await.starts_with("removed 0 of 3"));

    std::fs::remove_file(&notes).unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(24 * 31);
    let tools = std::fs::read_dir(folder.join("cache/wharf/tools")).unwrap().map(|entry| entry.unwrap().path());
    let tools = tools.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "lock")).unwrap();
    std::fs::File::options().write(true).open(tools).unwrap().set_modified(long_ago).unwrap();
    let cleaned = cache(&["clean"]).await;
    assert!(cleaned.contains(&format!("{}, which does not exist any more", notes.display())), "{cleaned}");
    assert!(cleaned.contains("  node-") && cleaned.contains("(used 31 days ago)"), "{cleaned}");
    assert!(cleaned.contains("removed 2 of 3") && !cleaned.contains(&shown(&other)), "{cleaned}");

    // What is left serves without a build, and everything is made again when it is needed.
    let called = folder.run(&["call", "other/index.ts", "greet", "name=Ada"], &existing.environment()).await;
    assert!(called.status.success() && existing.counts() == (1, 1), "{}", existing.log());
    assert!(cache(&["clean", "--all"]).await.contains("removed 2 of 2"));
    let called = folder.run(&["call", "other/index.ts", "greet", "name=Ada"], &existing.environment()).await;
    assert!(called.status.success() && existing.counts() == (1, 1), "{}", existing.log());
}
