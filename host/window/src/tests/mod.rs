//! Tests of viewer and page, with processes that only their sockets show, and a client that sends requests as they are written here.

mod door;
mod merging;
mod views;

use std::{
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpStream, UnixListener, UnixStream},
    task::JoinSet,
    time::timeout,
};

use crate::{
    actions::{Actions, AuditPart, ChangedFiles, Lines, Standing},
    page::{Links, Page},
    state::{SeenAnswer, SeenCall, SeenChoice, SeenEnded, SeenProcess, SeenQuestion, SeenRefusal, SeenState},
    viewer::{Viewer, merged::View},
};

/// How long a test waits for something that happens.
const PATIENCE: Duration = Duration::from_secs(30);

async fn soon<T>(what: &str, done: impl Future<Output = T>) -> T {
    timeout(PATIENCE, done).await.unwrap_or_else(|_| panic!("{what} did not happen"))
}

/// A process that has a socket in the folder.
struct FakeProcess {
    listener: UnixListener,
    stream: Option<BufReader<UnixStream>>,
}

impl FakeProcess {
    fn new(folder: &Path, name: &str) -> Self {
        Self { listener: UnixListener::bind(folder.join(format!("{name}.sock"))).unwrap(), stream: None }
    }

    async fn stream(&mut self) -> &mut BufReader<UnixStream> {
        if self.stream.is_none() {
            let (stream, _) = soon("a connection", self.listener.accept()).await.unwrap();
            self.stream = Some(BufReader::new(stream));
        }
        self.stream.as_mut().unwrap()
    }

    async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        soon("the end of a line", self.stream().await.write_all(bytes)).await
    }

    async fn tell(&mut self, state: &SeenState) {
        let mut line = serde_json::to_vec(state).unwrap();
        line.push(b'\n');
        self.write(&line).await.unwrap();
    }

    async fn hear(&mut self) -> SeenAnswer {
        let mut line = String::new();
        soon("an answer", self.stream().await.read_line(&mut line)).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

/// Actions that only note what they were asked for.
#[derive(Default)]
struct FakeActions {
    done: Mutex<Lines>,
    written: Mutex<Lines>,
}

impl FakeActions {
    fn note(&self, line: String) -> Result<Lines, Lines> {
        self.done.lock().push(line.clone());
        Ok(vec![format!("did {line}")])
    }
}

impl Actions for FakeActions {
    fn standing(&self, _: &Path, grants: &[(&str, &str)]) -> Vec<Standing> {
        let written = self.written.lock();
        let of = |plugin: &str, grant: &str| match (plugin, written.iter().any(|one| one == grant)) {
            ("elsewhere", _) => Standing::Elsewhere,
            (_, true) => Standing::Written,
            (_, false) => Standing::Missing,
        };
        grants.iter().map(|(plugin, grant)| of(plugin, grant)).collect()
    }

    fn allow(&self, config: &Path, plugin: &str, grant: &str) -> Result<Lines, Lines> {
        self.written.lock().push(grant.to_owned());
        self.note(format!("allow {} {plugin} {grant}", config.display()))
    }

    fn take_back(&self, config: &Path, plugin: &str, grant: &str) -> Result<Lines, Lines> {
        self.written.lock().retain(|one| one != grant);
        self.note(format!("take back {} {plugin} {grant}", config.display()))
    }

    fn changes(&self) -> Result<Vec<ChangedFiles>, String> {
        let paths = vec![EVIL.into()];
        Ok(vec![ChangedFiles {
            id: "4-2".into(),
            plugin: EVIL.into(),
            name: EVIL.into(),
            paths,
            more: 3,
            ..ChangedFiles::default()
        }])
    }

    fn undo(&self, id: &str) -> Result<Lines, Lines> {
        match id {
            "4-2" => self.note(format!("undo {id}")),
            _ => Err(vec!["a.txt has changed since".into()]),
        }
    }

    fn has_audit_log(&self, config: &Path) -> bool {
        config == Path::new("/etc/wharf.toml")
    }

    fn audit(&self, _: &Path, search: &str) -> Result<AuditPart, String> {
        let lines = vec![format!("line with {search}"), EVIL.into()];
        Ok(AuditPart { is_whole: false, verdict: vec![format!("BROKEN {EVIL}")], lines })
    }
}

/// A text that would be markup if it were not escaped.
const EVIL: &str = "<script>alert(1)</script>\" onmouseover=\"alert(2)\" '&lt;";

/// A page, the viewer behind it, and the folder that it looks at.
struct Stage {
    folder: TempDir,
    viewer: Arc<Viewer>,
    links: Links,
    address: SocketAddr,
    actions: Arc<FakeActions>,
    /// Empty: the browser has opened no link.
    cookie: String,
    _tasks: JoinSet<()>,
}

impl Stage {
    /// Begins without a cookie.
    async fn closed() -> Self {
        Self::at(place(), |folder| folder.to_owned()).await
    }

    async fn at(folder: TempDir, place: impl Fn(&Path) -> PathBuf) -> Self {
        let viewer = Viewer::new(place(folder.path()));
        let actions = Arc::new(FakeActions::default());
        let page = Page::bind(0, Arc::clone(&viewer), Arc::clone(&actions) as Arc<dyn Actions>).await.unwrap();
        let links = page.links();
        let link = links.fresh().unwrap();
        let address = link.strip_prefix("http://").unwrap().split('/').next().unwrap().parse().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(page.serve());
        Self { folder, viewer, links, address, actions, cookie: String::new(), _tasks: tasks }
    }

    /// Begins with a cookie.
    async fn open() -> Self {
        let mut stage = Self::closed().await;
        let answer = stage.get(&stage.fresh_path()).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some("/")));
        stage.cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        stage
    }

    /// The path of a new link.
    fn fresh_path(&self) -> String {
        let link = self.links.fresh().unwrap();
        link.strip_prefix(&format!("http://{}", self.address)).unwrap().to_owned()
    }

    async fn process(&self, name: &str, state: &SeenState) -> FakeProcess {
        let mut process = FakeProcess::new(self.folder.path(), name);
        process.tell(state).await;
        let pid = state.process.pid;
        self.until("the state of the process", |view| view.processes().iter().any(|one| one.state.process.pid == pid))
            .await;
        process
    }

    /// Waits until the view has something.
    async fn until(&self, what: &str, is_so: impl Fn(&View) -> bool) {
        let mut changes = self.viewer.changes();
        let come = async {
            while !self.viewer.read(&is_so) {
                changes.changed().await.unwrap();
            }
        };
        soon(what, come).await;
    }

    /// Sends a request with these lines, `Host` and the cookie, and reads the whole answer.
    async fn request(&self, first: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut request = format!("{first} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        if !self.cookie.is_empty() {
            request += &format!("Cookie: {}\r\n", self.cookie);
        }
        request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // A server that has answered already may have closed its side.
        stream.write_all(request.as_bytes()).await.ok();
        Reply::read(stream).await
    }

    async fn get(&self, path: &str) -> Reply {
        self.request(&format!("GET {path}"), &[("Host", &self.address.to_string())], "").await
    }

    async fn post(&self, path: &str, body: &str) -> Reply {
        let (host, origin) = (self.address.to_string(), format!("http://{}", self.address));
        self.request(&format!("POST {path}"), &[("Host", &host), ("Origin", &origin)], body).await
    }

    /// Sends a form, and returns the page that the answer leads to.
    async fn act(&self, path: &str, body: &str) -> String {
        let answer = self.post(path, body).await;
        assert_eq!(answer.status, 303, "{}", answer.body);
        self.get(answer.header("location").unwrap()).await.body
    }
}

/// An answer of the page.
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    async fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        soon("the end of an answer", stream.read_to_end(&mut bytes)).await.ok();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let of = |line: &str| line.split_once(": ").is_some_and(|(own, _)| own.eq_ignore_ascii_case(name));
        self.head.lines().find(|line| of(line)).and_then(|line| line.split_once(": ")).map(|(_, value)| value)
    }
}

fn state(pid: u32) -> SeenState {
    let process = SeenProcess {
        pid,
        version: "0.1.0".into(),
        command: "wharf run".into(),
        began: u64::from(pid),
        folder: "/home/ada".into(),
        config: Some("/etc/wharf.toml".into()),
        resident: Some(50 << 20),
        memory_limit: 1 << 30,
        ..SeenProcess::default()
    };
    SeenState { process, ..SeenState::default() }
}

fn call(id: u64, began: u64) -> SeenCall {
    let ended = Some(SeenEnded { how: "done".into(), took: 1500, bytes_out: 400, ..SeenEnded::default() });
    let (plugin, name) = ("files".into(), format!("read_{id}"));
    SeenCall { id, began, ended, plugin, name, method: "tools/call".into(), ..SeenCall::default() }
}

fn question(id: u64) -> SeenQuestion {
    let choice = |word: &str, text: &str| SeenChoice { word: word.into(), text: text.into() };
    let answers = vec![choice("no", "No"), choice("once", "Yes, once")];
    SeenQuestion {
        id,
        plugin: "files".into(),
        name: "write".into(),
        text: "write a.txt".into(),
        answers,
        ..SeenQuestion::default()
    }
}

fn refused(plugin: &str, grant: Option<&str>) -> SeenCall {
    let refusal = SeenRefusal {
        text: "GET https://a.example/".into(),
        grant: grant.map(str::to_owned),
        ..SeenRefusal::default()
    };
    SeenCall { plugin: plugin.into(), refusals: vec![refusal], ..call(1, 1) }
}

/// A new folder that only this user may enter.
fn place() -> TempDir {
    tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o700)).tempdir().unwrap()
}
