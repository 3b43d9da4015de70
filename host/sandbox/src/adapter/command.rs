//! Serves a command as a tool. Its arguments and its input come from templates that the operator wrote; no shell is involved.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{
    bindings::{
        tools::{Hints, TaskSupport, Tool, ToolDetails},
        types::{ClientCapabilities, Failure, FailureKind},
    },
    contract::operation::CallError,
};
use wharf_base::accounts::{Account, Charge};
use wharf_scope::adapter::{CommandTool, Output, ParamType, Template};

/// The interface that a command exports, in any version of WASI 0.2.
pub(crate) const RUN_INTERFACE_PREFIX: &str = "wasi:cli/run@0.2.";

/// The maximum number of arguments of a command.
const MAX_ARGUMENTS: usize = 10_000;
/// The bytes that a value takes in addition to its text: as JSON, as a string of its own, and in the lists that contain it.
const BYTES_PER_VALUE: usize = 64;
/// The number of copies of a value that exist while arguments are built, in addition to one for each place that names it.
const COPIES_PER_VALUE: usize = 3;

/// The arguments and the input of a command.
#[derive(Debug, PartialEq, Eq)]
pub struct Process {
    /// The arguments, beginning with the name of the program.
    pub(crate) argv: Vec<String>,
    pub(crate) stdin: Vec<u8>,
}

/// The values of parameters as strings. A parameter without a value has no entry; a flag that is not set has an empty list.
struct Values<'a>(BTreeMap<&'a str, Vec<String>>);

impl Values<'_> {
    fn fill(&self, template: &Template) -> Option<String> {
        template.fill(|name| self.0.get(name).map(|texts| texts.join(" ")))
    }
}

/// A tool that runs a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Command<'a>(pub(crate) &'a CommandTool);

/// Returns the hints as the contract has them.
pub(crate) fn hints(hints: wharf_scope::adapter::Hints) -> Hints {
    let wharf_scope::adapter::Hints { read_only, destructive, idempotent, open_world } = hints;
    Hints { read_only, destructive, idempotent, open_world }
}

impl<'a> Command<'a> {
    /// Returns the tool as clients see it.
    pub(crate) fn tool(self) -> Tool {
        let input_schema = match self.0.argv {
            Some(_) => self.schema(),
            None => json!({
                "type": "object",
                "properties": {
                    "args": {
                        "type": "array",
                        "items": { "type": "string" },
                        "description": "The command's arguments, without its name. No shell reads them.",
                    },
                    "stdin": { "type": "string", "description": "What the command reads from its standard input." },
                },
                "required": ["args"],
            }),
        };
        let output_schema = match self.0.output {
            Output::All => Some(
                json!({
                    "type": "object",
                    "properties": {
                        "code": { "type": "integer" },
                        "stdout": { "type": "string" },
                        "stderr": { "type": "string" },
                    },
                    "required": ["code", "stdout", "stderr"],
                })
                .to_string(),
            ),
            Output::Text | Output::Json => None,
        };
        Tool {
            name: self.0.name.clone(),
            description: self.0.description.clone(),
            input_schema: input_schema.to_string(),
            details: Some(ToolDetails {
                title: None,
                output_schema,
                hints: Some(hints(self.0.hints)),
                needs: ClientCapabilities::empty(),
                task: TaskSupport::Optional,
                more: None,
            }),
        }
    }

    fn schema(self) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, param) in &self.0.params {
            let mut schema = match param.ty {
                ParamType::String => json!({ "type": "string" }),
                ParamType::Integer => json!({ "type": "integer" }),
                ParamType::Number => json!({ "type": "number" }),
                ParamType::Boolean(_) => json!({ "type": "boolean" }),
                ParamType::Array => json!({ "type": "array", "items": { "type": "string" } }),
            };
            if let Some(members) = schema.as_object_mut() {
                if let Some(description) = &param.description {
                    members.insert("description".into(), description.as_str().into());
                }
                if let Some(default) = &param.default {
                    members.insert("default".into(), default.clone());
                }
                if !param.one_of.is_empty() {
                    let names = json!(param.one_of);
                    match members.get_mut("items").and_then(Value::as_object_mut) {
                        Some(items) => items.insert("enum".into(), names),
                        None => members.insert("enum".into(), names),
                    };
                }
            }
            if param.default.is_none() && !param.optional && !matches!(param.ty, ParamType::Boolean(_)) {
                required.push(name.as_str());
            }
            properties.insert(name.clone(), schema);
        }
        json!({ "type": "object", "properties": properties, "required": required })
    }

    /// Returns the arguments and the input of the command, and the charge to `account` for their memory. `program`: the name of the
    /// program. The error is for the client.
    pub(crate) fn process(self, program: &str, args: &str, account: &Account) -> Result<(Process, Charge), CallError> {
        let charge = account.charge(self.bytes(args)).map_err(|_| CallError::TotalMemory)?;
        let failed = |message| CallError::Failed(Failure { kind: FailureKind::Failed, message, data: None });
        Ok((self.started(program, args).map_err(failed)?, charge))
    }

    /// Returns the maximum number of bytes that building the arguments takes.
    fn bytes(self, args: &str) -> usize {
        let templates = self.0.argv.iter().flatten().chain(&self.0.stdin);
        let places: usize = templates.map(|template| template.names().count()).sum();
        // There is a comma between any two values; commas inside strings are counted too.
        let values = 2 + args.bytes().filter(|&byte| byte == b',').count();
        args.len().saturating_add(values.saturating_mul(BYTES_PER_VALUE)).saturating_mul(places + COPIES_PER_VALUE)
    }

    fn started(self, program: &str, args: &str) -> Result<Process, String> {
        let given: Map<String, Value> = serde_json::from_str(args).map_err(|error| error.to_string())?;
        let mut argv = vec![program.to_owned()];
        let stdin = match &self.0.argv {
            None => {
                for value in given.get("args").and_then(Value::as_array).into_iter().flatten().take(MAX_ARGUMENTS + 1) {
                    argv.push(value.as_str().ok_or("each item of `args` has to be a string")?.to_owned());
                }
                given.get("stdin").and_then(Value::as_str).map(str::to_owned)
            }
            Some(templates) => {
                let values = self.values(&given)?;
                let mut only_operands = false;
                for template in templates {
                    let free = template.begins_with_place() && !only_operands;
                    only_operands |= template.is_literal("--");
                    let (filled, whole): (Vec<String>, _) = match template.only() {
                        Some(name) => {
                            let values = values.0.get(name).cloned().unwrap_or_default();
                            (values, !self.is_flag(name))
                        }
                        None => (values.fill(template).into_iter().collect(), true),
                    };
                    if let Some(value) = filled.iter().find(|value| free && whole && value.starts_with('-')) {
                        return Err(format!(
                            "`{template}` is {value:?}, and a value that begins with `-` would be an option of the command"
                        ));
                    }
                    argv.extend(filled);
                }
                self.0.stdin.as_ref().and_then(|template| values.fill(template))
            }
        };
        if argv.len() > MAX_ARGUMENTS {
            return Err(format!("a command takes at most {MAX_ARGUMENTS} arguments"));
        }
        if argv.iter().any(|argument| argument.contains('\0')) {
            return Err("an argument of a command cannot contain a NUL character".into());
        }
        Ok(Process { argv, stdin: stdin.unwrap_or_default().into_bytes() })
    }

    fn is_flag(self, name: &str) -> bool {
        self.0.params.iter().any(|(one, param)| one == name && matches!(param.ty, ParamType::Boolean(_)))
    }

    fn values(self, given: &Map<String, Value>) -> Result<Values<'a>, String> {
        let mut values = BTreeMap::new();
        for (name, param) in &self.0.params {
            let value = given.get(name).or(param.default.as_ref());
            let text = |value: &Value| match value {
                // The client may have validated this with the schema of an earlier config.
                Value::String(text) if !param.one_of.is_empty() && !param.one_of.contains(text) => {
                    Err(format!("`{name}` has to be one of: {}", param.one_of.join(", ")))
                }
                Value::Number(number) if matches!(param.ty, ParamType::Integer) => match number.as_f64() {
                    // 5.0 and 5 are the same number in JSON, but not for a command.
                    Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                        Ok((float as i64).to_string())
                    }
                    _ if number.is_f64() => Err(format!("`{name}` is not an integer")),
                    _ => Ok(number.to_string()),
                },
                Value::String(text) => Ok(text.clone()),
                Value::Number(number) => Ok(number.to_string()),
                _ => Err(format!("`{name}` has the wrong type")),
            };
            let texts = match (&param.ty, value) {
                (ParamType::Boolean(flag), value) => match value.and_then(Value::as_bool) {
                    Some(true) => vec![flag.clone()],
                    _ => Vec::new(),
                },
                (_, None) if param.optional => continue,
                (_, None) => return Err(format!("`{name}` is missing")),
                (ParamType::Array, Some(Value::Array(items))) => items.iter().map(text).collect::<Result<_, _>>()?,
                (_, Some(value)) => vec![text(value)?],
            };
            values.insert(name.as_str(), texts);
        }
        Ok(Values(values))
    }
}

#[cfg(test)]
mod tests {
    use wharf_scope::adapter::Param;

    use super::*;

    fn param(ty: ParamType) -> Param {
        Param { ty, description: None, default: None, optional: false, one_of: Vec::new() }
    }

    fn search() -> CommandTool {
        let templates = |all: &[&str]| all.iter().map(|text| Template::parse(text).unwrap()).collect();
        CommandTool {
            name: "search".into(),
            description: "Searches".into(),
            argv: Some(templates(&["{fold}", "--glob={glob?}", "{type}", "--", "{pattern}", "{paths}"])),
            params: vec![
                ("fold".into(), param(ParamType::Boolean("-i".into()))),
                ("glob".into(), Param { optional: true, ..param(ParamType::String) }),
                ("type".into(), Param { default: Some("all".into()), ..param(ParamType::String) }),
                ("pattern".into(), param(ParamType::String)),
                ("paths".into(), Param { default: Some(json!(["."])), ..param(ParamType::Array) }),
            ],
            stdin: Some(Template::parse("<{pattern}>").unwrap()),
            ok_exit: vec![0, 1],
            output: Output::Text,
            hints: wharf_scope::adapter::Hints::default(),
        }
    }

    #[test]
    fn each_place_is_one_argument() {
        let process = |args: Value| Command(&search()).started("rg", &args.to_string());
        let started = process(json!({ "pattern": "a b; $(c) '\"" })).unwrap();
        assert_eq!(started.argv, ["rg", "all", "--", "a b; $(c) '\"", "."], "nothing is split, nothing expanded");
        assert_eq!(started.stdin, b"<a b; $(c) '\">");
        let all = json!({ "pattern": "-e", "fold": true, "glob": "-x", "type": "rust", "paths": ["a", "-b"] });
        assert_eq!(process(all).unwrap().argv, ["rg", "-i", "--glob=-x", "rust", "--", "-e", "a", "-b"]);
        for (args, expected) in [
            (json!({}), "`pattern` is missing"),
            (json!({ "pattern": "a", "type": "--pre=sh" }), "would be an option"),
            (json!({ "pattern": "a\0b" }), "a NUL"),
            (json!({ "pattern": ["a"] }), "wrong type"),
        ] {
            let error = process(args).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_value_that_comes_first_in_its_argument_is_no_option() {
        let mut tool = search();
        tool.argv = Some(vec![Template::parse("{pattern}.txt").unwrap()]);
        assert!(Command(&tool).started("x", r#"{"pattern":"-rf"}"#).unwrap_err().contains("would be an option"));
        assert_eq!(Command(&tool).started("x", r#"{"pattern":"a"}"#).unwrap().argv, ["x", "a.txt"]);
        tool.params = vec![("n".into(), param(ParamType::Integer))];
        tool.argv = Some(vec![Template::parse("{n}").unwrap(), Template::parse("-n{n}").unwrap()]);
        tool.stdin = None;
        assert!(Command(&tool).started("x", r#"{"n":-5}"#).is_err());
        assert_eq!(Command(&tool).started("x", r#"{"n":5}"#).unwrap().argv, ["x", "5", "-n5"]);
    }

    #[test]
    fn the_schema_is_that_of_the_parameters() {
        let schema: Value = serde_json::from_str(&Command(&search()).tool().input_schema).unwrap();
        assert_eq!(schema["required"], json!(["pattern"]));
        assert_eq!(schema["properties"]["fold"], json!({ "type": "boolean" }));
        assert_eq!(schema["properties"]["paths"]["default"], json!(["."]));
        let free = CommandTool { argv: None, params: Vec::new(), stdin: None, output: Output::All, ..search() };
        let schema: Value = serde_json::from_str(&Command(&free).tool().input_schema).unwrap();
        assert_eq!(schema["required"], json!(["args"]));
        let started = Command(&free).started("x", r#"{"args":["-a","b c"],"stdin":"in"}"#).unwrap();
        assert_eq!(started, Process { argv: vec!["x".into(), "-a".into(), "b c".into()], stdin: b"in".to_vec() });
    }

    #[test]
    fn what_arguments_take_is_charged() {
        let account = Account::new(100_000);
        let given = |bytes: usize| json!({ "pattern": "x".repeat(bytes) }).to_string();
        let (process, charge) = Command(&search()).process("rg", &given(5000), &account).unwrap();
        let held: usize = process.argv.iter().map(String::len).sum::<usize>() + process.stdin.len();
        assert!(held > 10_000 && account.used() == charge.bytes() && charge.bytes() > held, "{charge:?}");
        drop((process, charge));
        assert_eq!(account.used(), 0);
        assert!(matches!(Command(&search()).process("rg", &given(20_000), &account), Err(CallError::TotalMemory)));
        let many = json!({ "pattern": "", "paths": vec![""; 1000] }).to_string();
        assert!(matches!(Command(&search()).process("rg", &many, &account), Err(CallError::TotalMemory)));
        assert_eq!(account.used(), 0);
    }
}
