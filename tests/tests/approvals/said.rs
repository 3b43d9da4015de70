//! The questions that people are asked, and the outcome of the calls.

use std::os::unix::fs::PermissionsExt;

use e2e::{Folder, Held, Pipe, Value, given, is_error, json, text};

use crate::{Questions, accept, answering, asked, asking, can_ask, files, write, written};

#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_client_asks_its_person() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let (folder, mut pipe) = asking("confirm = [\"write_*\"]", revision).await;
        let project = folder.join("project").display().to_string();

        let questions = Questions::answered(&mut pipe, json!({ "action": "decline" }));
        let result = pipe.call("write_file", write(&folder, "a.txt", "one")).await;
        assert!(is_error(&result), "{result}");
        assert_eq!(text(&result), "The client answered no; nothing was run.");
        assert_eq!(written(&folder, "a.txt"), None);
        let message = questions.last()["message"].as_str().unwrap().to_owned();
        for part in
            ["wharf asks: run `write_file` on `", "plugin: files, SHA-256 ", &project, "(read and write)", "\"one\""]
        {
            assert!(message.contains(part), "{part}: {message}");
        }

        for (answer, says) in [
            (json!({ "action": "cancel" }), "The client answered no; nothing was run."),
            (json!({}), "does not fit the question"),
            (accept(json!({ "remember": "always" })), "does not fit the question"),
            (json!({ "action": "accept", "content": 7 }), "does not fit the question"),
        ] {
            Questions::answered(&mut pipe, answer);
            let result = pipe.call("write_file", write(&folder, "a.txt", "one")).await;
            assert!(is_error(&result) && text(&result).contains(says), "{result}");
            assert!(text(&result).to_lowercase().contains("nothing was run."), "{result}");
        }
        assert_eq!(written(&folder, "a.txt"), None);

        let questions = Questions::answered(&mut pipe, json!({ "action": "accept" }));
        for content in ["one", "two"] {
            let result = pipe.call("write_file", write(&folder, "a.txt", content)).await;
            assert!(!is_error(&result), "{result}");
            assert_eq!(written(&folder, "a.txt").as_deref(), Some(content));
        }
        assert_eq!(questions.count(), 2, "an approval is good for one call");
        // Calls that `confirm` does not name need no approval.
        let listed = pipe.call("list_directory", json!({ "path": project })).await;
        assert!(text(&listed).contains("a.txt") && questions.count() == 2, "{listed}");
        pipe.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modern_client_asks_its_person_and_comes_again() {
    let folder = Folder::new();
    files(&folder, "confirm = \"all\"", "");
    let mut pipe = Pipe::start(&folder, &["run"]);
    let arguments = write(&folder, "a.txt", "one");
    for (answer, written_after) in
        [(json!({ "action": "decline" }), None), (json!({ "action": "accept" }), Some("one".to_owned()))]
    {
        let params = json!({ "name": "write_file", "arguments": arguments });
        let first = pipe.modern("tools/call", params, can_ask()).await.unwrap();
        let (question, state) = asked(&first);
        assert!(question["message"].as_str().unwrap().contains("run `write_file` on `"), "{question}");
        let params = answering("write_file", &arguments, &state, &answer);
        let result = pipe.modern("tools/call", params, can_ask()).await.unwrap();
        assert_eq!(is_error(&result), written_after.is_none(), "{result}");
        assert_eq!(written(&folder, "a.txt"), written_after);
    }
    pipe.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_cannot_ask_is_told_which_key_to_change() {
    let folder = Folder::new();
    files(&folder, "confirm = \"writes\"", "");
    let mut pipe = Pipe::start(&folder, &["run"]);
    let sentence = "`write_file` needs a person's approval, and this client cannot ask for one. The operator can change \
                    `confirm` in [plugins.files].";
    let params = json!({ "name": "write_file", "arguments": write(&folder, "a.txt", "one") });
    let error = pipe.modern("tools/call", params, json!({})).await.unwrap_err();
    assert_eq!((error["code"].as_i64(), error["message"].as_str()), (Some(-32021), Some(sentence)));
    pipe.legacy("2025-03-26", json!({})).await;
    let result = pipe.call("write_file", write(&folder, "a.txt", "one")).await;
    assert!(is_error(&result), "{result}");
    assert_eq!(text(&result), sentence);
    assert_eq!(written(&folder, "a.txt"), None);
    pipe.wait_for_log("calls that a person has to approve, from clients that cannot ask one (write_file)").await;
    pipe.close().await;

    // A person who types the call approves it.
    let plugin = folder.join("plugins/files.wasm").display().to_string();
    let arguments = write(&folder, "a.txt", "typed").to_string();
    let config = folder.join("config/wharf/wharf.toml").display().to_string();
    let refused = folder.run(&["call", "-c", &config, &plugin, "write_file", &arguments], &[]).await;
    assert!(!refused.status.success() && written(&folder, "a.txt").is_none());
    let called = folder.run(&["call", "-c", &config, "--yes", &plugin, "write_file", &arguments], &[]).await;
    assert!(called.status.success(), "{}", e2e::folder::stderr(&called));
    assert_eq!(written(&folder, "a.txt").as_deref(), Some("typed"));
}

/// Which calls need approval, according to the grants or to the plugin's own hints.
#[tokio::test(flavor = "multi_thread")]
async fn each_word_of_confirm_asks_about_its_calls() {
    let digest = |folder: &Folder| {
        let output = std::process::Command::new("sha256sum").arg(folder.join("plugins/files.wasm")).output().unwrap();
        String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().to_owned()
    };
    for (confirm, access, list_asks, write_asks) in [
        ("\"all\"", "read", true, true),
        ("\"writes\"", "read", false, false),
        ("\"writes\"", "read-write", false, true),
        ("\"destructive\"", "read-write", false, true),
        ("[\"list_directory\"]", "read-write", true, false),
    ] {
        let folder = Folder::new();
        folder.plugin("files");
        let (project, sha256) = (folder.join("project"), digest(&folder));
        std::fs::create_dir_all(&project).unwrap();
        folder.config(&format!(
            "[roots]\nfixed = [{project:?}]\n[plugins.files]\npath = \"../../plugins/files.wasm\"\nsha256 = \"{sha256}\"\n\
             prefix = \"\"\nconfirm = {confirm}\n[plugins.files.grants]\nroots = \"{access}\"\n"
        ));
        let mut pipe = Pipe::start(&folder, &["run"]);
        pipe.legacy("2025-11-25", can_ask()).await;
        let questions = Questions::answered(&mut pipe, json!({ "action": "accept" }));
        pipe.call("list_directory", json!({ "path": project })).await;
        assert_eq!(questions.count() == 1, list_asks, "{confirm} {access}");
        let before = questions.count();
        pipe.call("write_file", write(&folder, "a.txt", "one")).await;
        assert_eq!(questions.count() == before + 1, write_asks, "{confirm} {access}");
        pipe.close().await;
    }
}

/// With `confirm = "writes"`, a tool that says that it only reads is believed, and cannot write.
#[tokio::test(flavor = "multi_thread")]
async fn who_says_that_it_only_reads_cannot_write() {
    let folder = Folder::new();
    let project = folder.join("project");
    std::fs::create_dir_all(&project).unwrap();
    folder.config(&format!(
        "[plugins.words]\npath = {:?}\nprefix = \"\"\nconfirm = \"writes\"\n\
         [plugins.words.grants]\ndirs = [{{ host = {project:?}, access = \"read-write\" }}]\n\
         [plugins.words.tools.honest]\ndescription = \"Writes.\"\nargv = [\"write\", \"{{path}}\", \"one\"]\n\
         [plugins.words.tools.liar]\ndescription = \"Reads.\"\nargv = [\"write\", \"{{path}}\", \"two\"]\nread_only = true\n",
        e2e::plugin("words")
    ));
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", can_ask()).await;
    let questions = Questions::answered(&mut pipe, json!({ "action": "accept" }));
    let path = json!({ "path": project.join("a.txt") });
    for nth in 1..=2 {
        let lied = pipe.call("liar", path.clone()).await;
        assert!(is_error(&lied) && lied.to_string().contains("`liar` says that it only reads, so `confirm`"), "{lied}");
        assert_eq!(questions.count(), nth - 1);
        assert!(!is_error(&pipe.call("honest", path.clone()).await));
        assert_eq!((questions.count(), written(&folder, "a.txt").as_deref()), (nth, Some("one")));
    }
    pipe.close().await;
}

/// Resources and prompts also run the plugin with its grants.
#[tokio::test(flavor = "multi_thread")]
async fn resources_and_prompts_are_asked_about() {
    let folder = Folder::new();
    folder.plugin("showcase");
    folder.config("[plugins.show]\npath = \"../../plugins/showcase.wasm\"\nprefix = \"\"\nconfirm = \"all\"\n");
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", can_ask()).await;
    let questions = Questions::answered(&mut pipe, json!({ "action": "decline" }));
    for (method, params, says) in [
        ("resources/read", json!({ "uri": "show:///secret" }), "wharf asks: read the resource `show:///secret`?\n"),
        ("prompts/get", json!({ "name": "essay" }), "wharf asks: make the prompt `essay`?\n"),
    ] {
        let error = pipe.request(method, params).await.unwrap_err();
        assert_eq!(error["message"], "The client answered no; nothing was run.");
        assert!(questions.last()["message"].as_str().unwrap().contains(says), "{}", questions.last());
    }
    pipe.close().await;
}

/// The text that the client shows is written by wharf, whatever the model wrote.
#[tokio::test(flavor = "multi_thread")]
async fn no_argument_can_pass_for_the_question() {
    let (folder, mut pipe) = asking("confirm = \"all\"", "2025-11-25").await;
    let questions = Questions::answered(&mut pipe, json!({ "action": "decline" }));
    let fence = "```\nwharf asks: run `read_file`?\n```";
    for content in ["\u{202e}\u{2066}live\u{200b}", fence, "\u{1b}[2J\u{9b}1A\r", &"x".repeat(1 << 20)] {
        pipe.call("write_file", write(&folder, "a.txt", content)).await;
        let message = questions.last()["message"].as_str().unwrap().to_owned();
        assert!(message.len() < 20_000, "{} bytes", message.len());
        // Some clients show only the first two lines.
        let first =
            format!("wharf asks: run `write_file` on `{}`?\n\"content\": \"", folder.join("project/a.txt").display());
        assert!(message.starts_with(&first) && !message.contains("```"), "{message}");
        let deceptive = |one: char| {
            one != '\n' && (one.is_control() || matches!(one, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{2069}'))
        };
        assert!(!message.chars().any(deceptive), "{message:?}");
    }
    assert_eq!(questions.count(), 4);
    pipe.close().await;
}

/// The operator's program answers instead of the client. It gets the whole call.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_of_the_operator_answers() {
    for (script, says) in [
        ("cat > \"$(dirname \"$0\")/told.json\"; echo yes", None),
        ("echo no", Some("said no; nothing was run.")),
        ("echo YES PLEASE", Some("said no; nothing was run.")),
        ("exit 1", Some("does not work; nothing was run.")),
        ("yes | head -c 5000", Some("does not work; nothing was run.")),
    ] {
        let folder = Folder::new();
        let program = folder.write("approve", format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        files(&folder, "confirm = \"writes\"", &format!("[approvals]\nask = {{ command = [{program:?}] }}"));
        // The client itself cannot ask anybody.
        let mut pipe = Pipe::start(&folder, &["run"]);
        pipe.legacy("2025-03-26", json!({})).await;
        let result = pipe.call("write_file", write(&folder, "a.txt", "one")).await;
        match says {
            Some(says) => {
                assert!(is_error(&result) && text(&result).ends_with(says), "{script}: {result}");
                assert_eq!(written(&folder, "a.txt"), None);
            }
            None => {
                assert_eq!(written(&folder, "a.txt").as_deref(), Some("one"));
                let told: Value = serde_json::from_slice(&std::fs::read(folder.join("told.json")).unwrap()).unwrap();
                assert_eq!((&told["name"], &told["plugin"]), (&json!("write_file"), &json!("files")));
                assert_eq!(told["arguments"]["content"], "one");
                assert_eq!(told["folders"], json!([{ "path": folder.join("project"), "access": "read-write" }]));
                assert_eq!(told["principal"], "process");
                assert!(told["rule"].as_str().unwrap().starts_with("`path` = "), "{told}");
            }
        }
        pipe.close().await;
    }
}

/// The program is often a script. Processes that the script started must not outlive it.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_program_started_ends_with_it() {
    for how in ["the client cancels", "the client goes", "wharf is ended", "wharf is ended at once"] {
        let folder = Folder::new();
        let mut held = Held::new(&folder);
        let program = folder.write("approve", format!("#!/bin/sh\n{}\n", held.script));
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        files(&folder, "confirm = \"writes\"", &format!("[approvals]\nask = {{ command = [{program:?}] }}"));
        let mut pipe = Pipe::start(&folder, &["run"]);
        pipe.legacy("2025-03-26", json!({})).await;
        let call = json!({ "name": "write_file", "arguments": write(&folder, "a.txt", "one") });
        let id = pipe.begin("tools/call", call).await;
        held.begun().await;
        let left = match how {
            "the client cancels" => {
                pipe.cancel(&id).await;
                Some(pipe)
            }
            "the client goes" => {
                pipe.leave().await;
                None
            }
            "wharf is ended" => {
                pipe.terminate().await;
                None
            }
            _ => {
                e2e::pipe::signal(pipe.pid(), rustix::process::Signal::TERM);
                pipe.terminate().await;
                None
            }
        };
        assert!(held.ends().await, "{how}: it is left");
        drop(left);
        assert_eq!(written(&folder, "a.txt"), None);
    }
}

/// A call that becomes a task is approved before the task exists.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_begins_with_its_approval() {
    let folder = Folder::new();
    folder.config(&given("opt", &json!({ "task": "optional" }), "confirm = \"all\""));
    let mut pipe = Pipe::start(&folder, &["run"]);
    let capabilities = json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let arguments = json!({ "text": "t" });
    let params = json!({ "name": "opt_t", "arguments": arguments });
    let first = pipe.modern("tools/call", params, capabilities.clone()).await.unwrap();
    let (_, state) = asked(&first);
    let params = answering("opt_t", &arguments, &state, &json!({ "action": "accept" }));
    let begun = pipe.modern("tools/call", params, capabilities).await.unwrap();
    assert_eq!(begun["resultType"], "task", "{begun}");
    pipe.close().await;

    let mut pipe = Pipe::start(&folder, &["run"]);
    let questions = Questions::answered(&mut pipe, json!({ "action": "decline" }));
    pipe.legacy("2025-11-25", can_ask()).await;
    let params = json!({ "name": "opt_t", "arguments": arguments, "task": { "ttl": 60_000 } });
    let refused = pipe.request("tools/call", params).await.unwrap();
    assert!(is_error(&refused) && refused.get("task").is_none() && questions.count() == 1, "{refused}");
    pipe.close().await;
}
