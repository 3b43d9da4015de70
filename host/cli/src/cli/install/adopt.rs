//! `wharf adopt`: shows the MCP servers that the clients of this machine start without wharf, and which of them run in wharf, and puts wharf
//! before the lines of those that a person chooses.

use std::{collections::BTreeSet, path::Path, process::ExitCode, sync::Arc};

use anyhow::{Context, Result, bail, ensure};

use super::{program::Program, write};
use crate::{
    authoring::{
        build::Until,
        existing::{
            line::{self, Runs},
            make::make,
        },
    },
    cli::{
        add::wants,
        arguments::{Adopt, of_line},
        file::{component, read},
        load::{load_to_look, print},
        person::Person,
    },
    setup::{
        client_list::{self, ConfigPaths},
        clients::Client,
        server::Server,
    },
};
use wharf_base::text::{self, escaped};
use wharf_config::config::{self, CommandLine, Named};
use wharf_plugins::plugins::{snapshot::PluginStatus, status::Status};
use wharf_policy::access::wants::want::WantedGrant;

pub async fn run(command: Adopt) -> Result<ExitCode> {
    let mut person = match command.dry_run {
        true => None,
        false => Some(Person::here().context(
            "`wharf adopt` asks about each server at a terminal, and there is no terminal; --dry-run shows the servers",
        )?),
    };
    let (places, mut found, mut next) = (ConfigPaths::here()?, 0, BTreeSet::new());
    for client in client_list::ALL {
        let Some(path) = client.path(&places) else { continue };
        let Some(text) = read(&path)? else { continue };
        let Some(servers) = others(client, client.title, &path, &text)? else { continue };
        found += servers.len();
        for server in servers {
            let variables = client.variables(&text, &server.name)?;
            let elsewhere = client.folder(&text, &server.name)?.is_some();
            let adopted = match adoption(&server, &variables, elsewhere).await {
                Ok(adopted) => adopted,
                Err(error) => {
                    print(&format!("  {}: stays as it is: {}", escaped(&server.name), escaped(&format!("{error:#}"))))?;
                    continue;
                }
            };
            // With the question, so that nobody agrees to what is shown elsewhere.
            let mut show = |line: &str| person.as_mut().map_or_else(|| print(line), |person| person.tell(line));
            show(&format!("  {}: {}", escaped(&server.name), adopted.says))?;
            for line in &adopted.opens {
                show(&format!("    {line}"))?;
            }
            if let Some(person) = &mut person
                && change(client, &path, &adopted.server, person)?
            {
                next.insert(client.next_step);
            }
        }
    }
    found += of_project(&places)?;
    next.iter().try_for_each(|next| print(&format!("next: {next}")))?;
    if found == 0 {
        print(
            "no client on this machine starts an MCP server without wharf; `wharf install --list` names their configs",
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the servers of a config that a client starts without wharf, and prints those that are elsewhere. `None`: it cannot be read.
fn others(client: &Client, title: &str, path: &Path, text: &str) -> Result<Option<Vec<Server>>> {
    let (servers, remote) = match client.servers(text).and_then(|servers| Ok((servers, client.remote(text)?))) {
        Ok(all) => all,
        Err(error) => {
            print(&format!("{}: {}", text::path(path), escaped(&format!("{error:#}"))))?;
            return Ok(None);
        }
    };
    let servers: Vec<Server> = servers.into_iter().filter(|server| !server.is_wharf()).collect();
    if !servers.is_empty() || !remote.is_empty() {
        print(&format!("{title}, {}", text::path(path)))?;
    }
    remote.iter().try_for_each(|name| print(&format!("  {}: remote: left as it is", escaped(name))))?;
    Ok(Some(servers))
}

/// The configs of a project, each with the client that has the same format.
const OF_PROJECTS: [(&str, &str); 3] =
    [(".mcp.json", "claude-code"), (".vscode/mcp.json", "vscode"), (".cursor/mcp.json", "cursor")];

/// Prints the servers of the project in the current folder, whose files others share. Returns how many there are.
fn of_project(places: &ConfigPaths) -> Result<usize> {
    let mut found = 0;
    for (file, id) in OF_PROJECTS {
        let Some(client) = client_list::ALL.iter().find(|client| client.id == id) else { continue };
        let path = Path::new(file);
        // The home directory has the person's own.
        if client.path(places) == std::path::absolute(path).ok() {
            continue;
        }
        let Some(text) = read(path)? else { continue };
        for Server { name, command, args } in others(client, "this project", path, &text)?.unwrap_or_default() {
            found += 1;
            let words = ["wharf", "install", id, "--config-path", file, "--name", &name, "--force", &command];
            let line = text::shell(words.into_iter().chain(args.iter().map(String::as_str)));
            let says = match line::begins(&command) {
                true => format!("left as it is, since others share the file; to put wharf before it: {line}"),
                false => format!("left as it is: {command} is a program of this machine"),
            };
            print(&format!("  {}: {}", escaped(&name), escaped(&says)))?;
        }
    }
    Ok(found)
}

/// Asks whether a server is to be started by wharf, and changes its entry. Returns whether it did.
fn change(client: &Client, path: &Path, server: &Server, person: &mut Person) -> Result<bool> {
    let name = escaped(&server.name);
    if !client.is_edited() {
        print(&format!("    wharf does not edit YAML; start it with: {}", escaped(&server.line())))?;
        return Ok(false);
    }
    if !person.agrees(&format!("    Start `{name}` by wharf in {}, with this access?", client.title))? {
        return Ok(false);
    }
    // What the person has answered before is in the file by now.
    let before = read(path)?.context("the config is gone")?;
    let after = client.set(&before, server)?;
    write(client, path, Some(&before), &after)?;
    let undo = text::shell(["wharf", "install", client.id, "--name", &server.name, "--uninstall"]);
    print(&format!("    done; to undo it: {undo}"))?;
    Ok(true)
}

/// A server of a client, as wharf would start it.
struct Adoption {
    server: Server,
    /// What it offers, and what it takes today.
    says: String,
    /// What would be open to it.
    opens: Vec<String>,
}

/// Builds a server, and looks at what it offers and wants. `variables`: those that its entry sets. `elsewhere`: whether the client starts it in
/// a folder that the entry names.
async fn adoption(server: &Server, variables: &[String], elsewhere: bool) -> Result<Adoption> {
    ensure!(
        line::begins(&server.command),
        "{} is a program of this machine; wharf makes plugins of servers in Python, TypeScript and JavaScript",
        server.command
    );
    let line: Vec<String> = std::iter::once(&server.command).chain(&server.args).cloned().collect();
    let odd = variables.iter().find(|name| !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
    ensure!(odd.is_none(), "its entry sets a variable whose name wharf does not pass on");
    let is_package = matches!(line::parse(&line)?.runs, Runs::Package(_));
    ensure!(
        is_package || !elsewhere,
        "its entry starts it in a folder of its own (`cwd`); name its file by its whole path, and remove that"
    );
    let made = Arc::new(of_line(&line)?);
    make(&made, Until::Interrupted).await?;
    let path = made.component();
    let command_line = CommandLine { plugins: vec![Named::Server(Arc::clone(&made))], ..CommandLine::default() };
    let wharf = load_to_look(config::load(None, &command_line)?).await?.wharf;
    let mut says = Vec::new();
    for PluginStatus { status, serving, .. } in wharf.plugins() {
        if let Status::Failed { problem, .. } = &status {
            let without = if variables.is_empty() { "" } else { ", without the variables of its entry" };
            bail!("it does not load in wharf{without} ({}): {}", problem.stage, problem.text);
        }
        let (tools, tokens) = serving.map_or((0, 0), |serving| (serving.tools.len(), serving.tokens()));
        says.push(format!("{tools} tools, about {tokens} tokens"));
    }
    wharf.stop().await;
    if let Some(bytes) = resident(&server.args) {
        says.push(format!("{} MiB of memory today", bytes >> 20));
    }
    let wanted = wants(&component(&path)?.1)?.unwrap_or_default().grants;
    // The person has given it the variables of its entry, and the folders in its line.
    let (mut flags, mut opens) = (BTreeSet::new(), Vec::new());
    for name in variables {
        flags.insert(format!("--allow env={name}"));
    }
    for want in &wanted {
        match (&want.what, want.what.flag()) {
            // A variable that its entry does not set is not there today either.
            (WantedGrant::Env(_), _) => {}
            (_, Some(flag)) => drop(flags.insert(flag)),
            (what, None) => opens.push(format!("it also wants {}, which only a config grants", what.words())),
        }
    }
    let is_open = |word: &&String| Path::new(word.as_str()).is_absolute() && Path::new(word.as_str()).is_dir();
    let folders: Vec<String> = made.args.iter().filter(is_open).cloned().collect();
    opens.extend(flags.iter().cloned());
    opens.extend(folders.iter().map(|folder| format!("{}, for reading and writing", escaped(folder))));
    if opens.is_empty() {
        opens.push("nothing would be open to it".to_owned());
    }
    let program = Program::here()?;
    let flags = flags.iter().flat_map(|flag| flag.splitn(2, ' ')).map(str::to_owned);
    let args = program.before.into_iter().chain(["run".to_owned()]).chain(flags).chain(folders).chain(line).collect();
    let server = Server { name: server.name.clone(), command: program.command, args };
    Ok(Adoption { server, says: says.join(", "), opens })
}

/// Returns the resident memory of the processes that were started with these arguments, and of those that they have started.
fn resident(args: &[String]) -> Option<u64> {
    let words: Vec<&str> = args.iter().map(String::as_str).skip_while(|word| word.starts_with('-')).collect();
    let (mut all, mut own) = (Vec::new(), BTreeSet::new());
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).ok();
        let (Some(line), Some(stat), Some(pages)) = (read("cmdline"), read("stat"), read("statm")) else { continue };
        // npm writes its line as one word.
        let line: Vec<&str> = line.split(['\0', ' ']).filter(|word| !word.is_empty()).collect();
        if !words.is_empty() && line.ends_with(&words) {
            own.insert(id);
        }
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse::<u32>().ok())?;
        let pages = pages.split_whitespace().nth(1)?.parse::<u64>().ok()?;
        all.push((id, parent, pages));
    }
    loop {
        let before = own.len();
        own.extend(all.iter().filter(|(_, parent, _)| own.contains(parent)).map(|(id, ..)| *id).collect::<Vec<_>>());
        if own.len() == before {
            break;
        }
    }
    let pages: u64 = all.iter().filter(|(id, ..)| own.contains(id)).map(|(.., pages)| pages).sum();
    (!own.is_empty()).then_some(pages * rustix::param::page_size() as u64)
}
