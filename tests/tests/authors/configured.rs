//! Existing servers that a config names.

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
