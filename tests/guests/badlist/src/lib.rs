//! Lists what the `mode` in its config says: every kind of invalid list; with `given`, a tool that the test describes; with `listed`, the
//! tools of another server. Exports tools, resources and prompts.

#![allow(clippy::disallowed_methods, reason = "a guest for tests sleeps and ends as it likes; no test does")]
#![expect(clippy::panic, reason = "a guest for tests may crash; the host must not mind")]
#![expect(clippy::print_stdout, reason = "the sandbox catches what a guest prints")]

mod given;
mod listed;

use wharf_sdk::{
    ClientCapabilities, Context, Failure, FailureKind, Prompt, PromptOutcome, Prompts, ReadOutcome, ResourceEntry,
    ResourceTemplate, Resources, TaskSupport, Tool, ToolDetails, ToolOutcome, Tools, host,
    serde_json::{self, Value},
};

struct BadList;

/// Contains terminal colours, bidirectional marks and a bell.
const DECEPTIVE: &str = "\u{1b}[31mred\u{202e}turned\u{7}\u{9b}x";

fn mode() -> String {
    let config: Value = serde_json::from_str(&host::config()).unwrap_or_default();
    config.get("mode").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn number(key: &str) -> u64 {
    let config: Value = serde_json::from_str(&host::config()).unwrap_or_default();
    config.get(key).and_then(Value::as_u64).unwrap_or_default()
}

fn tool(name: &str, schema: impl Into<String>) -> Tool {
    Tool { name: name.into(), description: "One of badlist.".into(), input_schema: schema.into(), details: None }
}

fn details() -> ToolDetails {
    ToolDetails {
        title: None,
        output_schema: None,
        hints: None,
        needs: ClientCapabilities::empty(),
        task: TaskSupport::Forbidden,
        more: None,
    }
}

const OPEN: &str = r#"{"type":"object"}"#;

fn tools_for(mode: &str) -> Vec<Tool> {
    let more =
        |text: &str| Tool { details: Some(ToolDetails { more: Some(text.into()), ..details() }), ..tool("t", OPEN) };
    match mode {
        "schema_not_json" => vec![tool("t", "nonsense")],
        "schema_invalid" => vec![tool("t", r#"{"type":"object","properties":7}"#)],
        "schema_not_object" => vec![tool("t", r#"{"type":"string"}"#)],
        "schema_empty" => vec![tool("t", "")],
        "remote_ref" => vec![tool("t", r#"{"type":"object","$ref":"https://127.0.0.1:1/x.json"}"#)],
        "file_ref" => vec![tool("t", r#"{"type":"object","$ref":"file:///etc/passwd"}"#)],
        "id_ref" => vec![tool(
            "t",
            r#"{"type":"object","$id":"http://127.0.0.1:1/a","properties":{"x":{"$id":"http://127.0.0.1:1/b","$ref":"c"}}}"#,
        )],
        "self_ref" => vec![tool("t", r##"{"type":"object","allOf":[{"$ref":"#"}]}"##)],
        "mutual_ref" => vec![tool(
            "t",
            r##"{"type":"object","allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}"##,
        )],
        "slow_regex" => vec![tool(
            "t",
            r#"{"type":"object","properties":{"x":{"type":"string","pattern":"^(a+)+$"}},"patternProperties":{"^(b|b)*$":true}}"#,
        )],
        "large_regex" => vec![tool("t", r#"{"type":"object","properties":{"x":{"pattern":"(a{1000}){1000}"}}}"#)],
        "deep" => vec![tool("t", format!("{}true{}", r#"{"type":"object","not":"#.repeat(200), "}".repeat(200)))],
        "very_deep" => vec![tool("t", "[".repeat(1_000_000))],
        "large" => vec![tool("t", format!(r#"{{"type":"object","description":"{}"}}"#, "x".repeat(1 << 20)))],
        "enum_bomb" => vec![tool("t", format!(r#"{{"type":"object","enum":[{}1]}}"#, "1,".repeat(30_000)))],
        "no_name" => vec![tool("", OPEN)],
        "bad_name" => vec![tool("a b\u{1b}", OPEN)],
        "long_name" => vec![tool(&"n".repeat(200), OPEN)],
        "twice" => vec![tool("t", OPEN), tool("t", OPEN)],
        "more_name" => vec![more(r#"{"name":"other"}"#)],
        "more_schema" => vec![more(r#"{"inputSchema":{"type":"object"}}"#)],
        "more_not_object" => vec![more("[1]")],
        "more_meta" => vec![more(r#"{"_meta":7}"#)],
        "trap" => std::process::abort(),
        "panic" => panic!("{DECEPTIVE}"),
        // Prints everything it knows, where a crash might show it.
        "panic_config" => {
            println!("{}", host::config());
            panic!("{}", host::config());
        }
        "exit" => std::process::exit(0),
        "spin" => loop {
            std::hint::black_box(0);
        },
        "sleep" => {
            std::thread::sleep(std::time::Duration::from_secs(60));
            vec![]
        }
        "many" => (0..4_000).map(|at| tool(&format!("t{at}"), OPEN)).collect(),
        "huge_list" => {
            (0..200).map(|at| Tool { description: "d".repeat(100_000), ..tool(&format!("t{at}"), OPEN) }).collect()
        }
        "ansi" => vec![Tool {
            description: DECEPTIVE.into(),
            details: Some(ToolDetails {
                title: Some(DECEPTIVE.into()),
                more: Some(serde_json::json!({ "_meta": { "x": DECEPTIVE } }).to_string()),
                ..details()
            }),
            ..tool("t", serde_json::json!({ "type": "object", "description": DECEPTIVE }).to_string())
        }],
        "writes" => {
            // The test checks whether this is allowed.
            std::fs::write("/open/listed", "x").ok();
            vec![tool("fine", OPEN)]
        }
        "nothing" => vec![],
        "mixed" => mixed(),
        "given" => given::tools(),
        "listed" => listed::tools(),
        _ => vec![tool("fine", OPEN)],
    }
}

/// Odd tools around one that is not. Those whose name begins with `own` check their arguments themselves.
fn mixed() -> Vec<Tool> {
    let own = |name: &str, schema: &str, output: Option<String>| {
        let more = Some(r#"{"_meta":{"dev.wharf/validates":true}}"#.into());
        Tool { details: Some(ToolDetails { more, output_schema: output, ..details() }), ..tool(name, schema) }
    };
    let price = r#"{"type":"object","properties":{"price":{"type":"string","pattern":"^(?!-)[0-9.]+$"}}}"#;
    let long = format!(r#"{{"type":"object","description":"{}"}}"#, "x".repeat(71_000));
    vec![
        own("own_pattern", price, None),
        own("own_any", r#"{"type":"object","properties":{"a":{"type":"any","minimum":"0"}}}"#, None),
        own("own_long", OPEN, Some(long)),
        own("own_remote", r#"{"type":"object","properties":{"a":{"$ref":"https://127.0.0.1:1/x.json"}}}"#, None),
        own("own_list", r#"{"type":"array"}"#, None),
        own("own_null", r#"{"type":"object","properties":null}"#, None),
        tool("pattern", price),
        tool("a/b c", OPEN),
        tool("größe", OPEN),
        tool("fine", OPEN),
        tool("fine", OPEN),
        tool("工具", OPEN),
        tool("bell\u{7}", OPEN),
    ]
}

impl Tools for BadList {
    fn list_tools() -> Result<Vec<Tool>, Failure> {
        match mode().as_str() {
            "failure" => Err(Failure { kind: FailureKind::Failed, message: DECEPTIVE.into(), data: None }),
            "long_failure" => {
                Err(Failure { kind: FailureKind::Failed, message: "\u{1}".repeat(4_000_000), data: None })
            }
            mode => Ok(tools_for(mode)),
        }
    }

    fn call_tool(_: String, args: String, context: Context) -> Result<ToolOutcome, Failure> {
        if mode() == "given" {
            return given::call(&args, &context);
        }
        Ok(ToolOutcome::Text(args))
    }
}

impl Resources for BadList {
    fn list_resources() -> Result<Vec<ResourceEntry>, Failure> {
        let entry = |uri: &str, name: &str| ResourceEntry {
            uri: uri.into(),
            name: name.into(),
            description: None,
            mime_type: None,
            more: None,
        };
        Ok(match mode().as_str() {
            "resource_relative" => vec![entry("notes/today", "n")],
            "resource_no_name" => vec![entry("note:///a", "")],
            "resource_twice" => vec![entry("note:///a", "n"), entry("note:///a", "m")],
            "resource_file" => vec![entry("file:///etc/passwd", "n")],
            "resource_control" => vec![entry("note:///\u{1b}", "n")],
            "ansi" => vec![ResourceEntry {
                description: Some(DECEPTIVE.into()),
                mime_type: Some(DECEPTIVE.into()),
                ..entry("note:///a", DECEPTIVE)
            }],
            _ => vec![],
        })
    }

    fn list_templates() -> Result<Vec<ResourceTemplate>, Failure> {
        let template = |text: &str| ResourceTemplate {
            uri_template: text.into(),
            name: "n".into(),
            description: None,
            mime_type: None,
            more: None,
        };
        Ok(match mode().as_str() {
            "template_all" => vec![template("{+x}")],
            "template_scheme" => vec![template("{scheme}://a")],
            "template_file" => vec![template("file:///{+path}")],
            "template_broken" => vec![template("note:///{day")],
            "template_operator" => vec![template("note:///{x y}")],
            "templates" => (0..number("n")).map(|at| template(&format!("many:///{{+x}}/{at}/{{y}}"))).collect(),
            "mixed" => vec![template("file:///notes/{day}"), template("file:///{+path}")],
            "template_twice" => vec![template("note:///{x}"), template("note:///{x}")],
            "given" if !given::alone() => vec![template("note:///{+x}")],
            _ => vec![],
        })
    }

    fn read_resource(uri: String, _: Context) -> Result<ReadOutcome, Failure> {
        Ok(ReadOutcome::Text(if mode() == "template_file" { "a file".into() } else { uri }))
    }
}

impl Prompts for BadList {
    fn list_prompts() -> Result<Vec<Prompt>, Failure> {
        let prompt = |name: &str| Prompt { name: name.into(), description: None, arguments: vec![], more: None };
        let argument = |name: &str| wharf_sdk::PromptArgument { name: name.into(), description: None, required: false };
        Ok(match mode().as_str() {
            "prompt_no_name" => vec![prompt("")],
            "mixed" => vec![prompt(""), prompt("p q"), prompt("fine")],
            "prompt_twice" => vec![prompt("p"), prompt("p")],
            "prompt_argument_twice" => vec![Prompt { arguments: vec![argument("a"), argument("a")], ..prompt("p") }],
            "ansi" => {
                vec![Prompt { description: Some(DECEPTIVE.into()), arguments: vec![argument("a")], ..prompt("p") }]
            }
            _ => vec![],
        })
    }

    fn get_prompt(name: String, _: Vec<(String, String)>, _: Context) -> Result<PromptOutcome, Failure> {
        Ok(PromptOutcome::Text(name))
    }
}

wharf_sdk::bindings::tools::export_tools!(BadList with_types_in wharf_sdk::bindings::tools);
wharf_sdk::bindings::resources::export_resources!(BadList with_types_in wharf_sdk::bindings::resources);
wharf_sdk::bindings::prompts::export_prompts!(BadList with_types_in wharf_sdk::bindings::prompts);
