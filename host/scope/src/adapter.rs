//! The operator's settings for a plugin that was not made for wharf.

use std::{fmt, sync::LazyLock};

use http::uri::PathAndQuery;
use serde_json::Value;

use crate::braces;

/// How a plugin is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServedAs {
    /// The plugin was made for wharf and exports interfaces of the contract.
    Contract,
    /// Each function that the component exports is a tool.
    Functions,
    /// The component is a command, and its tools are those that the operator declares.
    Command,
    /// The component is an MCP server over HTTP, and wharf is its only client.
    Http,
}

/// The operator's settings for how a plugin is served.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Adapter {
    /// `None`: what the component exports decides.
    pub kind: Option<ServedAs>,
    /// The tools of a command.
    pub commands: Vec<CommandTool>,
    /// An additional tool of a command, which takes any arguments.
    pub run: Option<CommandTool>,
    /// The path of the MCP endpoint of a server over HTTP; `None`: the usual one.
    pub endpoint: Option<PathAndQuery>,
    /// The operator's descriptions of functions, by the names of their tools.
    pub described: Vec<Described>,
}

/// The operator's description of a function, which replaces or supplements the component's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// The name of its tool, without the plugin's prefix.
    pub name: String,
    /// What the model reads.
    pub description: String,
    /// What it tells clients of itself.
    pub hints: Hints,
}

impl Adapter {
    /// The path of the MCP endpoint of a server over HTTP.
    pub fn endpoint(&self) -> &PathAndQuery {
        static USUAL: LazyLock<PathAndQuery> = LazyLock::new(|| PathAndQuery::from_static("/mcp"));
        self.endpoint.as_ref().unwrap_or(&USUAL)
    }

    /// The tools of a command.
    pub fn tools(&self) -> impl Iterator<Item = &CommandTool> {
        self.commands.iter().chain(&self.run)
    }
}

/// What a tool tells clients of itself. `None`: nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may delete or overwrite something.
    pub destructive: Option<bool>,
    /// The same call a second time changes nothing more.
    pub idempotent: Option<bool>,
    /// It reaches beyond this machine.
    pub open_world: Option<bool>,
}

/// A tool that runs a command.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandTool {
    /// The tool's name, without the plugin's prefix.
    pub name: String,
    /// What the model reads.
    pub description: String,
    /// The templates of the arguments. `None`: the client passes all arguments, as `args`.
    pub argv: Option<Vec<Template>>,
    /// The parameters by name, including those that only templates name.
    pub params: Vec<(String, Param)>,
    /// The template of the command's standard input.
    pub stdin: Option<Template>,
    /// The exit codes that mean success.
    pub ok_exit: Vec<i32>,
    /// How the command's output is used.
    pub output: Output,
    /// What it tells clients of itself.
    pub hints: Hints,
}

/// A parameter of a tool that runs a command.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    /// The type of its values.
    pub ty: ParamType,
    /// What the model reads.
    pub description: Option<String>,
    /// The value if the call passes none. A parameter without a default is required, unless a template names it as `{name?}`.
    pub default: Option<Value>,
    /// Whether the parameter may be omitted even without a default.
    pub optional: bool,
    /// The only values that are allowed, if there are any here.
    pub one_of: Vec<String>,
}

/// The type of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParamType {
    /// A string.
    String,
    /// An integer.
    Integer,
    /// A number.
    Number,
    /// A boolean. It becomes this flag if it is true, and no argument otherwise.
    Boolean(Flag),
    /// Strings, each of which becomes an argument of its own.
    Array,
}

/// The argument that `true` stands for.
pub type Flag = String;

/// How the output of a command is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// As the text of the answer.
    Text,
    /// As JSON, which is the structured content of the answer.
    Json,
    /// Together with the error output and the exit code.
    All,
}

/// A text with placeholders. The value of a parameter takes the place of `{name}`. A text with `{name?}` is left out if the parameter has no
/// value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Place { name: String, optional: bool },
}

impl Template {
    /// Parses a template. `{{` and `}}` stand for braces.
    ///
    /// # Errors
    /// If a brace is not closed, or does not contain a valid name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let part = |part| match part {
            braces::Part::Text(literal) => Ok(Part::Text(literal)),
            braces::Part::Place(written) => {
                let (name, optional) = written.strip_suffix('?').map_or((&*written, false), |name| (name, true));
                if !is_param_name(name) {
                    return Err(format!(
                        "`{text}`: `{{{name}}}` is not a name; names have letters, digits, `_` and `-`"
                    ));
                }
                Ok(Part::Place { name: name.to_owned(), optional })
            }
        };
        braces::parse(text)?.into_iter().map(part).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the names in the template, and whether each may be left out.
    pub fn names(&self) -> impl Iterator<Item = (&str, bool)> {
        self.0.iter().filter_map(|part| match part {
            Part::Place { name, optional } => Some((name.as_str(), *optional)),
            Part::Text(_) => None,
        })
    }

    /// Returns the name, if the template consists of exactly one place.
    pub fn only(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Part::Place { name, .. }] => Some(name),
            _ => None,
        }
    }

    /// Returns the text with the value of each name filled in, or `None` if one that may be left out is missing.
    pub fn fill(&self, value: impl Fn(&str) -> Option<String>) -> Option<String> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Place { name, .. } => text.push_str(&value(name)?),
            }
        }
        Some(text)
    }

    /// Whether it is this text, without any place.
    pub fn is_literal(&self, text: &str) -> bool {
        matches!(self.0.as_slice(), [Part::Text(literal)] if literal == text)
    }

    /// Whether a value is the first thing in it.
    pub fn begins_with_place(&self) -> bool {
        matches!(self.0.first(), Some(Part::Place { .. }))
    }
}

/// Whether a parameter may have this name.
pub fn is_param_name(name: &str) -> bool {
    let fits = |one: char| one.is_ascii_alphanumeric() || matches!(one, '_' | '-');
    !name.is_empty() && name.len() <= 64 && name.chars().all(fits)
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.0 {
            match part {
                Part::Text(text) => f.write_str(text)?,
                Part::Place { name, .. } => write!(f, "{{{name}}}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_say_what_is_wrong_with_them() {
        assert_eq!(Template::parse("{{a}}{b?}").unwrap().to_string(), "{a}{b}");
        for (text, expected) in
            [("{a", "is not closed"), ("a}", "closes nothing"), ("{}", "is not a name"), ("{a b}", "is not a name")]
        {
            let error = Template::parse(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
