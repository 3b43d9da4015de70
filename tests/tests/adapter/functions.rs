//! Functions as tools: their lists, the conversion of arguments and results, refusals, and attacks by a hostile component.

use e2e::{
    Folder, Pipe, Value,
    folder::{stderr, stdout},
    is_error, json, plugin, text,
};

use super::{names, pipe, tools};

const SHAPES: &str = "demo_plain_shapes_1_2_0_";
const HOSTILE: &str = "demo_plain_hostile_1_2_0_";

fn config(folder: &Folder, more: &str) {
    folder.config(&format!("[plugins.plain]\npath = {:?}\nprefix = \"\"\n{more}", plugin("plain")));
}

async fn shape(pipe: &mut Pipe, tool: &str, arguments: Value) -> Value {
    pipe.call(&format!("{SHAPES}{tool}"), arguments).await
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_are_tools_and_their_values_json() {
    let folder = Folder::new();
    config(&folder, "config = { place = \"here\", number = 7 }\n");
    let mut pipe = pipe(&folder).await;
    let tools = tools(&mut pipe).await;
    let names = names(&tools);
    for name in
        ["greet", "read-file", "setting", "demo_plain_shapes_1_2_0_describe", "demo_plain_hostile_1_2_0_give-up"]
    {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("count")), "resources are not arguments: {names:?}");
    let greeted = pipe.call("greet", json!({ "name": "Ada" })).await;
    assert_eq!(text(&greeted), "Hello, Ada!");
    assert_eq!(greeted.get("structuredContent"), None, "a text is not repeated in JSON");
    for (arguments, expected) in [
        (json!({ "shape": { "tag": "none" } }), "Shape::None in None"),
        (
            json!({ "shape": { "tag": "circle", "val": [{ "x": 1, "y": -2 }, 0.5] }, "colour": "dark-blue" }),
            "Shape::Circle((Point { x: 1, y: -2, label: None }, 0.5)) in Some(Colour::DarkBlue)",
        ),
    ] {
        assert_eq!(text(&shape(&mut pipe, "describe", arguments).await), expected);
    }
    for (tool, arguments, expected) in [
        ("without-delete", json!({ "rights": ["delete", "write"] }), json!(["write"])),
        ("without-delete", json!({ "rights": { "delete": true, "read": true } }), json!(["read"])),
        ("divide", json!({ "a": 7, "b": -2 }), json!({ "ok": -3 })),
        ("divide", json!({ "a": "9007199254740993", "b": 1 }), json!({ "ok": "9007199254740993" })),
        ("reverse", json!({ "bytes": "AQID" }), json!("AwIB")),
        ("reverse", json!({ "bytes": [1, 2, 3] }), json!("AwIB")),
        ("first", json!({ "points": [] }), json!(null)),
        ("first", json!({ "points": [{ "x": 1, "y": 2, "label": "a" }] }), json!({ "x": 1, "y": 2, "label": "a" })),
    ] {
        let result = shape(&mut pipe, tool, arguments.clone()).await;
        assert_eq!(result["structuredContent"]["result"], expected, "{tool} {arguments}: {result}");
        assert!(!is_error(&result));
    }
    let failed = shape(&mut pipe, "divide", json!({ "a": 1, "b": 0 })).await;
    assert!(is_error(&failed) && text(&failed) == "nothing can be divided by 0", "{failed}");
    for (arguments, expected) in [
        (json!({ "shape": { "tag": "square" } }), "shape"),
        (json!({}), "shape"),
        (json!({ "shape": { "tag": "none" }, "colour": "green" }), "colour"),
    ] {
        let refused = shape(&mut pipe, "describe", arguments).await;
        assert!(is_error(&refused) && text(&refused).contains(expected), "{refused}");
    }
    // It reads its config through WASI, which only has the strings.
    assert_eq!(text(&pipe.call("setting", json!({ "key": "place" })).await), "here");
    assert_eq!(text(&pipe.call("setting", json!({ "key": "number" })).await), "null");
    assert_eq!(pipe.call("settings", json!({})).await["structuredContent"], json!({ "result": [["place", "here"]] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn grants_lists_and_prefixes_hold_as_for_any_plugin() {
    let folder = Folder::new();
    let file = folder.write("open/a.txt", "inside");
    config(&folder, "tools = [\"read-file\"]\n");
    let read = json!({ "path": file });
    {
        let mut pipe = pipe(&folder).await;
        assert_eq!(names(&tools(&mut pipe).await), ["read-file"]);
        let refused = pipe.call("read-file", read.clone()).await;
        assert!(is_error(&refused) && !text(&refused).contains("inside"), "{refused}");
    }
    let open = folder.join("open");
    folder.config(&format!(
        "[plugins.plain]\npath = {:?}\n[plugins.plain.grants]\ndirs = [{{ host = {open:?}, access = \"read\" }}]\n\
         [plugins.plain.tools.greet]\ndescription = \"Says hello.\"\nread_only = true\n",
        plugin("plain")
    ));
    let mut pipe = pipe(&folder).await;
    assert_eq!(text(&pipe.call("plain_read-file", read).await), "inside");
    let tools = tools(&mut pipe).await;
    let (_, greet) = tools.iter().find(|(name, _)| name == "plain_greet").unwrap();
    assert_eq!(greet["description"], "Says hello.");
    assert_eq!(greet["annotations"]["readOnlyHint"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_hostile_is_bounded() {
    let folder = Folder::new();
    config(&folder, "[limits]\ntimeout_ms = 3000\noutput_kib = 64\nmemory_mib = 16\n");
    let mut pipe = pipe(&folder).await;
    for (tool, arguments, expected) in [
        ("much", json!({ "count": 1_000_000 }), "larger than its limit of 64 KiB"),
        ("long", json!({ "bytes": 200_000 }), "larger than its limit of 64 KiB"),
        ("nan", json!({}), "NaN"),
        ("spin", json!({}), "longer than its limit"),
        ("give-up", json!({}), "panicked at"),
        ("ignore", json!({ "numbers": vec![1; 400_000] }), "more than 16 MiB when decoded"),
    ] {
        let result = pipe.call(&format!("{HOSTILE}{tool}"), arguments).await;
        assert!(is_error(&result) && text(&result).contains(expected), "{tool}: {}", text(&result));
    }
    assert_eq!(text(&pipe.call(&format!("{HOSTILE}much"), json!({ "count": 3 })).await), "[7,7,7]");
}

#[tokio::test(flavor = "multi_thread")]
async fn inspect_check_and_call_know_it() {
    let folder = Folder::new();
    let path = plugin("plain");
    let path = path.to_str().unwrap();
    let inspected = folder.run(&["inspect", path], &[]).await;
    let told = stdout(&inspected);
    for expected in [
        "served: each function that it exports is a tool",
        "tool greet: Calls the function greet",
        "note: not offered as a tool: demo:plain/shapes@1.2.0#count: its parameter `counter` has the resource borrow<counter>",
    ] {
        assert!(told.contains(expected), "{told}{}", stderr(&inspected));
    }
    let called = folder.run(&["call", path, "greet", "name=Ada"], &[]).await;
    assert_eq!(stdout(&called).trim(), "Hello, Ada!", "{}", stderr(&called));
    for (more, expected) in [
        ("adapter = \"command\"\n", "it does not export wasi:cli/run"),
        ("adapter = \"wasi\"\n", "`adapter` is \"functions\", \"command\" or \"http\""),
        ("[plugins.plain.tools.greet]\ndescription = \"x\"\nargv = []\n", "only the tools of a command have `argv`"),
        ("[plugins.plain.tools.greeet]\ndescription = \"x\"\n", "no function is a tool of that name"),
    ] {
        config(&folder, more);
        let checked = folder.run(&["check"], &[]).await;
        let told = stdout(&checked) + &stderr(&checked);
        assert!(!checked.status.success() && told.contains(expected), "{told}");
    }
    config(&folder, "adapter = \"functions\"\n");
    let checked = folder.run(&["check"], &[]).await;
    assert!(checked.status.success() && stdout(&checked).contains("served: each function"), "{}", stdout(&checked));
    folder.config(&format!("[plugins.echo]\npath = {:?}\nadapter = \"functions\"\n", plugin("echo")));
    let checked = folder.run(&["check"], &[]).await;
    assert!(stdout(&checked).contains("is for components that were not made for wharf"), "{}", stdout(&checked));
}

/// A component whose memory has eight pages.
const GROWS: &str = r#"(component
    (core module $m (memory 8) (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0))))
    (core instance $m (instantiate $m))
    (func (export "grow") (param "pages" u32) (result s32) (canon lift (core func $m "grow"))))"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_room_that_a_memory_gets_changes_its_limit_only_if_it_could_not_start() {
    for (mib, pages, expected) in [(2, 23, 8), (2, 24, -1), (1, 7, 8), (1, 24, -1)] {
        let folder = Folder::new();
        let file = folder.write("grows.wasm", wat::parse_str(GROWS).unwrap());
        folder.config(&format!(
            "[plugins.grows]\npath = {file:?}\nprefix = \"\"\n[plugins.grows.limits]\nmemory_mib = {mib}\n"
        ));
        let mut pipe = pipe(&folder).await;
        let grown = pipe.call("grow", json!({ "pages": pages })).await;
        assert_eq!(grown["structuredContent"]["result"], json!(expected), "{mib} MiB, {pages} pages: {grown}");
    }
}
