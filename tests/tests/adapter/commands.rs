//! Commands as tools: only declared tools exist, and no value becomes more than one argument.

use e2e::{
    Folder,
    folder::{stderr, stdout},
    is_error, json, plugin, text,
};

use super::{names, pipe, tools};

const DECLARED: &str = r#"
[plugins.words.tools.search]
description = "Finds lines."
argv = ["find", "{pattern}"]
params = { pattern = { description = "What the lines hold." } }
stdin = "{text}"
[plugins.words.tools.in_files]
description = "Finds lines of files."
argv = ["find", "{pattern}", "{files}"]
params = { files = { type = "array" } }
ok_exit = [0, 1]
read_only = true
[plugins.words.tools.show]
description = "Shows what it is started with."
argv = ["show", "{loud}", "--x={x?}", "{more}", "--", "{last}"]
params = { loud = { type = "boolean", flag = "--loud" }, more = { default = "a b" }, last = { type = "array", default = [] } }
[plugins.words.tools.length]
description = "Counts."
argv = ["json", "{text}"]
output = "json"
[plugins.words.tools.much]
description = "Writes."
argv = ["much", "{pieces}"]
params = { pieces = { type = "integer" } }
[plugins.words.tools.spin]
description = "Spins."
argv = ["spin"]
"#;

fn config(folder: &Folder, more: &str) {
    folder.config(&format!("[plugins.words]\npath = {:?}\n{more}", plugin("words")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_declared_is_run_and_nothing_is_split() {
    let folder = Folder::new();
    config(&folder, DECLARED);
    let mut pipe = pipe(&folder).await;
    let listed = tools(&mut pipe).await;
    assert_eq!(
        names(&listed),
        ["words_search", "words_in_files", "words_show", "words_length", "words_much", "words_spin"]
    );
    assert_eq!(listed[1].1["annotations"]["readOnlyHint"], true);
    let shown = pipe.call("words_show", json!({ "loud": true, "x": "-; rm", "last": ["-a", "$(b) 'c'"] })).await;
    assert_eq!(text(&shown).trim(), r#"["words", "show", "--loud", "--x=-; rm", "a b", "--", "-a", "$(b) 'c'"] []"#);
    assert_eq!(text(&pipe.call("words_show", json!({})).await).trim(), r#"["words", "show", "a b", "--"] []"#);
    let refused = pipe.call("words_show", json!({ "more": "--evil" })).await;
    assert!(text(&refused).contains("would be an option"), "{refused}");
    let counted = pipe.call("words_length", json!({ "text": "four" })).await;
    assert_eq!(counted["structuredContent"], json!({ "length": 4 }));
    let wrong = pipe.call("words_search", json!({ "pattern": 7, "text": "" })).await;
    assert!(is_error(&wrong), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_files_and_limits() {
    let folder = Folder::new();
    let file = folder.write("open/a.txt", "apple\nplum\n");
    let open = folder.join("open");
    config(
        &folder,
        &format!(
            "{DECLARED}\n[plugins.words.grants]\ndirs = [{{ host = {open:?}, access = \"read\" }}]\n\
             [limits]\ntimeout_ms = 3000\noutput_kib = 64\n"
        ),
    );
    let mut pipe = pipe(&folder).await;
    // The last one is due to the C library, which looks for an absolute path in the directory of relative paths.
    for path in [file.to_str().unwrap(), "a.txt", "./a.txt", "/a.txt"] {
        let found = pipe.call("words_in_files", json!({ "pattern": "pl", "files": [path] })).await;
        assert_eq!(text(&found), "apple\nplum\n", "{path}");
    }
    let none = pipe.call("words_in_files", json!({ "pattern": "x", "files": ["a.txt"] })).await;
    assert!(!is_error(&none) && text(&none).is_empty(), "1 is one of its codes: {none}");
    let outside = folder.write("secret.txt", "secret");
    for path in [outside.to_str().unwrap(), "../secret.txt", "/etc/passwd"] {
        let refused = pipe.call("words_in_files", json!({ "pattern": "e", "files": [path] })).await;
        assert!(!text(&refused).contains("secret\n") && !text(&refused).contains("root:"), "{path}: {refused}");
    }
    let failed = pipe.call("words_search", json!({ "pattern": "x", "text": "" })).await;
    assert!(is_error(&failed) && text(&failed).ends_with("The command ended with code 1."), "{failed}");
    let written = pipe.call("words_much", json!({ "pieces": 16 })).await;
    assert_eq!(text(&written).len(), 64 << 10);
    let much = pipe.call("words_much", json!({ "pieces": 17 })).await;
    assert!(is_error(&much) && text(&much).contains("larger than its limit of 64 KiB"), "{}", text(&much));
    let spun = pipe.call("words_spin", json!({})).await;
    assert!(is_error(&spun) && text(&spun).contains("longer than its limit"), "{spun}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_offers_nothing_unless_it_is_told_to() {
    let folder = Folder::new();
    config(&folder, "");
    let checked = folder.run(&["check"], &[]).await;
    let told = stdout(&checked);
    assert!(checked.status.success(), "{told}{}", stderr(&checked));
    assert!(
        told.contains("words: ok, 0 tools") && told.contains("offers nothing until its table declares a tool"),
        "{told}"
    );
    assert!(told.contains("served: a command, which runs from the start for each call"), "{told}");
    config(&folder, "command = true\ninstances = \"reused\"\n");
    let mut pipe = pipe(&folder).await;
    assert_eq!(names(&tools(&mut pipe).await), ["words_run"]);
    for _ in 0..2 {
        let ran = pipe.call("words_run", json!({ "args": ["find", "a"], "stdin": "a\nb\n" })).await;
        assert_eq!(ran["structuredContent"], json!({ "code": 0, "stdout": "a\n", "stderr": "" }));
    }
    let failed = pipe.call("words_run", json!({ "args": ["--help"] })).await;
    assert!(is_error(&failed) && text(&failed).contains("usage: words find"), "{failed}");
    // A file named on the command line becomes a tool without a declaration.
    let path = plugin("words");
    let called = folder.run(&["call", path.to_str().unwrap(), "run", r#"{"args":["json","abc"]}"#], &[]).await;
    assert_eq!(stdout(&called).trim(), "{\"length\":3}", "{}", stderr(&called));
}
