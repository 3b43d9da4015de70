//! Texts of plugins that are shown to a person or a model. They have no hidden characters and none that change how the text around them is
//! displayed.
//!
//! [`Shown`] can only be created by the functions of this file, and the types of `model` use it wherever a plugin's text is displayed, so
//! that no member can be forgotten. There are two ways to create one. Prose, such as a description, is cleaned: deceptive characters are
//! removed. A name, a URI or a choice is sent back by the client and compared, so it is never changed; it is refused if it has deceptive
//! characters.
//!
//! The results of tools and the contents of resources are data that the client requested. They are passed on unchanged.

use std::{fmt, ops::Deref};

use serde::Serialize;
use serde_json::{Value, value::RawValue};

use crate::{
    content::{Content, ResourceLink},
    object::Object,
    text::{clean, in_place, is_layout},
};

/// A value without deceptive characters: a person sees everything that a model reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Shown<T = String>(T);

impl<T> Deref for Shown<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Shown<T> {
    /// Returns the inner value, for example to write it.
    pub fn into_inner(self) -> T {
        self.0
    }
}

/// The error for a value with a deceptive character: the character and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenCharacter {
    character: char,
    /// The keys that lead to the text with the character.
    at: Vec<String>,
}

impl HiddenCharacter {
    fn within(mut self, key: impl Into<String>) -> Self {
        self.at.insert(0, key.into());
        self
    }
}

impl std::error::Error for HiddenCharacter {}

/// Says where the character is and what to change.
impl fmt::Display for HiddenCharacter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = u32::from(self.character);
        if !self.at.is_empty() {
            write!(f, "`{}`: ", clean(&self.at.join(".")))?;
        }
        write!(
            f,
            "it has the character U+{code:04X}, which is invisible or changes how the text around it is displayed; leave it out"
        )
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Shown {
    fn from(text: &str) -> Self {
        Self(clean(text))
    }
}

impl From<String> for Shown {
    fn from(mut text: String) -> Self {
        clean_text(&mut text);
        Self(text)
    }
}

impl Shown {
    /// Checks a name or a URI, which is refused if it has deceptive characters.
    pub fn exact(text: &str) -> Result<Self, HiddenCharacter> {
        match in_place(text).find(|(_, hidden)| *hidden) {
            Some((character, _)) => Err(HiddenCharacter { character, at: Vec::new() }),
            None => Ok(Self(text.to_owned())),
        }
    }
}

impl Shown<Value> {
    /// Cleans the titles and descriptions of a JSON Schema. Refuses it if names, choices or other values that clients send back have
    /// deceptive characters.
    pub fn schema(mut schema: Value) -> Result<Self, HiddenCharacter> {
        in_schema(&mut schema)?;
        Ok(Self(schema))
    }

    /// Cleans all texts in data that is only displayed, such as a log message.
    pub fn data(mut data: Value) -> Self {
        clean_all(&mut data);
        Self(data)
    }
}

impl Shown<Box<RawValue>> {
    /// Cleans a JSON Schema in the form of text. The text stays as its author wrote it if nothing in it has to be cleaned.
    pub fn schema_text(text: &str) -> Result<Self, String> {
        let mut schema: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
        let changed = in_schema(&mut schema).map_err(|error| error.to_string())?;
        let text = if changed { schema.to_string() } else { text.to_owned() };
        RawValue::from_string(text).map(Self).map_err(|error| format!("it is not JSON: {error}"))
    }
}

impl Shown<Object> {
    /// Cleans the texts in members of a list entry, including `_meta`. Refuses them if names of members or URLs of icons have deceptive
    /// characters.
    pub fn members(mut members: Object) -> Result<Self, HiddenCharacter> {
        in_members(&mut members)?;
        Ok(Self(members))
    }

    /// Cleans the texts for the model in the parameters of `sampling/createMessage`. Results of tools are data and stay unchanged.
    pub fn sampling(mut params: Object) -> Result<Self, HiddenCharacter> {
        if let Some(Value::String(system)) = params.get_mut("systemPrompt") {
            clean_text(system);
        }
        let messages = params.get_mut("messages").and_then(Value::as_array_mut);
        for message in messages.into_iter().flatten() {
            match message.get_mut("content") {
                Some(Value::Array(blocks)) => blocks.iter_mut().filter_map(Value::as_object_mut).for_each(clean_block),
                Some(Value::Object(block)) => clean_block(block),
                _ => {}
            }
        }
        let tools = params.get_mut("tools").and_then(Value::as_array_mut);
        for (at, tool) in tools.into_iter().flatten().enumerate() {
            in_schema(tool).map_err(|error| error.within(at.to_string()).within("tools"))?;
        }
        Ok(Self(params))
    }
}

impl Shown<Content> {
    /// Cleans a block of a prompt. The contents of an embedded resource are data and stay unchanged.
    pub fn message(content: Content) -> Result<Self, HiddenCharacter> {
        Ok(Self(match content {
            Content::Text(text) => Content::Text(Shown::from(text).0),
            Content::Link(ResourceLink { uri, name, mime_type, more }) => Content::Link(ResourceLink {
                uri: Shown::exact(&uri)?.0,
                name: Shown::from(name).0,
                mime_type: mime_type.map(|kind| Shown::from(kind).0),
                more: Shown::members(more)?.0,
            }),
            Content::Raw(mut block) => {
                clean_block(&mut block);
                Content::Raw(block)
            }
            data @ (Content::Image { .. } | Content::Audio { .. } | Content::Embedded(_)) => data,
        }))
    }
}

fn clean_block(block: &mut Object) {
    for key in ["text", "name", "title", "description"] {
        if let Some(Value::String(text)) = block.get_mut(key) {
            clean_text(text);
        }
    }
}

/// Cleans a text in place. Returns whether it was changed.
fn clean_text(text: &mut String) -> bool {
    let changed = in_place(text).any(|(character, hidden)| hidden && !is_layout(character));
    if changed {
        *text = clean(text);
    }
    changed
}

fn clean_all(value: &mut Value) {
    match value {
        Value::String(text) => drop(clean_text(text)),
        Value::Array(all) => all.iter_mut().for_each(clean_all),
        Value::Object(members) => {
            *members = std::mem::take(members)
                .into_iter()
                .map(|(key, mut member)| {
                    clean_all(&mut member);
                    (clean(&key), member)
                })
                .collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The members of a schema that are prose: strings, or arrays of strings.
const PROSE: [&str; 8] = [
    "title",
    "description",
    "$comment",
    "markdownDescription",
    "enumNames",
    "enumDescriptions",
    "markdownEnumDescriptions",
    "deprecationMessage",
];
/// The members of a schema whose keys are chosen by the author.
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
/// The members of a schema that contain values rather than schemas.
const VALUES: [&str; 4] = ["const", "default", "enum", "examples"];

/// Cleans and checks a schema. Returns whether something in it was changed.
fn in_schema(schema: &mut Value) -> Result<bool, HiddenCharacter> {
    let mut changed = false;
    match schema {
        Value::String(text) => check_value(text)?,
        Value::Array(all) => {
            for (at, one) in all.iter_mut().enumerate() {
                changed |= in_schema(one).map_err(|error| error.within(at.to_string()))?;
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                Shown::exact(key)?;
                let name = key.as_str();
                let within = |error: HiddenCharacter| error.within(name);
                changed |= match member {
                    Value::String(text) if PROSE.contains(&name) => clean_text(text),
                    Value::Array(texts) if PROSE.contains(&name) => {
                        let texts = texts.iter_mut().map(|one| match one {
                            Value::String(text) => Ok(clean_text(text)),
                            other => in_schema(other).map_err(within),
                        });
                        texts.collect::<Result<Vec<bool>, _>>()?.contains(&true)
                    }
                    Value::Object(named) if NAMED.contains(&name) => {
                        let mut changed = false;
                        for (key, one) in named {
                            Shown::exact(key).map_err(within)?;
                            changed |= in_schema(one).map_err(|error| within(error.within(key.as_str())))?;
                        }
                        changed
                    }
                    value if VALUES.contains(&name) => check_values(value).map(|()| false).map_err(within)?,
                    other => in_schema(other).map_err(within)?,
                };
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(changed)
}

fn in_members(members: &mut Object) -> Result<(), HiddenCharacter> {
    for (key, member) in members {
        Shown::exact(key)?;
        let within = |error: HiddenCharacter| error.within(key.as_str());
        match member {
            // Clients fetch the URLs of icons, so they are not changed.
            icons if key == "icons" => check_values(icons).map_err(within)?,
            Value::Object(inner) => in_members(inner).map_err(within)?,
            other => clean_all(other),
        }
    }
    Ok(())
}

fn check_values(value: &Value) -> Result<(), HiddenCharacter> {
    match value {
        Value::String(text) => check_value(text),
        Value::Array(all) => {
            all.iter().enumerate().try_for_each(|(at, one)| check_values(one).map_err(|one| one.within(at.to_string())))
        }
        Value::Object(members) => members.iter().try_for_each(|(key, member)| {
            Shown::exact(key)?;
            check_values(member).map_err(|error| error.within(key.as_str()))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// Checks a value. Line breaks are allowed, including those of Windows.
fn check_value(text: &str) -> Result<(), HiddenCharacter> {
    let plain = text.replace("\r\n", "\n");
    let hidden = in_place(&plain).find(|(character, hidden)| *hidden && !is_layout(*character));
    hidden.map_or(Ok(()), |(character, _)| Err(HiddenCharacter { character, at: Vec::new() }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BAD: &str = "a\u{1b}[2K\u{202e}\u{200b}b";

    fn object(value: Value) -> Object {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn what_is_told_of_a_schema_is_cleaned() {
        let schema = |text: &str| {
            json!({
                "type": "object", "title": text, "description": text, "$comment": text,
                "properties": {
                    "title": { "type": "string", "title": text, "description": text },
                    "default": { "anyOf": [{ "const": "x", "title": text }, { "type": "null", "description": text }] },
                    "kinds": { "type": "array", "items": { "enum": ["\r\n", "\n"], "enumNames": [text, text] }, "default": ["\r\n"] },
                },
                "$defs": { "description": { "description": text } },
            })
        };
        assert_eq!(*Shown::<Value>::schema(schema(BAD)).unwrap(), schema("a[2Kb"));
        let same = "{ \"title\": \"x\",  \"default\": 1.0 }";
        assert_eq!(Shown::<Box<RawValue>>::schema_text(same).unwrap().get(), same);
        assert!(Shown::<Box<RawValue>>::schema_text("{").is_err());
    }

    #[test]
    fn what_comes_back_from_a_client_is_never_changed() {
        for (schema, place) in [
            (json!({ "properties": { BAD: {} } }), "`properties`"),
            (json!({ "properties": { "a": { "enum": ["x", BAD] } } }), "`properties.a.enum.1`"),
            (json!({ "properties": { "a": { "const": BAD } } }), "`properties.a.const`"),
            (json!({ "properties": { "a": { "default": { "title": BAD } } } }), "`properties.a.default.title`"),
            (json!({ "properties": { "a": { "examples": [[BAD]] } } }), "`properties.a.examples.0.0`"),
            (json!({ "properties": { "a": { "default": { BAD: 1 } } } }), "`properties.a.default`"),
            (json!({ "properties": { "a": { "pattern": BAD } } }), "`properties.a.pattern`"),
            (json!({ "properties": { "a": { "x-mcp-header": BAD } } }), "`properties.a.x-mcp-header`"),
            (json!({ "anyOf": [{ "required": [BAD] }] }), "`anyOf.0.required.0`"),
            (json!({ "$defs": { BAD: {} } }), "`$defs`"),
            (json!({ BAD: 1 }), "U+001B"),
        ] {
            let error = Shown::<Value>::schema(schema.clone()).unwrap_err().to_string();
            assert!(
                error.contains(place) && error.contains("U+001B") && error.contains("leave it out"),
                "{schema}: {error}"
            );
        }
        assert!(Shown::exact(BAD).is_err() && Shown::exact("a\nb").is_err() && Shown::exact("نام\u{200c}ها").is_ok());
        for (members, fits) in [
            (json!({ "icons": [{ "src": BAD }] }), false),
            (json!({ "_meta": { BAD: 1 } }), false),
            (json!({ "_meta": { "x": { BAD: 1 } } }), false),
            (json!({ "title": BAD, "size": 1, "annotations": [BAD], "_meta": { "x": { "y": [{ "z": BAD }] } } }), true),
        ] {
            match Shown::members(object(members.clone())) {
                Ok(shown) => assert!(fits && !json!(shown).to_string().contains("\\u001b"), "{members}"),
                Err(error) => assert!(!fits, "{members}: {error}"),
            }
        }
    }

    #[test]
    fn all_that_is_only_looked_at_is_cleaned() {
        let data = |text: &str| json!({ "a": [text, { text: text }], "b": 1, "c": null });
        assert_eq!(*Shown::data(data(BAD)), data("a[2Kb"));
        let asked = |text: &str| {
            json!({
                "systemPrompt": text,
                "messages": [
                    { "role": "user", "content": { "type": "text", "text": text } },
                    { "role": "user", "content": [{ "type": "text", "text": text }, { "type": "tool_result", "content": [{ "text": BAD }] }] },
                ],
                "tools": [{ "name": "t", "description": text, "inputSchema": { "properties": { "a": { "title": text } } } }],
            })
        };
        assert_eq!(*Shown::sampling(object(asked(BAD))).unwrap(), object(asked("a[2Kb")));
        assert!(Shown::sampling(object(json!({ "tools": [{ "name": BAD }] }))).is_err());
    }
}
