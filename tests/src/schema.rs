//! The definition of the official schemas that each message must match.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};
pub use wharf_testing::schema::{check, problem};

fn result_definition(method: &str) -> Option<&'static str> {
    Some(match method {
        "initialize" => "InitializeResult",
        "server/discover" => "DiscoverResult",
        "tools/list" => "ListToolsResult",
        "tools/call" => "CallToolResult",
        "resources/list" => "ListResourcesResult",
        "resources/templates/list" => "ListResourceTemplatesResult",
        "resources/read" => "ReadResourceResult",
        "prompts/list" => "ListPromptsResult",
        "prompts/get" => "GetPromptResult",
        "completion/complete" => "CompleteResult",
        "subscriptions/listen" => "SubscriptionsListenResult",
        "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => "EmptyResult",
        "tasks/get" => "GetTaskResult",
        "tasks/result" => "GetTaskPayloadResult",
        "tasks/list" => "ListTasksResult",
        "tasks/cancel" => "CancelTaskResult",
        _ => return None,
    })
}

/// The definitions of the tasks extension, which is not in the official schemas, from its specification: `CreateTaskResult` without members
/// that only `tasks/get` has, and the task of `tasks/get` and `notifications/tasks`, whose members depend on the status.
static TASK: LazyLock<[Validator; 2]> = LazyLock::new(|| {
    let none = |names: &[&str]| -> Value { names.iter().map(|name| json!({ "required": [name] })).collect() };
    let only = |status: &str, member: &str| {
        json!({ "if": { "properties": { "status": { "const": status } } }, "then": { "required": [member] },
            "else": { "not": { "required": [member] } } })
    };
    let fields = json!({
        "taskId": { "type": "string", "minLength": 1 },
        "status": { "enum": ["working", "input_required", "completed", "failed", "cancelled"] },
        "statusMessage": { "type": "string" },
        "createdAt": { "type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2})$" },
        "lastUpdatedAt": { "type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2})$" },
        "ttlMs": { "type": ["integer", "null"], "minimum": 1 },
        "pollIntervalMs": { "type": "integer", "minimum": 1 },
        "inputRequests": { "type": "object", "minProperties": 1, "additionalProperties": {
            "type": "object", "required": ["method", "params"],
            "not": { "anyOf": [{ "required": ["id"] }, { "required": ["jsonrpc"] }] } } },
        "result": { "type": "object" },
        "error": { "type": "object", "required": ["code", "message"],
            "properties": { "code": { "type": "integer" }, "message": { "type": "string" } } },
    });
    let foreign = ["task", "ttl", "pollInterval", "requestState", "content"];
    let made = json!({ "type": "object", "properties": fields, "required": ["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"],
        "not": { "anyOf": none(&[&foreign[..], &["result", "error", "inputRequests"]].concat()) } });
    let detailed = json!({ "type": "object", "properties": fields, "required": made["required"],
        "not": { "anyOf": none(&foreign) },
        "allOf": [only("completed", "result"), only("failed", "error"), only("input_required", "inputRequests")] });
    [made, detailed].map(|schema| jsonschema::validator_for(&schema).unwrap())
});

/// Returns the problems of a task of the extension.
fn task_problem(detailed: bool, task: &Value) -> Option<String> {
    let problems: Vec<String> = TASK[usize::from(detailed)].iter_errors(task).map(|error| error.to_string()).collect();
    (!problems.is_empty()).then(|| format!("not a task of the extension: {}\n{task}", problems.join("; ")))
}

/// Returns the problems of a response to a request of this method; without a method, it must be an error.
pub fn response_problem(revision: &str, method: Option<&str>, response: &Value) -> Option<String> {
    let modern = revision == crate::MODERN;
    let unlike = |problem: &str| Some(format!("{problem} ({revision}): {response}"));
    if let Some(error) = response.get("error") {
        // The schemas before 2025-11-25 have no errors without an id, and no schema has errors with a null id.
        let of = if response.get("id").is_none() && revision < "2025-11-25" { "2025-11-25" } else { revision };
        let definition = match error["code"].as_i64() {
            Some(-32020) if modern => "HeaderMismatchError",
            Some(-32021) if modern => "MissingRequiredClientCapabilityError",
            Some(-32022) if modern => "UnsupportedProtocolVersionError",
            _ => "JSONRPCMessage",
        };
        if response.get("result").is_some() {
            return unlike("both a result and an error");
        }
        return problem(of, "JSONRPCMessage", response).or_else(|| problem(of, definition, response));
    }
    let Some(method) = method else { return unlike("nobody asked for this result") };
    let result = &response["result"];
    match (modern, result.get("resultType")) {
        (true, Some(Value::String(_))) | (false, None) => {}
        (true, _) => return unlike("a modern result without resultType"),
        (false, Some(_)) => return unlike("a legacy result with resultType"),
    }
    let asks = modern && result["resultType"] == "input_required";
    let task_problem = match (method, result["resultType"].as_str()) {
        ("tools/call", Some("task")) => task_problem(false, result),
        ("tasks/get", Some("complete")) => task_problem(true, result),
        (_, Some("complete")) => None,
        ("tools/call" | "prompts/get" | "resources/read", Some("input_required")) => None,
        (_, Some(_)) => return unlike("no such resultType for this method"),
        (_, None) => None,
    };
    let definition = match method {
        "tools/call" | "prompts/get" | "resources/read" if asks => Some("InputRequiredResult"),
        "tools/call" if modern && result["resultType"] == "task" => None,
        "tools/call" if result.get("task").is_some() => Some("CreateTaskResult"),
        _ if modern && method.starts_with("tasks/") => None,
        _ => result_definition(method),
    };
    task_problem
        .or_else(|| problem(revision, "JSONRPCMessage", response))
        .or_else(|| definition.and_then(|definition| problem(revision, definition, result)))
}

/// Fails the test if a response violates the schema.
pub fn check_response(revision: &str, method: Option<&str>, response: &Value) {
    if let Some(problem) = response_problem(revision, method, response) {
        panic!("{problem}");
    }
}

/// Validates a notification of the server.
pub fn check_notification(revision: &str, notification: &Value) {
    check(revision, "JSONRPCMessage", notification);
    if revision == crate::MODERN && notification["method"] == "notifications/tasks" {
        return assert_eq!(task_problem(true, &notification["params"]), None);
    }
    check(revision, "ServerNotification", notification);
}

/// Validates a request of the server, which only legacy revisions have.
pub fn check_request(revision: &str, request: &Value) {
    assert_ne!(revision, crate::MODERN, "modern servers send no requests: {request}");
    check(revision, "JSONRPCMessage", request);
    check(revision, "ServerRequest", request);
}

/// Whether a notification itself shows that it belongs to the modern era.
pub fn is_tagged(notification: &Value) -> bool {
    notification["method"] == "notifications/subscriptions/acknowledged"
        || notification["params"]["_meta"].get(crate::SUBSCRIPTION_KEY).is_some()
}
