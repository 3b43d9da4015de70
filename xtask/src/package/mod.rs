//! Makes what people install wharf from, all of it out of one built binary, and uses each as they would. Nothing is published here.

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
mod used;
mod wheel;

use platform::Platform;

/// What it is called at npm and PyPI, where `wharf` belongs to others. npm's packages with binaries are in a scope of this name.
const NAME: &str = "wharf-mcp";
/// How the version of wharf shows in all of them.
const KINDS: [&str; 5] = ["archive", "npm", "wheel", "mcpb", "deb"];

/// What all packages are made of.
struct Release {
    root: PathBuf,
    version: String,
    description: String,
    license: String,
    platform: &'static Platform,
    /// Without the names of functions, which are a fifth of the file.
    binary: PathBuf,
    /// Where the packages go.
    out: PathBuf,
    /// Where they are put together, and tried.
    work: PathBuf,
    /// npm's and PyPI's tools that pack.
    node_modules: PathBuf,
    python: PathBuf,
}

/// `[--check] [--only KIND,…] [--binary FILE] [--target TRIPLE]`
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
            _ => bail!("there is no {word}; there are --check, --only, --binary and --target"),
        }
    }
    if let Some(unknown) = only.iter().find(|kind| !KINDS.contains(&kind.as_str())) {
        bail!("there is no {unknown}; there are {}", KINDS.join(", "));
    }
    let binary = match binary {
        Some(binary) => binary.canonicalize().with_context(|| binary.display().to_string())?,
        None => {
            crate::shipped()?;
            root.join("target/shipped/wharf")
        }
    };
    let release = Release::set_up(root, &binary, target.as_deref())?;
    let mut made = Vec::new();
    for kind in &only {
        made.extend(release.make(kind).with_context(|| format!("cannot make: {kind}"))?);
    }
    for path in &made {
        say(&format!("{:>6.1} MB  {}", fs::metadata(path)?.len() as f64 / 1e6, path.display()));
    }
    if check {
        for kind in &only {
            release.use_it(kind).with_context(|| format!("cannot be used: {kind}"))?;
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
        // What an earlier version left would be taken for this one's.
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
            _ => deb::make(self),
        }
    }

    fn use_it(&self, kind: &str) -> Result<()> {
        // Everything begins with an empty home, as on a machine that never saw wharf.
        let place = self.work.join(format!("used-{kind}"));
        fs::create_dir_all(place.join("home"))?;
        match kind {
            "archive" => archive::try_it(self, &place),
            "npm" => npm::try_it(self, &place),
            "wheel" => wheel::try_it(self, &place),
            "mcpb" => bundle::try_it(self, &place),
            _ => deb::try_it(self, &place),
        }
    }

    /// A file that ends so among what was made.
    fn made(&self, end: &str) -> Result<PathBuf> {
        for entry in fs::read_dir(&self.out)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(end)) {
                return Ok(path);
            }
        }
        bail!("there is no {end} in {}", self.out.display())
    }

    fn plugin(&self, name: &str) -> PathBuf {
        self.root.join("target/plugins").join(format!("{name}.wasm"))
    }

    /// What wharf prints.
    fn printed(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let output = Command::new(&self.binary).args(arguments).output()?;
        ensure!(output.status.success(), "wharf {}: {}", arguments.join(" "), output.status);
        Ok(output.stdout)
    }

    /// The man pages and completions of the commands, in folders of these names below `to`.
    fn write_help(&self, man: &Path, completions: &[(&str, PathBuf)]) -> Result<()> {
        fs::create_dir_all(man)?;
        run(Command::new(&self.binary).arg("man").arg(man))?;
        for (shell, file) in completions {
            write(file, &self.printed(&["completions", shell])?)?;
        }
        Ok(())
    }

    /// The workflow that makes and publishes these packages, held against the schema of such files.
    fn check_workflow(&self) -> Result<()> {
        let mut command = Command::new(&self.python);
        command.args(["-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]);
        run(command.arg(self.root.join(".github/workflows/release.yml")))
    }
}

/// A file and the folders that lead to it.
fn write(path: &Path, contents: &[u8]) -> Result<()> {
    fs::create_dir_all(path.parent().context("no folder")?)?;
    fs::write(path, contents).with_context(|| path.display().to_string())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("no folder")?)?;
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    Ok(())
}
