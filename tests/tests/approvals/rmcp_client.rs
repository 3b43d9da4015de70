//! The official Rust client `rmcp` and its user: over stdio and Streamable HTTP, at every revision that has questions. The other official
//! SDKs are tested in `tests/clients`.

use std::{
    process::Stdio,
    sync::{Arc, Mutex},
};

use e2e::{Folder, MODERN, PATIENCE, Server, Value, json, log::Log};
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient,
    model::*,
    service::{RequestContext, RunningService, ServiceError},
    transport::{
        StreamableHttpClientTransport, TokioChildProcess, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use tokio::time::timeout;

use crate::{accept, choices, files, write, written};

const TOKEN: (&str, &str) = ("WHARF_TOKEN", "s3cret-of-tests-1");

/// An application that answers every question in the same way, and records the questions. Without an answer, it cannot ask anybody.
#[derive(Clone)]
struct Application {
    version: ProtocolVersion,
    answer: Option<Arc<Mutex<Value>>>,
    questions: Arc<Mutex<Vec<Value>>>,
}

impl ClientHandler for Application {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let elicitation = ElicitationCapability::new().with_form(FormElicitationCapability::default());
        capabilities.elicitation = self.answer.as_ref().map(|_| elicitation);
        ClientConfig::new(capabilities, Implementation::new("e2e", "1")).with_protocol_version(self.version.clone())
    }

    /// At 2026-07-28 the library calls this method for the questions in a result, and repeats the call with the answers.
    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.questions.lock().unwrap().push(json!(params));
        let answer = self.answer.as_ref().expect("nobody can be asked").lock().unwrap().clone();
        Ok(serde_json::from_value(answer).unwrap())
    }
}

type Client = RunningService<RoleClient, Application>;

async fn within<F: Future>(what: &str, future: F) -> F::Output {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} does not come"))
}

/// Connects over HTTP if there is a server, otherwise to a new process.
async fn connect(folder: &Folder, server: Option<&Server>, application: Application) -> Client {
    let modern = vec![ProtocolVersion::V_2026_07_28];
    let mode = match application.version.as_str() {
        MODERN => ClientLifecycleMode::Discover { preferred_versions: modern },
        _ => ClientLifecycleMode::Initialize,
    };
    let wanted = application.version.clone();
    let client = match server {
        None => {
            let command = folder.command(&["run"], &[TOKEN]);
            let (child, stderr) = TokioChildProcess::builder(command).stderr(Stdio::piped()).spawn().unwrap();
            // Its log is read, so that it never blocks on writing it.
            Log::of(stderr.unwrap(), e2e::Recorder::default());
            within("the beginning", application.serve_with_lifecycle(child, mode)).await
        }
        Some(server) => {
            let config = StreamableHttpClientTransportConfig::with_uri(format!("http://{}/mcp", server.address));
            let http = StreamableHttpClientTransport::from_config(config.auth_header(TOKEN.1));
            within("the beginning", application.serve_with_lifecycle(http, mode)).await
        }
    };
    let client = client.unwrap();
    assert_eq!(client.peer_info().expect("it has begun").protocol_version, wanted);
    client
}

/// Calls a tool. Returns the text of the answer, or that of an error of either kind.
async fn call(client: &Client, tool: &'static str, arguments: &Value) -> Result<String, String> {
    let params = CallToolRequestParams::new(tool).with_arguments(arguments.as_object().unwrap().clone());
    match within(tool, client.call_tool(params)).await {
        Ok(result) => {
            let [ContentBlock::Text(text)] = result.content.as_slice() else { panic!("not one text: {result:?}") };
            if result.is_error == Some(true) { Err(text.text.clone()) } else { Ok(text.text.clone()) }
        }
        Err(ServiceError::McpError(error)) => Err(format!("{}: {}", error.code.0, error.message)),
        Err(other) => panic!("not an error of the server: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_client_asks_its_person() {
    for (http, revision) in [
        (false, ProtocolVersion::V_2025_06_18),
        (false, ProtocolVersion::V_2025_11_25),
        (false, ProtocolVersion::V_2026_07_28),
        (true, ProtocolVersion::V_2025_06_18),
        (true, ProtocolVersion::V_2025_11_25),
        (true, ProtocolVersion::V_2026_07_28),
    ] {
        let way = format!("{} {revision}", if http { "HTTP" } else { "stdio" });
        let folder = Folder::new();
        // With a token, wharf recognises a client without a session.
        files(&folder, "confirm = \"writes\"", &format!("[http]\ntoken.env = \"{}\"", TOKEN.0));
        let server = if http { Some(Server::start_with(&folder, &[], &[TOKEN]).await) } else { None };
        let application = |answer| Application { version: revision.clone(), answer, questions: Arc::default() };

        let alone = connect(&folder, server.as_ref(), application(None)).await;
        let refused = call(&alone, "write_file", &write(&folder, "a.txt", "0")).await.unwrap_err();
        let sentence = "`write_file` needs a person's approval, and this client cannot ask for one. The operator can \
                        change `confirm` in [plugins.files].";
        let expected = if revision.as_str() == MODERN { format!("-32021: {sentence}") } else { sentence.to_owned() };
        assert_eq!(refused, expected, "{way}");
        assert_eq!(written(&folder, "a.txt"), None);
        within("the end", alone.cancel()).await.unwrap();

        let person = Arc::new(Mutex::new(json!({ "action": "decline" })));
        let application = application(Some(person.clone()));
        let questions = application.questions.clone();
        let client = connect(&folder, server.as_ref(), application).await;
        let no = Err("The client answered no; nothing was run.".to_owned());
        assert_eq!(call(&client, "write_file", &write(&folder, "a.txt", "1")).await, no, "{way}");
        assert_eq!(written(&folder, "a.txt"), None);
        for (answer, content, asked) in [
            (json!({ "action": "accept" }), "2", 2),
            (accept(json!({ "remember": "once" })), "3", 3),
            (accept(json!({ "remember": "session" })), "4", 4),
            (json!({ "action": "decline" }), "5", 4),
        ] {
            *person.lock().unwrap() = answer;
            let said = call(&client, "write_file", &write(&folder, "a.txt", content)).await;
            assert!(said.is_ok(), "{way}, {content}: {said:?}");
            assert_eq!(written(&folder, "a.txt").as_deref(), Some(content));
            assert_eq!(questions.lock().unwrap().len(), asked, "{way}, {content}");
        }
        // Another tool is another kind of call.
        assert_eq!(call(&client, "create_directory", &json!({ "path": folder.join("project/d") })).await, no);
        assert!(!folder.join("project/d").exists());

        // The form that the application gets has been parsed by the types of the library, and is still complete.
        let questions = questions.lock().unwrap().clone();
        assert_eq!(questions.len(), 5);
        for question in &questions {
            assert_eq!(choices(question), ["once", "session", "session-any"], "{way}");
        }
        let message = questions[0]["message"].as_str().unwrap();
        assert!(message.starts_with("wharf asks: run `write_file` on `"), "{message}");
        assert!(message.contains(&folder.join("project").display().to_string()), "{message}");
        within("the end", client.cancel()).await.unwrap();
        if let Some(server) = server {
            server.terminate().await;
        }
    }
}
