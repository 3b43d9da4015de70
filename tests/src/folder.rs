//! A temporary folder of a test: home, config and plugins of the wharf that it starts. All tests share the cache of compiled code.

use std::{
    ffi::{OsStr, OsString},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{ExitStatus, Output, Stdio},
};

use tempfile::TempDir;
use tokio::{process::Command, time::timeout};

use crate::PATIENCE;

/// Removed with its contents when dropped, unless `WHARF_KEEP=1` is set.
#[derive(Debug)]
pub struct Folder {
    /// `None` once it is dropped.
    dir: Option<TempDir>,
    path: PathBuf,
}

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Folder {
    /// Creates a folder with `home/`, `config/` and `plugins/`.
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("wharf-e2e-").tempdir().unwrap();
        let path = std::fs::canonicalize(dir.path()).unwrap();
        for name in ["home", "config/wharf", "plugins"] {
            std::fs::create_dir_all(path.join(name)).unwrap();
        }
        Self { dir: Some(dir), path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The folder that wharf uses as the user's home directory.
    pub fn home(&self) -> PathBuf {
        self.join("home")
    }

    /// Writes a file, with its parent folders, and renames it into place.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let partial = path.with_extension("partial");
        std::fs::write(&partial, contents).unwrap();
        std::fs::set_permissions(&partial, PermissionsExt::from_mode(0o644)).unwrap();
        std::fs::rename(&partial, &path).unwrap();
        path
    }

    /// Writes the config that wharf finds by default: `config/wharf/wharf.toml`. Relative paths in it are
    /// relative to its folder, so plugins of this folder are at `../../plugins/`.
    pub fn config(&self, text: &str) -> PathBuf {
        self.write("config/wharf/wharf.toml", text)
    }

    /// Copies a plugin of the repository to `plugins/<name>.wasm`.
    pub fn plugin(&self, name: &str) -> PathBuf {
        self.plugin_as(name, &format!("plugins/{name}.wasm"))
    }

    /// Copies a plugin of the repository to the given place in the folder.
    pub fn plugin_as(&self, name: &str, to: &str) -> PathBuf {
        self.write(to, std::fs::read(crate::plugin(name)).unwrap())
    }

    pub fn set_mode(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.join(name), PermissionsExt::from_mode(mode)).unwrap();
    }

    /// Returns a command of wharf that uses this folder; of the machine's environment, it only gets `PATH`.
    pub fn command(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Command {
        let cache = crate::target().join("test-cache");
        // All tests share the cache; the first test creates it.
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&cache).unwrap();
        let mut command = Command::new(crate::binary());
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("XDG_CONFIG_HOME", self.join("config"))
            .env("XDG_CACHE_HOME", cache)
            .envs(environment.iter().copied())
            .current_dir(&self.path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// The same, in a mount namespace of its own. `mount`: the shell command that mounts, whose arguments are `paths`. `None`: some machines do
    /// not allow that for every user.
    pub fn mounted(&self, mount: &str, paths: &[PathBuf], arguments: &[&str]) -> Option<Command> {
        let namespace = ["--user", "--map-root-user", "--mount"];
        let possible = std::process::Command::new("unshare").args(namespace).arg("true").status();
        possible.ok().filter(ExitStatus::success)?;
        let script = format!("{mount} && shift {} && exec \"$@\"", paths.len());
        let shell = ["sh", "-c", &script, "sh"].map(OsString::from);
        let first = namespace.map(OsString::from).into_iter().chain(shell).chain(paths.iter().map(OsString::from));
        let mut command = self.started_by("unshare", first, &self.command(arguments, &[]));
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        Some(command)
    }

    /// The same, started by a shell that first sets limits, such as `ulimit -f 300`.
    pub fn limited(&self, limits: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Command {
        let first = ["-c", &format!("{limits} && exec \"$@\""), "sh"];
        self.started_by("sh", first, &self.command(arguments, environment))
    }

    /// Returns a command of a program that starts this one: its words follow those in `first`.
    fn started_by(
        &self,
        program: &str,
        first: impl IntoIterator<Item = impl AsRef<OsStr>>,
        plain: &Command,
    ) -> Command {
        let plain = plain.as_std();
        let mut command = Command::new(program);
        command.args(first).arg(plain.get_program()).args(plain.get_args()).current_dir(&self.path);
        command.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Runs a command of wharf until it exits.
    pub async fn run(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        let running = self.command(arguments, environment).output();
        timeout(PATIENCE, running).await.unwrap_or_else(|_| panic!("wharf {arguments:?} does not end")).unwrap()
    }
}

impl Drop for Folder {
    /// Tests make their folder before anything else, so it is dropped last, and what it prints is at the end.
    fn drop(&mut self) {
        if std::env::var_os("WHARF_KEEP").is_some_and(|keep| keep == "1")
            && let Some(dir) = self.dir.take()
        {
            eprintln!("kept: {}", dir.keep().display());
        }
        if std::thread::panicking()
            && let Some(command) = again()
        {
            eprintln!("again: {command}");
        }
    }
}

/// Returns the command that runs the current test again; `None` if this program is not a test.
fn again() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let (target, _) = program.file_name()?.to_str()?.rsplit_once('-')?;
    let deps = program.parent().filter(|folder| folder.ends_with("deps"))?;
    let mut command = String::new();
    if let Some(binary) = std::env::var_os("WHARF_BIN") {
        command += &format!("WHARF_BIN={} ", binary.display());
    }
    // `cargo xtask try` finds the program by the test's path, and builds what has changed. Programs for use are built by hand.
    let is_tree = deps.parent()?.ends_with("debug");
    command += if is_tree { "cargo xtask try" } else { "cargo test --locked --release" };
    if !is_tree {
        command += &format!(" --test {target}");
    }
    // The thread of a test has its name. With a single thread, tests run on the thread `main`.
    let thread = std::thread::current();
    let is_path = |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte));
    if let Some(test) = thread.name().filter(is_path).filter(|name| *name != "main") {
        command += &format!(" {test}");
    }
    Some(command)
}

/// The stderr of a command.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The stdout of a command.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
