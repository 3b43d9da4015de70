//! What one wharf runs or obeys is protected from the plugins of every wharf of the same user, and from the moment at which it does.

use std::{os::unix::fs::PermissionsExt, path::Path};

use e2e::{Folder, Pipe, folder::stderr, is_error, json, plugin, text};

/// Starts a wharf without a config, whose plugin may write into these folders.
async fn writer(folder: &Folder, folders: &[&str], environment: &[(&str, &str)]) -> Pipe {
    let reach = plugin("reach").display().to_string();
    let mut pipe = Pipe::start_with(folder, &[&["run", &reach], folders].concat(), environment);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe
}

/// Whether a plugin may write a new file into a folder.
async fn writes(pipe: &mut Pipe, folder: &Path) -> bool {
    let path = folder.join("tried");
    let said = pipe.call("reach_write", json!({ "path": path, "text": "x" })).await;
    let written = path.exists();
    assert_eq!(text(&said) == "()", written, "{said}");
    std::fs::remove_file(path).ok();
    written
}

/// Another wharf of the user, which starts later, ends, and is started again by its client.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_writes_no_config_of_another_wharf() {
    let folder = Folder::new();
    let project = folder.join("project");
    folder.write("other/file", "");
    folder.plugin_as("hello", "project/own/hello.wasm");
    let config = folder.write("project/wharf.toml", "[plugins.hello]\npath = 'own/hello.wasm'\n");
    // Editors give programs environments of their own.
    let state = folder.join("state-of-editor").display().to_string();
    let mut writer = writer(&folder, &["project", "other"], &[("XDG_STATE_HOME", &state)]).await;
    assert!(writes(&mut writer, &project).await, "nothing of it was ever used");
    let mut other = Pipe::start(&folder, &["run", "-c", config.to_str().unwrap()]);
    other.legacy("2025-11-25", json!({})).await;
    assert!(!writes(&mut writer, &project).await && !writes(&mut writer, &project.join("own")).await);
    assert!(writes(&mut writer, &folder.join("other")).await);
    assert!(other.close().await.status.success());
    let mut third = writer_of_both(&folder).await;
    for pipe in [&mut writer, &mut third] {
        assert!(!writes(pipe, &project).await, "the next start obeys it");
        assert!(writes(pipe, &folder.join("other")).await);
    }
    // A config that is gone may come back, for example with another branch.
    std::fs::remove_file(config).unwrap();
    writer_of_both(&folder).await.close().await;
    assert!(!writes(&mut writer, &project).await);
}

async fn writer_of_both(folder: &Folder) -> Pipe {
    writer(folder, &["project", "other"], &[]).await
}

/// A plugin file on a command line is in no config, so it is protected while its wharf runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_writes_no_plugin_that_another_wharf_runs() {
    let folder = Folder::new();
    let hello = folder.plugin_as("hello", "project/hello.wasm").display().to_string();
    let mut writer = writer(&folder, &["project"], &[]).await;
    let project = folder.join("project");
    let mut other = Pipe::start(&folder, &["run", &hello]);
    other.legacy("2025-11-25", json!({})).await;
    assert!(!writes(&mut writer, &project).await);
    other.close().await;
    assert!(writes(&mut writer, &project).await);
}

/// The default config is that of the next start, and each kind of file that it names is protected before that.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_default_config_names_is_protected_while_another_is_used() {
    let folder = Folder::new();
    let kinds = ["plugin", "program", "asks", "ca", "signer", "secret", "key"];
    for kind in kinds {
        folder.write(&format!("{kind}/file"), "");
    }
    folder.config(
        "[plugins.a]\npath = '../../plugin/file'\n[secrets]\na = { command = ['../../program/file'] }\nb = { file = '../../secret/file' }\n\
         [approvals]\nask = { command = ['../../asks/file'] }\n[egress]\nca = ['../../ca/file']\n[sources]\n\
         signers = [{ key = '../../signer/file' }]\n[http.tls]\ncert = '../../ca/file'\nkey = '../../key/file'\n",
    );
    let mut pipe = writer(&folder, &[&kinds[..], &["plugins"]].concat(), &[]).await;
    let open = pipe.call("reach_dirs", json!({})).await;
    let line = |access: &str, kind: &str| format!("{access} {}", folder.join(kind).display());
    let expected = ["plugin", "program", "asks", "ca", "signer"].map(|kind| line("ro", kind));
    assert_eq!(text(&open), [&expected[..], &[line("rw", "plugins")]].concat().join("\n"), "no secret is read");
}

/// A program is run by its path, and no plugin can put another one in its place, or in an earlier folder of PATH.
#[tokio::test(flavor = "multi_thread")]
async fn no_plugin_replaces_a_program() {
    let folder = Folder::new();
    for (name, says) in [("late/wharf-approves", "no"), ("early/wharf-approves", "yes")] {
        folder.write(name, format!("#!/bin/sh\npwd >> '{}'\necho {says}\n", folder.join("asked").display()));
        folder.set_mode(name, 0o755);
    }
    folder.set_mode("early/wharf-approves", 0o644);
    let path = format!("{}:{}:/usr/bin:/bin", folder.join("early").display(), folder.join("late").display());
    folder.config(&format!(
        "[approvals]\nask = {{ command = ['wharf-approves'] }}\n[roots]\nfixed = [{:?}, {:?}]\n\
         [plugins.reach]\npath = {:?}\nconfirm = ['write']\n[plugins.reach.grants]\nroots = 'read-write'\n",
        folder.join("early"),
        folder.join("plugins"),
        plugin("reach"),
    ));
    let mut pipe = Pipe::start_with(&folder, &["run"], &[("PATH", &path)]);
    pipe.legacy("2025-11-25", json!({})).await;
    let open = pipe.call("reach_dirs", json!({})).await;
    let expected = format!("ro {}\nrw {}", folder.join("early").display(), folder.join("plugins").display());
    assert_eq!(text(&open), expected, "the next start would find a program there");
    // Even if one appears by other means, the one that was found is run.
    folder.set_mode("early/wharf-approves", 0o755);
    let refused = pipe.call("reach_write", json!({ "path": folder.join("plugins/x"), "text": "x" })).await;
    assert!(is_error(&refused) && !folder.join("plugins/x").exists(), "{refused}");
    assert_eq!(std::fs::read_to_string(folder.join("asked")).unwrap(), "/\n", "not in a folder with files of others");
}

/// A relative argument would be a file of whichever folder wharf is started in.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_given_no_relative_files() {
    let folder = Folder::new();
    folder.write("approve.py", "print('yes')");
    folder.config("[approvals]\nask = { command = ['python3', 'approve.py'] }\n");
    let output = folder.run(&["check"], &[]).await;
    let expected = format!("write {:?} in its place", folder.join("approve.py"));
    assert!(!output.status.success() && stderr(&output).contains(&expected), "{}", stderr(&output));
}

/// The build command in `plugin.toml` runs outside of the sandbox.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_under_development_does_not_write_its_own_build() {
    let folder = Folder::new();
    let manifest =
        "name = 'p'\n[build]\ncommand = 'true'\nartifact = 'dist/p.wasm'\n[dev.grants]\nroots = 'read-write'\n";
    folder.write("repository/.git/HEAD", "");
    folder.write("repository/p/plugin.toml", manifest);
    folder.plugin_as("reach", "repository/p/dist/p.wasm");
    let sources = ["p/src", "shared"].map(|name| folder.write(&format!("repository/{name}/lib.rs"), ""));
    let sources = sources.map(|file| file.parent().unwrap().to_owned());
    let bin = folder.write("bin/x", "").parent().unwrap().to_owned();
    let mut neighbour = writer(&folder, &["repository/p/src", "repository/shared", "bin"], &[]).await;
    for source in sources.iter().chain([&bin]) {
        assert!(writes(&mut neighbour, source).await);
    }
    let root = folder.join("repository/p").display().to_string();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut pipe = Pipe::start_with(&folder, &["dev", "repository/p", "--stdio", "--root", &root], &[("PATH", &path)]);
    pipe.legacy("2025-11-25", json!({})).await;
    let evil = manifest.replace("true", "touch evil");
    let said = pipe.call("p_write", json!({ "path": folder.join("repository/p/plugin.toml"), "text": evil })).await;
    assert!(text(&said).starts_with("error: "), "{said}");
    assert_eq!(std::fs::read_to_string(folder.join("repository/p/plugin.toml")).unwrap(), manifest);
    for source in sources.iter().chain([&bin]) {
        assert!(!writes(&mut neighbour, source).await, "a build runs what is in the repository and on PATH");
    }
    pipe.close().await;
    for source in sources.iter().chain([&bin]) {
        assert!(writes(&mut neighbour, source).await);
    }
}

/// A call that may write into a folder ends when the folder gets something that wharf runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_under_way_keeps_no_access_to_what_becomes_trusted() {
    for by in ["the own config", "another wharf"] {
        let folder = Folder::new();
        let file = folder.write("project/f", "one");
        let own = |more: &str| {
            folder.config(&format!(
                "[roots]\nfixed = [{:?}]\n[plugins.reach]\npath = {:?}\n[plugins.reach.grants]\nroots = 'read-write'\n{more}",
                folder.join("project"),
                plugin("reach"),
            ))
        };
        own("");
        let mut pipe = Pipe::start(&folder, &["run"]);
        pipe.legacy("2025-11-25", json!({})).await;
        let slow = json!({ "name": "reach_read_late", "arguments": { "path": file, "ms": 25_000 }, "_meta": { "progressToken": 1 } });
        let id = pipe.begin("tools/call", slow).await;
        pipe.notification("notifications/progress").await;
        let new = folder.plugin_as("hello", "project/new.wasm").display().to_string();
        let mut other = None;
        match by {
            "the own config" => drop(own("[plugins.new]\npath = '../../project/new.wasm'\n")),
            _ => other = Some(Pipe::start(&folder, &["run", &new])),
        }
        let result = pipe.answer(&id).await.unwrap();
        assert!(is_error(&result) && text(&result).contains("is in it now; call again"), "{by}: {result}");
        assert!(!writes(&mut pipe, &folder.join("project")).await, "{by}");
        drop(other);
    }
}

/// Other users can neither read the registry nor add to it, and no plugin can.
#[tokio::test(flavor = "multi_thread")]
async fn the_registry_is_the_users_own() {
    let folder = Folder::new();
    folder.write("state/file", "");
    let state = folder.join("state").display().to_string();
    let mut pipe = writer(&folder, &["state"], &[("XDG_STATE_HOME", &state)]).await;
    let registry = folder.join("state/wharf/trusted");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&registry), mode(&folder.join("state/wharf"))), (0o700, 0o700));
    let entries: Vec<_> = std::fs::read_dir(&registry).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(entries.len() == 1 && entries.iter().all(|entry| mode(entry) == 0o600), "{entries:?}");
    assert!(!writes(&mut pipe, &folder.join("state")).await);
    let mut inside = writer(&folder, &["state/wharf/trusted"], &[("XDG_STATE_HOME", &state)]).await;
    assert!(!writes(&mut inside, &registry).await);
}
