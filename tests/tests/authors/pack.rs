//! `wharf pack` and `wharf packaged`: what authors read, and what a packaged plugin may do. `cargo xtask check packs` installs the packages.

use std::fs;

use e2e::{Folder, Pipe, Value, folder, json, text};

use crate::manifest;

const PACKAGE: &str = "[package]\nversion = '1.2.0'\ndescription = 'Reads files'\nauthor = 'The authors'\n";
const WANTS: &str = "roots = { access = 'read-write', why = 'Keeps notes.' }\nenv = ['TZ']\n\
    settings = [{ key = 'most', type = 'number', required = true }]\n";

/// A folder with a project of the plugin `reach`, which wants folders, a variable and a setting.
async fn project(package: &str) -> Folder {
    let folder = Folder::new();
    folder.plugin_as("reach", "p/dist/reach.wasm");
    folder.write("p/plugin.toml", manifest("reach", "") + package);
    folder.write("wants.toml", WANTS);
    let embedded = folder.run(&["build", "--embed", "p/dist/reach.wasm", "--wants", "wants.toml"], &[]).await;
    assert!(embedded.status.success(), "{}", folder::stderr(&embedded));
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_said() {
    for (package, artifact, expected) in [
        ("", true, "has no table [package]"),
        (PACKAGE, false, "does not exist yet; build the plugin first: wharf build p"),
        (&format!("{PACKAGE}npm = 'Reach'\n"), true, "package.npm: \"Reach\" is not a name that npm takes"),
        (&format!("{PACKAGE}registry = 'reach'\n"), true, "package.registry"),
    ] {
        let folder = project(package).await;
        if !artifact {
            fs::remove_file(folder.join("p/dist/reach.wasm")).unwrap();
        }
        let packed = folder.run(&["pack", "p"], &[]).await;
        assert_eq!(packed.status.code(), Some(2), "{expected}");
        assert!(folder::stderr(&packed).contains(expected), "{expected}: {}", folder::stderr(&packed));
        assert!(!folder.join("p/dist/packages").exists(), "{expected}: something was written");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn packages_without_the_binary_are_the_same_each_time() {
    let registry = "registry = 'io.github.acme/reach'\nrepository = 'https://github.com/acme/reach'\n";
    let folder = project(&format!("{PACKAGE}npm = '@acme/reach'\n{registry}")).await;
    let pack = async |out: &str| {
        let packed = folder.run(&["pack", "--depend", "--to", "npm", "--to", "wheel", "-o", out, "p"], &[]).await;
        assert!(packed.status.success(), "{}", folder::stderr(&packed));
        let read = |name: &str| fs::read(folder.join(out).join(name)).unwrap();
        ["acme-reach-1.2.0.tgz", "reach-1.2.0-py3-none-any.whl", "server.json"].map(read)
    };
    let (one, other) = (pack("one").await, pack("two").await);
    assert!(one == other, "the same contents made other packages");
    let server: Value = serde_json::from_slice(&one[2]).unwrap();
    let schema: Value = serde_json::from_str(include_str!("../../data/registry/server.schema.json")).unwrap();
    let problems: Vec<String> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(&server).map(|problem| problem.to_string()).collect();
    assert!(problems.is_empty(), "{problems:?}: {server:#}");
    let variables = server["packages"][0]["environmentVariables"].as_array().unwrap();
    let names: Vec<&str> = variables.iter().map(|variable| variable["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["REACH_ALLOW_WRITE", "REACH_ALLOW_ENV_TZ", "REACH_SET_MOST"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_packaged_plugin_may_do_what_its_user_has_answered() {
    let folder = project(PACKAGE).await;
    let (notes, other) = (folder.write("notes/a.txt", "ship"), folder.write("other/b.txt", "secret"));
    let start = async |folders: &[&str], environment: &[(&str, &str)]| {
        let arguments = [&["packaged", "p/dist/reach.wasm"], folders].concat();
        let mut pipe = Pipe::start_with(&folder, &arguments, &[environment, &[("REACH_SET_MOST", "3")]].concat());
        pipe.legacy("2025-11-25", json!({})).await;
        pipe
    };
    let read = json!({ "path": notes });
    let write = json!({ "path": folder.join("notes/c.txt"), "text": "x" });
    for (folders, environment, may_read, may_write) in [
        (&[][..], &[][..], false, false),
        (&["notes"], &[], true, false),
        (&["notes"], &[("REACH_ALLOW_WRITE", "false")], true, false),
        // A desktop client leaves the variable of a question that nobody has answered as it is.
        (&["notes"], &[("REACH_ALLOW_WRITE", "${user_config.reach_allow_write}")], true, false),
        (&["notes"], &[("REACH_ALLOW_WRITE", "true")], true, true),
        (&[], &[("REACH_ALLOW_WRITE", "true")], false, false),
    ] {
        let mut pipe = start(folders, environment).await;
        let allowed = |answer: &Value| !text(answer).starts_with("error");
        assert_eq!(allowed(&pipe.call("read", read.clone()).await), may_read, "{folders:?} {environment:?}");
        assert_eq!(allowed(&pipe.call("write", write.clone()).await), may_write, "{folders:?} {environment:?}");
        assert!(!allowed(&pipe.call("read", json!({ "path": other })).await), "{folders:?} {environment:?}");
        pipe.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_missing_or_wrong_end_the_server_with_their_variable() {
    let folder = project(PACKAGE).await;
    for (arguments, environment, expected) in [
        (&[][..], &[][..], "set the variable REACH_SET_MOST"),
        (&[], &[("REACH_SET_MOST", "many")], "the variable REACH_SET_MOST: it has to be a number"),
        (
            &[],
            &[("REACH_SET_MOST", "1"), ("REACH_ALLOW_ENV_TZ", "yes")],
            "REACH_ALLOW_ENV_TZ is \"yes\"; set it to true or false",
        ),
        (&["nowhere"], &[("REACH_SET_MOST", "1")], "nowhere: this folder does not exist"),
    ] {
        let ended = folder.run(&[&["packaged", "p/dist/reach.wasm"], arguments].concat(), environment).await;
        assert_eq!(ended.status.code(), Some(2), "{expected}");
        assert!(folder::stderr(&ended).contains(expected), "{expected}: {}", folder::stderr(&ended));
    }
}

/// A project may be a clone of somebody else's, and what is packed is published.
#[tokio::test(flavor = "multi_thread")]
async fn no_link_leads_out_of_a_project() {
    use std::os::unix::fs::symlink;
    let pack = async |folder: &Folder| folder.run(&["pack", "--depend", "--to", "npm", "p"], &[]).await;
    for link in ["p/LICENSE", "p/dist/reach.wasm", "p/dist"] {
        let folder = project(PACKAGE).await;
        folder.write("secret.txt", "precious");
        fs::create_dir_all(folder.join("outside")).unwrap();
        match link {
            "p/dist" => {
                fs::rename(folder.join("p/dist/reach.wasm"), folder.join("outside/reach.wasm")).unwrap();
                fs::remove_dir(folder.join("p/dist")).unwrap();
                symlink("../outside", folder.join(link)).unwrap();
            }
            "p/dist/reach.wasm" => {
                fs::rename(folder.join(link), folder.join("outside/reach.wasm")).unwrap();
                symlink("../../outside/reach.wasm", folder.join(link)).unwrap();
            }
            _ => symlink("../secret.txt", folder.join(link)).unwrap(),
        }
        let packed = pack(&folder).await;
        let said = folder::stderr(&packed);
        assert!(!packed.status.success() && said.contains("is a link, and links are not followed"), "{link}: {said}");
        assert!(!folder.join("p/dist/packages").exists(), "{link}");
    }
    // A link in the place of what is written is replaced, and what it leads to stays.
    let registry = "registry = 'io.github.acme/reach'\nrepository = 'https://github.com/acme/reach'\n";
    let folder = project(&format!("{PACKAGE}{registry}")).await;
    folder.write(".bashrc", "mine");
    fs::create_dir_all(folder.join("p/dist/packages")).unwrap();
    symlink("../../../.bashrc", folder.join("p/dist/packages/server.json")).unwrap();
    let packed = pack(&folder).await;
    assert!(packed.status.success(), "{}", folder::stderr(&packed));
    assert_eq!(fs::read_to_string(folder.join(".bashrc")).unwrap(), "mine");
    assert!(fs::read_to_string(folder.join("p/dist/packages/server.json")).unwrap().contains("io.github.acme/reach"));
}
