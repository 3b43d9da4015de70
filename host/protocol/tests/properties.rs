//! Properties of generated messages: parsing never panics, serialized messages are read back unchanged, and everything that a plugin offers
//! is valid in every revision according to its official schema.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::SystemTime;

use proptest::{collection, option, prelude::*};
use serde_json::{Value, json};
use wharf_protocol::{
    Frame, Id, Message, Object, Revision, RpcError, Shown,
    encode::Encoder,
    header,
    message::{error_text, notification_text, request_text, result_text},
    meta::RequestMeta,
    model::*,
    params,
    task::{Detail, Task, TaskStatus},
};
use wharf_testing::schema;

fn encoders() -> [Encoder; 5] {
    let server =
        ServerInfo { name: "wharf".into(), title: Some("wharf".into()), version: "1".into(), ..ServerInfo::default() };
    Revision::ALL.map(|revision| Encoder::new(revision, server.clone()))
}

/// Validates the JSON of a result, or of a part of one, with a definition that every revision has.
fn fits(encoder: &Encoder, definition: &str, text: &str) {
    schema::check(encoder.revision.as_str(), definition, &serde_json::from_str(text).unwrap());
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn id() -> impl Strategy<Value = Id> {
    prop_oneof![any::<i64>().prop_map(Id::number), any::<String>().prop_map(|text| Id::string(&text))]
}

fn uri() -> impl Strategy<Value = String> {
    "[a-z]{1,8}:///[a-z0-9/]{0,20}"
}

/// Members that every revision or only the newest ones have.
fn more() -> impl Strategy<Value = Object> {
    let annotations = json!({ "audience": ["user"], "priority": 0.5, "lastModified": "2026-01-01T00:00:00Z" });
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(move |(meta, icons, annotated)| {
        let mut more = Object::new();
        if meta {
            more.insert("_meta".into(), json!({ "dev.example/x": 1 }));
        }
        if icons {
            more.insert("icons".into(), json!([{ "src": "https://example.com/i.png", "sizes": ["any"] }]));
        }
        if annotated {
            more.insert("annotations".into(), annotations.clone());
        }
        more
    })
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![any::<String>().prop_map(Body::Text), any::<Vec<u8>>().prop_map(Body::Bytes)]
}

fn contents() -> impl Strategy<Value = ResourceContents> {
    (uri(), option::of("[a-z]{1,5}/[a-z]{1,5}"), body()).prop_map(|(uri, mime_type, body)| ResourceContents {
        uri,
        mime_type,
        body,
        more: Object::new(),
    })
}

fn content() -> impl Strategy<Value = Content> {
    let media = ("[a-z]{1,5}/[a-z]{1,5}", any::<Vec<u8>>());
    prop_oneof![
        any::<String>().prop_map(Content::Text),
        media.clone().prop_map(|(mime_type, data)| Content::Image { mime_type, data }),
        media.prop_map(|(mime_type, data)| Content::Audio { mime_type, data }),
        (uri(), any::<String>(), more())
            .prop_map(|(uri, name, more)| { Content::Link(ResourceLink { uri, name, mime_type: None, more }) }),
        contents().prop_map(Content::Embedded),
        any::<String>().prop_map(|text| {
            let block = json!({ "type": "text", "text": text, "annotations": { "priority": 1.0 }, "_meta": {} });
            Content::Raw(block.as_object().cloned().unwrap_or_default())
        }),
        uri().prop_map(|uri| {
            let block = json!({ "type": "resource_link", "uri": uri, "name": "n" });
            Content::Raw(block.as_object().cloned().unwrap_or_default())
        }),
    ]
}

fn raw(value: &Value) -> Shown<Box<serde_json::value::RawValue>> {
    Shown::schema_text(&value.to_string()).unwrap()
}

fn tool() -> impl Strategy<Value = Tool> {
    let output = prop_oneof![
        Just(None),
        Just(Some(json!({ "type": "object", "properties": { "x": { "type": "number" } } }))),
        Just(Some(json!({ "type": "array" }))),
    ];
    let task = prop_oneof![Just(TaskSupport::Forbidden), Just(TaskSupport::Optional), Just(TaskSupport::Required)];
    ("[A-Za-z0-9_.-]{1,128}", option::of(any::<String>()), any::<String>(), output, any::<bool>(), task, more())
        .prop_map(|(name, title, description, output, hints, task, mut more)| {
            more.remove("annotations");
            Tool {
                name,
                title: title.map(Shown::from),
                description: description.into(),
                input_schema: raw(&json!({ "type": "object", "additionalProperties": false })),
                output_schema: output.as_ref().map(raw),
                annotations: hints.then(|| json!({ "readOnlyHint": true }).as_object().cloned().unwrap_or_default()),
                task,
                more: Shown::members(more).unwrap(),
            }
        })
}

proptest! {
    #[test]
    fn parsing_never_panics(bytes in any::<Vec<u8>>()) {
        let _ = Frame::parse(&*bytes);
        let _ = header::decode_value(&bytes);
    }

    #[test]
    fn reading_parameters_never_panics(value in json_value(), key in any::<String>()) {
        for value in [value.clone(), json!({ "_meta": value, "name": value, key.as_str(): value, "uri": value })] {
            let _ = header::mirrored(&value);
            let _ = Frame::parse(value.to_string().as_bytes());
            let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "m", "params": value });
            let Ok(Frame::One(Message::Request(request))) = Frame::parse(request.to_string().as_bytes()) else { continue };
            let params = request.params.as_ref();
            let _ = RequestMeta::read(params).map(|meta| meta.modern_claim().is_ok());
            let _ = params::read::<params::CallTool>(params);
            let _ = params::read::<params::Complete>(params);
            let _ = params::read::<params::Listen>(params);
            let _ = params::read::<params::UpdateTask>(params);
        }
    }

    #[test]
    fn what_is_written_is_read_back(
        id in id(),
        method in "[a-z/]{1,30}",
        params in option::of(collection::vec((any::<String>(), json_value()), 0..4)),
        result in json_value(),
        code in any::<i32>(),
        message in any::<String>(),
    ) {
        let params = params.map(|members| Value::Object(members.into_iter().collect()));
        match Frame::parse(request_text(&id, &method, params.as_ref()).as_bytes()) {
            Ok(Frame::One(Message::Request(read))) => {
                prop_assert_eq!(&read.id, &id);
                prop_assert_eq!(&read.method, &method);
                let members: Object = params::read(read.params.as_ref()).unwrap();
                prop_assert_eq!(Value::Object(members), params.clone().unwrap_or_else(|| json!({})));
            }
            other => prop_assert!(false, "{:?}", other),
        }
        match Frame::parse(notification_text(&method, params.as_ref()).as_bytes()) {
            Ok(Frame::One(Message::Notification(read))) => prop_assert_eq!(read.method, method),
            other => prop_assert!(false, "{:?}", other),
        }
        match Frame::parse(result_text(&id, &result.to_string()).as_bytes()) {
            Ok(Frame::One(Message::Response(read))) => {
                prop_assert_eq!(read.id.as_ref(), Some(&id));
                let read: Value = serde_json::from_str(read.outcome.unwrap().get()).unwrap();
                prop_assert_eq!(read, result);
            }
            other => prop_assert!(false, "{:?}", other),
        }
        for revision in Revision::ALL {
            let error = RpcError::new(code, message.clone());
            match Frame::parse(error_text(Some(&id), &error, revision).as_bytes()) {
                Ok(Frame::One(Message::Response(read))) => {
                    let read = read.outcome.unwrap_err();
                    prop_assert_eq!(read.code, error.code_for(revision));
                    prop_assert_eq!(&read.message, &message);
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn tools_are_valid_in_every_revision(tools in collection::vec(tool(), 0..4)) {
        for encoder in encoders() {
            let page = encoder.page("tools", tools.iter().map(|tool| encoder.tool(tool)).collect(), Some("c"));
            fits(&encoder, "ListToolsResult", &page);
        }
    }

    #[test]
    fn results_are_valid_in_every_revision(
        content in collection::vec(content(), 0..5),
        structured in option::of(json_value()),
        is_error in any::<bool>(),
    ) {
        for encoder in encoders() {
            let result =
                ToolResult { content: content.clone(), structured: structured.clone(), is_error, meta: None };
            let text = encoder.tool_result(result);
            fits(&encoder, "CallToolResult", &text);
            if let [Content::Text(told)] = content.as_slice() {
                let short: Value = serde_json::from_str(&encoder.text_result(told)).unwrap();
                let result = ToolResult { content: content.clone(), ..ToolResult::default() };
                prop_assert_eq!(short, serde_json::from_str::<Value>(&encoder.tool_result(result)).unwrap());
            }
            // Clients that do not support structured content get it as text.
            if let (Some(structured), true) = (&structured, content.is_empty()) {
                let result: Value = serde_json::from_str(&text).unwrap();
                let told: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
                prop_assert_eq!(&told, structured);
            }
        }
    }

    #[test]
    fn resources_are_valid_in_every_revision(
        uri in uri(),
        name in any::<String>(),
        description in option::of(any::<String>()),
        more in more(),
        contents in collection::vec(contents(), 1..4),
    ) {
        let (name, description) = (Shown::from(name), description.map(Shown::from));
        let resource = Resource {
            uri: Shown::exact(&uri).unwrap(),
            name: name.clone(),
            description: description.clone(),
            mime_type: None,
            more: Shown::members(more).unwrap(),
        };
        let template = ResourceTemplate {
            uri_template: Shown::exact(&format!("{uri}{{x}}")).unwrap(),
            name,
            description,
            mime_type: Some("text/plain".into()),
            more: resource.more.clone(),
        };
        for encoder in encoders() {
            let page = encoder.page("resources", vec![encoder.resource(&resource)], None);
            fits(&encoder, "ListResourcesResult", &page);
            let page = encoder.page("resourceTemplates", vec![encoder.template(&template)], None);
            fits(&encoder, "ListResourceTemplatesResult", &page);
            fits(&encoder, "ReadResourceResult", &encoder.read_result(ReadResult { contents: contents.clone() }));
        }
    }

    #[test]
    fn prompts_are_valid_in_every_revision(
        name in any::<String>(),
        argument in any::<String>(),
        content in content(),
        more in more(),
        values in collection::vec(any::<String>(), 0..150),
    ) {
        let mut more = more;
        more.remove("annotations");
        let arguments = vec![PromptArgument { name: argument.into(), description: None, required: true }];
        let prompt = Prompt { name, description: None, arguments, more: Shown::members(more).unwrap() };
        let message = PromptMessage { role: Role::Assistant, content: Shown::message(content).unwrap() };
        let values: Vec<Shown> = values.into_iter().map(Shown::from).collect();
        for encoder in encoders() {
            fits(&encoder, "ListPromptsResult", &encoder.page("prompts", vec![encoder.prompt(&prompt)], None));
            let result = PromptResult { description: None, messages: vec![message.clone()], meta: None };
            fits(&encoder, "GetPromptResult", &encoder.prompt_result(result));
            let completion = Completion { values: values.clone(), total: None, has_more: false };
            fits(&encoder, "CompleteResult", &encoder.completion(completion));
        }
    }

    #[test]
    fn questions_are_valid_in_every_revision(text in any::<String>(), default in any::<String>()) {
        let form = json!({ "type": "object", "properties": {
            "name": { "type": "string", "title": text, "default": default },
            "count": { "type": "integer", "minimum": 0, "default": 3 },
            "sure": { "type": "boolean", "default": true },
            "kind": { "type": "string", "oneOf": [{ "const": "a", "title": text }] },
            "plain": { "type": "string", "enum": ["a", "b"] },
        }, "required": ["name"] });
        let sample = json!({ "messages": [{ "role": "user", "content": [
            { "type": "text", "text": text }, { "type": "text", "text": "b" },
        ] }], "maxTokens": 10 });
        for encoder in encoders() {
            let revision = encoder.revision;
            let asked = |definition: &str, question: &Question| {
                let (method, params) = encoder.question(question);
                let mut request = json!({ "method": method });
                if let Some(params) = params {
                    request["params"] = params;
                }
                if revision < Revision::V2026_07_28 {
                    request["jsonrpc"] = "2.0".into();
                    request["id"] = 1.into();
                }
                schema::check(revision.as_str(), definition, &request);
            };
            asked("ListRootsRequest", &Question::Roots);
            let sample = sample.as_object().cloned().unwrap_or_default();
            asked("CreateMessageRequest", &Question::Sample(Shown::sampling(sample).unwrap()));
            if revision >= Revision::V2025_06_18 {
                let form = Question::Form { message: text.clone().into(), schema: Shown::data(form.clone()) };
                asked("ElicitRequest", &form);
            }
        }
    }

    #[test]
    fn tasks_of_the_core_are_valid(ttl_ms in 0_u64..1 << 40, message in option::of(any::<String>())) {
        let now = SystemTime::now();
        let [_, _, _, core, extension] = encoders();
        for status in [TaskStatus::Working, TaskStatus::InputRequired, TaskStatus::Completed, TaskStatus::Failed] {
            let (id, message) = ("t".to_owned(), message.clone());
            let task = Task { id, status, message, created: now, updated: now, ttl_ms, poll_ms: 1000 };
            fits(&core, "CreateTaskResult", &core.task_created(&task));
            fits(&core, "GetTaskResult", &core.task(&task, Detail::Result("{}")));
            fits(&core, "ListTasksResult", &core.tasks(std::slice::from_ref(&task), None));
            fits(&core, "TaskStatusNotification", &core.task_changed(&task, Detail::None, None));
            // The extension is not in the official schemas: every result has its type.
            fits(&extension, "Result", &extension.task_created(&task));
            fits(&extension, "Result", &extension.task(&task, Detail::Result("{}")));
        }
    }
}
