//! How plugins that were not made for wharf are served: `adapter`, `command` and the tables in `tools`.

use std::collections::BTreeSet;

use anyhow::{Context, Result, anyhow, bail, ensure};
use http::uri::PathAndQuery;
use serde_json::Value;
use wharf_scope::adapter::{
    Adapter, CommandTool, Described, Hints, Output, Param, ParamType, ServedAs, Template, is_param_name,
};

use super::{
    bounds::is_name_character,
    raw::{self, Declared},
};
use wharf_base::pattern::Pattern;

/// The name of the tool that passes any arguments to a command.
const RUN_TOOL: &str = "run";

/// Reads how a plugin is served, and which of its tools are published.
pub fn resolve(
    id: &str,
    (adapter, endpoint): (Option<&str>, Option<&str>),
    (command, tools): (bool, Option<raw::Tools>),
) -> Result<(Adapter, Option<Vec<Pattern>>)> {
    let kind = match adapter {
        None => command.then_some(ServedAs::Command),
        Some("functions") => Some(ServedAs::Functions),
        Some("command") => Some(ServedAs::Command),
        Some("http") => Some(ServedAs::Http),
        Some(_) => bail!("`adapter` is \"functions\", \"command\" or \"http\""),
    };
    ensure!(
        endpoint.is_none() || matches!(kind, None | Some(ServedAs::Http)),
        "`endpoint` is for adapter = \"http\", and `adapter` or `command` says otherwise"
    );
    let endpoint = endpoint.map(path).transpose()?;
    ensure!(
        !command || kind == Some(ServedAs::Command),
        "`command = true` is for adapter = \"command\", and `adapter` says otherwise"
    );
    let mut resolved = Adapter { kind, endpoint, run: command.then(|| run(id)), ..Adapter::default() };
    let declared = match tools {
        None => return Ok((resolved, None)),
        Some(raw::Tools::Names(names)) => {
            return Ok((resolved, Some(names.into_iter().map(Pattern::new).collect())));
        }
        Some(raw::Tools::Declared(declared)) => declared.0,
    };
    for (name, tool) in declared {
        let named = || format!("tools.{name}");
        ensure!(
            !name.is_empty() && name.chars().all(is_name_character) && !(command && name == RUN_TOOL),
            "`{}` is not a valid name for a tool; a name has letters, digits, `_`, `-` and `.`{}",
            name.escape_debug(),
            if command { ", and `run` is reserved for `command = true`" } else { "" }
        );
        match tool.argv {
            Some(_) => resolved.commands.push(declare(name.clone(), tool).with_context(named)?),
            None => resolved.described.push(describe(name.clone(), tool).with_context(named)?),
        }
    }
    // Only declared tools are published, so a tool whose declaration is removed disappears when the config is read.
    let names = resolved.commands.iter().chain(&resolved.run).map(|tool| Pattern::new(tool.name.clone()));
    let names = (!resolved.commands.is_empty()).then(|| names.collect());
    Ok((resolved, names))
}

/// The maximum length of the path of an endpoint.
const MAX_ENDPOINT_BYTES: usize = 1024;

/// Reads the path of an MCP endpoint.
fn path(text: &str) -> Result<PathAndQuery> {
    let path = Some(text).filter(|text| text.starts_with('/') && text.len() <= MAX_ENDPOINT_BYTES);
    let path = path.and_then(|text| text.parse().ok());
    path.with_context(|| {
        format!(
            "`endpoint` is a path that begins with `/` and has at most {MAX_ENDPOINT_BYTES} bytes, such as \"/mcp\""
        )
    })
}

/// Returns how a plugin that is named on the command line is served. The command line cannot declare tools.
pub fn on_command_line(id: &str) -> Adapter {
    Adapter { run: Some(run(id)), ..Adapter::default() }
}

/// Returns the tool that passes any arguments to the command `id`.
fn run(id: &str) -> CommandTool {
    CommandTool {
        name: RUN_TOOL.to_owned(),
        description: format!("Runs the command {id} with these arguments."),
        argv: None,
        params: Vec::new(),
        stdin: None,
        ok_exit: vec![0],
        output: Output::All,
        hints: Hints { read_only: None, destructive: None, idempotent: None, open_world: None },
    }
}

fn hints(tool: &Declared) -> Hints {
    Hints {
        read_only: tool.read_only,
        destructive: tool.destructive,
        idempotent: tool.idempotent,
        open_world: tool.open_world,
    }
}

fn describe(name: String, tool: Declared) -> Result<Described> {
    let hints = hints(&tool);
    let Declared { description, params, stdin, ok_exit, output, .. } = tool;
    let more = !params.0.is_empty() || stdin.is_some() || ok_exit.is_some() || output.is_some();
    ensure!(!more, "it lacks `argv`; without `argv`, a tool may only have `description` and hints");
    Ok(Described { name, description, hints })
}

fn declare(name: String, tool: Declared) -> Result<CommandTool> {
    let hints = hints(&tool);
    let Declared { description, argv, params, stdin, ok_exit, output, .. } = tool;
    let template = |text: &str| Template::parse(text).map_err(|problem| anyhow!(problem));
    let argv = argv.iter().flatten().map(|text| template(text)).collect::<Result<Vec<_>>>().context("argv")?;
    let stdin = stdin.as_deref().map(template).transpose().context("stdin")?;
    let (mut required, mut optional) = (BTreeSet::new(), BTreeSet::new());
    let mut in_order: Vec<&str> = Vec::new();
    for (name, may_be_left_out) in argv.iter().chain(&stdin).flat_map(Template::names) {
        if may_be_left_out {
            optional.insert(name)
        } else {
            required.insert(name)
        };
        if !in_order.contains(&name) {
            in_order.push(name);
        }
    }
    let may_be_left_out = |name: &str| optional.contains(name) && !required.contains(name);
    let mut resolved = Vec::new();
    for (name, param) in params.0 {
        ensure!(
            in_order.contains(&name.as_str()),
            "params: neither `argv` nor `stdin` names {{{}}}",
            name.escape_debug()
        );
        let param = parameter(param, may_be_left_out(&name)).with_context(|| format!("params.{name}"))?;
        resolved.push((name, param));
    }
    for name in in_order {
        if !resolved.iter().any(|(known, _)| known == name) {
            ensure!(is_param_name(name), "`{}` is not a valid name for a parameter", name.escape_debug());
            let text = raw::Param::default();
            resolved.push((name.to_owned(), parameter(text, may_be_left_out(name))?));
        }
    }
    let output = match output.as_deref() {
        None | Some("text") => Output::Text,
        Some("json") => Output::Json,
        Some("all") => Output::All,
        Some(_) => bail!("`output` is \"text\", \"json\" or \"all\""),
    };
    let ok_exit = ok_exit.unwrap_or_else(|| vec![0]);
    Ok(CommandTool { name, description, argv: Some(argv), params: resolved, stdin, ok_exit, output, hints })
}

fn parameter(raw: raw::Param, optional: bool) -> Result<Param> {
    let raw::Param { ty, description, default, flag, one_of } = raw;
    let ty = match (ty.as_deref(), flag) {
        (Some("boolean"), Some(flag)) => ParamType::Boolean(flag),
        (Some("boolean"), None) => bail!("a boolean needs `flag`: the argument that it stands for, such as \"--all\""),
        (_, Some(_)) => bail!("only a boolean has a `flag`"),
        (None | Some("string"), None) => ParamType::String,
        (Some("integer"), None) => ParamType::Integer,
        (Some("number"), None) => ParamType::Number,
        (Some("array"), None) => ParamType::Array,
        (Some(_), None) => bail!("`type` is \"string\", \"integer\", \"number\", \"boolean\" or \"array\""),
    };
    ensure!(
        one_of.is_empty() || matches!(ty, ParamType::String | ParamType::Array),
        "only a string, or an array of them, has an `enum`"
    );
    let default = default.map(serde_json::to_value).transpose()?;
    let fits = match (&ty, &default) {
        (_, None) => true,
        (ParamType::String, Some(value)) => value.is_string(),
        (ParamType::Integer, Some(value)) => value.is_i64(),
        (ParamType::Number, Some(value)) => value.is_number(),
        (ParamType::Boolean(_), Some(value)) => value.is_boolean(),
        (ParamType::Array, Some(value)) => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
    };
    ensure!(fits, "`default` is of another type than the parameter");
    Ok(Param { ty, description, default, optional, one_of })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Adapter, Option<Vec<Pattern>>)> {
        let raw::Plugin { adapter, endpoint, command, tools, .. } = toml::from_str(text)?;
        resolve("rg", (adapter.as_deref(), endpoint.as_deref()), (command, tools))
    }

    #[test]
    fn a_command_is_declared() {
        let text = r#"
            path = "rg.wasm"
            [tools.search]
            description = "Search file contents"
            argv = ["{fold}", "-n", "--", "{pattern}", "{path}"]
            params = { path = { type = "string", default = "." }, fold = { type = "boolean", flag = "-i" } }
            stdin = "{text?}"
            ok_exit = [0, 1]
            read_only = true
        "#;
        let (adapter, names) = read(text).unwrap();
        assert_eq!(names.unwrap().iter().map(ToString::to_string).collect::<Vec<_>>(), ["search"]);
        assert_eq!(adapter.kind, None);
        let [tool] = adapter.commands.as_slice() else { panic!("{adapter:?}") };
        let names: Vec<(&str, bool)> = tool.params.iter().map(|(name, one)| (name.as_str(), one.optional)).collect();
        assert_eq!(names, [("path", false), ("fold", false), ("pattern", false), ("text", true)]);
        assert_eq!(
            (tool.ok_exit.as_slice(), tool.output, tool.hints.read_only),
            (&[0, 1][..], Output::Text, Some(true))
        );
    }

    #[test]
    fn other_ways() {
        let (adapter, names) = read("path = 'x'\ntools = ['a*']").unwrap();
        assert_eq!((adapter, names.unwrap().len()), (Adapter::default(), 1));
        let (adapter, _) = read("path = 'x'\nadapter = 'http'\nendpoint = '/a?b'").unwrap();
        assert_eq!((adapter.kind, adapter.endpoint().as_str()), (Some(ServedAs::Http), "/a?b"));
        let (adapter, _) = read("path = 'x'").unwrap();
        assert_eq!(adapter.endpoint().as_str(), "/mcp");
        let (adapter, _) = read("path = 'x'\ncommand = true").unwrap();
        assert_eq!((adapter.kind, adapter.run.unwrap().name.as_str()), (Some(ServedAs::Command), "run"));
        let (adapter, names) = read("path = 'x'\n[tools.fetch]\ndescription = 'Fetches'").unwrap();
        assert_eq!((adapter.described.len(), names), (1, None));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            ("adapter = 'wasi'", "`adapter` is"),
            ("adapter = 'functions'\ncommand = true", "says otherwise"),
            ("adapter = 'functions'\nendpoint = '/mcp'", "says otherwise"),
            ("command = true\nendpoint = '/mcp'", "says otherwise"),
            ("adapter = 'http'\ncommand = true", "says otherwise"),
            ("endpoint = 'mcp'", "begins with `/`"),
            ("endpoint = '/a b'", "begins with `/`"),
            ("[tools.'a b']\ndescription = ''\nargv = []", "is not a valid name for a tool"),
            ("command = true\n[tools.run]\ndescription = ''\nargv = []", "is reserved for `command = true`"),
            ("[tools.a]\ndescription = ''\nargv = ['{x']", "tools.a: argv: `{x`"),
            ("[tools.a]\ndescription = ''\nargv = []\nparams = { x = {} }", "names {x}"),
            ("[tools.a]\ndescription = ''\nargv = ['{x}']\nparams.x = { type = 'boolean' }", "needs `flag`"),
            (
                "[tools.a]\ndescription = ''\nargv = ['{x}']\nparams.x = { type = 'integer', default = 'a' }",
                "another type",
            ),
            ("[tools.a]\ndescription = ''\nargv = ['{x}']\nparams.x = { type = 'file' }", "`type` is"),
            ("[tools.a]\ndescription = ''\nstdin = 'x'", "lacks `argv`"),
            ("[tools.a]\ndescription = ''\nargv = []\noutput = 'xml'", "`output` is"),
            ("[tools.a]\nargv = []\ndescripton = ''", "unknown field `descripton`"),
            ("tools = 7", "expected a list of names, or a table for each tool"),
        ] {
            let error = format!("{:#}", read(&format!("path = 'x'\n{text}")).unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
