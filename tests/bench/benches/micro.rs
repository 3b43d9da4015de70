//! What each step of a call costs by itself: `cargo xtask bench --micro`. For finding what to mend; the ratios that count
//! are those of whole calls.

#![expect(clippy::disallowed_methods, reason = "what is measured reads files that are made here")]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark that cannot run ends by panicking"
)]

use std::{path::Path, sync::Arc};

use divan::{Bencher, black_box};
use tokio::runtime::Runtime;
use wharf_base::{
    accounts::Account,
    places::{Party, Places},
};
use wharf_config::config::{self, CommandLine, Config};
use wharf_plugins::{
    bridge,
    plugins::{
        catalog::Catalog,
        filter::Filter,
        lists::List,
        served::{Access, Generations, RESULTS, Served, TASKS},
    },
};
use wharf_policy::access::{call_roots::CallRoots, registry::Registry, scope::Scopes};
use wharf_protocol::{Frame, Revision, encode::Encoder, model::ServerInfo};
use wharf_sandbox::{
    CallTool, Client, Listing, LoadedPlugin, NoEvents, Operation, PluginCall, PluginSpec, Sandbox, Traces,
};
use wharf_schema::{CHECKS, Schema};
use wharf_scope::Scope;

wharf_sandbox::narrow_page_scans!();

fn main() -> std::process::ExitCode {
    // What is measured here compiles as wharf itself does.
    if let Some(ended) = wharf_sandbox::compile_if_asked() {
        return ended;
    }
    divan::main();
    std::process::ExitCode::SUCCESS
}

fn request(bytes: usize) -> Vec<u8> {
    let message = "x".repeat(bytes);
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}"#;
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"{message}"}},"_meta":{meta}}}}}"#
    )
    .into_bytes()
}

fn encoder() -> Encoder {
    let server = ServerInfo { name: "wharf".into(), version: "0".into(), ..ServerInfo::default() };
    Encoder::new(Revision::V2026_07_28, server)
}

/// A plugin in a sandbox, and a runtime for its calls.
struct Echo {
    runtime: Runtime,
    plugin: LoadedPlugin,
}

impl Echo {
    fn new() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/plugins/echo.wasm");
        let component = std::fs::File::open(path).expect("`cargo xtask build plugins` builds the plugin");
        let sandbox = Sandbox::new(bench::sandbox_config()).expect("a sandbox");
        let limits = self::config("").limits.call;
        let spec = PluginSpec { id: "echo".into(), limits, config: "{}".into(), adapter: Arc::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let code = runtime.block_on(sandbox.load(component, || {})).expect("a plugin");
        Self { runtime, plugin: LoadedPlugin::new(code, spec).expect("it was made for wharf") }
    }

    fn run<O: Operation>(&self, operation: O, client: Option<Arc<str>>) -> O::Outcome {
        let call = PluginCall {
            operation,
            scope: Scope::default(),
            events: Arc::new(NoEvents),
            timeout: None,
            client: client.map(|key| Box::new(Client { key, in_one: false, lasts: None })),
            party: Party::SOLE,
            traces: Traces::default(),
        };
        self.runtime.block_on(self.plugin.call(call)).result.expect("an outcome")
    }

    fn listing(&self) -> Listing {
        self.run(wharf_sandbox::ListEntries, None)
    }
}

fn config(text: &str) -> Config {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("wharf.toml");
    std::fs::write(&file, text).expect("a file");
    config::load(Some(&file), &CommandLine::default()).expect("a config")
}

fn call(bytes: usize) -> CallTool {
    let context = bench::context();
    let args = Arc::new(format!(r#"{{"message":"{}"}}"#, "x".repeat(bytes)));
    CallTool { name: "echo".into(), args, context }
}

#[divan::bench(args = [32, 65_536])]
fn parse(bencher: Bencher, bytes: usize) {
    let body = request(bytes);
    bencher.bench(|| Frame::parse(black_box(&*body)));
}

#[divan::bench(args = [32, 65_536])]
fn encode(bencher: Bencher, bytes: usize) {
    let (encoder, text) = (encoder(), "x".repeat(bytes));
    bencher.bench(|| encoder.text_result(black_box(&text)));
}

#[divan::bench]
fn check_arguments(bencher: Bencher) {
    let echo = Echo::new();
    let schema = Schema::small(&echo.listing().tools[0].input_schema).expect("a schema");
    let arguments = serde_json::json!({ "message": "x".repeat(32) });
    bencher.bench(|| schema.check(black_box(&arguments)));
}

fn catalog(plugins: usize) -> Catalog {
    let echo = Echo::new();
    let listing = echo.listing();
    let served = (0..plugins).map(|number| {
        let config = Arc::new(config("").dropped_in(&format!("p{number}"), "echo.wasm".into()));
        let offer = bridge::offer(&config, Arc::new(listing.clone()), &Account::new(1 << 30)).expect("an offer");
        Served {
            wants: None,
            plugin: echo.plugin.clone(),
            config: Arc::clone(&config),
            listed_for: config,
            offer: Arc::new(offer),
            checks: Places::new(&CHECKS, 1),
            results: Places::new(&RESULTS, 1),
            tasks: Places::new(&TASKS, 1),
            access: Access::from_now_on(),
        }
    });
    match Catalog::build(served.collect(), Generations::default(), 1000) {
        Ok(catalog) => catalog,
        Err(clash) => panic!("{}", clash.problem),
    }
}

#[divan::bench(args = [1, 1000])]
fn find_a_tool(bencher: Bencher, plugins: usize) {
    let catalog = catalog(plugins);
    let name = format!("p{}_echo", plugins / 2);
    bencher.bench(|| catalog.tool(black_box(&name)).map(|(_, tool)| tool.own_name.len()));
}

#[divan::bench(args = [1, 1000])]
fn list_tools(bencher: Bencher, plugins: usize) {
    let (catalog, encoder) = (catalog(plugins), encoder());
    bencher.bench(|| {
        catalog.lists.page(List::Tools, None, black_box(&encoder), &Filter::default()).map(|page| page.end().len())
    });
}

/// The scope of a call: with no directory, or with so many of the operator's.
#[divan::bench(args = [0, 1, 8])]
fn scope(bencher: Bencher, directories: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let dirs: Vec<String> = (0..directories)
        .map(|number| {
            let path = folder.path().join(number.to_string());
            std::fs::create_dir(&path).expect("a folder");
            format!("{{ host = {path:?}, guest = '/{number}', access = 'read' }}")
        })
        .collect();
    let text = format!("[plugins.a]\npath = 'a.wasm'\n[plugins.a.grants]\ndirs = [{}]\n", dirs.join(", "));
    let config = config(&text);
    let scopes = Scopes::new(config.folder_rules(None), false, None, (Registry::default(), false));
    let plugin = Arc::clone(&config.plugins[0]);
    bencher.bench(|| scopes.for_call(&plugin.id, black_box(&plugin.grants), &CallRoots::default(), Party::SOLE));
}

/// A fresh instance that says what it offers: what isolation costs, and almost nothing else.
#[divan::bench]
fn instantiate(bencher: Bencher) {
    let echo = Echo::new();
    bencher.bench(|| echo.run(wharf_sandbox::ListEntries, None));
}

#[divan::bench(args = [32, 65_536])]
fn call_fresh(bencher: Bencher, bytes: usize) {
    let echo = Echo::new();
    bencher.with_inputs(|| call(bytes)).bench_values(|operation| echo.run(operation, None));
}

#[divan::bench(args = [32, 65_536])]
fn call_reused(bencher: Bencher, bytes: usize) {
    let (echo, client) = (Echo::new(), Arc::from("bench"));
    bencher.with_inputs(|| call(bytes)).bench_values(|operation| echo.run(operation, Some(Arc::clone(&client))));
}
