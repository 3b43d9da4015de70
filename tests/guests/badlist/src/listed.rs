//! The mode `listed`: the tools of another server, as its `tools/list` gave them. Config: `tools`, the JSON text of that list.
//! A call answers with its arguments.

use wharf_sdk::{
    Hints, Tool, ToolDetails, host,
    serde_json::{self, Value},
};

pub fn tools() -> Vec<Tool> {
    let config: Value = serde_json::from_str(&host::config()).unwrap_or_default();
    let text = config.get("tools").and_then(Value::as_str).unwrap_or_default();
    serde_json::from_str::<Vec<Value>>(text).unwrap_or_default().iter().map(tool).collect()
}

fn tool(listed: &Value) -> Tool {
    let text = |key: &str| listed.get(key).and_then(Value::as_str).map(str::to_owned);
    let schema = |key: &str| listed.get(key).map(Value::to_string);
    let hints = listed.get("annotations");
    let hint = |key: &str| hints.and_then(|hints| hints.get(key)).and_then(Value::as_bool);
    let older = || Some(hints?.get("title")?.as_str()?.to_owned());
    let details = ToolDetails {
        title: text("title").or_else(older),
        output_schema: schema("outputSchema"),
        hints: Some(Hints {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        }),
        ..super::details()
    };
    Tool {
        name: text("name").unwrap_or_default(),
        description: text("description").unwrap_or_default(),
        input_schema: schema("inputSchema").unwrap_or_default(),
        details: Some(details),
    }
}
