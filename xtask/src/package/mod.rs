//! `cargo xtask package`: makes the packages of wharf from one binary, and installs and uses each as a user would. It publishes nothing.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use cargo_metadata::MetadataCommand;

use crate::{installed, run, say};

mod archive;
mod bundle;
mod deb;
mod npm;
mod platform;
mod script;
mod used;
mod wheel;

use platform::Platform;

/// The name of the packages on npm and PyPI, where `wharf` is taken. npm's packages with binaries are in a scope of this name.
const NAME: &str = "wharf-mcp";
/// The kinds of packages, as `--only` takes them.
const KINDS: [&str; 6] = ["archive", "npm", "wheel", "mcpb", "deb", "install"];

/// The inputs of all packages, and the folders they are made in.
struct Release {
    root: PathBuf,
    version: String,
    description: String,
    license: String,
    /// Where the releases are, once Cargo.toml says so.
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

/// Makes the packages. The arguments are `[--check] [--only KIND,…] [--binary FILE] [--target TRIPLE]`.
pub fn run_command(root: &Path, rest: &[String]) -> Result<()> {
    let (mut check, mut only, mut binary, mut target) = (false, KINDS.map(String::from).to_vec(), None, None);
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().cloned().with_context(|| format!("{word} needs a value"));
        match word.as_str() {
            "--check" => check = true,
            "--only" => only = value()?.split(',').map(String::from).collect(),
            "--binary" => binary = Some(PathBuf::from(value()?)),
            "--target" => target = Some(value()?),
            _ => bail!("unknown option {word}; the options are --check, --only, --binary and --target"),
        }
    }
    if let Some(unknown) = only.iter().find(|kind| !KINDS.contains(&kind.as_str())) {
        bail!("unknown kind {unknown} in --only; the kinds are {}", KINDS.join(", "));
    }
    let binary = match binary {
        Some(binary) => binary.canonicalize().with_context(|| binary.display().to_string())?,
        None => {
            crate::release::shipped(root)?;
            root.join("target/shipped/wharf")
        }
    };
    let release = Release::set_up(root, &binary, target.as_deref())?;
    let mut made = Vec::new();
    for kind in &only {
        made.extend(release.make(kind).with_context(|| format!("cannot make the package: {kind}"))?);
    }
    for path in &made {
        say(&format!("{:>6.1} MB  {}", fs::metadata(path)?.len() as f64 / 1e6, path.display()));
    }
    if check {
        for kind in &only {
            release.use_it(kind).with_context(|| format!("the package cannot be used: {kind}"))?;
            say(&format!("installed and used: {kind}"));
        }
        release.check_workflow()?;
    }
    Ok(())
}

impl Release {
    fn set_up(root: &Path, built: &Path, target: Option<&str>) -> Result<Self> {
        let metadata = MetadataCommand::new().current_dir(root).no_deps().exec()?;
        let wharf = metadata.packages.iter().find(|package| package.name.as_str() == "wharf").context("no wharf")?;
        let platform = match target {
            Some(triple) => Platform::named(triple)?,
            None => Platform::here()?,
        };
        let (out, source) = (root.join("target/dist"), root.join("packaging"));
        let work = out.join("work");
        let tools = root.join("target/packaging");
        installed::npm(&source, &tools)?;
        let python = installed::python(&source.join("requirements.txt"), &tools.join("venv"))?;
        // Packages of an earlier version would be taken for those of this one.
        if out.exists() {
            fs::remove_dir_all(&out)?;
        }
        fs::create_dir_all(&work)?;
        let binary = work.join("wharf");
        fs::copy(built, &binary).with_context(|| built.display().to_string())?;
        run(Command::new(env::var_os("STRIP").unwrap_or_else(|| "strip".into())).arg(&binary))?;
        Ok(Self {
            root: root.to_path_buf(),
            version: wharf.version.to_string(),
            description: wharf.description.clone().context("no description")?,
            license: wharf.license.clone().context("no license")?,
            repository: wharf.repository.clone(),
            platform,
            binary,
            out,
            work,
            node_modules: tools.join("node_modules"),
            python,
        })
    }

    fn make(&self, kind: &str) -> Result<Vec<PathBuf>> {
        match kind {
            "archive" => archive::make(self),
            "npm" => npm::make(self),
            "wheel" => wheel::make(self),
            "mcpb" => bundle::make(self),
            "install" => script::make(self),
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

    /// Validates the workflow that publishes these packages against the schema of GitHub workflows.
    fn check_workflow(&self) -> Result<()> {
        let mut command = Command::new(&self.python);
        command.args(["-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]);
        run(command.arg(self.root.join(".github/workflows/release.yml")))
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
