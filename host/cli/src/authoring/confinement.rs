//! Where a build of an existing server may read, write and connect. Package managers, packages and the server's own module run in it, so on
//! Linux it is confined: by Landlock to the files that it needs, and by a filter of system calls to no sockets, no other processes and no
//! objects of the kernel. Only the step that installs packages reaches the network, and no code of a package runs in it. No process outlives
//! its step.

#![expect(clippy::disallowed_methods, reason = "finds the programs and files that a build needs")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process_group};
use tokio::process::{Child, Command};

#[cfg(target_os = "linux")]
use super::filter;
use wharf_base::{below::Below, group::Group, program, text};

/// The variable that allows builds where the kernel cannot confine them.
const UNCONFINED: &str = "WHARF_UNCONFINED_BUILDS";

/// How much memory each process of a build may write to. V8 asks for three times what it uses: 3 GiB for a server of one tool.
pub const MEMORY_BYTES: u64 = 8 << 30;

/// The folder of what is built.
const BUILT: &str = "dist";
/// The folder of a wheel that is built.
const WHEELS: &str = "wheels";
/// The variable that says to a set-up that wheels are built in a step of their own.
const APART: &str = "WHARF_BUILDS_APART";
/// The folder for temporary files, in the home directory of a step.
const TEMPORARY: &str = "tmp";

/// What every build may read: programs, libraries, certificates, and how names are resolved. Not what /proc says of processes: a superuser could
/// read the variables of all others there.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix",
    "/gnu",
    "/run/current-system",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager/resolv.conf",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys",
    "/proc/version",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/static",
    "/etc/timezone",
    "/etc/python3",
    "/etc/debian_version",
    "/etc/lsb-release",
];
/// What the step that installs may read too: the settings of the package managers for all users.
const SYSTEM_SETTINGS: &[&str] = &["/etc/npmrc", "/etc/pip.conf"];
/// Variables that every build has.
const KEPT: [&str; 6] = ["PATH", "LANG", "LC_ALL", "TERM", "TZ", "PYENV_VERSION"];
/// Variables that the step with network has too: how to reach registries of packages, by name and by their beginning.
const REACH: [&str; 8] = [
    "ALL_PROXY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];
const REACH_BEGINNINGS: [&str; 2] = ["PIP_", "NPM_CONFIG_"];
/// The variables that name the person's own settings of pip and npm, and where these are below the home directory.
const SETTINGS: [(&str, &[&str]); 2] =
    [("PIP_CONFIG_FILE", &[".config/pip/pip.conf", ".pip/pip.conf"]), ("NPM_CONFIG_USERCONFIG", &[".npmrc"])];

/// What a command of a build may reach and change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Installs packages: with network, and the person's settings of the package managers. It writes the whole folder of the server. The
    /// package managers run in it, and no code of a package.
    Install,
    /// Builds a package that is published only as source: like `Make`, without the server. It writes only the wheel.
    Wheel,
    /// Builds: without sockets and these settings. It writes only what it makes, and nothing that an installation executes or obeys.
    Make,
}

impl Step {
    /// Returns the name of the folder that is the home directory of this step.
    fn home(self) -> &'static str {
        match self {
            Self::Install => "installing",
            Self::Wheel => "building",
            Self::Make => "making",
        }
    }
}

/// What confines the builds of one server.
#[derive(Debug, Clone)]
pub struct Confined {
    folder: PathBuf,
    /// What builds it, if that is in another folder.
    tools: Option<PathBuf>,
    /// The source, and where links in it lead.
    source: Vec<PathBuf>,
}

impl Confined {
    /// `folder`: where the builds write. `tools` and `source`: what they read.
    pub fn new(folder: PathBuf, tools: Option<PathBuf>, source: Vec<PathBuf>) -> Self {
        Self { folder, tools, source }
    }

    /// Returns the command that builds the wheel for which a setup in Python waits.
    pub fn wheel(&self) -> String {
        let tools = self.tools.as_deref().unwrap_or(&self.folder);
        let python = tools.join(".venv/bin/python").to_string_lossy().into_owned();
        format!("{} -m wharf_compat wheel", text::shell([python.as_str()]))
    }

    /// Returns a command of the shell whose processes have a limit of memory. It counts what they may write, and not addresses: V8 and
    /// wasmtime reserve up to 44 GiB of these.
    pub fn limited(command: &str) -> String {
        let most = getrlimit(Resource::Data).maximum.unwrap_or(u64::MAX).min(MEMORY_BYTES);
        format!("ulimit -d {} && {{ {command}\n}}", most >> 10)
    }

    /// Starts a command in the folder of the server. What it starts ends when the second result is dropped.
    pub fn start(&self, command: &mut Command, step: Step) -> Result<(Child, Leader)> {
        let folder = Below::open(&self.folder)?;
        // A step that ran before may have put links here, and a rule holds for what a link leads to.
        let home = folder.made(Path::new(step.home()))?;
        home.made(Path::new(TEMPORARY))?;
        let written = match step {
            Step::Install => folder,
            Step::Wheel => folder.made(Path::new(WHEELS))?,
            Step::Make => folder.made(Path::new(BUILT))?,
        };
        let (home_path, leader) = (self.folder.join(step.home()), Leader::start()?);
        command.env_clear().envs(variables(step)).env("TMPDIR", home_path.join(TEMPORARY)).env("HOME", home_path);
        if step == Step::Install {
            command.env(APART, "1");
        }
        command.process_group(leader.id);
        if env::var_os(UNCONFINED).is_some_and(|set| set == "1") {
            return Ok((command.spawn().context("`sh` could not be started")?, leader));
        }
        // What confines a thread confines the processes that it starts.
        let runtime = tokio::runtime::Handle::current();
        let start = || {
            let _entered = runtime.enter();
            if let Err(why) = self.enforce(step, [home, written], leader.id) {
                bail!(
                    "this kernel cannot confine what builds an existing server ({why}); use Linux 5.13 or later with Landlock, or set \
                     {UNCONFINED}=1 to let its packages run with all your rights"
                );
            }
            command.spawn().context("`sh` could not be started")
        };
        let child = std::thread::scope(|scope| scope.spawn(start).join());
        Ok((child.unwrap_or_else(|_| bail!("a thread has ended early"))?, leader))
    }

    /// `written`: the folders that the step writes.
    #[cfg(target_os = "linux")]
    fn enforce(&self, step: Step, written: [Below; 2], group: i32) -> Result<()> {
        use landlock::{
            ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
            RulesetError, Scope, path_beneath_rules,
        };
        // What later kernels add is used where it is there.
        let (least, most) = (ABI::V1, ABI::V6);
        let (read, all) = (AccessFs::from_read(most), AccessFs::from_all(most));
        // A superuser could make a device and read a disk with it.
        let write = all & !(AccessFs::MakeChar | AccessFs::MakeBlock);
        let source = if step == Step::Wheel { &[] } else { self.source.as_slice() };
        let own = [self.folder.clone()].into_iter().chain(self.tools.clone()).chain(source.iter().cloned());
        let settings = if step == Step::Install { SYSTEM_SETTINGS } else { &[] };
        let system = SYSTEM.iter().chain(settings).map(PathBuf::from);
        let read_too = own.chain(system).chain(programs()).chain(named(step));
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(least))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            .scope(Scope::from_all(most))?
            .create()?
            .add_rules(path_beneath_rules(read_too, read))?
            .add_rules(path_beneath_rules(["/dev/null"], write))?
            .add_rules(written.into_iter().map(|folder| Ok::<_, RulesetError>(PathBeneath::new(folder, write))))?
            .restrict_self()?;
        filter::apply(step == Step::Install, group)
    }

    #[cfg(not(target_os = "linux"))]
    fn enforce(&self, _: Step, _: [Below; 2], _: i32) -> Result<()> {
        bail!("only Linux can")
    }
}

/// A process that does nothing but lead the process group of a step, so that all processes of the step can be ended. It ends them itself when
/// wharf ends.
pub struct Leader {
    id: i32,
    _process: Child,
}

impl Leader {
    fn start() -> Result<Self> {
        let mut command = Command::new("/bin/sh");
        // It reads until wharf closes the other end, or ends.
        command.args(["-c", "read -r _; kill -KILL 0"]).env_clear().stdin(Stdio::piped()).kill_on_drop(true);
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(Group::OWN);
        let process = command.spawn().context("`sh` could not be started")?;
        let id = process.id().and_then(|id| i32::try_from(id).ok()).context("`sh` has ended early")?;
        Ok(Self { id, _process: process })
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        // Nobody has waited for the leader, so the group is still its own.
        if let Some(group) = Pid::from_raw(self.id) {
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}

/// Whether a variable is set that the step with network has. Package managers take the names in both cases.
pub fn is_set(name: &str) -> bool {
    variables(Step::Install).any(|(set, value)| set.eq_ignore_ascii_case(name) && !value.is_empty())
}

/// Returns the variables of a build.
fn variables(step: Step) -> impl Iterator<Item = (String, std::ffi::OsString)> {
    let all = env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let kept = all.filter(move |(name, _)| {
        let upper = name.to_ascii_uppercase();
        // Caches and logs outside of the server's folder could not be written.
        let is_place = ["CACHE", "LOGS_DIR"].iter().any(|place| upper.contains(place));
        let is_setting = REACH_BEGINNINGS.iter().any(|begins| upper.starts_with(begins)) && !is_place;
        let reaches = is_setting || REACH.contains(&upper.as_str());
        KEPT.contains(&name.as_str()) || (step == Step::Install && reaches)
    });
    let home = env::home_dir().filter(|_| step == Step::Install);
    let settings = SETTINGS.into_iter().filter_map(move |(name, files)| {
        let mut files = files.iter().map(|file| home.as_ref().map(|home| home.join(file)));
        let file = files.find_map(|file| file.filter(|file| file.is_file()))?;
        env::var_os(name).is_none().then(|| (name.to_owned(), file.into_os_string()))
    });
    kept.chain(settings)
}

/// Returns the files and folders that the settings of this step name: certificates, local packages.
fn named(step: Step) -> impl Iterator<Item = PathBuf> {
    let home = env::home_dir();
    let settings = variables(step).filter(|(name, _)| !KEPT.contains(&name.as_str()));
    let words = settings.filter_map(|(_, value)| value.into_string().ok());
    let paths = words.flat_map(|value| value.split_whitespace().map(PathBuf::from).collect::<Vec<_>>());
    paths.filter(move |path| path.is_absolute() && !is_shared(path, home.as_deref()))
}

/// Returns the folders that programs on PATH need: their own, and the one that they were installed into.
fn programs() -> Vec<PathBuf> {
    let mut all = Vec::new();
    for folder in program::folders_of_path() {
        all.push(folder.clone());
        // Version managers put programs into such a folder that start the real ones.
        if folder.ends_with("shims") {
            all.extend(folder.parent().map(Path::to_owned));
        }
        for program in ["python3", "node", "npm"] {
            if let Ok(real) = fs::canonicalize(folder.join(program)) {
                all.extend(real.parent().and_then(Path::parent).map(Path::to_owned));
            }
        }
    }
    let home = env::home_dir();
    all.retain(|folder| !is_shared(folder, home.as_deref()));
    all
}

/// Whether a folder holds more than programs: the home directory, those above it, and those in it where programs keep the data of the person.
fn is_shared(folder: &Path, home: Option<&Path>) -> bool {
    let data = [".local", ".local/share", ".config", ".cache"];
    folder.parent().is_none()
        || home.is_some_and(|home| home.starts_with(folder) || data.iter().any(|name| home.join(name) == *folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_program_makes_the_data_of_the_person_readable() {
        let home = Some(Path::new("/home/ada"));
        for (folder, shared) in [
            ("/", true),
            ("/home", true),
            ("/home/ada", true),
            ("/home/ada/.local", true),
            ("/home/ada/.local/share", true),
            ("/home/ada/.local/bin", false),
            ("/home/ada/.pyenv", false),
            ("/opt/node", false),
        ] {
            assert_eq!(is_shared(Path::new(folder), home), shared, "{folder}");
        }
    }
}
