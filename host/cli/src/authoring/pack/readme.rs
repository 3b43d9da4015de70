//! The README of a package, which npm and PyPI show: what to write into a client's config, and what each variable allows.

use super::{Contents, answers::Kind};

/// Returns the README. `command`: the program that starts the server, and its arguments before the folders.
pub fn readme(contents: &Contents<'_>, command: &[&str]) -> String {
    let Contents { package, id, folders, questions, .. } = contents;
    let mut text = format!("# {id}\n\n{}.\n\n", package.description.trim_end_matches('.'));
    text += "This package is an MCP server: a plugin, and wharf, which runs it in a sandbox.\n";
    text += "The plugin can use nothing that you do not allow here.\n\n";
    let folder = folders.map(|_| "/home/you/notes");
    let arguments: Vec<String> =
        command.iter().skip(1).copied().chain(folder).map(|word| format!("{word:?}")).collect();
    let program = command.first().copied().unwrap_or_default();
    let env = questions
        .first()
        .map(|question| format!(", \"env\": {{ \"{}\": \"{}\" }}", question.variable, example(&question.kind)));
    text += &format!(
        "```json\n{{ \"mcpServers\": {{ \"{id}\": {{ \"command\": \"{program}\", \"args\": [{}]{} }} }} }}\n```\n\n",
        arguments.join(", "),
        env.unwrap_or_default()
    );
    if folders.is_some() {
        text +=
            "The folders after the name are open to the plugin, for reading. Without a folder it can use no files.\n\n";
    }
    if !questions.is_empty() {
        text += "| variable | value | what it is for |\n|---|---|---|\n";
    }
    for question in *questions {
        let why = question.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        let about = match question.kind {
            Kind::Allow => format!("lets the plugin {}{why}", question.title),
            Kind::Secret | Kind::Setting { .. } => format!("{}{why}", question.title),
        };
        text += &format!(
            "| `{}` | {} | {} |\n",
            question.variable,
            example(&question.kind),
            about.replace('|', "\\|").replace('\n', " ")
        );
    }
    if let Some(registry) = &package.registry {
        text += &format!("\n<!-- mcp-name: {registry} -->\n");
    }
    text
}

fn example(kind: &Kind) -> &'static str {
    match kind {
        Kind::Allow => "true",
        Kind::Secret => "the secret",
        Kind::Setting { kind, .. } => kind.as_str(),
    }
}
