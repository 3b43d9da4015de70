//! The mode `given`: a single valid tool, described by the config, whose arguments decide what it does.
//!
//! Config: `schema`, `output`, `more` (JSON texts), `task` (`optional`, `required`), `before` (ask before the task), `sampling`
//! (the client must have it), `alone` (no template `note:///{+x}`, which only one plugin can have). Arguments, all
//! optional and in this order: `updated` (a resource, or as many as `times` says below it), `levels` (a log record of each
//! level), `steps` (progress and a log record each) with `ms` to wait after each, `spin`, `ask` with `state`, `again` (asks the
//! same as often), `who` (the id of the caller), `refuse` (a code of JSON-RPC), `fail`, `answer`, `bytes` (a text of that length), `text`.

use wharf_sdk::{
    ClientCapabilities, Context, Failure, FailureKind, Form, Level, Question, Round, TaskSupport, Tool, ToolDetails,
    ToolOutcome, host,
    serde_json::{self, Value},
};

const LEVELS: [(Level, &str); 8] = [
    (Level::Debug, "debug"),
    (Level::Info, "info"),
    (Level::Notice, "notice"),
    (Level::Warning, "warning"),
    (Level::Error, "error"),
    (Level::Critical, "critical"),
    (Level::Alert, "alert"),
    (Level::Emergency, "emergency"),
];

/// Makes wharf ask before a task begins.
const BEFORE: &str = r#"{"_meta":{"dev.wharf/ask-before-task":true}}"#;

fn config() -> Value {
    serde_json::from_str(&host::config()).unwrap_or_default()
}

pub fn alone() -> bool {
    config().get("alone").and_then(Value::as_bool).unwrap_or_default()
}

pub fn tools() -> Vec<Tool> {
    let config = config();
    let text = |key: &str| config.get(key).and_then(Value::as_str).map(str::to_owned);
    let flag = |key: &str| config.get(key).and_then(Value::as_bool).unwrap_or_default();
    let details = ToolDetails {
        title: None,
        output_schema: text("output"),
        hints: None,
        needs: if flag("sampling") { ClientCapabilities::SAMPLING } else { ClientCapabilities::empty() },
        task: match text("task").as_deref() {
            Some("optional") => TaskSupport::Optional,
            Some("required") => TaskSupport::Required,
            _ => TaskSupport::Forbidden,
        },
        more: if flag("before") { Some(BEFORE.into()) } else { text("more") },
    };
    vec![Tool {
        name: "t".into(),
        description: "Does what it is told.".into(),
        input_schema: text("schema").unwrap_or_else(|| super::OPEN.into()),
        details: Some(details),
    }]
}

pub fn call(args: &str, context: &Context) -> Result<ToolOutcome, Failure> {
    let args: Value = serde_json::from_str(args).unwrap_or_default();
    let text = |key: &str| args.get(key).and_then(Value::as_str);
    let number = |key: &str| args.get(key).and_then(Value::as_u64);
    let flag = |key: &str| args.get(key).and_then(Value::as_bool).unwrap_or_default();
    if let Some(uri) = text("updated") {
        match number("times") {
            Some(times) => (0..times).for_each(|at| host::resource_updated(&format!("{uri}/{at}"))),
            None => host::resource_updated(uri),
        }
    }
    if flag("levels") {
        for (level, name) in LEVELS {
            host::log(level, name, None);
        }
    }
    let wait = std::time::Duration::from_millis(number("ms").unwrap_or_default());
    let steps = number("steps").unwrap_or_default();
    for step in 1..=steps {
        host::progress(step as f64, None, Some("on"));
        host::log(Level::Info, &format!("step {step}"), None);
        std::thread::sleep(wait);
    }
    if steps == 0 {
        std::thread::sleep(wait);
    }
    while flag("spin") {
        std::hint::black_box(0);
    }
    for round in args.get("ask").and_then(Value::as_array).into_iter().flatten() {
        let keys = round.as_array().into_iter().flatten().filter_map(Value::as_str);
        let open: Vec<(String, Question)> = keys
            .filter(|key| context.answers.iter().all(|(answered, _)| answered != key))
            .map(|key| (key.to_owned(), form(key)))
            .collect();
        if !open.is_empty() {
            return Ok(ToolOutcome::Ask(Round { questions: open, state: text("state").map(|state| state.into()) }));
        }
    }
    if let Some(again) = number("again") {
        let asked = context.state.as_ref().map_or(0, Vec::len);
        if u64::try_from(asked).unwrap_or_default() < again {
            let state = Some(vec![0; asked + 1]);
            return Ok(ToolOutcome::Ask(Round { questions: vec![("again".into(), form("again"))], state }));
        }
        return Ok(ToolOutcome::Text(format!("asked {asked} times")));
    }
    if flag("who") {
        return Ok(ToolOutcome::Text(context.caller.clone().unwrap_or_else(|| "nobody".into())));
    }
    if let Some(code) = args.get("refuse").and_then(Value::as_i64) {
        let kind = match code {
            -32602 => FailureKind::InvalidParams,
            -32002 => FailureKind::NotFound,
            code => FailureKind::Other(i32::try_from(code).unwrap_or_default()),
        };
        return Err(Failure { kind, message: "refused".into(), data: None });
    }
    if let Some(message) = text("fail") {
        return Err(Failure { kind: FailureKind::Failed, message: message.into(), data: None });
    }
    if let Some(answer) = args.get("answer") {
        return Ok(ToolOutcome::Structured(answer.to_string()));
    }
    if let Some(bytes) = number("bytes") {
        return Ok(ToolOutcome::Text("x".repeat(usize::try_from(bytes).unwrap_or_default())));
    }
    let answered: Vec<&str> = context.answers.iter().map(|(key, _)| key.as_str()).collect();
    Ok(ToolOutcome::Text(text("text").map_or_else(|| answered.join(" "), str::to_owned)))
}

fn form(key: &str) -> Question {
    let schema = r#"{"type":"object","properties":{"v":{"type":"string"}},"required":["v"]}"#;
    Question::Form(Form { message: format!("{key}?"), schema: schema.into() })
}
