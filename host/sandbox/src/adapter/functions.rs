//! The functions that a component exports, as tools.

use std::collections::HashSet;

use serde_json::Value;
use wasmtime::{
    AsContextMut,
    component::{
        Component, ComponentExportIndex, Instance, Val,
        types::{ComponentFunc, ComponentItem, ResourceType},
    },
};

use super::{
    command::RUN_INTERFACE_PREFIX,
    docs::Docs,
    http::exchange::HANDLER_INTERFACE_PREFIX,
    schema,
    types::{Decoder, Signature, Ty, shown},
    values::{self, Purse, Wrong},
};

use crate::{
    bindings::{
        tools::{TaskSupport, Tool, ToolDetails, ToolResult},
        types::{ClientCapabilities, Content, Failure, FailureKind},
    },
    contract::operation::{CallError, ToolAnswer, call_error},
    file::load_error::LoadError,
    wasi::store::State,
};
use wharf_base::{accounts::Account, json_size::MAX_SCHEMA_BYTES};
use wharf_scope::adapter::Described;

/// The maximum number of functions of a component. Clients show all tools to a model, so even a tenth of this would be too many to be
/// useful.
const MAX_FUNCTIONS: usize = 1_000;
/// The maximum number of refused functions that are named.
const MAX_REFUSED: usize = 20;
/// The maximum number of exports, including those inside interfaces: a small file can export one large interface many times.
const MAX_EXPORTS: usize = 20_000;
/// The maximum number of resources of an interface that messages can name.
const MAX_RESOURCES: usize = 100;
/// The maximum length of a tool's name.
const MAX_NAME_BYTES: usize = 128;

/// The functions of a component.
#[derive(Default)]
pub(crate) struct Functions {
    pub(crate) all: Vec<Function>,
    /// Why the other functions are not served, a sentence for each.
    pub(crate) refused: Vec<String>,
    /// The approximate number of bytes that the functions take in memory.
    pub(crate) bytes: usize,
}

/// A function that is served.
pub(crate) struct Function {
    pub(crate) tool: Tool,
    signature: Signature,
    index: ComponentExportIndex,
}

impl Functions {
    pub(crate) fn of(component: &Component, docs: Option<&str>) -> Result<Self, LoadError> {
        let docs = Docs::of(docs);
        let engine = component.engine();
        let ty = component.component_type();
        let mut found = Self::default();
        let mut collector =
            Collector { found: &mut found, docs: &docs, names: HashSet::new(), seen: 0, left: Decoder::of_all() };
        let mut exports = ty.exports(engine).len();
        for (name, item) in ty.exports(engine) {
            match item.ty {
                ComponentItem::ComponentFunc(function) => {
                    let Some(index) = component.get_export_index(None, name) else { continue };
                    collector.add(None, name, &function, index, &|_| None)?;
                }
                ComponentItem::ComponentInstance(instance) => {
                    if name.starts_with("wasi:") {
                        if !name.starts_with(RUN_INTERFACE_PREFIX) && !name.starts_with(HANDLER_INTERFACE_PREFIX) {
                            collector.refuse(format!("{}: an interface of WASI is not a tool", shown(name)));
                        }
                        continue;
                    }
                    let Some(outer) = component.get_export_index(None, name) else { continue };
                    exports = exports.saturating_add(instance.exports(engine).len());
                    if exports > MAX_EXPORTS {
                        let (number, most) = (exports as u64, MAX_EXPORTS as u64);
                        return Err(LoadError::TooMuch { what: "exports", number, most });
                    }
                    let resources = instance.exports(engine).filter_map(|(name, item)| match item.ty {
                        ComponentItem::Resource(resource) => Some((name.to_owned(), resource)),
                        _ => None,
                    });
                    let resources: Vec<(String, ResourceType)> = resources.take(MAX_RESOURCES).collect();
                    let named = |resource: &ResourceType| {
                        resources.iter().find(|(_, one)| one == resource).map(|(name, _)| name.clone())
                    };
                    for (inner, item) in instance.exports(engine) {
                        let ComponentItem::ComponentFunc(function) = item.ty else { continue };
                        let Some(index) = component.get_export_index(Some(&outer), inner) else { continue };
                        collector.add(Some(name), inner, &function, index, &named)?;
                    }
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// Returns the tools, with the operator's descriptions.
    pub(crate) fn tools(&self, described: &[Described]) -> Vec<Tool> {
        let tools = self.all.iter().map(|function| {
            let mut tool = function.tool.clone();
            if let Some(one) = described.iter().find(|one| one.name == tool.name) {
                tool.description.clone_from(&one.description);
                tool.details.get_or_insert_with(|| details(None)).hints = Some(super::command::hints(one.hints));
            }
            tool
        });
        tools.collect()
    }

    /// Returns the function whose tool has this name.
    pub(crate) fn named(&self, name: &str) -> Option<&Function> {
        self.all.iter().find(|function| function.tool.name == name)
    }
}

struct Collector<'a> {
    found: &'a mut Functions,
    docs: &'a Docs,
    names: HashSet<String>,
    seen: usize,
    left: usize,
}

const MAX_SCHEMA_DEPTH: usize = 32;

/// The memory that a flag in a result takes, for each byte that its name has in the output.
const BYTES_PER_FLAG_BYTE: usize = 14;

impl Collector<'_> {
    fn add(
        &mut self,
        interface: Option<&str>,
        name: &str,
        function: &ComponentFunc,
        index: ComponentExportIndex,
        resources: &dyn Fn(&ResourceType) -> Option<String>,
    ) -> Result<(), LoadError> {
        self.seen += 1;
        if self.seen > MAX_FUNCTIONS {
            let (number, most) = (self.seen as u64, MAX_FUNCTIONS as u64);
            return Err(LoadError::TooMuch { what: "functions", number, most });
        }
        let whole = match interface {
            Some(interface) => format!("{}#{}", shown(interface), shown(name)),
            None => shown(name),
        };
        let mut decoder = Decoder::new(resources, self.left);
        let signature = decoder.signature(function);
        self.left = decoder.left_of_all();
        let decoded = signature.and_then(|signature| {
            let output = schema::output(&signature).map(|output| readable(&output)).transpose()?;
            Ok((readable(&schema::input(&signature))?, output, signature))
        });
        let (input_schema, output_schema, signature) = match decoded {
            Ok(decoded) => decoded,
            Err(why) => {
                self.refuse(format!("{whole}: {why}"));
                return Ok(());
            }
        };
        let tool_name = tool_name(interface, name);
        if tool_name.len() > MAX_NAME_BYTES {
            self.refuse(format!("{whole}: its name as a tool would have more than {MAX_NAME_BYTES} characters"));
            return Ok(());
        }
        if !self.names.insert(tool_name.clone()) {
            self.refuse(format!("{whole}: another function has the name {tool_name} as a tool"));
            return Ok(());
        }
        let described = self.docs.function(interface, name).map(str::to_owned);
        let description = described.unwrap_or_else(|| {
            let of = interface.map(|interface| format!(" of {}", shown(interface))).unwrap_or_default();
            format!("Calls the function {}{of}", shown(name))
        });
        let tool = Tool {
            name: tool_name,
            description,
            input_schema,
            details: output_schema.map(|output| details(Some(output))),
        };
        let texts = tool.description.len() + tool.input_schema.len() + 2 * tool.name.len();
        let output = tool.details.as_ref().and_then(|details| details.output_schema.as_ref()).map_or(0, String::len);
        self.found.bytes += size_of::<Function>() + signature.bytes + texts + output;
        self.found.all.push(Function { tool, signature, index });
        Ok(())
    }

    fn refuse(&mut self, why: String) {
        let refused = &mut self.found.refused;
        match refused.len() {
            0..MAX_REFUSED => refused.push(why),
            MAX_REFUSED => refused.push("and others".into()),
            _ => {}
        }
    }
}

/// Returns the text of a schema, or an error if it exceeds the limits.
fn readable(schema: &Value) -> Result<String, String> {
    let (text, deep) = (schema.to_string(), depth(schema));
    if deep > MAX_SCHEMA_DEPTH || text.len() > MAX_SCHEMA_BYTES {
        return Err(format!(
            "its schema has {} bytes and {deep} levels; at most {MAX_SCHEMA_BYTES} bytes and {MAX_SCHEMA_DEPTH} levels are allowed",
            text.len()
        ));
    }
    Ok(text)
}

/// Returns how deep a schema is nested.
fn depth(value: &Value) -> usize {
    let inside = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(members) => members.values().map(depth).max(),
        _ => return 0,
    };
    1 + inside.unwrap_or_default()
}

fn details(output_schema: Option<String>) -> ToolDetails {
    ToolDetails {
        title: None,
        output_schema,
        hints: None,
        needs: ClientCapabilities::empty(),
        task: TaskSupport::Optional,
        more: None,
    }
}

/// Returns the name of a function as a tool: letters in lower case, digits and `-`, with `_` in place of every other character.
fn tool_name(interface: Option<&str>, name: &str) -> String {
    let plain = |text: &str| -> String {
        let kept = |one: char| if one.is_ascii_alphanumeric() || one == '-' { one } else { '_' };
        text.to_lowercase().chars().map(kept).collect()
    };
    match interface {
        Some(interface) => format!("{}_{}", plain(interface), plain(name)),
        None => plain(name),
    }
}

impl Function {
    /// Decodes the arguments. Their memory is charged to `account` until the returned purse is dropped.
    fn arguments(&self, json: &str, account: &Account, most: usize) -> Result<(Vec<Val>, Purse), CallError> {
        let mut purse = Purse::new(account, most);
        let read = values::arguments(&self.signature.params, json, &mut purse);
        let read = read.map_err(|wrong| match wrong {
            Wrong::NoRoom => CallError::TotalMemory,
            Wrong::Invalid(text) => failed(format!("The arguments do not fit: {text}")),
        })?;
        Ok((read, purse))
    }

    /// Calls the function. `account`: the account to which the arguments are charged, up to `most` bytes. `output`: the maximum length of
    /// each form of the result.
    pub(crate) async fn call(
        &self,
        mut store: impl AsContextMut<Data = State>,
        instance: &Instance,
        json: &str,
        (account, most, output): (&Account, usize, usize),
    ) -> Result<ToolAnswer, CallError> {
        let trap = |error: wasmtime::Error| call_error(&error);
        let function = instance.get_func(&mut store, self.index).ok_or(CallError::NoInterface("tools"))?;
        let (arguments, purse) = self.arguments(json, account, most)?;
        let flags = self.signature.result.as_ref().filter(|ty| ty.has_flags());
        let flags = flags.map(|_| account.charge(output.saturating_mul(BYTES_PER_FLAG_BYTE))).transpose();
        let _flags = flags.map_err(|_| CallError::TotalMemory)?;
        let mut results = vec![Val::Bool(false); usize::from(self.signature.result.is_some())];
        function.call_async(&mut store, &arguments, &mut results).await.map_err(trap)?;
        drop((arguments, purse));
        match (&self.signature.result, results.first()) {
            (Some(ty), Some(value)) => answer(ty, value, output),
            _ => Ok(ToolAnswer::Text("done".into())),
        }
    }
}

fn failed(message: String) -> CallError {
    CallError::Failed(Failure { kind: FailureKind::Failed, message, data: None })
}

/// Converts a result for the client: its essential part as text, and the whole value as structured content unless the text says it all. If
/// the function returned an error, the call counts as failed.
fn answer(ty: &Ty, value: &Val, most: usize) -> Result<ToolAnswer, CallError> {
    let told = |wrong: values::Unrepresentable| match wrong {
        values::Unrepresentable::TooLong => CallError::Output(most),
        values::Unrepresentable::NotANumber => {
            failed("Its result holds a number that JSON does not have: NaN or infinity.".into())
        }
        values::Unrepresentable::OtherType => CallError::Trap {
            message: "a defect of wharf itself".into(),
            detail: "a result has another type than its function".into(),
        },
    };
    let structured = (!ty.is_text()).then(|| values::structured(ty, value, most)).transpose().map_err(told)?;
    let (inner, is_error) = match (ty, value) {
        (Ty::Result(Some(ok), _), Val::Result(Ok(Some(value)))) => (Some((&**ok, &**value)), false),
        (Ty::Result(_, Some(err)), Val::Result(Err(Some(value)))) => (Some((&**err, &**value)), true),
        (Ty::Result(..), Val::Result(result)) => (None, result.is_err()),
        _ => (Some((ty, value)), false),
    };
    let inner = match inner {
        Some((Ty::Option(of), Val::Option(Some(value)))) => Some((&**of, &**value)),
        other => other,
    };
    let text = match inner {
        Some((_, Val::String(text) | Val::Enum(text))) => text.clone(),
        Some((ty, value)) => values::text(ty, value, most).map_err(told)?,
        None if is_error => "it failed, and does not say why".into(),
        None => "done".into(),
    };
    let content = vec![Content::Text(text)];
    Ok(ToolAnswer::Result(ToolResult { content, structured, is_error, more: None }))
}

#[cfg(test)]
#[path = "table.rs"]
mod table;
