//! Makes a component in a file callable: gets its compiled code from the cache or from a compiler process, links it, and determines what it
//! exports.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Seek},
    os::{fd::AsRawFd, unix::fs::FileExt},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use wasmtime::component::Component;

use crate::{
    adapter::{self, http::Learnt},
    bounds::runtime::Turns,
    compile::{
        cache,
        child::{Artifact, NativeCode},
        component::{Exports, Linked, PACKAGE, VERSION},
        draft,
        engine::Linkable,
    },
    contract::told::one_line,
    file::{load_error::LoadError, sections::Sections},
    run::{
        instance::About,
        sandbox::Sandbox,
        stays::{Lost, Stays},
    },
    wasi::{blocking::blocking, config_store, reach::PluginSpec},
};
use wharf_base::{
    accounts::Charge,
    places::{Places, PoolRule},
};
use wharf_scope::{
    MAX_COMPONENT_BYTES,
    adapter::{Adapter, ServedAs},
};

/// The rule for running calls of one plugin.
pub static CALLS: PoolRule = PoolRule {
    of: "running calls of one plugin",
    number: "`concurrency` in [limits] or [plugins.ID.limits]",
    taker: "client",
    until: "the call ends; calls beyond it wait, within their time limit",
    asking: "not held",
    gone: "held until the call ends or is stopped",
    gives_way: "none",
    old: Duration::MAX,
};

/// A component that is compiled and linked, ready to be instantiated. Several plugins with different limits and grants can share
/// it; clones are cheap.
#[derive(Clone)]
pub struct Code(pub(crate) Arc<CodeInner>);

pub(crate) struct CodeInner {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) digest: wharf_base::digest::Digest,
    pub(crate) linked: Linked,
    imports: Vec<String>,
    sections: Sections,
    wrapped: bool,
    _charge: Charge,
}

/// Code with the limits and the config under which it runs. Clones are cheap, and are the same plugin.
#[derive(Clone)]
pub struct LoadedPlugin(pub(crate) Arc<PluginInner>);

pub(crate) struct PluginInner {
    pub(crate) code: Code,
    pub(crate) spec: PluginSpec,
    /// The limit of memory for each of its instances.
    pub(crate) memory_bytes: usize,
    pub(crate) served: ServedAs,
    /// The strings of its config by their keys, for guests that read them through WASI.
    pub(crate) settings: Arc<BTreeMap<String, String>>,
    /// A number that no other plugin has or had, not even one that was loaded from the same file.
    pub(crate) number: u64,
    pub(crate) admission: Arc<Places>,
    pub(crate) running: AtomicUsize,
    pub(crate) turns: Turns,
    /// What it keeps in memory for clients, shared with the plugin that it replaces.
    pub(crate) stays: Mutex<Arc<Stays>>,
    /// What it has learnt about its MCP server over HTTP, if it is one.
    learnt: Mutex<Option<Arc<Learnt>>>,
}

impl PluginInner {
    pub(crate) fn about(&self) -> About<'_> {
        let CodeInner { linked, sandbox, .. } = &*self.code.0;
        let (served, total_memory) = (self.served, sandbox.memory.whole());
        About { linked, spec: &self.spec, memory_bytes: self.memory_bytes, served, total_memory, learnt: &self.learnt }
    }
}

impl Drop for PluginInner {
    fn drop(&mut self) {
        self.code.0.sandbox.warm.forget(self.number);
    }
}

impl Sandbox {
    /// Loads the component in a file: finds its code in the cache, or compiles it in a child process. `slow` is called once if compiling
    /// takes long. Dropping the future kills that process.
    pub async fn load(self: &Arc<Self>, file: File, slow: impl Fn()) -> Result<Code, LoadError> {
        let unreadable = |error: std::io::Error| LoadError::Unreadable(error.to_string());
        let length = file.metadata().map_err(unreadable)?.len();
        if length > MAX_COMPONENT_BYTES as u64 {
            return Err(LoadError::TooLarge(length));
        }
        let (file, digest) = blocking(move || digest(file)).await.map_err(unreadable)?;
        let key = cache::key(self.compiler(), &digest);
        if let Some(code) = self.cached(digest, key.clone()).await? {
            return Ok(code);
        }
        // If several files hold the same component, the first is compiled while the others wait and then find it in the cache.
        let turn = self.compilers.turn(digest);
        let _turn = turn.lock().await;
        if let Some(code) = self.cached(digest, key.clone()).await? {
            return Ok(code);
        }
        let room = |bytes| self.room(bytes);
        let (mut artifact, charge) = self.compilers.compile((file, length), slow, room).await?;
        if artifact.digest != digest {
            return Err(LoadError::Unreadable("it changed while it was read".into()));
        }
        let sandbox = Arc::clone(self);
        blocking(move || {
            if let Some(cache) = &sandbox.cache {
                cache.put(&key, &artifact);
                // From now on the memory of the code is that of the file, as in the next process.
                if let Ok(Some((stored, ()))) = cache.get(&key, |_| Ok::<_, LoadError>(())) {
                    artifact = stored;
                }
            }
            sandbox.instate(artifact, digest, charge)
        })
        .await
    }

    /// Returns the code of the component with this digest, if it is in the cache.
    pub async fn kept(self: &Arc<Self>, digest: &wharf_base::digest::Digest) -> Result<Option<Code>, LoadError> {
        let digest = *digest.as_bytes();
        self.cached(digest, cache::key(self.compiler(), &digest)).await
    }

    /// Returns the code from the cache, if it is there and can be used.
    async fn cached(self: &Arc<Self>, digest: [u8; 32], key: String) -> Result<Option<Code>, LoadError> {
        let sandbox = Arc::clone(self);
        blocking(move || {
            let cached = match &sandbox.cache {
                Some(cache) => cache.get(&key, |bytes| sandbox.room(bytes))?,
                None => None,
            };
            match cached.map(|(artifact, charge)| sandbox.instate(artifact, digest, charge)).transpose() {
                // The code may come from a run of wharf with other system limits, such as the one on the size of files. It is compiled
                // again.
                Err(LoadError::Compile(_)) => Ok(None),
                code => code,
            }
        })
        .await
    }

    /// Charges for compiled code, before it is read.
    fn room(&self, bytes: usize) -> Result<Charge, LoadError> {
        self.host_memory.charge(bytes).map_err(|full| {
            LoadError::NoRoom(format!(
                "there is no room for {bytes} bytes of compiled code: {full}; see total_host_memory_mib"
            ))
        })
    }

    /// Makes compiled code callable.
    fn instate(
        self: &Arc<Self>,
        mut artifact: Artifact,
        digest: [u8; 32],
        mut charge: Charge,
    ) -> Result<Code, LoadError> {
        charge.shrink(artifact.code.len());
        let mut refused = None;
        loop {
            for one in self.pooled.iter().chain([&self.on_demand]) {
                match deserialize(one, &artifact.code) {
                    Ok(component) => return self.link(one, &component, &artifact, digest, charge),
                    // A component that does not fit into a slot of the pool is loaded into the next engine, which allocates on demand.
                    Err(error) => refused = Some(error),
                }
            }
            // A file system may not allow that its files are executed, or be without /proc. Then the code is copied.
            let NativeCode::File(file, length) = &artifact.code else { break };
            let mut bytes = vec![0; *length];
            if file.read_exact_at(&mut bytes, 0).is_err() {
                break;
            }
            artifact.code = NativeCode::Bytes(bytes, 0);
        }
        Err(LoadError::Compile(refused.map(|error| one_line(&error)).unwrap_or_default()))
    }

    fn link(
        self: &Arc<Self>,
        one: &Linkable,
        component: &Component,
        artifact: &Artifact,
        digest: [u8; 32],
        mut charge: Charge,
    ) -> Result<Code, LoadError> {
        let ty = component.component_type();
        // Imports that consist only of types do not have to be provided.
        let imports = ty.imports(&one.engine).filter(|(_, item)| !adapter::only_types(&one.engine, &item.ty));
        let imports: Vec<String> = imports.map(|(name, _)| name.to_owned()).collect();
        let exports: Vec<String> = ty.exports(&one.engine).map(|(name, _)| name.to_owned()).collect();
        if let Some(foreign) = imports.iter().chain(&exports).find(|name| is_foreign_version(name)) {
            return Err(LoadError::UnknownVersion(foreign.clone()));
        }
        if let Some(draft) = draft::interface(&ty, &one.engine) {
            return Err(LoadError::Draft(draft));
        }
        if let Some(unknown) = imports.iter().find(|name| !is_offered(name)) {
            return Err(LoadError::UnknownImport(unknown.clone()));
        }
        let pre = one.linker.instantiate_pre(component).map_err(|error| import_error(&error))?;
        let linked = Linked::new(component, pre, artifact)?;
        if linked.foreign.run.is_none() {
            adapter::served(linked.exports() != Exports::default(), &linked.foreign, &Adapter::default())?;
        }
        let types = linked.foreign.functions.bytes;
        charge
            .grow(types)
            .map_err(|full| LoadError::NoRoom(format!("there is no room for {types} bytes of types: {full}")))?;
        // The docs are in the descriptions of the tools by now.
        let sections = Sections { docs: None, ..artifact.sections.clone() };
        let (sandbox, wrapped) = (Arc::clone(self), artifact.wrapped);
        let digest = digest.into();
        Ok(Code(Arc::new(CodeInner { sandbox, digest, linked, imports, sections, wrapped, _charge: charge })))
    }
}

impl Code {
    /// Returns the SHA-256 of the component.
    pub fn digest(&self) -> &wharf_base::digest::Digest {
        &self.0.digest
    }

    /// Returns which interfaces of the contract the component exports.
    pub fn exports(&self) -> Exports {
        self.0.linked.exports()
    }

    /// Returns why exported functions are not tools, a sentence for each.
    pub fn refused_functions(&self) -> &[String] {
        &self.0.linked.foreign.functions.refused
    }

    /// Whether it exports the handler of an HTTP server.
    pub fn handles_http(&self) -> bool {
        self.0.linked.foreign.handle.is_some()
    }

    /// Whether its file is a core module, which was wrapped into a component to be loaded.
    pub fn was_core_module(&self) -> bool {
        self.0.wrapped
    }

    /// Returns the names of the interfaces that the component imports, with their versions.
    pub fn imports(&self) -> &[String] {
        &self.0.imports
    }

    /// Returns the sections in which the plugin describes itself.
    pub fn sections(&self) -> &Sections {
        &self.0.sections
    }
}

impl LoadedPlugin {
    /// Creates a plugin. It is separate from other plugins with the same code: neither its running calls nor its retained instances are
    /// shared.
    ///
    /// # Errors
    /// If the adapter in the spec does not match what the component exports.
    pub fn new(code: Code, spec: PluginSpec) -> Result<Self, LoadError> {
        let served = adapter::served(code.exports() != Exports::default(), &code.0.linked.foreign, &spec.adapter)?;
        let settings = Arc::new(config_store::texts(&spec.config));
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let admission = Places::new(&CALLS, spec.limits.concurrency.max(1));
        let turns = code.0.sandbox.runtime.turns();
        let running = AtomicUsize::new(0);
        let memory_bytes = code.0.linked.memory_bytes(spec.limits.memory);
        let (stays, learnt) = (Mutex::default(), Mutex::default());
        let inner = PluginInner {
            code,
            spec,
            memory_bytes,
            served,
            settings,
            number,
            admission,
            running,
            turns,
            stays,
            learnt,
        };
        Ok(Self(Arc::new(inner)))
    }

    /// Takes the place of another plugin. What that one kept in memory for clients is gone, which they are told with their next answers.
    pub fn succeed(&self, before: &Self) {
        if Arc::ptr_eq(&self.0, &before.0) {
            return;
        }
        let stays = Arc::clone(&before.0.stays.lock());
        stays.lose(Lost::Changed);
        *self.0.stays.lock() = stays;
    }

    /// Returns, once, the sentence for a client that says that what was kept for it in memory is gone, if it is.
    pub fn tell_lost(&self, client: &str) -> Option<String> {
        let stays = Arc::clone(&self.0.stays.lock());
        stays.tell(client)
    }

    /// Takes over what another plugin with the same code has learnt about its MCP server over HTTP.
    pub fn learn_from(&self, other: &Self) {
        let learnt = other.0.learnt.lock().clone();
        if learnt.is_some() && self.0.spec.adapter.endpoint() == other.0.spec.adapter.endpoint() {
            *self.0.learnt.lock() = learnt;
        }
    }

    /// Whether the plugin suggests values for arguments.
    pub fn completes(&self) -> bool {
        match self.0.served {
            ServedAs::Http => self.0.learnt.lock().as_ref().is_some_and(|learnt| learnt.completions),
            ServedAs::Contract | ServedAs::Functions | ServedAs::Command => self.0.code.exports().completions,
        }
    }

    /// Returns the code that the plugin runs.
    pub fn code(&self) -> &Code {
        &self.0.code
    }

    /// Returns how the plugin is served.
    pub fn served(&self) -> ServedAs {
        self.0.served
    }

    /// Returns how many of its calls run at this moment.
    pub fn running(&self) -> usize {
        self.0.running.load(Ordering::Relaxed)
    }

    /// Returns how many of its instances are retained for later calls.
    pub fn kept(&self) -> usize {
        self.0.code.0.sandbox.warm.count(self.0.number)
    }
}

/// Returns the SHA-256 of a file, and the file itself, rewound to its beginning. The file is read piece by piece, since it may be large.
fn digest(mut file: File) -> std::io::Result<(File, [u8; 32])> {
    let mut sha = Sha256::new();
    let mut piece = vec![0; 256 << 10];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            read => sha.update(piece.get(..read).unwrap_or_default()),
        }
    }
    file.rewind()?;
    Ok((file, sha.finalize().into()))
}

#[expect(unsafe_code, reason = "deserialising is how wasmtime takes compiled code")]
fn deserialize(one: &Linkable, code: &NativeCode) -> wasmtime::Result<Component> {
    match code {
        // SAFETY: the bytes come from `precompile_component` in the process that compiled the component, or from the cache, which
        // hands out only files with the right digest from a directory that is closed to other users.
        NativeCode::Bytes(..) => unsafe { Component::deserialize(&one.engine, code.bytes().unwrap_or_default()) },
        // SAFETY: as above. What follows the code in the file does not matter, and nobody changes the file while it is mapped: plugins cannot
        // write into the directory, and wharf gives its name to another file.
        NativeCode::File(file, _) => unsafe {
            Component::deserialize_file(&one.engine, format!("{OPEN_FILES}/{}", file.as_raw_fd()))
        },
    }
}

/// Where the files that this process has open have paths, which lead to the very files.
const OPEN_FILES: &str = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };

fn is_foreign_version(name: &str) -> bool {
    name.strip_prefix(PACKAGE)
        .is_some_and(|rest| !rest.split_once('@').is_some_and(|(_, version)| version.starts_with(VERSION)))
}

fn is_offered(name: &str) -> bool {
    let wasi =
        name.starts_with("wasi:") && name.split_once('@').is_some_and(|(_, version)| version.starts_with("0.2."));
    wasi || name.starts_with(PACKAGE)
}

/// Finds the name of the import that is missing or has the wrong type: wasmtime puts it between backticks in its message.
fn import_error(error: &wasmtime::Error) -> LoadError {
    let text = one_line(error);
    match text.split('`').nth(1) {
        Some(name) if name.starts_with(PACKAGE) => LoadError::WrongType(name.to_owned()),
        Some(name) => LoadError::UnknownImport(name.to_owned()),
        None => LoadError::Compile(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, foreign, offered) in [
            ("wharf:plugin/tools@0.1.0", false, true),
            ("wharf:plugin/tools@0.1.7", false, true),
            ("wharf:plugin/tools@0.2.0", true, true),
            ("wharf:plugin/tools@9.9.9", true, true),
            ("wharf:plugin/tools", true, true),
            ("wasi:http/types@0.2.10", false, true),
            ("wasi:http/types@0.3.0", false, false),
            ("acme:db/query@1.0.0", false, false),
            ("run", false, false),
        ] {
            assert_eq!((is_foreign_version(name), is_offered(name)), (foreign, offered), "{name}");
        }
    }
}
