//! Tests that no text of a plugin reaches a client with deceptive or invisible characters in it, for each place where clients show such
//! texts.

use std::{path::Path, sync::Arc};

use serde_json::{Value, json};
use wharf_protocol::{Revision, encode::Encoder, model as mcp, model::ServerInfo, text::in_place};
use wharf_sandbox::{Listing, model as wit};

use super::{Paid, completion, failure_error, offer, prompt_result, prompt_text, question, tool_result};
use wharf_base::ledger::Account;
use wharf_config::config::{self, CommandLine, PluginConfig};

const BAD: &str = "a\u{1b}[2K\u{7}\u{202e}\u{2066}\u{200b}\u{e0041}\u{9b}\rb";

fn config() -> PluginConfig {
    let file = Path::new("/etc/wharf/wharf.toml");
    config::from_text("", Some(file), &CommandLine::default()).unwrap().dropped_in("p", "/p.wasm".into())
}

fn encoder() -> Encoder {
    Encoder::new(Revision::V2025_11_25, ServerInfo::default())
}

/// Returns the texts and keys of a value that contain deceptive or invisible characters.
fn hidden(value: &Value) -> Vec<String> {
    let is_bad = |text: &str| in_place(text).any(|(character, hidden)| hidden && character != '\n');
    match value {
        Value::String(text) => is_bad(text).then(|| text.clone()).into_iter().collect(),
        Value::Array(all) => all.iter().flat_map(hidden).collect(),
        Value::Object(members) => {
            let keys = members.keys().filter(|key| is_bad(key)).cloned();
            keys.chain(members.values().flat_map(hidden)).collect()
        }
        _ => Vec::new(),
    }
}

fn listing(change: impl FnOnce(&mut Listing)) -> Listing {
    let details = wit::ToolDetails {
        title: None,
        output_schema: None,
        hints: None,
        needs: wit::ClientCapabilities::empty(),
        task: wit::TaskSupport::Forbidden,
        more: None,
    };
    let mut listing = Listing {
        instructions: None,
        tools: vec![wit::Tool {
            name: "t".into(),
            description: "d".into(),
            input_schema: r#"{"type":"object"}"#.into(),
            details: Some(details),
        }],
        resources: vec![wit::ResourceEntry {
            uri: "n:///a".into(),
            name: "n".into(),
            description: None,
            mime_type: None,
            more: None,
        }],
        templates: vec![wit::ResourceTemplate {
            uri_template: "n:///{x}".into(),
            name: "n".into(),
            description: None,
            mime_type: None,
            more: None,
        }],
        prompts: vec![wit::Prompt {
            name: "p".into(),
            description: None,
            arguments: vec![wit::PromptArgument { name: "a".into(), description: None, required: false }],
            more: None,
        }],
    };
    change(&mut listing);
    listing
}

/// Returns the encoded lists that a client would get for a listing.
fn told(change: impl FnOnce(&mut Listing)) -> Result<Value, String> {
    let offered = offer(&config(), Arc::new(listing(change)), &Account::new(1 << 30))?;
    if !offered.odd.is_empty() {
        return Err(offered.odd.join("; "));
    }
    let encoder = encoder();
    let tools: Vec<Value> = offered.tools.iter().map(|one| encoder.tool(&one.published)).collect();
    let resources: Vec<Value> = offered.resources.iter().map(|one| encoder.resource(one)).collect();
    let templates: Vec<Value> = offered.templates.iter().map(|one| encoder.template(&one.published)).collect();
    let prompts: Vec<Value> = offered.prompts.iter().map(|one| encoder.prompt(&one.published)).collect();
    Ok(json!([tools, resources, templates, prompts]))
}

type Change = fn(&mut Listing);

fn details(listing: &mut Listing) -> &mut wit::ToolDetails {
    listing.tools[0].details.as_mut().unwrap()
}

fn schema(part: &Value) -> String {
    let mut schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    schema.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
    schema.to_string()
}

#[test]
fn prose_in_lists_is_cleaned() {
    let all: [(&str, Change); 21] = [
        ("tool description", |all| all.tools[0].description = BAD.into()),
        ("tool title", |all| details(all).title = Some(BAD.into())),
        ("tool meta", |all| details(all).more = Some(json!({ "_meta": { "x": [BAD] } }).to_string())),
        ("tool annotations", |all| details(all).more = Some(json!({ "annotations": { "title": BAD } }).to_string())),
        ("schema description", |all| all.tools[0].input_schema = schema(&json!({ "description": BAD, "title": BAD }))),
        ("argument description", |all| {
            let argument = json!({ "properties": { "a": { "description": BAD, "title": BAD, "enumNames": [BAD] } } });
            all.tools[0].input_schema = schema(&argument);
        }),
        ("choice title", |all| {
            let choices = json!({ "properties": { "a": { "oneOf": [{ "const": "x", "title": BAD }] } } });
            all.tools[0].input_schema = schema(&choices);
        }),
        ("output description", |all| details(all).output_schema = Some(schema(&json!({ "description": BAD })))),
        ("resource name", |all| all.resources[0].name = BAD.into()),
        ("resource description", |all| all.resources[0].description = Some(BAD.into())),
        ("resource type", |all| all.resources[0].mime_type = Some(BAD.into())),
        ("resource title", |all| all.resources[0].more = Some(json!({ "title": BAD }).to_string())),
        ("resource annotations", |all| {
            all.resources[0].more = Some(json!({ "annotations": { "x": BAD } }).to_string())
        }),
        ("template name", |all| all.templates[0].name = BAD.into()),
        ("template description", |all| all.templates[0].description = Some(BAD.into())),
        ("template type", |all| all.templates[0].mime_type = Some(BAD.into())),
        ("template title", |all| all.templates[0].more = Some(json!({ "title": BAD }).to_string())),
        ("prompt description", |all| all.prompts[0].description = Some(BAD.into())),
        ("prompt title", |all| all.prompts[0].more = Some(json!({ "title": BAD }).to_string())),
        ("argument of a prompt", |all| all.prompts[0].arguments[0].description = Some(BAD.into())),
        ("prompt meta", |all| all.prompts[0].more = Some(json!({ "_meta": { "a": { "b": BAD } } }).to_string())),
    ];
    for (place, change) in all {
        let told = told(change).unwrap_or_else(|error| panic!("{place}: {error}"));
        assert_eq!(hidden(&told), [""; 0], "{place}");
        assert!(told.to_string().contains("a[2Kb"), "{place}: {told}");
    }
}

#[test]
fn entries_with_such_names_are_left_out_rather_than_changed() {
    let all: [(&str, Change); 15] = [
        ("tool name", |all| all.tools[0].name = BAD.into()),
        ("prompt name", |all| all.prompts[0].name = BAD.into()),
        ("argument of a prompt", |all| all.prompts[0].arguments[0].name = BAD.into()),
        ("resource URI", |all| all.resources[0].uri = "n:///\u{202e}a".into()),
        ("template", |all| all.templates[0].uri_template = "n:///\u{200b}{x}".into()),
        ("icon", |all| {
            all.resources[0].more = Some(json!({ "icons": [{ "src": format!("data:image/png,{BAD}") }] }).to_string())
        }),
        ("key", |all| details(all).more = Some(json!({ "_meta": { BAD: 1 } }).to_string())),
        ("argument", |all| all.tools[0].input_schema = schema(&json!({ "properties": { BAD: {} } }))),
        ("choice", |all| all.tools[0].input_schema = schema(&json!({ "properties": { "a": { "enum": [BAD] } } }))),
        ("constant", |all| all.tools[0].input_schema = schema(&json!({ "properties": { "a": { "const": BAD } } }))),
        ("default", |all| all.tools[0].input_schema = schema(&json!({ "properties": { "a": { "default": BAD } } }))),
        ("example", |all| all.tools[0].input_schema = schema(&json!({ "properties": { "a": { "examples": [BAD] } } }))),
        ("keyword", |all| all.tools[0].input_schema = schema(&json!({ BAD: 1 }))),
        ("definition", |all| all.tools[0].input_schema = schema(&json!({ "$defs": { BAD: {} } }))),
        ("output choice", |all| {
            details(all).output_schema = Some(schema(&json!({ "properties": { "a": { "enum": [BAD] } } })));
        }),
    ];
    for (place, change) in all {
        let error = told(change).map(|told| panic!("{place}: {told}")).unwrap_err();
        assert_eq!(hidden(&json!(error)), [""; 0], "{place}");
        let says = error.contains("U+") || error.contains("letters, digits") || error.contains("absolute URI");
        assert!(says, "{place}: {error}");
    }
}

#[test]
fn questions_are_cleaned_or_refused() {
    let form = |schema: &Value| {
        let form = wit::Form { message: BAD.into(), schema: schema.to_string() };
        question("p", &wit::Question::Form(form), &Paid::in_test())
            .map(|question| encoder().question(&question).1.unwrap())
    };
    let field = |field: &Value| json!({ "type": "object", "properties": { "a": field } });
    for told in [
        form(&field(&json!({ "type": "string", "title": BAD, "description": BAD, "enumNames": [BAD], "enum": ["x"] }))),
        form(&field(&json!({ "type": "string", "oneOf": [{ "const": "x", "title": BAD }] }))),
        form(&field(&json!({ "type": "array", "items": { "anyOf": [{ "const": "x", "title": BAD }] } }))),
        question(
            "p",
            &wit::Question::Url(wit::Url { message: BAD.into(), url: "https://a.example/".into() }),
            &Paid::in_test(),
        )
        .map(|question| encoder().question(&question).1.unwrap()),
        question(
            "p",
            &wit::Question::Sampling(
                json!({
                    "maxTokens": 1, "systemPrompt": BAD,
                    "messages": [{ "role": "user", "content": { "type": "text", "text": BAD } }],
                })
                .to_string(),
            ),
            &Paid::in_test(),
        )
        .map(|question| encoder().question(&question).1.unwrap()),
    ] {
        let told = told.unwrap();
        assert_eq!(hidden(&told), [""; 0], "{told}");
        assert!(told.to_string().contains("a[2Kb"), "{told}");
    }
    for schema in [
        json!({ "type": "object", "properties": { BAD: { "type": "string" } } }),
        field(&json!({ "type": "string", "enum": [BAD] })),
        field(&json!({ "type": "string", "oneOf": [{ "const": BAD, "title": "x" }] })),
        field(&json!({ "type": "string", "default": BAD })),
        field(&json!({ "type": "array", "items": { "enum": [BAD] } })),
    ] {
        let error = form(&schema).unwrap_err();
        assert!(error.contains("the schema of its form") && hidden(&json!(error)).is_empty(), "{error}");
    }
}

#[test]
fn what_is_said_in_answers_is_cleaned_and_data_is_not() {
    let text = |text: &str| wit::Content::Text(text.into());
    let embedded = || {
        wit::Content::Embedded(wit::ResourceContents {
            uri: "n:///a".into(),
            mime_type: None,
            body: wit::Body::Text(BAD.into()),
            more: None,
        })
    };
    let prompt = |content| {
        let messages = vec![wit::Message { role: wit::Role::User, content }];
        let result =
            prompt_result(wit::PromptResult { description: Some(BAD.into()), messages, more: None }, &Paid::in_test());
        encoder().prompt_result(result.unwrap()).parse::<Value>().unwrap()
    };
    let link = wit::Content::Link(wit::ResourceLink {
        uri: "n:///a".into(),
        name: BAD.into(),
        mime_type: Some(BAD.into()),
        more: Some(json!({ "description": BAD }).to_string()),
    });
    let raw = wit::Content::Raw(json!({ "type": "text", "text": BAD }).to_string());
    for content in [text(BAD), link, raw] {
        let told = prompt(content);
        assert_eq!(hidden(&told), [""; 0], "{told}");
    }
    let short = prompt_text(BAD.into(), None).unwrap();
    assert!(matches!(&*short.messages[0].content, mcp::Content::Text(text) if text == "a[2Kb"));
    // The contents of a resource are data, which wharf must not change, even inside a prompt or a tool result.
    assert_eq!(hidden(&prompt(embedded())), [BAD]);
    let result = wit::ToolResult {
        content: vec![text(BAD), embedded()],
        structured: Some(json!({ "a": BAD }).to_string()),
        is_error: false,
        more: None,
    };
    let told: Value = encoder().tool_result(tool_result(result, &Paid::in_test()).unwrap()).parse().unwrap();
    assert_eq!(hidden(&told), [BAD; 3]);
    let suggested = completion(wit::Completion { values: vec![BAD.into(), "b".into()], total: None, has_more: false });
    assert_eq!(suggested.values.iter().map(ToString::to_string).collect::<Vec<_>>(), ["b"]);
    let failure = wit::Failure {
        kind: wit::FailureKind::Other(7),
        message: BAD.into(),
        data: Some(json!({ BAD: [BAD] }).to_string()),
    };
    let told = failure_error(&failure, &Paid::in_test()).unwrap().to_value(Revision::V2025_11_25);
    assert_eq!(hidden(&told), [""; 0], "{told}");
}
