//! `cargo xtask check existing`: runs existing MCP servers as plugins, with the real package managers and SDKs. `--brief` compares the values of
//! expressions in Node.js, in Python and in a plugin, which builds one server of each kind and calls it. Without it also small servers by
//! `wharf call`, as a person would try them, clients that look whether their state stays, packages of strangers, what docs/existing.md shows,
//! and published servers by the scripts in `tests/existing`, which compare them with the same servers outside of wharf.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, ensure};

use crate::{
    installed, pages, run, run_in, say,
    tree::{prepare, wharf},
};

pub fn check(root: &Path, rest: &[String]) -> Result<()> {
    prepare(&[])?;
    let (wharf, folder) = (wharf(), root.join("tests/existing"));
    let program = installed::python(&folder.join("requirements.txt"), &root.join("target/existing/venv"))?;
    let is_brief = rest.iter().any(|argument| argument == "--brief");
    if !is_brief {
        small(root, &wharf, &folder, &program)?;
        pages::execute(root, &root.join("target/existing/pages"), &program)?;
    }
    let published = (!is_brief).then_some(rest);
    let corpus = Corpus { root, folder, wharf, python: program };
    corpus.npm(published)?;
    corpus.python(published)
}

/// Tries small servers of this project, in the cache `target/existing`.
fn small(root: &Path, wharf: &Path, folder: &Path, python: &Path) -> Result<()> {
    let servers = ["notes.py", "notes.ts"].map(|server| folder.join("smoke").join(server));
    for server in &servers {
        smoke(root, wharf, server)?;
    }
    hostile(root, wharf, &folder.join("smoke/hostile.py"))?;
    let mut state = Command::new(python);
    state.arg(folder.join("state.py")).arg("--wharf").arg(wharf).arg("--cache").arg(root.join("target/existing"));
    run(state.arg("--edit").args(servers)).context("a server's state does not stay")?;
    let mut strangers = Command::new(python);
    strangers.arg(folder.join("strangers.py")).arg("--wharf").arg(wharf);
    run(strangers.arg("--work").arg(root.join("target/existing/strangers")))
        .context("a package of a stranger got something")
}

/// The published servers, and what compares them.
struct Corpus<'a> {
    root: &'a Path,
    folder: PathBuf,
    wharf: PathBuf,
    /// The interpreter that has the packages of `requirements.txt`. It also answers requests in the place of the servers' services.
    python: PathBuf,
}

impl Corpus<'_> {
    /// Compares published servers of npm, which are those of these names or all, and the values of expressions.
    fn npm(&self, published: Option<&[String]>) -> Result<()> {
        let install = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
        run_in(&self.folder, Command::new("npm").args(install)).context("this needs npm")?;
        if let Some(names) = published {
            let mut command = Command::new("node");
            command.arg(self.folder.join("npm.mjs")).arg("--wharf").arg(&self.wharf);
            command.arg("--folder").arg(self.root.join("target/existing/npm")).arg("--python").arg(&self.python);
            run(command.args(names)).context("a server of npm differs")?;
        }
        let mut command = Command::new("node");
        command.arg(self.folder.join("same.mjs")).arg("--wharf").arg(&self.wharf);
        command.arg("--folder").arg(self.root.join("target/existing/npm"));
        run(&mut command).context("an expression has another value in a plugin")
    }

    /// Tests the layer for servers in Python, and compares published servers of PyPI, and the values of expressions.
    fn python(&self, published: Option<&[String]>) -> Result<()> {
        let layer = self.root.join("sdk-guest/python-compat");
        run_in(&layer, Command::new(&self.python).args(["-m", "unittest", "discover", "-q", "-s", "tests", "-t", "."]))
            .context("a test of wharf-compat fails")?;
        if let Some(names) = published {
            let mut command = Command::new(&self.python);
            command.arg(self.folder.join("python.py")).arg("--wharf").arg(&self.wharf);
            command.arg("--work").arg(self.root.join("target/existing/python"));
            run(command.args(names)).context("a server of PyPI differs")?;
        }
        let mut command = Command::new(&self.python);
        command.arg(self.folder.join("same.py")).arg("--wharf").arg(&self.wharf);
        command.arg("--work").arg(self.root.join("target/existing/same"));
        run(&mut command).context("an expression of Python has another value in a plugin")
    }
}

/// The value of a variable that no plugin may see.
const SECRET: &str = "a-token-of-the-user";

/// Calls the tools of a server that takes what it can get. `wharf call` grants nothing; so the server gets nothing, and the model or the
/// person reads why.
fn hostile(root: &Path, wharf: &Path, server: &Path) -> Result<()> {
    // pip finds a package there of which there is only the source.
    let links = root.join("target/existing/links");
    fs::create_dir_all(&links)?;
    let mut pack = Command::new("tar");
    pack.arg("czf").arg(links.join("hoarder-1.0.tar.gz")).arg("-C").arg(root.join("tests/existing/smoke"));
    run(pack.arg("hoarder-1.0"))?;
    let links = [env::var("PIP_FIND_LINKS").unwrap_or_default(), links.display().to_string()].join(" ");
    let own_file = format!("path={}", root.join("Cargo.toml").display());
    let tries: [(&[&str], &str); 8] = [
        (&["show_what_the_build_got"], "[]"),
        (&["show_environment"], "{'HOME': '/home'}"),
        (&["read_key"], "Error executing tool read_key"),
        (&["read_file", &own_file], "No such file or directory"),
        (&["send_environment"], "does not allow this request to collector.example"),
        (&["run_program"], "a plugin cannot start other programs"),
        (&["fork"], "has no attribute 'fork'"),
        (&["hoard"], "Error executing tool hoard"),
    ];
    for (call, expected) in tries {
        let mut command = Command::new(wharf);
        command.arg("call").arg(server).args(call).env("XDG_CACHE_HOME", root.join("target/existing"));
        let output =
            command.env("API_TOKEN", SECRET).env("PIP_FIND_LINKS", links.trim()).output().context("wharf call")?;
        let (answer, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let got = answer.contains(SECRET) || log.contains(SECRET);
        ensure!(!got && answer.contains(expected), "hostile.py, {call:?}: {answer:?}\n{log}");
    }
    say("hostile.py got nothing");
    Ok(())
}

/// Calls a tool of a server twice: the first call builds the plugin, the second one starts no other program.
fn smoke(root: &Path, wharf: &Path, server: &Path) -> Result<()> {
    let cache = root.join("target/existing");
    for (how, path) in [("built and called", None), ("called again", Some("/nowhere"))] {
        let began = Instant::now();
        let mut command = Command::new(wharf);
        command.arg("call").arg(server).args(["add", "a=19", "b=23"]).env("XDG_CACHE_HOME", &cache);
        if let Some(path) = path {
            command.env("PATH", path);
        }
        let output = command.stderr(std::process::Stdio::inherit()).output().context("wharf call")?;
        let answer = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        ensure!(output.status.success() && answer == "19 + 23 = 42", "{}: {answer:?}", server.display());
        say(&format!("{} was {how} in {:.1} s", server.display(), began.elapsed().as_secs_f64()));
    }
    Ok(())
}
