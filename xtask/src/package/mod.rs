//! `cargo xtask package`: makes the packages of wharf from one binary, and installs and uses each as a user would. It publishes nothing.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use cargo_metadata::{MetadataCommand, Package};
use sha2::{Digest, Sha256};

use crate::{installed, run, say};

mod archive;
mod brew;
mod bundle;
mod deb;
mod links;
mod nix;
mod npm;
mod platform;
mod registry;
mod script;
mod steps;
mod used;
mod wheel;

use platform::Platform;

/// The name of the packages on npm and PyPI, where `wharf` is taken. npm's packages with binaries are in a scope of this name.
const NAME: &str = "wharf-mcp";
/// The kinds of packages, as `--only` takes them.
const KINDS: [&str; 10] = ["archive", "npm", "wheel", "mcpb", "deb", "install", "brew", "nix", "server.json", "links"];
/// Those of them that name the finished packages of all platforms, and the address that they are fetched from.
const LISTS: [&str; 4] = ["brew", "nix", "server.json", "links"];
/// The address that stands for the repository's, where lists are only tried.
const LOOPBACK: &str = "http://127.0.0.1/wharf/wharf";

/// The inputs of all packages, and the folders they are made in.
struct Release {
    root: PathBuf,
    version: String,
    description: String,
    license: String,
    /// The repository with the releases, once `--repository` or Cargo.toml says so.
    repository: Option<String>,
    platform: &'static Platform,
    /// The stripped binary. Function names are a fifth of the file before.
    binary: PathBuf,
    /// The folder for the finished packages.
    out: PathBuf,
    /// The folder in which packages are put together and tried.
    work: PathBuf,
    /// The folder of packing tools from npm.
    node_modules: PathBuf,
    /// The interpreter with packing tools from PyPI.
    python: PathBuf,
}

/// What the command line asks for.
#[derive(Default)]
struct Asked {
    check: bool,
    steps: bool,
    only: Option<Vec<String>>,
    binary: Option<PathBuf>,
    target: Option<String>,
    from: Option<PathBuf>,
    repository: Option<String>,
}

impl Asked {
    fn read(rest: &[String]) -> Result<Self> {
        let (mut asked, mut words) = (Self::default(), rest.iter());
        while let Some(word) = words.next() {
            let mut value = || words.next().cloned().with_context(|| format!("{word} needs a value"));
            let file = |path: String| Path::new(&path).canonicalize().with_context(|| path.clone());
            match word.as_str() {
                "--check" => asked.check = true,
                "--steps" => asked.steps = true,
                "--only" => asked.only = Some(value()?.split(',').map(String::from).collect()),
                "--binary" => asked.binary = Some(file(value()?)?),
                "--target" => asked.target = Some(value()?),
                "--from" => asked.from = Some(file(value()?)?),
                "--repository" => asked.repository = Some(address(&value()?)?),
                _ => bail!(
                    "unknown option {word}; the options are --check, --steps, --only, --binary, --target, --from and \
                     --repository"
                ),
            }
        }
        if let Some(unknown) = asked.only.iter().flatten().find(|kind| !KINDS.contains(&kind.as_str())) {
            bail!("unknown kind {unknown} in --only; the kinds are {}", KINDS.join(", "));
        }
        ensure!(!asked.steps || (asked.check && asked.from.is_none()), "--steps is a part of --check, without --from");
        if asked.from.is_some() {
            ensure!(
                asked.binary.is_none() && asked.target.is_none(),
                "--from takes the binary from a finished package"
            );
            if let Some(other) = asked.only.iter().flatten().find(|kind| !LISTS.contains(&kind.as_str())) {
                bail!("--from reads finished packages, of which only {} are made, not {other}", LISTS.join(", "));
            }
        }
        Ok(asked)
    }
}

/// Returns the address of a repository without a `/` at its end. It becomes a part of scripts in several languages.
fn address(text: &str) -> Result<String> {
    let text = text.trim_end_matches('/');
    let plain = |one: char| one.is_ascii_alphanumeric() || "-._~:/".contains(one);
    let path = text.strip_prefix("https://").is_some_and(|path| path.contains('/'));
    ensure!(
        (path && text.chars().all(plain)) || text == LOOPBACK,
        "the address of the repository is `https://`, a host and a path of letters, digits and -._~, not {text}"
    );
    Ok(text.to_owned())
}

/// Makes the packages: `[--check [--steps]] [--only KIND,…] [--binary FILE] [--target TRIPLE] [--from FOLDER] [--repository URL]`.
pub fn run_command(root: &Path, rest: &[String]) -> Result<()> {
    let asked = Asked::read(rest)?;
    let metadata = MetadataCommand::new().current_dir(root).no_deps().exec()?;
    let wharf = metadata.packages.iter().find(|package| package.name.as_str() == "wharf").context("no wharf")?;
    let named = wharf.repository.as_deref().map(address).transpose().context("`repository` in Cargo.toml")?;
    let repository = asked.repository.clone().or(named).filter(|at| at != LOOPBACK);
    let kinds = if asked.from.is_some() { LISTS.as_slice() } else { &KINDS };
    let mut only = asked.only.clone().unwrap_or_else(|| kinds.iter().map(ToString::to_string).collect());
    if repository.is_none() && !asked.check && only.iter().any(|kind| LISTS.contains(&kind.as_str())) {
        let refused = "brew, nix, server.json and links need the address of the repository: type --repository URL, or \
                       write `repository = \"URL\"` into host/wharf/Cargo.toml";
        ensure!(asked.only.is_none() && asked.from.is_none(), "{refused}");
        say(refused);
        only.retain(|kind| !LISTS.contains(&kind.as_str()));
    }
    let release = Release::set_up(root, wharf, &asked, repository)?;
    let mut made = Vec::new();
    for kind in &only {
        made.extend(release.make(kind).with_context(|| format!("cannot make the package: {kind}"))?);
    }
    for path in &made {
        say(&format!("{:>6.1} MB  {}", fs::metadata(path)?.len() as f64 / 1e6, path.display()));
    }
    if asked.check {
        for kind in &only {
            release.use_it(kind).with_context(|| format!("the package cannot be used: {kind}"))?;
            say(&format!("installed and used: {kind}"));
        }
        steps::check(&release, asked.steps)?;
    }
    Ok(())
}

impl Release {
    fn set_up(root: &Path, wharf: &Package, asked: &Asked, repository: Option<String>) -> Result<Self> {
        let platform = match &asked.target {
            Some(triple) => Platform::named(triple)?,
            None => Platform::here()?,
        };
        let built = match (&asked.binary, &asked.from) {
            (Some(binary), _) => Some(binary.clone()),
            (None, Some(_)) => None,
            (None, None) => {
                crate::release::shipped(root)?;
                Some(root.join("target/shipped/wharf"))
            }
        };
        let source = root.join("packaging");
        let out = asked.from.clone().unwrap_or_else(|| root.join("target/dist"));
        let work = if asked.from.is_some() { root.join("target/lists") } else { out.join("work") };
        let tools = root.join("target/packaging");
        installed::npm(&source, &tools)?;
        let python = installed::python(&source.join("requirements.txt"), &tools.join("venv"))?;
        // Packages of an earlier version would be taken for those of this one.
        let before = if asked.from.is_some() { &work } else { &out };
        if before.exists() {
            fs::remove_dir_all(before)?;
        }
        fs::create_dir_all(&work)?;
        let binary = work.join("wharf");
        let release = Self {
            root: root.to_path_buf(),
            version: wharf.version.to_string(),
            description: wharf.description.clone().context("no description")?,
            license: wharf.license.clone().context("no license")?,
            repository,
            platform,
            binary,
            out,
            work,
            node_modules: tools.join("node_modules"),
            python,
        };
        match built {
            Some(built) => {
                fs::copy(&built, &release.binary).with_context(|| built.display().to_string())?;
                run(Command::new(env::var_os("STRIP").unwrap_or_else(|| "strip".into())).arg(&release.binary))?;
            }
            None if asked.check => archive::take_binary(&release)?,
            None => {}
        }
        Ok(release)
    }

    fn make(&self, kind: &str) -> Result<Vec<PathBuf>> {
        match kind {
            "archive" => archive::make(self),
            "npm" => npm::make(self),
            "wheel" => wheel::make(self),
            "mcpb" => bundle::make(self),
            "install" => script::make(self),
            "brew" => brew::make(self),
            "nix" => nix::make(self),
            "server.json" => registry::make(self),
            "links" => links::make(self),
            _ => deb::make(self),
        }
    }

    fn use_it(&self, kind: &str) -> Result<()> {
        // Each package is used with an empty home, as on a machine where wharf was never installed.
        let place = self.work.join(format!("used-{kind}"));
        fs::create_dir_all(place.join("home"))?;
        match kind {
            "archive" => archive::try_it(self, &place),
            "npm" => npm::try_it(self, &place),
            "wheel" => wheel::try_it(self, &place),
            "mcpb" => bundle::try_it(self, &place),
            "install" => script::try_it(self, &place),
            "brew" => brew::try_it(self, &place),
            "nix" => nix::try_it(self, &place),
            "server.json" => registry::try_it(self, &place),
            "links" => links::try_it(self, &place),
            _ => deb::try_it(self, &place),
        }
    }

    /// Returns the finished package whose file name ends in `end`.
    fn made(&self, end: &str) -> Result<PathBuf> {
        for entry in fs::read_dir(&self.out)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(end)) {
                return Ok(path);
            }
        }
        bail!("no file in {} ends in {end}", self.out.display())
    }

    fn plugin(&self, name: &str) -> PathBuf {
        self.root.join("target/plugins").join(format!("{name}.wasm"))
    }

    /// Runs wharf and returns its standard output.
    fn printed(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let output = Command::new(&self.binary).args(arguments).output()?;
        ensure!(output.status.success(), "wharf {}: {}", arguments.join(" "), output.status);
        Ok(output.stdout)
    }

    /// Writes the man pages to the folder `man`, and the completions of each shell to its file.
    fn write_help(&self, man: &Path, completions: &[(&str, PathBuf)]) -> Result<()> {
        fs::create_dir_all(man)?;
        run(Command::new(&self.binary).args(["print", "man"]).arg(man))?;
        for (shell, file) in completions {
            write(file, &self.printed(&["print", "completions", shell])?)?;
        }
        Ok(())
    }

    /// Returns the repository's address, and where a list of this name is written: only tried, it is not among the files of the release.
    fn list(&self, name: &str) -> (&str, PathBuf) {
        match &self.repository {
            Some(repository) => (repository, self.out.join(name)),
            None => (LOOPBACK, self.work.join("loopback").join(name)),
        }
    }

    /// Returns the address of a file of the release.
    fn download(&self, repository: &str, file: &str) -> String {
        format!("{repository}/releases/download/v{}/{file}", self.version)
    }

    /// Writes a list: the file `NAME.in` of `packaging`, in which each placeholder is replaced by its value.
    fn fill(&self, name: &str, values: &[(&str, &str)]) -> Result<Vec<PathBuf>> {
        let (repository, list) = self.list(name);
        let own = [
            ("@VERSION@", self.version.as_str()),
            ("@DESCRIPTION@", &self.description),
            ("@LICENSE@", &self.license),
            ("@REPOSITORY@", repository),
        ];
        let text = fs::read_to_string(self.root.join(format!("packaging/{name}.in")))?;
        let text = own.iter().chain(values).fold(text, |text, (placeholder, value)| text.replace(placeholder, value));
        write(&list, text.as_bytes())?;
        Ok(vec![list])
    }
}

/// Writes a file, and creates the folders that lead to it.
fn write(path: &Path, contents: &[u8]) -> Result<()> {
    fs::create_dir_all(path.parent().context("no folder")?)?;
    fs::write(path, contents).with_context(|| path.display().to_string())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("no folder")?)?;
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    Ok(())
}

/// Returns the standard output of a command, which has to succeed.
fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().display().to_string();
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot run {program}"))?;
    ensure!(output.status.success(), "{program}: {}", output.status);
    String::from_utf8(output.stdout).context(program)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sha256(file: &Path) -> Result<Vec<u8>> {
    Ok(Sha256::digest(fs::read(file).with_context(|| file.display().to_string())?).to_vec())
}

/// Whether this is the SHA-256 of a file, by another program than [`sha256`].
fn is_sha256(digest: &str, file: &Path) -> Result<bool> {
    Ok(output(Command::new("sha256sum").arg(file))?.split(' ').next() == Some(digest))
}
