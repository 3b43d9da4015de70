//! The state of an instance: its WASI context, its directories, its budget, and the call that it serves. The host functions of the
//! contract work on it.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Weak},
};

use http_body_util::BodyExt as _;
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::{
    WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView,
    filesystem::Descriptor,
    p2::{bindings::filesystem::preopens, pipe::MemoryInputPipe},
    runtime::{AbortOnDropJoinHandle, spawn},
};
use wasmtime_wasi_http::{
    Error as HttpError, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks,
    WasiHttpView,
};

use crate::{
    adapter::command::Process,
    bindings::{announcements, environment, logging, progress, types},
    bounds::{
        handles::Share,
        limits::MemoryBudget,
        output::{Capture, Collected},
        runtime::Pace,
        written::Written,
    },
    wasi::{
        fixed::prescribe,
        reach::{self, Events, NoEvents, PluginSpec, Wait},
        told::{self, Told, Touched},
        traces::Traces,
        traffic::{Traffic, denied},
        voice::Voice,
    },
};
use wharf_base::accounts::{Account, Charge};
use wharf_scope::{Denial, Directory, FileIdentity, Fixed, Scope, changes::Changes};

/// How many random bytes a guest may ask for at once.
const MAX_RANDOM_BYTES: u64 = 1024 * 1024;

/// How many bytes a set of HTTP fields may hold.
const MAX_FIELDS_BYTES: usize = 8 << 10;
/// The size of the pieces of an outgoing body. A handle can hold two of them.
const BODY_PIECE_BYTES: usize = 4096;

/// The state of the call that an instance serves.
pub(crate) struct CallState {
    voice: Voice,
    traces: Traces,
    pace: Arc<Pace>,
    /// `None` if it may make no HTTP requests.
    traffic: Option<Traffic>,
    /// What reads the bodies of the last requests that were refused at once, and forgets them. The guest still writes them, and the engine of
    /// JavaScript gives up if that fails, or waits without an end.
    refused: VecDeque<AbortOnDropJoinHandle<()>>,
}

/// So many refused requests are written at the same time without harm.
const REFUSED_AT_ONCE: usize = 32;

impl CallState {
    pub(crate) fn new(events: Arc<dyn Events>, traces: Traces, pace: Arc<Pace>, traffic: Option<Traffic>) -> Self {
        Self { voice: Voice::new(events), traces, pace, traffic, refused: VecDeque::new() }
    }

    /// Notes that the turn of the call has come.
    pub(crate) fn begin(&self) {
        self.traces.begin();
    }

    /// Returns a future that the call has to wait for before it runs, if any.
    pub(crate) fn wait_to_run(&self) -> Option<Wait<'_>> {
        self.voice.wait_to_run()
    }

    /// Notes that a tick has passed while the guest computed.
    pub(crate) fn tick(&self) {
        self.pace.tick();
    }

    /// Returns the voice of an MCP server over HTTP, whose events come in its answers and not from functions that it calls.
    pub(crate) fn voice_of_server(&self) -> (Voice, Option<Traffic>) {
        (self.voice.again(), self.traffic.clone())
    }

    /// Aborts the HTTP requests that are in flight.
    fn end(&self) {
        if let Some(traffic) = &self.traffic {
            traffic.end();
        }
    }

    /// Returns the state of an instance between its calls. It ignores all events.
    fn idle() -> Self {
        Self::new(Arc::new(NoEvents), Traces::default(), Arc::default(), None)
    }
}

impl Drop for CallState {
    fn drop(&mut self) {
        self.end();
    }
}

/// The data in the store of an instance.
pub(crate) struct State {
    /// `None` until the guest calls a function that needs it. Many calls need none, and building one takes as long as a tenth of a short
    /// call's sandbox.
    wasi: Option<Box<WasiCtx>>,
    start: Start,
    http: WasiHttpCtx,
    table: ResourceTable,
    directories: Vec<Directory>,
    pub(crate) listed: Option<Listed>,
    /// The files that the call has made or emptied, whose contents are all its own.
    pub(crate) begun: BTreeSet<FileIdentity>,
    /// How many entries of directories have been read, but not yet passed on to the guest.
    pub(crate) read_ahead: usize,
    config: Arc<str>,
    settings: Arc<BTreeMap<String, String>>,
    printed: Capture,
    /// The standard output of a command. `None` if the instance does not run a command.
    output: Option<Collected>,
    /// The charge for the arguments and the input of a command.
    _started_with: Option<Charge>,
    pub(crate) call: CallState,
    pub(crate) budget: MemoryBudget,
    /// What the call has written to files.
    pub(crate) written: Arc<Written>,
    /// What keeps the changes of the call.
    pub(crate) told: Arc<Told>,
    pub(crate) touched: Touched,
    handles_limit: usize,
    /// The last field, so that it is dropped, and the handles are given back, after the files have been closed.
    handles: Share,
}

/// What the guest finds when it starts: its environment variables, and the arguments and the input of a command.
struct Start {
    environment: Vec<(String, String)>,
    fixed: Fixed,
    process: Option<Process>,
}

impl Start {
    /// Builds the WASI context. Takes what it contains.
    fn context(&mut self, printed: &Capture, output: Option<&Collected>) -> WasiCtx {
        let mut wasi = WasiCtxBuilder::new();
        wasi.stdout(printed.clone()).stderr(printed.clone()).max_random_size(MAX_RANDOM_BYTES);
        if let Some((process, output)) = self.process.take().zip(output) {
            wasi.args(&process.argv).stdin(MemoryInputPipe::new(process.stdin)).stdout(output.clone());
        }
        for (name, value) in std::mem::take(&mut self.environment) {
            wasi.env(name, value);
        }
        prescribe(self.fixed, &mut wasi);
        wasi.build()
    }
}

/// The directory entry that was passed on to the guest last.
pub(crate) struct Listed {
    /// The guest's own handle of the directory, which this does not keep open.
    pub(crate) base: Weak<std::fs::File>,
    pub(crate) name: String,
    pub(crate) identity: FileIdentity,
}

impl State {
    /// Creates the state of a new instance. `settings`: the strings of the plugin's config. `process`: the arguments and the input of a
    /// command.
    pub(crate) fn new(
        mut scope: Scope,
        (spec, memory_bytes, settings): (&PluginSpec, usize, &Arc<BTreeMap<String, String>>),
        total: &Account,
        process: Option<(Process, Charge)>,
        handles: Share,
        call: CallState,
    ) -> Self {
        let printed = Capture::default();
        let output = process.is_some().then(|| Collected::new(spec.limits.output_bytes));
        let (process, started_with) = process.unzip();
        let start = Start { environment: scope.environment, fixed: scope.fixed, process };
        let mut table = ResourceTable::new();
        table.set_max_capacity(handles.limit());
        call.traces.capture(&printed);
        let told = Arc::new(Told::default());
        told.begin(told::of(&scope.directories));
        // The instance may live longer than the call.
        for directory in &mut scope.directories {
            directory.changes = None;
        }
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(MAX_FIELDS_BYTES);
        Self {
            wasi: None,
            start,
            http,
            table,
            directories: scope.directories,
            listed: None,
            begun: BTreeSet::new(),
            read_ahead: 0,
            config: Arc::clone(&spec.config),
            settings: Arc::clone(settings),
            printed,
            output,
            _started_with: started_with,
            call,
            budget: MemoryBudget::new(memory_bytes, total),
            written: Written::new(memory_bytes),
            told,
            touched: Touched::default(),
            handles_limit: handles.limit(),
            handles,
        }
    }

    pub(crate) fn directories(&self) -> &[Directory] {
        &self.directories
    }

    /// Returns the strings of the plugin's config by their keys.
    pub(crate) fn settings(&self) -> &BTreeMap<String, String> {
        &self.settings
    }

    /// Takes what a command has written to its standard output. `None` if it exceeded the limit.
    pub(crate) fn take_written(&self) -> Option<Vec<u8>> {
        self.output.as_ref().map_or(Some(Vec::new()), Collected::take)
    }

    /// Returns the end of what was printed.
    pub(crate) fn printed(&self) -> String {
        self.printed.text()
    }

    /// Returns the largest number of handles that the instance has ever had room for.
    pub(crate) fn handles_limit(&self) -> usize {
        self.handles_limit
    }

    /// Ends the call. Until the next one, the instance holds only as many handles as are open. Returns false if the instance cannot be used
    /// again, because something that began in the call is still running, or because its memory is used up.
    pub(crate) fn rest(&mut self) -> bool {
        self.settle();
        let traffic = self.call.traffic.as_ref();
        let idle = traffic.is_none_or(Traffic::is_idle);
        // The guest may still hold these header fields.
        let charged = self.budget.grow(traffic.map_or(0, Traffic::header_bytes));
        self.listed = None;
        self.begun.clear();
        self.touched.clear();
        self.told.begin(None);
        self.call = CallState::idle();
        self.handles.shrink(self.table.iter_mut().count());
        idle && charged
    }

    /// Begins another call. `changes`: what keeps its changes.
    pub(crate) fn renew(&mut self, handles: Share, call: CallState, changes: Option<Arc<dyn Changes>>) {
        self.told.begin(changes);
        self.handles = handles;
        self.handles_limit = self.handles_limit.max(self.handles.limit());
        self.table.set_max_capacity(self.handles.limit());
        self.printed.clear();
        self.budget.renew();
        self.written.renew();
        call.traces.capture(&self.printed);
        self.call = call;
    }

    /// Copies into the traces why memory was refused.
    fn settle(&self) {
        self.call.traces.settle(self.budget.refused());
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // This comes before the fields are dropped: a request body that the guest has not finished must not look complete.
        self.call.end();
        self.told.begin(None);
        self.settle();
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let (start, printed, output) = (&mut self.start, &self.printed, self.output.as_ref());
        let ctx = self.wasi.get_or_insert_with(|| Box::new(start.context(printed, output)));
        WasiCtxView { ctx, table: &mut self.table }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { ctx: &mut self.http, table: &mut self.table, hooks: &mut self.call }
    }
}

/// Hands out directories that were opened elsewhere. WASI's own implementation would open them by their paths.
impl preopens::Host for State {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        if self.directories.is_empty() {
            self.call.traces.deny(Denial::NoDirectory { asked: false });
        }
        let handles = self.directories.iter().map(reach::open).collect::<Result<Vec<_>, _>>()?;
        let mut open = Vec::with_capacity(self.directories.len());
        for (directory, handle) in self.directories.iter().zip(&handles) {
            for path in std::iter::once(directory.guest_path.as_str()).chain(directory.real_path()) {
                let descriptor = self.table.push(Descriptor::Dir(handle.clone()))?;
                open.push((descriptor, path.to_owned()));
            }
        }
        // The paths in a command's arguments may be relative, as in a shell.
        if let Some(first) = handles.first().filter(|_| self.output.is_some()) {
            let descriptor = self.table.push(Descriptor::Dir(first.clone()))?;
            open.push((descriptor, ".".into()));
        }
        Ok(open)
    }
}

type HttpFuture<T> = Box<dyn Future<Output = Result<T, HttpError>> + Send>;

/// Passes requests to the network of the scope, if it has one.
impl WasiHttpHooks for CallState {
    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _: HttpFuture<()>,
    ) -> HttpFuture<(http::Response<WasiBody>, HttpFuture<()>)> {
        let Some(traffic) = &self.traffic else {
            let error = denied(&self.traces, &request);
            self.refused.truncate(REFUSED_AT_ONCE - 1);
            let mut body = request.into_body();
            self.refused.push_front(spawn(async move { while let Some(Ok(_)) = body.frame().await {} }));
            return Box::new(async { Err(error) });
        };
        let sent = traffic.send(request, options);
        // The network itself drives its connections, so the second future has nothing to do.
        Box::new(async { Ok((sent.await?, Box::new(async { Ok(()) }) as HttpFuture<()>)) })
    }

    // Headers a guest may not set are stripped by the network layer; refusing them here would break runtimes that always send them.
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(|_| false)
    }

    // The network sets the `Host` header itself, from the host to which it applied its rules.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        BODY_PIECE_BYTES
    }
}

impl logging::Host for State {
    async fn log(&mut self, level: logging::Level, message: String, data: Option<types::Json>) -> wasmtime::Result<()> {
        let CallState { voice, traffic, .. } = &mut self.call;
        voice.log(traffic.as_ref(), level, message, data).await;
        Ok(())
    }
}

impl progress::Host for State {
    async fn report(&mut self, done: f64, total: Option<f64>, message: Option<String>) -> wasmtime::Result<()> {
        let CallState { voice, traffic, .. } = &mut self.call;
        voice.report(traffic.as_ref(), done, total, message).await;
        Ok(())
    }
}

impl announcements::Host for State {
    fn list_changed(&mut self, which: announcements::Kind) -> wasmtime::Result<()> {
        self.call.voice.list_changed(which);
        Ok(())
    }

    async fn resource_updated(&mut self, uri: String) -> wasmtime::Result<()> {
        let CallState { voice, traffic, .. } = &mut self.call;
        voice.resource_updated(traffic.as_ref(), uri).await;
        Ok(())
    }
}

impl environment::Host for State {
    fn config(&mut self) -> wasmtime::Result<types::Json> {
        Ok(self.config.to_string())
    }

    fn directories(&mut self) -> wasmtime::Result<Vec<environment::Directory>> {
        if self.directories.is_empty() {
            self.call.traces.deny(Denial::NoDirectory { asked: true });
        }
        let directory = |directory: &Directory| environment::Directory {
            path: directory.guest_path.clone(),
            writable: directory.writable,
        };
        Ok(self.directories.iter().map(directory).collect())
    }
}
