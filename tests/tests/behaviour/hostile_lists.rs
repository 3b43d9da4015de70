//! Plugins with invalid lists: what is odd in them is left out with a sentence that says what to change, and affects nothing else; a plugin
//! with nothing else does not load.

use e2e::{Folder, Pipe, Value, json, names, plugin};

/// One `badlist` for each mode, as separate plugins, and a valid plugin last.
fn config(folder: &Folder, modes: &[&str]) {
    let mut text = String::new();
    for mode in modes {
        text.push_str(&format!("[plugins.{mode}]\npath = {:?}\nconfig = {{ mode = \"{mode}\" }}\n", plugin("badlist")));
    }
    text.push_str(&format!("[plugins.zz]\npath = {:?}\n", plugin("echo")));
    folder.config(&text);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_wrong_offer_is_refused_in_a_sentence() {
    let rows = [
        ("schema_not_json", "not JSON"),
        ("schema_invalid", "must be an object of schemas"),
        ("schema_not_object", "\"type\": \"object\""),
        ("schema_empty", "not JSON"),
        ("remote_ref", "leads outside"),
        ("file_ref", "leads outside"),
        ("id_ref", "only at the root"),
        ("large_regex", "regex"),
        ("deep", "nested more than 32"),
        ("very_deep", "more than 65536"),
        ("large", "more than 65536"),
        ("no_name", "a name has 1 to 128"),
        ("bad_name", "a name has 1 to 128"),
        ("long_name", "a name has 1 to 128"),
        ("more_name", "`name` has its own field"),
        ("more_schema", "`inputSchema` has its own field"),
        ("more_not_object", "not a JSON object"),
        ("more_meta", "must be an object"),
        ("trap", "crashed"),
        ("panic", "crashed"),
        ("exit", "ended its process"),
        ("spin", "longer than its limit of 5000 ms"),
        ("sleep", "longer than its limit of 5000 ms"),
        ("huge_list", "larger than its limit"),
        ("failure", "when asked what it offers"),
    ];
    let folder = Folder::new();
    config(&folder, &rows.map(|(mode, _)| mode));
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe.wait_for_log("serving plugin=\"zz\"").await;
    let listed = pipe.request("tools/list", json!({})).await.unwrap();
    assert_eq!(names(&listed, "tools"), ["zz_echo"]);
    for (mode, expected) in rows {
        let line = pipe.wait_for_log(&format!("plugin=\"{mode}\"")).await;
        assert!(line.contains("ERROR does not load") && line.contains(expected), "{mode}: {line}");
        assert!(line.len() < 1500, "{mode}: {} bytes for one failure: {line}", line.len());
    }
    assert!(!pipe.log().contains(['\u{1b}', '\u{202e}', '\u{9b}', '\u{7}']), "control characters in the log");
    let echoed = pipe.call("zz_echo", json!({ "message": "well" })).await;
    assert_eq!(e2e::text(&echoed), "well");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_odd_entry_takes_no_other_away() {
    let rows = [
        ("twice", "listed twice"),
        ("resource_relative", "not an absolute URI"),
        ("resource_no_name", "has no name"),
        ("resource_twice", "listed twice"),
        ("resource_control", "a control character or a space"),
        ("template_all", "scheme"),
        ("template_scheme", "scheme"),
        ("template_broken", "template"),
        ("template_operator", "not an expression"),
        ("template_twice", "listed twice"),
        ("prompt_no_name", "a name has 1 to 128"),
        ("prompt_twice", "listed twice"),
        ("prompt_argument_twice", "listed twice"),
    ];
    let folder = Folder::new();
    config(&folder, &rows.map(|(mode, _)| mode));
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    pipe.wait_for_log("serving plugin=\"zz\"").await;
    let listed = names(&pipe.request("tools/list", json!({})).await.unwrap(), "tools");
    for (mode, expected) in rows {
        let line = pipe.wait_for_log(&format!("plugin=\"{mode}\"")).await;
        assert!(line.contains("WARN") && line.contains("is left out: ") && line.contains(expected), "{mode}: {line}");
        let other = format!("{mode}_{}", if mode == "twice" { "t" } else { "fine" });
        assert!(listed.contains(&other), "{other} is not in {listed:?}");
    }
}

/// A template of files that names a folder is the server's own, but a plugin that has a folder comes first.
#[tokio::test(flavor = "multi_thread")]
async fn a_template_of_files_is_served_without_a_folder() {
    for (grants, expected) in [("", "file:///notes/today"), ("[plugins.with.grants]\nroots = \"read\"\n", "a file")] {
        let folder = Folder::new();
        let path = plugin("badlist");
        folder.config(&format!(
            "[plugins.odd]\npath = {path:?}\nconfig = {{ mode = \"mixed\" }}\n\
             [plugins.with]\npath = {path:?}\nconfig = {{ mode = \"template_file\" }}\n{grants}"
        ));
        let mut pipe = Pipe::start(&folder, &["run"]);
        pipe.legacy("2025-11-25", json!({})).await;
        let listed = pipe.request("resources/templates/list", json!({})).await.unwrap();
        let templates = listed["resourceTemplates"].as_array().unwrap();
        assert_eq!(templates[0]["uriTemplate"], "file:///notes/{day}");
        assert_eq!(templates.len(), if grants.is_empty() { 1 } else { 2 }, "{listed}");
        let read = pipe.request("resources/read", json!({ "uri": "file:///notes/today" })).await.unwrap();
        assert_eq!(read["contents"][0]["text"], expected, "{grants}");
    }
}

/// What wharf cannot check is checked by those tools that say that they do so.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_odd_is_renamed_or_left_to_the_tool_or_left_out() {
    let folder = Folder::new();
    folder.config(&format!(
        "[plugins.odd]\npath = {:?}\nprefix = \"\"\nconfig = {{ mode = \"mixed\" }}\n",
        plugin("badlist")
    ));
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    let listed = pipe.request("tools/list", json!({})).await.unwrap();
    assert_eq!(names(&listed, "tools"), ["own_pattern", "own_any", "own_long", "a_b_c", "gr__e", "fine"]);
    assert_eq!(listed["tools"][0]["inputSchema"]["properties"]["price"]["pattern"], "^(?!-)[0-9.]+$");
    let prompts = pipe.request("prompts/list", json!({})).await.unwrap();
    assert_eq!(names(&prompts, "prompts"), ["p_q", "fine"]);
    for (tool, arguments) in
        [("own_pattern", json!({ "price": "-1" })), ("own_any", json!({ "a": [] })), ("a_b_c", json!({}))]
    {
        let result = pipe.call(tool, arguments.clone()).await;
        assert_eq!(e2e::text(&result), arguments.to_string(), "{tool}");
    }
    let shown = pipe.log();
    for said in [
        "the input schema of the tool `own_pattern` is left to the tool to check: ",
        "the output schema of the tool `own_long` is left to the tool to check: ",
        "the tool `own_remote` is left out: input schema: ",
        "the tool `pattern` is left out: input schema: ",
        "the tool `a/b c` is published as `a_b_c`",
        "the tool `fine` is left out: the tool `fine` is listed twice",
        "more entries are left out, renamed or not checked",
    ] {
        assert!(shown.contains(said), "{said} is not in:\n{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_only_odd_loads_and_is_cleaned() {
    let folder = Folder::new();
    config(
        &folder,
        &["ansi", "resource_file", "template_file", "slow_regex", "self_ref", "mutual_ref", "many", "nothing"],
    );
    let mut pipe = Pipe::start(&folder, &["run"]);
    pipe.legacy("2025-11-25", json!({})).await;
    // A list waits for plugins that load, but not as long as so many tools may take on a busy machine.
    pipe.wait_for_log("serving plugin=\"many\"").await;
    let mut tools: Vec<Value> = Vec::new();
    let mut cursor = json!({});
    for _ in 0..100 {
        let page = pipe.request("tools/list", cursor).await.unwrap();
        tools.extend(page["tools"].as_array().unwrap().iter().cloned());
        match page.get("nextCursor") {
            Some(next) => cursor = json!({ "cursor": next }),
            None => break,
        }
    }
    let of = |prefix: &str| tools.iter().filter(|tool| tool["name"].as_str().unwrap().starts_with(prefix)).count();
    assert_eq!((of("ansi_"), of("slow_regex_"), of("many_"), of("zz_")), (1, 1, 4_000, 1));
    let ansi = tools.iter().find(|tool| tool["name"] == "ansi_t").unwrap();
    for field in ["title", "description"] {
        let shown = ansi[field].as_str().unwrap();
        assert!(!shown.contains(['\u{1b}', '\u{202e}', '\u{7}', '\u{9b}']), "{field}: {shown:?}");
    }
    let resources = pipe.request("resources/list", json!({})).await.unwrap();
    assert_eq!(names(&resources, "resources").len(), 1, "file URIs are for plugins that have a directory: {resources}");
    let templates = pipe.request("resources/templates/list", json!({})).await.unwrap();
    assert_eq!(templates["resourceTemplates"], json!([]));
    assert!(pipe.request("resources/read", json!({ "uri": "file:///etc/passwd" })).await.is_err());
    // A pattern that takes other engines years (ReDoS).
    let near = format!("{}!", "a".repeat(100_000));
    let began = std::time::Instant::now();
    let result = pipe.call("slow_regex_t", json!({ "x": near })).await;
    assert!(e2e::is_error(&result), "it does not match");
    assert!(began.elapsed() < e2e::prompt(), "{:?}", began.elapsed());
    // Schemas that refer to themselves get one answer or the other, and the host survives.
    for tool in ["self_ref_t", "mutual_ref_t"] {
        if tools.iter().any(|listed| listed["name"] == tool) {
            pipe.call(tool, json!({ "x": 1 })).await;
        }
    }
    assert_eq!(pipe.request("ping", json!({})).await.unwrap(), json!({}));
    for field in ["name", "description", "mimeType"] {
        let shown = resources["resources"][0][field].as_str().unwrap_or_default();
        assert!(!shown.contains(['\u{1b}', '\u{202e}', '\u{7}', '\u{9b}']), "{field}: {shown:?}");
    }
}
