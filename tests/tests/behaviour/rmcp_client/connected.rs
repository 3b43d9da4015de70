//! The official Rust client connected to the real wharf: how they start and disconnect.

use std::{process::Stdio, time::Duration};

use e2e::{Folder, PATIENCE, Recorder, Server, Value, json, log::Log};
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient,
    model::*,
    service::{NotificationContext, RequestContext, RunningService},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};

/// Awaits a future that must not take long.
pub async fn within<F: Future>(what: &str, future: F) -> F::Output {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} does not come"))
}

/// What the repository's clients expect of the plugin `conformance`, and how they answer its questions.
pub fn fixture() -> Value {
    serde_json::from_str(include_str!("../../../conformance/clients/fixture.json")).unwrap()
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Line {
    Stdio,
    Http,
}

/// How the client begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Begin {
    /// With `initialize`.
    Handshake,
    /// With `server/discover`.
    Discovery,
    /// With `server/discover`, and with `initialize` if the server knows only that.
    Either,
}

impl Begin {
    /// The handshake as rmcp makes it, with its newest revision.
    pub fn mode(self) -> ClientLifecycleMode {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        match self {
            Self::Handshake => ClientLifecycleMode::Initialize,
            Self::Discovery => ClientLifecycleMode::Discover { preferred_versions },
            Self::Either => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
        }
    }

    /// wharf supports both, so a client that can begin either way gets the newer one.
    pub fn is_modern(self) -> bool {
        self != Self::Handshake
    }
}

pub const WAYS: [(Line, Begin); 6] = [
    (Line::Stdio, Begin::Handshake),
    (Line::Stdio, Begin::Discovery),
    (Line::Stdio, Begin::Either),
    (Line::Http, Begin::Handshake),
    (Line::Http, Begin::Discovery),
    (Line::Http, Begin::Either),
];

/// A notification of the server: the method, and the parameters as parsed by rmcp.
pub type Heard = (&'static str, Value);

/// An application with a user, a model and a folder. It records each message before it answers.
pub struct Application {
    version: ProtocolVersion,
    heard: mpsc::UnboundedSender<Heard>,
    fixture: Value,
}

impl Application {
    fn hears(&self, method: &'static str, params: Value) {
        // The receiver is gone once a test is over.
        self.heard.send((method, params)).ok();
    }

    fn text(&self, key: &str) -> &str {
        self.fixture[key].as_str().unwrap()
    }
}

#[allow(deprecated, reason = "sampling and roots are deprecated in the newest revision and used in all of them")]
impl ClientHandler for Application {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(FormElicitationCapability::default()));
        capabilities.sampling = Some(SamplingCapability::default());
        capabilities.roots = Some(RootsCapabilities::default());
        ClientConfig::new(capabilities, Implementation::new("e2e", "1")).with_protocol_version(self.version.clone())
    }

    /// Fills in every field with the fixture's data about the user.
    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = json!(params);
        let fields = params["requestedSchema"]["properties"].as_object().expect("a form has fields");
        let content: Value =
            fields.keys().map(|field| (field.clone(), self.fixture["person"][field].clone())).collect();
        self.hears("elicitation/create", params);
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.hears("sampling/createMessage", json!(params));
        let answer = SamplingMessage::assistant_text(self.text("modelAnswer"));
        Ok(CreateMessageResult::new(answer, self.text("model").into()).with_stop_reason("endTurn"))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.hears("roots/list", json!({}));
        let root = &self.fixture["root"];
        let (uri, name) = (root["uri"].as_str().unwrap(), root["name"].as_str().unwrap());
        Ok(ListRootsResult::new(vec![Root::new(uri).with_name(name)]))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.hears("notifications/progress", json!(params));
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        self.hears("notifications/message", json!(params));
    }

    async fn on_cancelled(&self, params: CancelledNotificationParam, _: NotificationContext<RoleClient>) {
        self.hears("notifications/cancelled", json!(params));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.hears("notifications/tools/list_changed", json!({}));
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.hears("notifications/prompts/list_changed", json!({}));
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.hears("notifications/resources/list_changed", json!({}));
    }

    async fn on_custom_notification(&self, notification: CustomNotification, _: NotificationContext<RoleClient>) {
        self.hears("a notification rmcp does not know", json!(notification.method));
    }
}

enum Wharf {
    Child(Log),
    Server(Box<Server>),
}

/// A client and the wharf that only it uses.
pub struct Connected {
    pub client: RunningService<RoleClient, Application>,
    pub fixture: Value,
    heard: mpsc::UnboundedReceiver<Heard>,
    wharf: Wharf,
    _folder: Folder,
}

impl Connected {
    pub async fn new((line, begin): (Line, Begin)) -> Self {
        Self::with(line, begin.mode(), ProtocolVersion::V_2025_11_25).await
    }

    /// `version`: the version that it offers in a handshake.
    pub async fn with(line: Line, mode: ClientLifecycleMode, version: ProtocolVersion) -> Self {
        // Printed if the test fails.
        println!("{line:?}, {mode:?}, {version}");
        let folder = Folder::new();
        // One place for calls, with a timeout longer than any test: only a call that ends makes room for the next.
        let config = format!(
            "[http]\npoll_after_ms = 500\n[plugins.conformance]\npath = {:?}\nprefix = \"\"\n\
             [plugins.conformance.grants]\nask = [\"elicitation\", \"sampling\", \"roots\"]\n\
             [plugins.conformance.limits]\nconcurrency = 1\ntimeout_ms = 3600000\n",
            e2e::plugin("conformance")
        );
        let config = folder.write("wharf.toml", config).display().to_string();
        // Also returns the calls that are running in their plugins.
        let environment = [("RUST_LOG", "wharf=debug")];
        let (sender, heard) = mpsc::unbounded_channel();
        let application = Application { version, heard: sender, fixture: fixture() };
        let (client, wharf) = match line {
            Line::Stdio => {
                let command = folder.command(&["run", "-c", &config], &environment);
                let (child, stderr) = TokioChildProcess::builder(command).stderr(Stdio::piped()).spawn().unwrap();
                let log = Log::of(stderr.unwrap(), Recorder::default());
                (within("the beginning", application.serve_with_lifecycle(child, mode)).await, Wharf::Child(log))
            }
            Line::Http => {
                let server = Server::start_with(&folder, &["-c", &config], &environment).await;
                let http = StreamableHttpClientTransport::from_uri(format!("http://{}/mcp", server.address));
                let wharf = Wharf::Server(Box::new(server));
                (within("the beginning", application.serve_with_lifecycle(http, mode)).await, wharf)
            }
        };
        Self { client: client.unwrap(), fixture: fixture(), heard, wharf, _folder: folder }
    }

    /// Waits until so many calls have begun in the plugin.
    pub async fn ran(&self, calls: usize) {
        let text = "action=\"tools/call\"}: runs in an instance";
        match &self.wharf {
            Wharf::Child(log) => log.wait_for_nth(text, calls).await,
            Wharf::Server(server) => server.wait_for_nth_log(text, calls).await,
        };
    }

    /// Calls a tool, and answers its questions.
    pub async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let params = CallToolRequestParams::new(tool).with_arguments(object(arguments));
        within(tool, self.client.call_tool(params)).await.unwrap()
    }

    /// The same for a tool that returns a single text and does not fail.
    pub async fn text(&self, tool: &'static str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_ne!(result.is_error, Some(true), "{result:?}");
        let [ContentBlock::Text(text)] = result.content.as_slice() else { panic!("not one text: {result:?}") };
        text.text.clone()
    }

    /// Returns the next notification of the server.
    pub async fn hear(&mut self) -> Heard {
        within("what the server says", next(&mut self.heard)).await.expect("the client has ended")
    }

    /// Closes the connection and, with stdio, waits for the process to exit. Returns the duration. Fails if there are notifications that
    /// the test has not read.
    pub async fn close(mut self) -> Duration {
        let began = Instant::now();
        within("the client's end", self.client.cancel()).await.unwrap();
        let took = began.elapsed();
        assert_eq!(within("the end of what is said", next(&mut self.heard)).await, None, "that was said unasked");
        took
    }
}

/// Returns the next notification, but for those that say that a plugin is compiled: these come only while the machine is busy.
async fn next(heard: &mut mpsc::UnboundedReceiver<Heard>) -> Option<Heard> {
    let is_of_compiler =
        |params: &Value| params["message"].as_str().is_some_and(|said| said.ends_with("being compiled"));
    loop {
        match heard.recv().await {
            Some((_, params)) if is_of_compiler(&params) => {}
            heard => return heard,
        }
    }
}

pub fn object(value: Value) -> JsonObject {
    value.as_object().expect("an object").clone()
}
