//! The official Rust client `rmcp` against the real binary: over stdio and Streamable HTTP, with a handshake (2025-11-25),
//! without one (2026-07-28), and as a client that can do either.

mod connected;

use std::time::Duration;

use self::connected::{Begin, Connected, Line, WAYS, object, within};
use e2e::{LEGACY, MODERN, Value, json};
use rmcp::{
    ClientLifecycleMode,
    model::*,
    service::{PeerRequestOptions, ServiceError, SubscriptionEnd},
};
use tokio::time::Instant;

/// How long rmcp lets a process exit by itself before it kills it.
const GRACE: Duration = Duration::from_secs(3);

fn version(text: &str) -> ProtocolVersion {
    serde_json::from_value(json!(text)).unwrap()
}

/// The negotiated revision.
fn settled(connected: &Connected) -> String {
    connected.client.peer_info().expect("it has begun").protocol_version.to_string()
}

/// The error that the server returned instead of a result.
fn refusal<T: std::fmt::Debug>(result: Result<T, ServiceError>) -> ErrorData {
    match result {
        Err(ServiceError::McpError(error)) => error,
        other => panic!("not an error of the server: {other:?}"),
    }
}

#[tokio::test]
async fn the_client_learns_the_revision_and_who_serves_it() {
    for way in WAYS {
        let connected = Connected::new(way).await;
        let server = connected.client.peer_info().unwrap();
        assert_eq!(server.protocol_version.as_str(), if way.1.is_modern() { MODERN } else { "2025-11-25" });
        assert_eq!(server.server_info.as_ref().unwrap().name, connected.fixture["server"]);
        let capabilities = &server.capabilities;
        assert_eq!(capabilities.tools.as_ref().unwrap().list_changed, Some(true));
        assert_eq!(capabilities.prompts.as_ref().unwrap().list_changed, Some(true));
        let resources = capabilities.resources.as_ref().unwrap();
        assert_eq!((resources.list_changed, resources.subscribe), (Some(true), Some(true)));
        assert!(capabilities.completions.is_some());
        connected.close().await;
    }
}

#[tokio::test]
async fn every_revision_with_a_handshake_is_served_as_asked() {
    for line in [Line::Stdio, Line::Http] {
        for revision in LEGACY {
            let mut connected = Connected::with(line, Begin::Handshake.mode(), version(revision)).await;
            assert_eq!(settled(&connected), revision);
            assert_eq!(connected.text("test_simple_text", json!({})).await, connected.fixture["simpleText"]);
            let question = connected.fixture["question"].clone();
            let asked = connected.call("test_elicitation", json!({ "message": question })).await;
            // Earlier revisions have no questions to the user, whatever the client declares.
            let can_ask = revision >= "2025-06-18";
            assert_eq!(asked.is_error == Some(true), !can_ask, "{asked:?}");
            if can_ask {
                assert_eq!(connected.hear().await.0, "elicitation/create");
            }
            connected.close().await;
        }
    }
}

#[tokio::test]
async fn who_wants_a_later_revision_settles_for_what_there_is() {
    let later = || version("2099-01-01");
    for line in [Line::Stdio, Line::Http] {
        let connected = Connected::with(line, Begin::Handshake.mode(), later()).await;
        assert_eq!(settled(&connected), "2025-11-25");
        connected.close().await;
        // wharf has the second revision, but only with a handshake.
        let preferred_versions = vec![later(), ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];
        for mode in [
            ClientLifecycleMode::Discover { preferred_versions: preferred_versions.clone() },
            ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
        ] {
            let connected = Connected::with(line, mode, ProtocolVersion::V_2025_11_25).await;
            assert_eq!(settled(&connected), MODERN);
            assert_eq!(connected.text("test_simple_text", json!({})).await, connected.fixture["simpleText"]);
            connected.close().await;
        }
    }
}

#[tokio::test]
async fn lists_hold_what_the_plugin_offers() {
    for way in WAYS {
        let connected = Connected::new(way).await;
        let (client, fixture) = (&connected.client, &connected.fixture);
        let tools = within("the tools", client.list_all_tools()).await.unwrap();
        let resources = within("the resources", client.list_all_resources()).await.unwrap();
        let templates = within("the templates", client.list_all_resource_templates()).await.unwrap();
        let prompts = within("the prompts", client.list_all_prompts()).await.unwrap();
        for (list, names) in [
            ("tools", tools.iter().map(|tool| tool.name.as_ref()).collect::<Vec<&str>>()),
            ("resources", resources.iter().map(|resource| resource.uri.as_str()).collect()),
            ("templates", templates.iter().map(|template| template.uri_template.as_str()).collect()),
            ("prompts", prompts.iter().map(|prompt| prompt.name.as_str()).collect()),
        ] {
            let expected: Vec<&str> = fixture[list].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            // The plugin may offer more, but in the same order.
            let known: Vec<&str> = names.iter().copied().filter(|name| expected.contains(name)).collect();
            assert_eq!(known, expected, "{list}: {names:?}");
        }
        for tool in &tools {
            assert!(tool.description.as_ref().is_some_and(|text| !text.is_empty()), "{tool:?}");
            assert_eq!(tool.input_schema["type"], "object", "{tool:?}");
        }
        let schema: Value = serde_json::from_str(include_str!("../../guests/conformance/src/schema.json")).unwrap();
        let published = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool").unwrap();
        assert_eq!(json!(published.input_schema), schema);
        connected.close().await;
    }
}

#[tokio::test]
async fn tools_answer_with_text_other_content_and_failures() {
    for way in WAYS {
        let connected = Connected::new(way).await;
        assert_eq!(connected.text("test_simple_text", json!({})).await, connected.fixture["simpleText"]);
        let greeting = connected.text("greet", json!({ "name": connected.fixture["person"]["name"] })).await;
        assert_eq!(greeting, "Hello, Zoë Ångström!");
        let mixed = connected.call("test_multiple_content_types", json!({})).await;
        let [ContentBlock::Text(_), ContentBlock::Image(image), ContentBlock::Resource(resource)] =
            mixed.content.as_slice()
        else {
            panic!("not a text, an image and a resource: {mixed:?}");
        };
        assert_eq!(image.mime_type, "image/png");
        assert!(image.data.starts_with("iVBORw0KGgo"), "the beginning of every PNG: {}", image.data);
        assert_eq!(resource.get_text(), r#"{"test":"data","value":123}"#);
        let failed = connected.call("test_error_handling", json!({})).await;
        assert_eq!(failed.is_error, Some(true), "{failed:?}");
        let unknown = connected.client.call_tool(CallToolRequestParams::new("no_such_tool"));
        assert_eq!(refusal(within("the refusal", unknown).await).code, ErrorCode::INVALID_PARAMS);
        // Once it knows the tool, a modern client repeats this argument in an encoded header.
        within("the tools", connected.client.list_all_tools()).await.unwrap();
        for region in ["eu-west", " zwischen Åre und Zürich "] {
            let told = connected.text("test_x_mcp_header", json!({ "region": region })).await;
            assert_eq!(told, format!("The region is {region}."));
        }
        connected.close().await;
    }
}

#[tokio::test]
async fn resources_prompts_and_completions_are_read_and_filled_in() {
    for way in WAYS {
        let connected = Connected::new(way).await;
        let (client, fixture) = (&connected.client, &connected.fixture);
        let read = async |uri: &Value| {
            let params = ReadResourceRequestParams::new(uri.as_str().unwrap());
            within("the resource", client.read_resource(params)).await
        };
        let fixed = read(&fixture["staticText"]["uri"]).await.unwrap();
        assert_eq!(json!(fixed.contents), json!([fixture["staticText"]]));
        let image = read(&json!("test://static-binary")).await.unwrap();
        let [ResourceContents::BlobResourceContents { mime_type, blob, .. }] = image.contents.as_slice() else {
            panic!("not one blob: {image:?}");
        };
        assert_eq!(mime_type.as_deref(), Some("image/png"));
        assert!(blob.starts_with("iVBORw0KGgo"), "the beginning of every PNG: {blob}");
        let wanted = &fixture["template"];
        let filled = read(&wanted["uri"]).await.unwrap();
        let [ResourceContents::TextResourceContents { uri, mime_type, text, .. }] = filled.contents.as_slice() else {
            panic!("not one text: {filled:?}");
        };
        assert_eq!((json!(uri), json!(mime_type)), (wanted["uri"].clone(), wanted["mimeType"].clone()));
        assert_eq!(serde_json::from_str::<Value>(text).unwrap()["id"], wanted["id"]);
        let code = if way.1.is_modern() { ErrorCode::INVALID_PARAMS } else { ErrorCode::RESOURCE_NOT_FOUND };
        assert_eq!(refusal(read(&json!("test://no-such")).await).code, code);

        let name = fixture["prompt"]["name"].as_str().unwrap();
        let arguments = object(fixture["prompt"]["arguments"].clone());
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let prompt = within("the prompt", client.get_prompt(params)).await.unwrap();
        let [PromptMessage { role: Role::User, content: ContentBlock::Text(text), .. }] = prompt.messages.as_slice()
        else {
            panic!("not one text of the user: {prompt:?}");
        };
        assert_eq!(text.text, "Prompt with arguments: arg1='a quince', arg2='two Übergänge'");
        let missing = client.get_prompt(GetPromptRequestParams::new(name));
        assert_eq!(refusal(within("the refusal", missing).await).code, ErrorCode::INVALID_PARAMS);

        let typed = &fixture["completion"];
        let (argument, typed) = (typed["argument"].as_str().unwrap(), typed["typed"].as_str().unwrap());
        let completed = client.complete_prompt_argument(name, argument, typed, None);
        let completed = within("the completion", completed).await.unwrap();
        assert_eq!(completed.values, ["test1", "test2"]);
        assert_eq!((completed.total, completed.has_more), (Some(2), Some(false)));
        connected.close().await;
    }
}

#[tokio::test]
async fn progress_is_reported_under_the_token_of_the_call() {
    for way in WAYS {
        let mut connected = Connected::new(way).await;
        let request = CallToolRequest::new(CallToolRequestParams::new("test_tool_with_progress"));
        let request = ClientRequest::CallToolRequest(request);
        let sent = connected.client.send_cancellable_request(request, PeerRequestOptions::no_options());
        let call = within("the sending", sent).await.unwrap();
        let token = json!(call.progress_token);
        let result = within("the result", call.await_response()).await.unwrap();
        assert!(matches!(&result, ServerResult::CallToolResult(result) if result.is_error != Some(true)), "{result:?}");
        for progress in [0.0, 50.0, 100.0] {
            let report = json!({ "progressToken": token, "progress": progress, "total": 100.0 });
            assert_eq!(connected.hear().await, ("notifications/progress", report));
        }
        connected.close().await;
    }
}

#[tokio::test]
async fn questions_reach_the_application_and_its_answers_the_plugin() {
    for way in WAYS {
        let mut connected = Connected::new(way).await;
        let fixture = connected.fixture.clone();
        let person = &fixture["person"];

        let told = connected.text("test_elicitation", json!({ "message": fixture["question"] })).await;
        let content = told.strip_prefix("Elicitation completed: action=accept, content=").expect(&told);
        let filled_in = json!({ "username": person["username"], "email": person["email"] });
        assert_eq!(serde_json::from_str::<Value>(content).unwrap(), filled_in);
        let (method, form) = connected.hear().await;
        assert_eq!(method, "elicitation/create");
        assert_eq!(form["message"], format!("[conformance] {}", fixture["question"].as_str().unwrap()));
        let fields = &form["requestedSchema"]["properties"];
        assert_eq!((&fields["username"]["type"], &fields["email"]["type"]), (&json!("string"), &json!("string")));

        let told = connected.text("test_sampling", json!({ "prompt": fixture["modelPrompt"] })).await;
        assert_eq!(told, format!("LLM response: {}", fixture["modelAnswer"].as_str().unwrap()));
        let (method, params) = connected.hear().await;
        assert_eq!((method, &params["maxTokens"]), ("sampling/createMessage", &json!(100)));
        let prompt = json!({ "role": "user", "content": { "type": "text", "text": fixture["modelPrompt"] } });
        assert_eq!(params["messages"], json!([prompt]));

        let told = connected.text("test_input_required_result_list_roots", json!({})).await;
        assert_eq!(told, format!("1 roots: {}", fixture["root"]["uri"].as_str().unwrap()));
        assert_eq!(connected.hear().await.0, "roots/list");

        let told = connected.text("test_input_required_result_multiple_inputs", json!({})).await;
        assert_eq!(told, "3 answers arrived.");
        let mut methods = Vec::new();
        for _ in 0..3 {
            methods.push(connected.hear().await.0);
        }
        methods.sort_unstable();
        assert_eq!(methods, ["elicitation/create", "roots/list", "sampling/createMessage"]);
        connected.close().await;
    }
}

/// `call_tool_once` sends a call and never repeats it with answers, so it shows how the revision asks questions.
#[tokio::test]
async fn questions_are_a_result_without_a_session_and_requests_with_one() {
    for way in WAYS {
        let mut connected = Connected::new(way).await;
        let params = CallToolRequestParams::new("test_input_required_result_elicitation");
        let once = within("the result", connected.client.call_tool_once(params)).await.unwrap();
        if way.1.is_modern() {
            let CallToolResponse::InputRequired(asked) = once else { panic!("not questions: {once:?}") };
            let questions = asked.input_requests.unwrap();
            let [question] = questions.values().collect::<Vec<_>>()[..] else { panic!("not one: {questions:?}") };
            assert_eq!(json!(question)["method"], "elicitation/create");
        } else {
            let CallToolResponse::Complete(result) = once else { panic!("not complete: {once:?}") };
            assert_eq!(result.content[0].as_text().unwrap().text, "Hello, Zoë Ångström!");
            assert_eq!(connected.hear().await.0, "elicitation/create");
        }
        connected.close().await;
    }
}

#[tokio::test]
async fn a_change_of_the_tools_is_heard() {
    for way in WAYS {
        let mut connected = Connected::new(way).await;
        let before = within("the tools", connected.client.list_all_tools()).await.unwrap();
        if way.1.is_modern() {
            // The second subscription gets an event that the first, closed one does not: `close` would find it.
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            for _ in 0..2 {
                let mut changes = within("the listening", connected.client.listen(filter.clone())).await.unwrap();
                assert_eq!(*changes.acknowledged(), filter);
                for _ in 0..2 {
                    connected.text("test_trigger_tool_change", json!({})).await;
                    let change = within("the change", changes.next()).await.unwrap();
                    assert!(matches!(change, Some(ServerNotification::ToolListChangedNotification(_))), "{change:?}");
                }
                within("the end of listening", changes.cancel()).await.unwrap();
                assert_eq!(changes.end(), Some(&SubscriptionEnd::Cancelled));
            }
        } else {
            // Each event once: `close` would find more.
            for _ in 0..2 {
                connected.text("test_trigger_tool_change", json!({})).await;
                assert_eq!(connected.hear().await.0, "notifications/tools/list_changed");
            }
        }
        assert_eq!(within("the tools", connected.client.list_all_tools()).await.unwrap(), before);
        connected.close().await;
    }
}

/// A call of an hour, started and cancelled. The plugin has one place for calls, so the next call shows that the place is free.
#[tokio::test]
async fn a_call_that_is_given_up_ends_in_the_plugin_too() {
    for way in WAYS {
        let connected = Connected::new(way).await;
        // Waits for the first load, so that no call is told of it.
        within("the tools", connected.client.list_all_tools()).await.unwrap();
        let client = &connected.client;
        let slow = || {
            let arguments = object(json!({ "seconds": 3600, "label": "given up" }));
            CallToolRequestParams::new("slow_compute").with_arguments(arguments)
        };

        // Cancelled by its id.
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(slow()));
        let sent = client.send_cancellable_request(request, PeerRequestOptions::no_options());
        let call = within("the sending", sent).await.unwrap();
        connected.ran(1).await;
        within("the cancellation", call.cancel(Some("no longer needed".into()))).await.unwrap();
        assert_eq!(connected.text("test_simple_text", json!({})).await, connected.fixture["simpleText"]);

        // Dropped, as by a timeout of the caller.
        tokio::select! {
            ended = client.call_tool(slow()) => panic!("it ended by itself: {ended:?}"),
            () = connected.ran(3) => {}
        }
        assert_eq!(connected.text("test_simple_text", json!({})).await, connected.fixture["simpleText"]);
        connected.close().await;
    }
}

/// A stream of 2025-11-25 is closed after half a second (`poll_after_ms`), and the client is told to come back a second later. The answer
/// is ready in between, so only a stream that was not closed would deliver it earlier.
#[tokio::test]
async fn the_client_comes_back_for_an_answer_that_takes_long() {
    let connected = Connected::new((Line::Http, Begin::Handshake)).await;
    // Waits for the first load, so that no request waits for it.
    connected.text("test_simple_text", json!({})).await;
    let began = Instant::now();
    let told = connected.text("slow_compute", json!({ "seconds": 1.2, "label": "slowly" })).await;
    assert_eq!(told, "Computed slowly in 1.2 seconds.");
    assert!(began.elapsed() >= Duration::from_millis(1500), "the stream was never closed: {:?}", began.elapsed());
    connected.close().await;
}

#[tokio::test]
async fn a_process_whose_client_leaves_ends_by_itself() {
    for (line, begin) in WAYS.into_iter().filter(|(line, _)| *line == Line::Stdio) {
        let connected = Connected::new((line, begin)).await;
        assert_eq!(connected.text("test_simple_text", json!({})).await, connected.fixture["simpleText"]);
        let took = connected.close().await;
        assert!(took < GRACE, "only by force, after {took:?}");
    }
}
