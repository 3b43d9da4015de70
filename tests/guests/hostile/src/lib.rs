//! Does everything that a guest should not do, with one tool for each kind of misbehaviour. Raw WASI calls are in `raw`.
//!
//! Implements the traits directly, because the macros would prevent invalid answers.

#![allow(clippy::disallowed_methods, reason = "a guest for tests sleeps and ends as it likes; no test does")]
#![expect(clippy::indexing_slicing, clippy::panic, reason = "a guest for tests may crash; the host must not mind")]
#![expect(clippy::print_stdout, reason = "the sandbox catches what a guest prints")]

mod raw;

use std::hint::black_box;

use wharf_sdk::{
    Content, Context, Failure, FailureKind, Form, Kind, Level, Question, Round, TaskSupport, Tool, ToolDetails,
    ToolOutcome, ToolResult, Tools, host,
    serde_json::{self, Value, json},
};

struct Hostile;

/// Every tool, all with the same open schema.
const NAMES: &[&str] = &[
    "ok",
    "spin",
    "sleep",
    "allocate",
    "open_many",
    "sockets",
    "connect",
    "http_get",
    "fields",
    "random",
    "recurse",
    "trap",
    "panic",
    "print",
    "big",
    "exit",
    "flood_log",
    "flood_progress",
    "flood_list_changed",
    "flood_updated",
    "ask_forever",
    "ask_many",
    "ask_state",
    "ask_odd",
    "bad_structured",
    "bad_content",
    "bad_more",
    "structured_array",
    "raw_array",
    "more_array",
    "data_array",
    "blocks",
    "ansi",
    "fail_ansi",
    "fail_code",
    "read_after",
    "args",
    "remember",
    "methods",
    "authorities",
    "bodies",
    "clones",
    "listings",
    "write_wide",
    "streams",
    "touch",
    "fill",
    "identities",
];

impl Tools for Hostile {
    fn list_tools() -> Result<Vec<Tool>, Failure> {
        // If a folder is open to it, a file there says whether its lists ever end.
        while std::path::Path::new("/flag/spin").exists() {
            black_box(0_u64);
        }
        let plain = |name: &&str| Tool {
            name: (*name).to_owned(),
            description: format!("Tries {name}."),
            input_schema: r#"{"type":"object"}"#.into(),
            details: None,
        };
        let mut tools: Vec<Tool> = NAMES.iter().map(plain).collect();
        let doubling: String = (0..8)
            .map(|at| {
                format!(r##""d{at}":{{"allOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}},"##, at + 1)
            })
            .collect();
        for (name, output) in [
            ("unique", r#"{"type":"object","properties":{"all":{"type":"array","uniqueItems":true}}}"#.to_owned()),
            (
                "costly",
                format!(
                    r##"{{"type":"object","properties":{{"all":{{"type":"array","items":{{"$ref":"#/$defs/d0"}}}}}},"$defs":{{{doubling}"d8":{{"type":["object","array","integer","string"]}}}}}}"##
                ),
            ),
        ] {
            let details = ToolDetails {
                title: None,
                output_schema: Some(output),
                hints: None,
                needs: wharf_sdk::ClientCapabilities::empty(),
                task: TaskSupport::Forbidden,
                more: None,
            };
            let mut tool = plain(&name);
            tool.details = Some(details);
            tools.push(tool);
        }
        Ok(tools)
    }

    fn call_tool(name: String, args: String, context: Context) -> Result<ToolOutcome, Failure> {
        let args: Value = serde_json::from_str(&args).unwrap_or_default();
        let number = |key: &str| args.get(key).and_then(Value::as_u64).unwrap_or_default();
        let text = |key: &str| args.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        match name.as_str() {
            "ok" => said("fine"),
            "spin" => loop {
                black_box(0_u64);
            },
            "sleep" => {
                std::thread::sleep(std::time::Duration::from_millis(number("ms")));
                said("slept")
            }
            "allocate" => {
                let mut held = Vec::new();
                for mib in 0..number("mib") {
                    held.push(vec![u8::try_from(mib % 251).unwrap_or_default(); 1 << 20]);
                    black_box(&held);
                }
                said(format!("holds {} MiB", held.len()))
            }
            "open_many" => open_many(number("n"), &text("path"), number("ms")),
            "sockets" => {
                let made = raw::sockets(number("n"));
                let count = made.len();
                std::thread::sleep(std::time::Duration::from_millis(number("ms")));
                drop(made);
                said(format!("{count}"))
            }
            "connect" => said(raw::connect(&text("address"))),
            "http_get" => said(raw::http_get(&text("authority"))),
            "fields" => said(raw::fields(number("n"), number("bytes"), number("ms"))),
            "random" => said(raw::random(number("bytes"))),
            "recurse" => said(recurse(0).to_string()),
            "trap" => raw::trap(),
            "panic" => panic!("{}", text("message")),
            "print" => print(number("bytes")),
            "big" => said("x".repeat(size(number("bytes")))),
            "exit" => std::process::exit(i32::try_from(number("code")).unwrap_or(1)),
            "flood_log" => {
                let message = "l".repeat(size(number("bytes")));
                for _ in 0..number("n") {
                    host::log(Level::Error, &message, None);
                }
                said("logged")
            }
            "flood_progress" => {
                for at in 0..number("n") {
                    host::progress(at as f64, None, Some("on"));
                }
                said("progressed")
            }
            "flood_list_changed" => {
                for _ in 0..number("n") {
                    host::list_changed(Kind::Tools);
                    host::list_changed(Kind::Prompts);
                }
                said("announced")
            }
            "flood_updated" => {
                for at in 0..number("n") {
                    host::resource_updated(&format!("note:///{at}"));
                }
                said("updated")
            }
            "ask_forever" => {
                Ok(ToolOutcome::Ask(Round { questions: vec![("again".into(), form("Again?"))], state: context.state }))
            }
            "ask_many" => Ok(ToolOutcome::Ask(Round {
                questions: (0..number("n")).map(|at| (format!("q{at}"), form("Many?"))).collect(),
                state: None,
            })),
            "ask_state" => Ok(ToolOutcome::Ask(Round {
                questions: vec![("one".into(), form("State?"))],
                state: Some(vec![0; size(number("bytes"))]),
            })),
            "ask_odd" => Ok(ToolOutcome::Ask(Round {
                questions: vec![(
                    text("key"),
                    Question::Form(Form { message: text("message"), schema: text("schema") }),
                )],
                state: None,
            })),
            "bad_structured" => Ok(ToolOutcome::Structured("nonsense".into())),
            "bad_content" => done(vec![Content::Raw(text("raw"))], None, None),
            "bad_more" => done(vec![Content::Text("x".into())], None, Some(text("more"))),
            "structured_array" => {
                Ok(ToolOutcome::Structured(format!("{{\"all\":[{}]}}", repeated(&text("item"), number("n")))))
            }
            "raw_array" => {
                let all = repeated(&text("item"), number("n"));
                done(vec![Content::Raw(format!("{{\"type\":\"text\",\"text\":\"x\",\"all\":[{all}]}}"))], None, None)
            }
            "more_array" => {
                let all = repeated(&text("item"), number("n"));
                done(vec![Content::Text("x".into())], None, Some(format!("{{\"_meta\":{{\"a.b/all\":[{all}]}}}}")))
            }
            "data_array" => Err(Failure {
                kind: FailureKind::InvalidParams,
                message: "it has data".into(),
                data: Some(format!("[{}]", repeated(&text("item"), number("n")))),
            }),
            "unique" | "costly" => {
                Ok(ToolOutcome::Structured(format!("{{\"all\":[{}]}}", numbered(&text("item"), number("n")))))
            }
            "blocks" => done(vec![Content::Text(String::new()); size(number("n"))], None, None),
            "ansi" => said(DECEPTIVE),
            "fail_ansi" => Err(Failure { kind: FailureKind::Failed, message: DECEPTIVE.into(), data: None }),
            "fail_code" => Err(Failure {
                kind: FailureKind::Other(i32::try_from(number("code")).map_or(0, |code| -code)),
                message: DECEPTIVE.into(),
                data: Some("nonsense".into()),
            }),
            "read_after" => read_after(&text("path"), number("ms")),
            "methods" => said(raw::methods(number("n"), number("bytes"))),
            "authorities" => said(raw::authorities(number("n"), number("bytes"))),
            "bodies" => said(raw::bodies(number("n"), number("ms"))),
            "clones" => said(raw::clones(number("n"), number("bytes"))),
            "listings" => listings(number("n"), &text("path"), number("ms")),
            "write_wide" => said(raw::write_wide(number("bytes"))),
            "streams" => streams(number("n"), &text("path"), number("ms")),
            "fill" => {
                let piece = vec![1_u8; 1 << 20];
                let mut file = std::fs::File::create(text("path"));
                let mut write = || std::io::Write::write_all(file.as_mut().ok()?, &piece).ok();
                said(if (0..number("mib")).all(|_| write().is_some()) { "written" } else { "not written" })
            }
            "touch" => said(raw::touch(&text("path"))),
            "identities" => said(raw::identities(&text("path"))),
            "args" => {
                said(format!("{:?} {:?}", std::env::args().collect::<Vec<_>>(), std::env::vars().collect::<Vec<_>>()))
            }
            "remember" => {
                // State that the instance retains between calls: the number of calls, memory that it never frees, files that it never
                // closes.
                let mut kept = KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                kept.calls += 1;
                kept.memory.push(vec![1; size(number("bytes"))]);
                for _ in 0..number("files") {
                    kept.files.extend(std::fs::File::open(text("path")));
                }
                println!("call {}", kept.calls);
                if number("ms") > 0 {
                    host::log(Level::Error, "began", None);
                    std::thread::sleep(std::time::Duration::from_millis(number("ms")));
                }
                if args.get("fail").is_some() {
                    return Err(Failure { kind: FailureKind::Failed, message: "as told".into(), data: None });
                }
                said(format!("{} {}", kept.calls, kept.files.len()))
            }
            other => Err(Failure { kind: FailureKind::InvalidParams, message: format!("no tool {other}"), data: None }),
        }
    }
}

struct Kept {
    calls: u64,
    memory: Vec<Vec<u8>>,
    files: Vec<std::fs::File>,
}

static KEPT: std::sync::Mutex<Kept> = std::sync::Mutex::new(Kept { calls: 0, memory: Vec::new(), files: Vec::new() });

/// Contains terminal colours, bidirectional marks, a bell and a line break.
const DECEPTIVE: &str = "\u{1b}[31mred\u{1b}]0;title\u{7}\u{202e}turned\r\nnext\u{9b}x\u{7f}";

fn said(text: impl Into<String>) -> Result<ToolOutcome, Failure> {
    Ok(ToolOutcome::Text(text.into()))
}

fn done(content: Vec<Content>, structured: Option<String>, more: Option<String>) -> Result<ToolOutcome, Failure> {
    Ok(ToolOutcome::Done(ToolResult { content, structured, is_error: false, more }))
}

fn form(message: &str) -> Question {
    let schema = json!({ "type": "object", "properties": { "sure": { "type": "boolean" } } });
    Question::Form(Form { message: message.into(), schema: schema.to_string() })
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn repeated(item: &str, n: u64) -> String {
    let mut text = String::new();
    for at in 0..n {
        if at > 0 {
            text.push(',');
        }
        text.push_str(item);
    }
    text
}

/// The item `n` times, each `#` in it replaced by its number.
fn numbered(item: &str, n: u64) -> String {
    let mut text = String::new();
    for at in 0..n {
        if at > 0 {
            text.push(',');
        }
        text.push_str(&item.replace('#', &at.to_string()));
    }
    text
}

fn recurse(depth: u64) -> u64 {
    let room = black_box([depth; 64]);
    if depth == u64::MAX { 0 } else { recurse(depth + 1) + room[0] }
}

fn open_many(n: u64, path: &str, ms: u64) -> Result<ToolOutcome, Failure> {
    let mut open = Vec::new();
    let mut problem = String::new();
    for _ in 0..n {
        match std::fs::File::open(path) {
            Ok(file) => open.push(file),
            Err(error) => {
                problem = error.to_string();
                break;
            }
        }
    }
    std::thread::sleep(std::time::Duration::from_millis(ms));
    said(format!("{} {problem}", open.len()))
}

/// Reads the first entries of a folder as many times as requested, and keeps all of the streams open.
fn listings(n: u64, path: &str, ms: u64) -> Result<ToolOutcome, Failure> {
    let mut open = Vec::new();
    let mut seen = 0;
    for _ in 0..n {
        let Ok(mut entries) = std::fs::read_dir(path) else { break };
        seen += entries.by_ref().take(3).count();
        open.push(entries);
    }
    std::thread::sleep(std::time::Duration::from_millis(ms));
    said(format!("{} open, {seen} entries", open.len()))
}

/// Opens a file as many times as requested, reads a little of each, and keeps all of them open.
fn streams(n: u64, path: &str, ms: u64) -> Result<ToolOutcome, Failure> {
    use std::io::Read;
    let mut open = Vec::new();
    let mut problem = String::new();
    for _ in 0..n {
        let read = std::fs::File::open(path).and_then(|mut file| {
            let mut byte = [0];
            file.read_exact(&mut byte)?;
            Ok(file)
        });
        match read {
            Ok(file) => open.push(file),
            Err(error) => {
                problem = error.to_string();
                break;
            }
        }
    }
    std::thread::sleep(std::time::Duration::from_millis(ms));
    said(format!("{} {problem}", open.len()))
}

fn print(bytes: u64) -> Result<ToolOutcome, Failure> {
    use std::io::Write;
    let chunk = [b'p'; 64 * 1024];
    let mut left = size(bytes);
    let mut out = std::io::stdout();
    while left > 0 {
        let part = left.min(chunk.len());
        if let Err(error) = out.write_all(&chunk[..part]) {
            return said(format!("stopped: {error}"));
        }
        left -= part;
    }
    said("printed")
}

/// Opens a directory, waits, then reads: to hold the directory open during a change.
fn read_after(path: &str, ms: u64) -> Result<ToolOutcome, Failure> {
    std::thread::sleep(std::time::Duration::from_millis(ms));
    match std::fs::read_to_string(path) {
        Ok(text) => said(text),
        Err(error) => said(format!("error: {error}")),
    }
}

wharf_sdk::bindings::tools::export_tools!(Hostile with_types_in wharf_sdk::bindings::tools);
