//! Compiles each component in a child process. A component that makes the compiler exhaust its memory, run for ever or crash affects only
//! that process.
//!
//! The parent starts its own binary again with [`COMPILE_ARGUMENT`] as the first argument, so every program that creates a [`Sandbox`]
//! begins its `main` with [`compile_if_asked`]. The child is confined by rlimits and Landlock. It gets the component as its standard input,
//! no environment except one setting of its allocator, no other open file, and no right to write one. It checks what the component would
//! instantiate before it compiles it, and returns the code through its standard output. The parent decides whether and where to store the
//! code.
//!
//! [`Sandbox`]: crate::Sandbox

use std::{
    collections::HashMap,
    fs::File,
    io::{Read, Write},
    os::fd::AsFd,
    path::PathBuf,
    process::{ExitCode, Stdio},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Resource, Rlimit, setrlimit},
};
use sha2::{Digest, Sha256};
use tokio::{
    io::AsyncReadExt,
    process::{Child, ChildStdout, Command},
    sync::Semaphore,
    time::timeout,
};
use wasmtime::Engine;

use crate::{
    compile::{effort::Effort, engine},
    contract::told::one_line,
    file::{
        load_error::{EngineError, Kind, LoadError, kind},
        look::look,
        sections::Sections,
    },
};
use wharf_base::accounts::Charge;
use wharf_scope::MAX_COMPONENT_BYTES;

/// The first argument of the child.
const COMPILE_ARGUMENT: &str = "compile-one-component";

/// The first byte of the child's reply. After `MADE` follow the length of the rest and the compiled code, after `REFUSED` the reason why the
/// component is not compiled.
const MADE: u8 = b'+';
const REFUSED: u8 = b'-';
/// The maximum length of a reason that is read from a child.
const MAX_REASON_BYTES: usize = 4096;

/// The address space that every compilation gets, in MiB. Measured: a component of some hundred kilobytes takes less than 256.
const MIN_ADDRESS_SPACE_MIB: usize = 512;
/// The additional address space for each MiB of the component, in MiB.
const ADDRESS_SPACE_MIB_PER_MIB: usize = 48;
/// The maximum size of compiled code, as a multiple of its component's size.
const MAX_ARTIFACT_GROWTH: u64 = 12;
/// The size that compiled code may always have, however small its component is.
const MIN_ARTIFACT_BYTES: u64 = 16 << 20;
/// How many times the limit a child may take on a machine that is busy with other work.
const PATIENCE: u32 = 5;
/// How often the CPU time of a child is checked.
const CPU_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The CPU time after which a compilation counts as slow. Wall-clock time would also depend on how busy the machine is.
const SLOW_CPU_TIME: Duration = Duration::from_secs(3);
/// The time that is added to `SLOW_CPU_TIME` for each MiB of the component.
const SLOW_CPU_TIME_PER_MIB: Duration = Duration::from_secs(4);

/// Whether this program's `main` has called [`compile_if_asked`]. Without that, a child would run the whole program again
/// instead of compiling.
static PREPARED: AtomicBool = AtomicBool::new(false);

/// The program that is started to compile components.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// This program; its `main` begins with [`compile_if_asked`].
    This,
    /// Another program whose `main` begins with [`compile_if_asked`].
    At(PathBuf),
}

impl Program {
    /// Returns the file to start. `None` if this program should compile but cannot: its `main` did not begin with [`compile_if_asked`], or
    /// the system does not reveal its path.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        match self {
            Self::At(path) => Some(path.clone()),
            Self::This if !PREPARED.load(Ordering::Relaxed) => None,
            // This path leads to the running program even if its file has been replaced since.
            Self::This if cfg!(target_os = "linux") => Some("/proc/self/exe".into()),
            Self::This => std::env::current_exe().ok(),
        }
    }
}

/// How components are compiled.
#[derive(Debug, Clone)]
pub struct CompilerConfig {
    /// The program to start.
    pub program: Program,
    /// Address space that all running compilations may have together; others wait until there is room.
    pub memory_bytes: usize,
    /// How long one compilation may take.
    pub timeout: Duration,
    /// How much work goes into the code.
    pub effort: Effort,
}

/// The result of compiling a component.
#[derive(Debug)]
pub(crate) struct Artifact {
    /// The digest of the component that was compiled.
    pub(crate) digest: [u8; 32],
    /// The number of bytes that the host allocates for each instance in addition to its memory.
    pub(crate) instance_bytes: u64,
    /// How many bytes of the memory that an instance starts with the component does not know of.
    pub(crate) room_bytes: u64,
    /// Whether the file was a core module, which was wrapped into a component first.
    pub(crate) wrapped: bool,
    /// The sections in which the plugin describes itself.
    pub(crate) sections: Sections,
    pub(crate) code: NativeCode,
}

/// Where the code of a component is. It can have a gigabyte, so it is not copied.
#[derive(Debug)]
pub(crate) enum NativeCode {
    /// In memory, from this index on.
    Bytes(Vec<u8>, usize),
    /// At the beginning of a file, with this many bytes.
    File(File, usize),
}

impl NativeCode {
    /// Returns the number of its bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes, at) => bytes.len().saturating_sub(*at),
            Self::File(_, len) => *len,
        }
    }

    /// Returns the bytes of code in memory.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes, at) => bytes.get(*at..),
            Self::File(..) => None,
        }
    }
}

impl Artifact {
    /// Returns what is known of the code: it precedes the code in the child's reply, and follows it in the cache.
    pub(crate) fn head(&self) -> Vec<u8> {
        let wrapped = [u8::from(self.wrapped)];
        let numbers = [self.instance_bytes, self.room_bytes].map(u64::to_le_bytes);
        [&self.digest[..], numbers.as_flattened(), &wrapped, &self.sections.write()].concat()
    }

    /// Parses a reply: a header, and the code after it. `None` if the header is malformed.
    fn read(bytes: Vec<u8>) -> Option<Self> {
        let (about, length) = Self::parse(&bytes)?;
        Some(Self { code: NativeCode::Bytes(bytes, length), ..about })
    }

    /// Parses a header. `code`: what it is about. `None` if the header is malformed.
    pub(crate) fn about(header: &[u8], code: NativeCode) -> Option<Self> {
        let (about, length) = Self::parse(header)?;
        (length == header.len()).then_some(Self { code, ..about })
    }

    /// Parses the header at the beginning of `bytes`; returns it without the code, and its length.
    fn parse(bytes: &[u8]) -> Option<(Self, usize)> {
        let (digest, rest) = bytes.split_first_chunk::<32>()?;
        let (instance_bytes, rest) = rest.split_first_chunk()?;
        let (room_bytes, rest) = rest.split_first_chunk()?;
        let (wrapped, rest) = rest.split_first()?;
        let wrapped = *wrapped == 1;
        let (sections, length) = Sections::read(rest)?;
        let [instance_bytes, room_bytes] = [*instance_bytes, *room_bytes].map(u64::from_le_bytes);
        let (digest, code) = (*digest, NativeCode::Bytes(Vec::new(), 0));
        Some((Self { digest, instance_bytes, room_bytes, wrapped, sections, code }, 32 + 8 + 8 + 1 + length))
    }
}

/// Starts compiler processes, as many at a time as the memory limit allows.
pub(crate) struct Compilers {
    program: PathBuf,
    config: CompilerConfig,
    images: bool,
    turns: Mutex<HashMap<[u8; 32], Weak<tokio::sync::Mutex<()>>>>,
    mib: Arc<Semaphore>,
    total_mib: usize,
}

impl Compilers {
    /// `images`: whether the engines of the parent use copy-on-write images of initial memories. Code has to be compiled for the same
    /// setting.
    pub(crate) fn new(config: CompilerConfig, images: bool) -> Result<Self, EngineError> {
        let program = config.program.path().ok_or(EngineError::Unprepared)?;
        let total_mib = (config.memory_bytes >> 20).max(MIN_ADDRESS_SPACE_MIB);
        Ok(Self {
            program,
            config,
            images,
            turns: Mutex::default(),
            mib: Arc::new(Semaphore::new(total_mib)),
            total_mib,
        })
    }

    /// Returns the lock that is held while the component with this digest is compiled.
    pub(crate) fn turn(&self, digest: [u8; 32]) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock();
        turns.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = turns.get(&digest).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::default();
        turns.insert(digest, Arc::downgrade(&turn));
        turn
    }

    /// Compiles a file of `bytes` bytes. `slow` is called once if that takes long. `room`: charges for the code before it is read. Dropping
    /// the future kills the child.
    pub(crate) async fn compile(
        &self,
        (component, bytes): (File, u64),
        slow: impl Fn(),
        room: impl FnOnce(usize) -> Result<Charge, LoadError>,
    ) -> Result<(Artifact, Charge), LoadError> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let wanted = MIN_ADDRESS_SPACE_MIB.saturating_add((bytes >> 20).saturating_mul(ADDRESS_SPACE_MIB_PER_MIB));
        let mib = wanted.min(self.total_mib);
        // The semaphore is never closed, so this does not fail.
        let _turn = self.mib.acquire_many(u32::try_from(mib).unwrap_or(u32::MAX)).await;
        let seconds = self.config.timeout.as_secs().max(1);
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let limits = Limits { mib: mib as u64, seconds: seconds.saturating_mul(cores) };
        let failed = |error: std::io::Error| LoadError::Compiler(format!("it cannot be started: {error}"));
        let mut child = Command::new(&self.program)
            .args([
                COMPILE_ARGUMENT,
                &limits.mib.to_string(),
                &limits.seconds.to_string(),
                &u8::from(self.images).to_string(),
                &u8::from(self.config.effort == Effort::Quick).to_string(),
            ])
            .env_clear()
            // A background thread of the allocator would need address space, which is limited.
            .env("_RJEM_MALLOC_CONF", "background_thread:false")
            .current_dir("/")
            .stdin(Stdio::from(component))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let most = MIN_ARTIFACT_BYTES.max((bytes as u64).saturating_mul(MAX_ARTIFACT_GROWTH));
        let output = child.stdout.take();
        let slow_after = SLOW_CPU_TIME + SLOW_CPU_TIME_PER_MIB.mul_f64(bytes as f64 / (1 << 20) as f64);
        let said = async {
            tokio::select! {
                said = read_reply(output, most, room) => said,
                // `watch` never returns.
                () = watch(child.id(), slow_after, slow) => Err(LoadError::Compiler(String::new())),
            }
        };
        let said = match within(self.config.timeout, child.id(), said).await {
            Some(said) => said,
            None => Err(LoadError::Compiler(format!(
                "it took longer than compile_timeout_ms ({} ms)",
                self.config.timeout.as_millis()
            ))),
        };
        ended(child, said, (mib, self.total_mib)).await
    }
}

/// Waits for what the child says. `None`: it has used `limit` of CPU time and of time. On a busy machine, it gets less of a core, and so up to
/// `PATIENCE` times as long.
async fn within<T>(limit: Duration, child: Option<u32>, said: impl Future<Output = T>) -> Option<T> {
    let (mut said, began) = (std::pin::pin!(said), std::time::Instant::now());
    let (mut wait, mut used) = (limit, Duration::ZERO);
    loop {
        if let Ok(said) = timeout(wait, &mut said).await {
            return Some(said);
        }
        let before = std::mem::replace(&mut used, child.and_then(cpu_time).unwrap_or(limit));
        let left = (limit * PATIENCE).saturating_sub(began.elapsed());
        // A child that does nothing is not one that is kept from it.
        if used >= limit || used == before || left.is_zero() {
            return None;
        }
        wait = (limit - used).max(CPU_CHECK_INTERVAL).min(left);
    }
}

/// Calls `slow` once the child has used `long` of CPU time. Never returns.
async fn watch(child: Option<u32>, long: Duration, slow: impl Fn()) {
    let mut looks = 0_u32;
    loop {
        tokio::time::sleep(CPU_CHECK_INTERVAL).await;
        looks = looks.saturating_add(1);
        let used = child.and_then(cpu_time).unwrap_or(CPU_CHECK_INTERVAL * looks);
        if used >= long {
            break;
        }
    }
    slow();
    std::future::pending().await
}

/// Returns the CPU time that a process has used, if the system reveals it.
#[expect(clippy::disallowed_methods, reason = "/proc is not a file of any plugin or client")]
fn cpu_time(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The fields of interest come after the program's name, which may itself hold anything, even parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    // Linux shows times in hundredths of a second.
    Some(Duration::from_millis(ticks * 10))
}

/// Reads the child's reply: an artifact of at most `most` bytes, for which there has to be room, or the reason for a refusal. An error with
/// an empty text means that the child stopped early; its exit status then says more.
async fn read_reply(
    output: Option<ChildStdout>,
    most: u64,
    room: impl FnOnce(usize) -> Result<Charge, LoadError>,
) -> Result<(Artifact, Charge), LoadError> {
    let broken = |_| LoadError::Compiler(String::new());
    let Some(mut output) = output else { return Err(LoadError::Compiler("its output cannot be read".into())) };
    match output.read_u8().await.map_err(broken)? {
        MADE => {}
        REFUSED => {
            let mut reason = String::new();
            output.take(MAX_REASON_BYTES as u64 + 1).read_to_string(&mut reason).await.map_err(broken)?;
            return Err(LoadError::Refused(reason));
        }
        _ => return Err(LoadError::Compiler("unexpected reply from the compiler process".into())),
    }
    let length = output.read_u64_le().await.map_err(broken)?;
    let length = usize::try_from(length).ok().filter(|_| length <= most);
    let Some(length) = length else {
        return Err(LoadError::Compile(format!("the compiled code has more than {most} bytes")));
    };
    let charge = room(length)?;
    let mut bytes = vec![0; length];
    output.read_exact(&mut bytes).await.map_err(broken)?;
    // The child ends itself when nobody reads any more, so this reads to the end, which comes when it has exited.
    if output.read(&mut [0]).await.map_err(broken)? > 0 {
        return Err(LoadError::Compiler("its reply is longer than it said".into()));
    }
    let artifact = Artifact::read(bytes).ok_or(LoadError::Compiler("its reply is incomplete".into()))?;
    Ok((artifact, charge))
}

/// Waits for the child to exit and checks its status. The reply of a child that failed is ignored.
///
/// `mib`: how much memory it could use, and the maximum for any component.
async fn ended<T>(mut child: Child, said: Result<T, LoadError>, mib: (usize, usize)) -> Result<T, LoadError> {
    let (mib, maximum) = mib;
    match &said {
        // The child has said everything, or stopped early.
        Ok(_) | Err(LoadError::Refused(_)) => {}
        Err(LoadError::Compiler(why)) if why.is_empty() => {}
        // The child is dropped here, which kills it.
        Err(_) => return said,
    }
    let status = match timeout(Duration::from_secs(5), child.wait()).await {
        Ok(Ok(status)) => status,
        _ => return Err(LoadError::Compiler("it does not exit".into())),
    };
    use std::os::unix::process::ExitStatusExt;
    match (status.success(), status.signal(), said) {
        (true, _, said @ (Ok(_) | Err(LoadError::Refused(_)))) => said,
        (_, Some(signal), _) if signal == rustix::process::Signal::XCPU.as_raw() => {
            Err(LoadError::Compiler("it used more CPU time than compile_timeout_ms allows".into()))
        }
        // A Rust program aborts when an allocation fails.
        (_, Some(signal), _) if signal == rustix::process::Signal::ABORT.as_raw() => Err(LoadError::Compiler(format!(
            "it needed more than {mib} MiB of memory, or crashed; no component gets more than {maximum} MiB"
        ))),
        (_, Some(signal), _) => Err(LoadError::Compiler(format!("it was killed by signal {signal}"))),
        (_, None, _) => Err(LoadError::Compiler(format!("it ended with {status}"))),
    }
}

/// The resource limits of a child.
struct Limits {
    mib: u64,
    seconds: u64,
}

/// Compiles the component on standard input if this process was started for that, and returns the code to exit with. `main`
/// calls this before anything else, and goes on only if it returns `None`.
pub fn compile_if_asked() -> Option<ExitCode> {
    PREPARED.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != COMPILE_ARGUMENT) {
        return None;
    }
    let mut number = || arguments.next()?.to_str()?.parse::<u64>().ok();
    let (Some(mib), Some(seconds), Some(images), Some(quick)) = (number(), number(), number(), number()) else {
        return Some(ExitCode::from(2));
    };
    let (images, effort) = (images == 1, if quick == 1 { Effort::Quick } else { Effort::Full });
    let mut out = std::io::stdout().lock();
    let engine = engine::compiler(images, effort);
    // A build that counts what it executes writes a file with the counts when it ends.
    let confined = if cfg!(wharf_counts) { Ok(()) } else { confine(&Limits { mib, seconds }) };
    let confined = confined.and_then(|()| end_with_parent());
    let written = confined.and_then(|()| match compile(engine) {
        Ok(artifact) => {
            let (head, code) = (artifact.head(), artifact.code.bytes().unwrap_or_default());
            out.write_all(&[MADE])?;
            out.write_all(&((head.len() + code.len()) as u64).to_le_bytes())?;
            out.write_all(&head)?;
            out.write_all(code)
        }
        Err(error) => {
            let reason = error.to_string();
            out.write_all(&[REFUSED])?;
            // The parent reads no more than this, and no half of a character.
            out.write_all(reason.get(..reason.floor_char_boundary(MAX_REASON_BYTES)).unwrap_or_default().as_bytes())
        }
    });
    let flushed = written.and_then(|()| out.flush());
    Some(if flushed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Drops the rights and resources that compiling does not need.
#[expect(clippy::disallowed_methods, reason = "/proc is not a file of any plugin or client")]
fn confine(limits: &Limits) -> std::io::Result<()> {
    let set = |resource, most: u64| {
        let current = rustix::process::getrlimit(resource);
        let most = current.maximum.map_or(most, |maximum| maximum.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
    };
    set(Resource::As, limits.mib << 20)?;
    set(Resource::Cpu, limits.seconds)?;
    set(Resource::Core, 0)?;
    set(Resource::Fsize, 0)?;
    set(Resource::Nofile, 16)?;
    // Processes that serve clients take precedence. If the system refuses this, compiling still works.
    rustix::process::nice(5).ok();
    // If the machine runs out of memory, the kernel should kill this process before any other.
    if let Ok(mut score) = std::fs::OpenOptions::new().write(true).open("/proc/self/oom_score_adj") {
        score.write_all(b"1000").ok();
    }
    // An old kernel or a container may refuse this; the limits above still apply.
    deny_ambient_access().ok();
    Ok(())
}

/// Denies this thread, and those that it starts later, access to the file system, the network and other processes, as far as the kernel
/// supports that (Landlock).
#[cfg(target_os = "linux")]
fn deny_ambient_access() -> std::io::Result<()> {
    use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, Scope};
    // Rules that an older kernel does not know are left out.
    let abi = ABI::V6;
    Ruleset::default()
        .handle_access(AccessFs::from_all(abi))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(abi)))
        .and_then(|rules| rules.scope(Scope::from_all(abi)))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(std::io::Error::other)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn deny_ambient_access() -> std::io::Result<()> {
    Ok(())
}

/// Kills this process once its standard output is closed at the other end, which means that the parent is gone.
fn end_with_parent() -> std::io::Result<()> {
    std::thread::Builder::new().stack_size(64 << 10).spawn(|| {
        let out = std::io::stdout();
        let out = out.as_fd();
        let mut ends = [PollFd::from_borrowed_fd(out, PollFlags::empty())];
        // `poll` waits for no event, so it returns only for an error condition, and the only one is that the other end was closed.
        while poll(&mut ends, None).is_err() {}
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).ok();
    })?;
    Ok(())
}

/// Reads a component from standard input, checks what it would instantiate, and compiles it. A core module is wrapped into a component
/// first, its long names are cut, and the component is prepared so that calls take less time.
fn compile(engine: wasmtime::Result<Engine>) -> Result<Artifact, LoadError> {
    let unreadable = |error: std::io::Error| LoadError::Compile(format!("it cannot be read: {error}"));
    let mut bytes = Vec::new();
    std::io::stdin().take(MAX_COMPONENT_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let digest = Sha256::digest(&bytes).into();
    let wrapped = kind(&bytes)? == Kind::Module;
    if wrapped {
        look(&bytes)?;
        bytes = wharf_forge::wrap(&bytes).map_err(|error| LoadError::CoreModule(error.to_string()))?;
    }
    let (extent, sections) = look(&bytes)?;
    bytes = wharf_forge::with_short_names(&bytes).ok_or(LoadError::Compile("its modules cannot be read".into()))?;
    let failed = |error: wasmtime::Error| LoadError::Compile(one_line(&error));
    let engine = engine.map_err(failed)?;
    // If what was prepared is not valid or takes too much, the component is compiled as it is.
    let prepared = wharf_forge::prepared(&bytes).and_then(|prepared| {
        let (extent, _) = look(&prepared.component).ok()?;
        Some((engine.precompile_component(&prepared.component).ok()?, extent, prepared.room_bytes))
    });
    let (code, extent, room_bytes) = match prepared {
        Some(prepared) => prepared,
        None => (engine.precompile_component(&bytes).map_err(failed)?, extent, 0),
    };
    let code = NativeCode::Bytes(code, 0);
    Ok(Artifact { digest, instance_bytes: extent.data_bytes, room_bytes, wrapped, sections, code })
}

#[cfg(all(test, target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "tries files to see them refused, on a thread that it joins")]
mod tests {
    use std::{
        io::ErrorKind,
        net::{TcpListener, TcpStream},
    };

    use super::*;

    #[test]
    fn who_is_shut_in_opens_and_reaches_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let had = File::open("/proc/self/status").unwrap();
        // The restriction holds for the thread that asks for it, and cannot be lifted.
        let seen = std::thread::spawn(move || {
            deny_ambient_access().unwrap();
            let status = std::io::read_to_string(had).unwrap();
            assert!(status.contains("Threads:"), "an open file stays usable");
            let denied = |result: std::io::Result<()>| result.err().map(|error| error.kind());
            [
                denied(File::open("/etc/passwd").map(drop)),
                denied(File::create("/tmp/wharf-shut-in").map(drop)),
                denied(std::fs::read_dir("/").map(drop)),
                denied(TcpStream::connect(address).map(drop)),
                denied(std::process::Command::new("/bin/true").status().map(drop)),
            ]
        })
        .join()
        .unwrap();
        assert_eq!(seen, [Some(ErrorKind::PermissionDenied); 5]);
        assert!(File::open("/etc/passwd").is_ok(), "other threads are not restricted");
    }
}
