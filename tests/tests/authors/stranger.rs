//! An untrusted project: running its cases with an existing component reads and writes nothing outside the project, and runs none of its
//! commands.

use std::{fs, os::unix::fs::symlink, path::Path};

use e2e::Folder;

use crate::{Played, play, project};

const GRANTS: &str = "grants = { roots = 'read-write' }";
/// A case in which the plugin reads a file of the folder that it is given.
fn reads(given: &str, path: &str) -> String {
    format!(
        "[[case]]\nname = 'a'\ntool = 'read'\nargs = {{ path = '{path}' }}\ntext = 'nothing'\n[case.given]\ndirs = {{ '/w' = {given} }}\n"
    )
}

/// Creates a project next to a folder of the operator that has a file `key`.
fn hostile(cases: &str) -> Folder {
    let folder = project("reach", GRANTS, cases);
    folder.write("home/.ssh/key", "precious");
    folder
}

/// Runs the cases like a user who was given the project and has the component.
async fn tried(folder: &Folder, more: &[&str]) -> Played {
    let component = folder.plugin_as("reach", "own/reach.wasm");
    play(folder, &[&["--plugin", component.to_str().unwrap()], more].concat(), &[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_case_is_given_a_folder_outside() {
    type Prepare = fn(&Folder);
    let nothing: Prepare = |_| {};
    let link: Prepare = |folder| symlink("../../home/.ssh", folder.join("p/tests/link")).unwrap();
    let within: Prepare = |folder| {
        fs::create_dir_all(folder.join("p/tests/real")).unwrap();
        symlink("../../../home", folder.join("p/tests/real/home")).unwrap();
    };
    for (given, prepare, expected) in [
        ("'HERE/home/.ssh'", nothing, "is not below the folder of this file"),
        ("'../../home/.ssh'", nothing, "is not below the folder of this file"),
        ("'x/../../../home/.ssh'", nothing, "is not below the folder of this file"),
        ("'.'", nothing, "is not below the folder of this file"),
        ("'link'", link, "`link` is a link, and links are not followed here"),
        ("'real/home/.ssh'", within, "`home` is a link, and links are not followed here"),
    ] {
        let folder = hostile("");
        let given = given.replace("HERE", folder.path().to_str().unwrap());
        folder.write("p/tests/a.toml", reads(&given, "/w/key"));
        prepare(&folder);
        let Played { code, shown, complained } = tried(&folder, &["--filter", "a"]).await;
        assert_eq!(code, Some(2), "{given}: {shown}{complained}");
        assert!(complained.contains(expected), "{given}: {complained}");
        assert!(!shown.contains("precious") && !complained.contains("precious"), "{given}: {shown}{complained}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_in_a_fixture_leads_nowhere_outside() {
    let folder = hostile(&reads("'w'", "/w/key"));
    fs::create_dir(folder.join("p/tests/w")).unwrap();
    symlink(folder.join("home/.ssh/key"), folder.join("p/tests/w/key")).unwrap();
    let Played { code, shown, complained } = tried(&folder, &["--filter", "a"]).await;
    assert_eq!(code, Some(1), "{complained}");
    assert!(shown.contains("FAIL  a") && !shown.contains("precious"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_file_of_the_project_is_a_link_to_one_outside() {
    for name in ["plugin.toml", "tests/a.toml", "tests"] {
        let folder = hostile(&reads("{}", "/w/key"));
        let (path, outside) = (folder.join("p").join(name), folder.join("outside"));
        if path.is_dir() {
            fs::rename(&path, &outside).unwrap();
        } else {
            fs::write(&outside, "precious = [\n").unwrap();
            fs::remove_file(&path).unwrap();
        }
        symlink(&outside, &path).unwrap();
        let Played { code, shown, complained } = tried(&folder, &[]).await;
        assert_eq!(code, Some(2), "{name}: {shown}{complained}");
        assert!(complained.contains("is a link, and links are not followed here"), "{name}: {complained}");
        assert!(!complained.contains("precious"), "{name}: {complained}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_are_written_nowhere_outside() {
    let case = "[[case]]\nname = 'a'\ntool = 'environ'\nsnapshot = true\n";
    let files = |folder: &Path| {
        let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.into_iter().map(|file| fs::read_to_string(file).unwrap()).collect::<Vec<_>>()
    };
    for (name, target) in [
        ("snapshots", "home/.ssh"),
        ("snapshots/a.json", "home/.ssh/key"),
        ("snapshots/a.json", "home/.ssh/new"),
        ("snapshots/a.json.new", "home/.ssh/key"),
        ("snapshots/lists.json", "home/.ssh/key"),
    ] {
        for more in [&[][..], &["--accept"]] {
            let folder = hostile(case);
            let link = folder.join("p/tests").join(name);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(folder.join(target), &link).unwrap();
            let Played { shown, complained, .. } = tried(&folder, more).await;
            assert_eq!(files(&folder.join("home/.ssh")), ["precious"], "{name} {more:?}: {shown}{complained}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_of_the_project_is_run_for_a_component_that_is_there() {
    let folder = hostile("[[case]]\nname = 'a'\ntool = 'environ'\n");
    let ran = folder.join("ran");
    let manifest = format!(
        "name = 'reach'\n[build]\ncommand = 'touch {0}'\nartifact = 'dist/reach.wasm'\nsetup = {{ command = 'touch {0}', makes = 'x' }}\n",
        ran.display()
    );
    folder.write("p/plugin.toml", manifest);
    for more in [&["--accept"][..], &["--setup", "--accept"]] {
        let played = tried(&folder, more).await;
        assert_eq!(played.code, Some(0), "{}{}", played.shown, played.complained);
        assert!(!ran.exists());
    }
    // Without a component it is built, as its author would do.
    play(&folder, &["--setup"], &[]).await;
    assert!(ran.exists());
}
