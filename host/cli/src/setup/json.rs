//! Edits servers in JSON with the comments and trailing commas that editors allow.

use anyhow::{Context, Result, bail};
use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstRootNode},
};
use serde_json::{Map, Value};

/// Returns the options of the parser: JSON with comments and trailing commas, and no other extensions.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn parse(text: &str) -> Result<CstRootNode> {
    CstRootNode::parse(text, &options())
        .map_err(|error| anyhow::anyhow!("{}:{}: {}", error.line_display(), error.column_display(), error.kind()))
}

pub fn read(text: &str) -> Result<Map<String, Value>> {
    match parse(text)?.value() {
        None => Ok(Map::new()),
        Some(value) => match value.to_serde_value() {
            Some(Value::Object(object)) => Ok(object),
            _ => bail!("1:1: not a JSON object"),
        },
    }
}

pub fn set(text: &str, key: &str, name: &str, server: &Value) -> Result<String> {
    let root = parse(text)?;
    let object = root.object_value_or_create().context("1:1: not a JSON object")?;
    let servers = object.object_value_or_create(key).with_context(|| format!("`{key}` is not a JSON object"))?;
    match servers.get(name) {
        Some(known) => known.set_value(input(server)),
        None => drop(servers.append(name, input(server))),
    }
    let edited = root.to_string();
    Ok(if text.trim().is_empty() { edited.trim().to_owned() + "\n" } else { edited })
}

pub fn remove(text: &str, key: &str, name: &str) -> Result<String> {
    let root = parse(text)?;
    if let Some(servers) = root.object_value().and_then(|object| object.object_value(key))
        && let Some(server) = servers.get(name)
    {
        server.remove();
    }
    Ok(root.to_string())
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(object) => {
            CstInputValue::Object(object.iter().map(|(key, value)| (key.clone(), input(value))).collect())
        }
    }
}
