//! The commands and the config of the README, as a reader types them in an empty folder.

use e2e::{Folder, Server, http::Over};

const README: &str = include_str!("../../../README.md");

/// Returns the code block in which this text is; empty if the README has no such block.
fn block(with: &str) -> &'static str {
    let found = README.split("\n```").skip(1).step_by(2).find(|block| block.contains(with));
    found.and_then(|block| block.split_once('\n')).unwrap_or_default().1
}

#[tokio::test(flavor = "multi_thread")]
async fn each_command_works_in_an_empty_folder() {
    let folder = Folder::new();
    let here = folder.join("empty");
    std::fs::create_dir(&here).unwrap();
    let wharf = folder.command(&[], &[]);
    let program = std::path::Path::new(wharf.as_std().get_program()).parent().unwrap().to_owned();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut said = Vec::new();
    assert_eq!(block("mkdir notes").lines().count(), 7);
    for line in block("mkdir notes").lines() {
        let mut command = tokio::process::Command::new("bash");
        command.args(["-c", line]).current_dir(&here).env_clear();
        for (name, value) in wharf.as_std().get_envs() {
            value.map(|value| command.env(name, value));
        }
        let output = command.env("PATH", &path).stdin(std::process::Stdio::null()).output().await.unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{line}: {text}{}", e2e::folder::stderr(&output));
        said.push(text);
    }
    assert_eq!(said[1], "buy milk\n");
    assert!(said[2].contains("refused"), "{said:?}");
    assert!(said[3].contains("tool read_text_file"), "{said:?}");
    assert!(said[5].contains("no problems found"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_config_is_served() {
    let folder = Folder::new();
    folder.config(block("[plugins.files]"));
    let server = Server::of(folder.command(&["serve", "--listen", "127.0.0.1:0"], &[]), Over::Tcp).await;
    let tools = server.modern("tools/list", e2e::json!({}), e2e::json!({})).await.unwrap();
    let tools = tools["tools"].to_string();
    assert!(tools.contains("files_read_text_file") && tools.contains("\"fetch"), "{tools}");
}
