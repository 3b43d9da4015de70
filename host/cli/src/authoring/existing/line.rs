//! The line that starts an MCP server without wharf, such as `npx -y @scope/server`: what it runs, and with which arguments. This reads words
//! only: it looks at no file, and starts nothing.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use wharf_base::text::escaped;
use wharf_config::config::existing::{Language, Package};

/// What a line runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Runs {
    Package(Package),
    File(String),
    /// A module of Python, in the folder where it is started.
    Module(String),
    /// A script that the `pyproject.toml` of the folder names.
    Script(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub runs: Runs,
    /// The packages that are installed in addition.
    pub with: Vec<String>,
    /// The folder in which it is started, if the line names one.
    pub folder: Option<String>,
    /// The arguments of the server.
    pub args: Vec<String>,
}

/// The programs with which such a line begins.
const STARTERS: [&str; 18] = [
    "npx", "npm", "pnpm", "bunx", "uvx", "uv", "pipx", "python", "python3", "node", "nodejs", "tsx", "ts-node", "bun",
    "deno", "docker", "podman", "nerdctl",
];

/// Returns the name of a program that may be written with its folder.
fn program(word: &str) -> &str {
    Path::new(word).file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Whether a line begins with this word. A folder of that name is written with a slash, such as `./node`.
pub fn begins(word: &str) -> bool {
    let name = program(word);
    let version = name.strip_prefix("python3.").is_some_and(|minor| minor.chars().all(|c| c.is_ascii_digit()));
    version || STARTERS.contains(&name)
}

/// What becomes of an option of the program that starts a server.
#[derive(Clone, Copy)]
enum Rule {
    /// It makes no difference to the plugin.
    Passes,
    /// Its value counts.
    Kept,
    /// It makes a difference, and this sentence says what to do.
    Refused(&'static str),
}

use Rule::{Kept, Passes, Refused};

type Rules = [(&'static [&'static str], Rule)];

const REGISTRY_OF_NPM: Rule = Refused("set the variable NPM_CONFIG_REGISTRY for the build");
const INDEX_OF_PIP: Rule = Refused("set the variable PIP_INDEX_URL for the build");
const OWN_PYTHON: Rule = Refused("a plugin runs in the Python that wharf makes it with, so leave it out");
const VARIABLES: Rule = Refused("set the variables for wharf, and grant each with --allow env=NAME before the line");

const NPX: &Rules = &[
    (&["-y", "--yes", "-q", "--quiet", "-s", "--silent", "--prefer-offline", "--bun"], Passes),
    (&["-p", "--package"], Kept),
    (&["-c", "--call"], Refused("it runs a line of a shell; name the package and its arguments")),
    (&["--registry"], REGISTRY_OF_NPM),
];
const UVX: &Rules = &[
    (&["-q", "--quiet", "-v", "--verbose", "--no-progress", "--isolated"], Passes),
    (&["--from", "--with"], Kept),
    (&["-p", "--python"], OWN_PYTHON),
    (&["-i", "--index-url", "--index", "--default-index", "--extra-index-url"], INDEX_OF_PIP),
    (&["--env-file"], VARIABLES),
    (&["--with-editable", "--with-requirements"], Refused("name each package with --with")),
];
const PIPX: &Rules = &[
    (&["-q", "--quiet", "-v", "--verbose"], Passes),
    (&["--spec"], Kept),
    (&["--python"], OWN_PYTHON),
    (&["-i", "--index-url", "--pip-args"], INDEX_OF_PIP),
];
const UV: &Rules = &[
    (&["-q", "--quiet", "-v", "--verbose", "--no-progress", "-s", "--script"], Passes),
    (&["--directory", "--project", "--with", "-m", "--module"], Kept),
    (&["-p", "--python"], OWN_PYTHON),
    (&["-i", "--index-url", "--index", "--default-index", "--extra-index-url"], INDEX_OF_PIP),
    (&["--env-file"], VARIABLES),
    (&["--frozen", "--locked"], Refused("wharf keeps a lock of its own, so leave it out")),
    (&["--with-editable", "--with-requirements"], Refused("name each package with --with")),
];
const PYTHON: &Rules = &[
    (&["-u", "-B", "-s", "-E", "-I", "-q"], Passes),
    (&["-m"], Kept),
    (&["-c"], Refused("put the code into a file, and name that")),
];
const NODE: &Rules = &[
    (&["--no-warnings", "--no-deprecation", "--enable-source-maps", "--experimental-strip-types"], Passes),
    (&["--env-file", "--env-file-if-exists"], VARIABLES),
    (
        &["-e", "--eval", "-r", "--require", "--import", "--loader"],
        Refused("a plugin is made from one file and what it imports"),
    ),
];
const DENO: &Rules = &[
    (&["-q", "--quiet"], Passes),
    (
        &[
            "-A",
            "-R",
            "-W",
            "-N",
            "-E",
            "-S",
            "--allow-all",
            "--allow-read",
            "--allow-write",
            "--allow-net",
            "--allow-env",
            "--allow-sys",
            "--allow-run",
            "--allow-ffi",
            "--allow-import",
            "--allow-scripts",
        ],
        Refused("leave it out: what the plugin may do, wharf's own --allow says before the line"),
    ),
    (&["--env-file"], VARIABLES),
];

/// Reads the words of a line, the first of which [`begins`] it.
pub fn parse(words: &[String]) -> Result<Line> {
    let (first, rest) = words.split_first().context("the line that starts a server is empty")?;
    let name = program(first);
    let (second, after) = rest.split_first().map_or(("", rest), |(second, after)| (second.as_str(), after));
    match (name, second) {
        ("npx" | "bunx", _) => npx(name, rest),
        ("npm", "exec" | "x") | ("pnpm", "dlx") | ("bun", "x") => npx(&format!("{name} {second}"), after),
        ("uvx", _) => uvx("uvx", rest),
        ("uv", "tool") if after.first().is_some_and(|word| word == "run") => {
            uvx("uv tool run", after.get(1..).unwrap_or_default())
        }
        ("uv", _) => uv(rest),
        ("pipx", "run") => pipx(after),
        ("node" | "nodejs" | "tsx" | "ts-node", _) => file(name, NODE, rest),
        ("bun", "run") => file("bun run", NODE, after),
        ("bun", _) => file("bun", NODE, rest),
        ("deno", "run") => file("deno run", DENO, after),
        ("docker" | "podman" | "nerdctl", _) => bail!(
            "`{name}` starts a container, which wharf does not; most servers are also published as a package: \
             wharf run npx -y NAME, or wharf run uvx NAME"
        ),
        ("npm" | "pnpm" | "pipx" | "deno", _) => {
            bail!(
                "`{name} {}` starts no MCP server that wharf knows; such lines begin with {}",
                escaped(second),
                known(name)
            )
        }
        _ => python(name, rest),
    }
}

fn known(name: &str) -> &'static str {
    match name {
        "npm" => "npm exec",
        "pnpm" => "pnpm dlx",
        "pipx" => "pipx run",
        _ => "deno run",
    }
}

/// The options of a program, as far as they count, and the words after them.
struct Read<'a> {
    program: &'a str,
    kept: Vec<(&'static str, &'a str)>,
    rest: &'a [String],
}

impl<'a> Read<'a> {
    /// Reads options until the first word that does not begin with `-`.
    fn options(program: &'a str, rules: &Rules, mut words: &'a [String]) -> Result<Self> {
        let mut kept = Vec::new();
        while let Some((word, rest)) = words.split_first().filter(|(word, _)| word.starts_with('-')) {
            words = rest;
            if word == "--" {
                break;
            }
            let (flag, value) = word.split_once('=').map_or((word.as_str(), None), |(flag, value)| (flag, Some(value)));
            let known = rules.iter().find_map(|(flags, rule)| Some((*flags.iter().find(|own| **own == flag)?, rule)));
            match known {
                Some((_, Passes)) => {}
                Some((flag, Kept)) => {
                    let next = || words.split_first().map(|(value, rest)| (value.as_str(), rest));
                    let (value, rest) = value
                        .map(|value| (value, words))
                        .or_else(next)
                        .with_context(|| format!("`{program} {flag}`: its value is missing"))?;
                    words = rest;
                    kept.push((flag, value));
                    // What follows a module are its arguments.
                    if ["-m", "--module"].contains(&flag) {
                        break;
                    }
                }
                Some((flag, Refused(remedy))) => bail!("`{program} {flag}`: {remedy}"),
                None => bail!(
                    "`{program} {}`: wharf does not know this option, and does not pass over it in silence; leave it out if the server does not need it",
                    escaped(flag)
                ),
            }
        }
        Ok(Self { program, kept, rest: words })
    }

    fn all(&self, flags: &[&str]) -> Vec<&'a str> {
        self.kept.iter().filter(|(flag, _)| flags.contains(flag)).map(|(_, value)| *value).collect()
    }

    /// Returns the value of an option that may be given once.
    fn one(&self, flags: &[&str]) -> Result<Option<&'a str>> {
        let all = self.all(flags);
        ensure!(all.len() < 2, "`{} {}` stands there twice; give it once", self.program, flags.last().unwrap_or(&""));
        Ok(all.first().copied())
    }

    /// Returns the packages that are installed in addition. pip reads what begins with `-` as an option, and follows addresses.
    fn with(&self) -> Result<Vec<String>> {
        let fits = |one: &str| {
            one.starts_with(|c: char| c.is_ascii_alphanumeric())
                && one.chars().all(|c| c.is_ascii_alphanumeric() || "._-[],<>=!~*+".contains(c))
        };
        let all: Vec<&str> = self.all(&["--with"]).into_iter().flat_map(|list| list.split(',')).collect();
        if let Some(odd) = all.iter().find(|one| !fits(one)) {
            bail!("`{} --with`: {} is not a package of PyPI; write NAME or NAME==VERSION", self.program, escaped(odd));
        }
        Ok(all.into_iter().map(str::to_owned).collect())
    }

    /// Returns the first word after the options, and those after it.
    fn next(&self, what: &str) -> Result<(&'a str, Vec<String>)> {
        let (word, rest) = self.rest.split_first().with_context(|| format!("name {what} after `{}`", self.program))?;
        Ok((word, rest.to_vec()))
    }
}

fn line(runs: Runs, args: Vec<String>) -> Line {
    Line { runs, with: Vec::new(), folder: None, args }
}

fn npx(program: &str, words: &[String]) -> Result<Line> {
    let read = Read::options(program, NPX, words)?;
    let named = read.one(&["-p", "--package"])?;
    let (word, mut args) = read.next(if named.is_some() { "the program of the package" } else { "the package" })?;
    // npm takes the first `--` itself; npx leaves it to the program.
    if program.starts_with("npm") && args.first().is_some_and(|word| word == "--") {
        args.remove(0);
    }
    if named.is_none() && ["tsx", "ts-node"].contains(&word) {
        return file(word, NODE, &args);
    }
    let package = match named {
        Some(named) => Package::npm(named)?.with_program(word)?,
        None => Package::npm(word)?,
    };
    Ok(line(Runs::Package(package), args))
}

fn uvx(program: &str, words: &[String]) -> Result<Line> {
    let read = Read::options(program, UVX, words)?;
    let from = read.one(&["--from"])?;
    let (word, args) = read.next(if from.is_some() { "the command of the package" } else { "the package" })?;
    let with = read.with()?;
    if let Some(run) = run_by_sdk(word, &args)? {
        return Ok(Line { with, ..run });
    }
    let package = match from {
        Some(from) => Package::pypi(from)?.with_program(word)?,
        None => Package::pypi(word)?,
    };
    Ok(Line { with, ..line(Runs::Package(package), args) })
}

fn pipx(words: &[String]) -> Result<Line> {
    let read = Read::options("pipx run", PIPX, words)?;
    let (word, args) = read.next("the package")?;
    let package = match read.one(&["--spec"])? {
        Some(spec) => Package::pypi(spec)?.with_program(word)?,
        None => Package::pypi(word)?,
    };
    Ok(line(Runs::Package(package), args))
}

/// `uv run`, with the options that may stand before `run` too.
fn uv(words: &[String]) -> Result<Line> {
    let before = Read::options("uv", UV, words)?;
    let (run, after) = before.next("`run`")?;
    ensure!(
        run == "run",
        "`uv {}` starts no MCP server that wharf knows; such lines begin with uv run, uv tool run or uvx",
        escaped(run)
    );
    let mut read = Read::options("uv run", UV, &after)?;
    read.kept.extend(&before.kept);
    let (directory, project) = (read.one(&["--directory"])?, read.one(&["--project"])?);
    let with = read.with()?;
    let run = match read.one(&["-m", "--module"])? {
        Some(module) => line(Runs::Module(module.to_owned()), read.rest.to_vec()),
        None => {
            let (word, args) = read.next("the server's file")?;
            match run_by_sdk(word, &args)? {
                Some(run) => run,
                None if begins(word) && program(word).starts_with("python") => python(word, &args)?,
                None if is_file(word, Language::Python) => line(Runs::File(word.to_owned()), args),
                None => line(Runs::Script(word.to_owned()), args),
            }
        }
    };
    // `--project` says whose scripts are meant, and files stay those of the folder where it is started.
    let folder = match (directory, project) {
        (Some(directory), Some(project)) if matches!(run.runs, Runs::Script(_)) => {
            Some(format!("{directory}/{project}"))
        }
        (None, Some(project)) if matches!(run.runs, Runs::Script(_)) => Some(project.to_owned()),
        (directory, _) => directory.map(str::to_owned),
    };
    Ok(Line { with, folder, ..run })
}

/// `mcp run FILE` and `fastmcp run FILE`, the commands of the SDKs.
fn run_by_sdk(word: &str, args: &[String]) -> Result<Option<Line>> {
    let [run, file, rest @ ..] = args else { return Ok(None) };
    if !["mcp", "fastmcp"].contains(&word) || run != "run" {
        return Ok(None);
    }
    // The object in the file, which is found without its name.
    let name = file.split_once(".py:").map_or(file.clone(), |(file, _)| format!("{file}.py"));
    ensure!(
        is_file(&name, Language::Python) && rest.is_empty(),
        "`{word} run`: name the server's file after it, and nothing else"
    );
    Ok(Some(line(Runs::File(name), Vec::new())))
}

fn python(program: &str, words: &[String]) -> Result<Line> {
    let read = Read::options(program, PYTHON, words)?;
    if let Some(module) = read.one(&["-m"])? {
        return Ok(line(Runs::Module(module.to_owned()), read.rest.to_vec()));
    }
    let (word, args) = read.next("the server's file")?;
    ensure!(
        is_file(word, Language::Python),
        "{}: name the server's file after `{program}`, such as server.py",
        escaped(word)
    );
    Ok(line(Runs::File(word.to_owned()), args))
}

fn file(program: &str, rules: &Rules, words: &[String]) -> Result<Line> {
    let read = Read::options(program, rules, words)?;
    let (word, args) = read.next("the server's file")?;
    if let Some(package) = word.strip_prefix("npm:").filter(|_| program.starts_with("deno")) {
        return Ok(line(Runs::Package(Package::npm(package)?), args));
    }
    ensure!(
        is_file(word, Language::Node),
        "{}: name the server's file after `{program}`, such as dist/index.js",
        escaped(word)
    );
    Ok(line(Runs::File(word.to_owned()), args))
}

fn is_file(word: &str, language: Language) -> bool {
    Language::of(Path::new(word)) == Some(language)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Line> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        assert!(begins(&words[0]), "{text}");
        parse(&words)
    }

    /// What a line runs, with which packages in addition, in which folder, and the arguments.
    #[test]
    fn a_line_says_what_it_runs() {
        for (text, expected) in [
            ("npx -y @scope/server", "npm:@scope/server"),
            ("npx -y @scope/server@1.2.3 --port 1 x", "npm:@scope/server@1.2.3 | --port 1 x"),
            ("npx --yes --quiet server@latest -- -y", "npm:server@latest | -- -y"),
            ("/usr/bin/npx server@^1", "npm:server@^1"),
            ("npx -y --package=@scope/server@2 other -v", "npm:@scope/server@2#other | -v"),
            ("npx -p server -- other", "npm:server#other"),
            ("npx -y tsx src/index.ts a", "src/index.ts | a"),
            ("npm exec -y server -- --read-only", "npm:server | --read-only"),
            ("pnpm dlx server", "npm:server"),
            ("bunx server", "npm:server"),
            ("bun x server a", "npm:server | a"),
            ("uvx mcp-server-git --repository /x", "pypi:mcp-server-git | --repository /x"),
            ("uvx mcp-server-git==2026.1.2", "pypi:mcp-server-git==2026.1.2"),
            ("uvx mcp-server-git@1", "pypi:mcp-server-git==1"),
            ("uvx mcp-server-git@latest", "pypi:mcp-server-git"),
            ("uvx --from pkg[cli]==1 cmd -x", "pypi:pkg[cli]==1#cmd | -x"),
            ("uvx --with httpx --with=rich<14 server", "pypi:server + httpx rich<14"),
            ("uv tool run -q server", "pypi:server"),
            ("pipx run server a", "pypi:server | a"),
            ("pipx run --spec pkg==1 cmd", "pypi:pkg==1#cmd"),
            ("python server.py -v", "server.py | -v"),
            ("python3 -u src/server.py", "src/server.py"),
            (".venv/bin/python3.12 -m mcp_server_git -r x", "-m mcp_server_git | -r x"),
            ("node dist/index.js --stdio", "dist/index.js | --stdio"),
            ("tsx server.ts", "server.ts"),
            ("bun run server.ts", "server.ts"),
            ("bun server.ts", "server.ts"),
            ("deno run -q server.ts", "server.ts"),
            ("deno run npm:@scope/server a", "npm:@scope/server | a"),
            ("uv run server.py a", "server.py | a"),
            ("uv run --with mcp[cli] mcp run server.py:app", "server.py + mcp[cli]"),
            ("uv --directory /srv/x run server.py", "server.py in /srv/x"),
            ("uv run --directory /srv/x my-server -v", "script my-server in /srv/x | -v"),
            ("uv run --project /srv/x my-server", "script my-server in /srv/x"),
            ("uv --directory /srv run --project x my-server", "script my-server in /srv/x"),
            ("uv run --project /srv/x server.py", "server.py"),
            ("uv run /opt/python/bin/server.py", "/opt/python/bin/server.py"),
            ("uv run -m pkg.server -v", "-m pkg.server | -v"),
            ("uv run python server.py", "server.py"),
            ("uvx fastmcp run server.py", "server.py"),
        ] {
            let Line { runs, with, folder, args } = read(text).unwrap();
            let mut shown = match runs {
                Runs::Package(package) => {
                    let written = package.to_string();
                    assert_eq!(Package::parse(&written).unwrap().unwrap(), package, "{text}");
                    written
                }
                Runs::File(file) => file,
                Runs::Module(module) => format!("-m {module}"),
                Runs::Script(script) => format!("script {script}"),
            };
            for (sign, words) in [(" + ", with), (" in ", folder.into_iter().collect()), (" | ", args)] {
                if !words.is_empty() {
                    shown += &format!("{sign}{}", words.join(" "));
                }
            }
            assert_eq!(shown, expected, "{text}");
        }
    }

    #[test]
    fn a_line_that_wharf_cannot_run_is_answered_in_words() {
        for (text, expected) in [
            ("docker run -i --rm mcp/git", "wharf run npx -y NAME"),
            ("podman run x", "starts a container"),
            ("npx", "name the package after `npx`"),
            ("npx -y", "name the package after `npx`"),
            ("npx --package=a", "name the program of the package"),
            ("npx -p a -p b c", "twice"),
            ("npx --node-options=x server", "`npx --node-options`: wharf does not know this option"),
            ("npx -c server", "a line of a shell"),
            ("npx --registry https://r.example server", "NPM_CONFIG_REGISTRY"),
            ("npx github:a/b", "name the server's file"),
            ("npx a/b", "name the server's file"),
            ("npx git+https://x.example/a.git", "name the server's file"),
            ("npx ./dist", "name the server's file"),
            ("npx server@npm:other", "name the server's file"),
            ("npx server@>=1", "not a version"),
            ("npx @scope", "not the name of a package"),
            ("npx @../x", "not the name of a package"),
            ("npx server@../x", "not a version"),
            ("uvx git+https://x.example/a", "name the server's file"),
            ("uvx --from git+https://x.example/a a", "name the server's file"),
            ("uvx server>=1", "write NAME or NAME==VERSION"),
            ("uvx --python 3.12 server", "leave it out"),
            ("uvx --index-url https://i.example server", "PIP_INDEX_URL"),
            ("uvx --reinstall server", "does not know this option"),
            ("uvx --from", "its value is missing"),
            ("uvx --with -e server", "is not a package of PyPI"),
            ("uv run --with ../x server.py", "is not a package of PyPI"),
            ("uvx --from pkg $(x)", "not the name of a program"),
            ("uv sync", "uv run"),
            ("uv run --env-file .env server.py", "--allow env=NAME"),
            ("uv run mcp run server", "name the server's file after it"),
            ("pipx install server", "pipx run"),
            ("npm start", "npm exec"),
            ("python -c x", "put the code into a file"),
            ("python", "name the server's file after `python`"),
            ("python server", "such as server.py"),
            ("node -r x server.js", "one file and what it imports"),
            ("node --env-file=.env server.js", "--allow env=NAME"),
            ("node .", "such as dist/index.js"),
            ("deno run -A server.ts", "leave it out"),
            ("deno run --allow-net=a.example server.ts", "leave it out"),
            ("deno task start", "deno run"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        for word in ["server.py", "npm:x", "files", "pythonic", "python3.x", "./nodes"] {
            assert!(!begins(word), "{word}");
        }
    }
}
