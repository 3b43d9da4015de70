//! Edits servers in YAML: lines are inserted and removed where the parser says that mappings begin and end. Callers parse the result again
//! and compare. A mapping in flow style is refused.
//!
//! November 2026: `yaml-edit` 0.3.6 edits YAML in place and is maintained. It is a 0.x crate of one author with a parser of its own, and has
//! not been tried with the tests of this folder; `yamlpatch` 1.32 is maintained as well, but needs tree-sitter, a parser in C.

use anyhow::{Context, Result, bail, ensure};
use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Value};

/// The maximum nesting depth of a text.
const MAX_DEPTH: usize = 64;

struct Events<'a>(Vec<(Event<'a>, Span)>);

/// How the servers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A mapping from names to servers.
    Mapping,
    /// A list of servers, each with its `name`.
    List,
}

/// Where the servers are.
enum Place {
    /// A mapping or a list in block style: its servers, each with its first and its last line, counted from 0, and the indentation of
    /// the first lines.
    Block {
        line: usize,
        servers: Vec<(String, usize, usize)>,
        indent: usize,
    },
    /// The key is in this line, and its value is missing, `null`, `{}` or `[]`.
    Empty {
        line: usize,
    },
    Nowhere,
}

fn parse(text: &str) -> Result<Events<'_>> {
    let events: Result<Vec<_>, _> = Parser::new_from_str(text).collect();
    let events = events.map_err(|error| {
        let at = error.marker();
        anyhow::anyhow!("{}:{}: {}", at.line(), at.col() + 1, error.info())
    })?;
    let documents = events.iter().filter(|(event, _)| matches!(event, Event::DocumentStart(_))).count();
    ensure!(documents < 2, "the file contains more than one document");
    Ok(Events(events))
}

impl Events<'_> {
    /// Returns the index of the event after the node that begins at `start`.
    fn after(&self, start: usize) -> Result<usize> {
        let mut open = 0_usize;
        for (at, (event, _)) in self.0.iter().enumerate().skip(start) {
            match event {
                Event::MappingStart(..) | Event::SequenceStart(..) => open += 1,
                Event::MappingEnd | Event::SequenceEnd => open = open.saturating_sub(1),
                _ => {}
            }
            if open == 0 {
                return Ok(at + 1);
            }
        }
        bail!("unexpected end of the document")
    }

    /// Returns the members of the mapping that begins at `start`, as the indices of the key's and the value's first event.
    fn members(&self, start: usize) -> Result<Vec<(usize, usize)>> {
        let mut members = Vec::new();
        let mut at = start + 1;
        while !matches!(self.0.get(at), None | Some((Event::MappingEnd, _))) {
            let value = self.after(at)?;
            members.push((at, value));
            at = self.after(value)?;
        }
        Ok(members)
    }

    fn key(&self, at: usize) -> Option<&str> {
        match self.0.get(at) {
            Some((Event::Scalar(text, ..), _)) => Some(text),
            _ => None,
        }
    }

    /// Returns the index of the first event in the document, if there is a document.
    fn top(&self) -> Option<usize> {
        let start = self.0.iter().position(|(event, _)| matches!(event, Event::DocumentStart(_)))?;
        Some(start + 1)
    }

    fn value(&self, at: usize, depth: usize) -> Result<Value> {
        ensure!(depth < MAX_DEPTH, "nested too deeply");
        let event = self.0.get(at).map(|(event, _)| event);
        Ok(match event.context("unexpected end of the document")? {
            Event::Scalar(text, ScalarStyle::Plain, _, None) => plain(text),
            Event::Scalar(text, ..) => text.as_ref().into(),
            // Aliases are not resolved: values are only compared, and the same alias has the same value.
            Event::Alias(anchor) => format!("*{anchor}").into(),
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                let mut at = at + 1;
                while !matches!(self.0.get(at), None | Some((Event::SequenceEnd, _))) {
                    items.push(self.value(at, depth + 1)?);
                    at = self.after(at)?;
                }
                items.into()
            }
            Event::MappingStart(..) => {
                let mut members = Map::new();
                for (key, value) in self.members(at)? {
                    let name = match self.key(key) {
                        Some(name) => name.to_owned(),
                        None => self.value(key, depth + 1)?.to_string(),
                    };
                    let line = self.0.get(key).map_or(0, |(_, span)| span.start.line());
                    let twice = members.insert(name.clone(), self.value(value, depth + 1)?);
                    ensure!(twice.is_none(), "{line}: the key `{name}` stands here a second time");
                }
                members.into()
            }
            _ => bail!("a value is missing"),
        })
    }

    /// Returns the elements of the list that begins at `start`, as the indices of their `name`, if they have one, and of their first
    /// event.
    fn elements(&self, start: usize) -> Result<Vec<(Option<usize>, usize)>> {
        let mut elements = Vec::new();
        let mut at = start + 1;
        while !matches!(self.0.get(at), None | Some((Event::SequenceEnd, _))) {
            let mut name = None;
            if matches!(self.0.get(at), Some((Event::MappingStart(..), _))) {
                name = self
                    .members(at)?
                    .into_iter()
                    .find(|(key, _)| self.key(*key) == Some("name"))
                    .map(|(_, value)| value);
            }
            elements.push((name, at));
            at = self.after(at)?;
        }
        Ok(elements)
    }

    fn place(&self, text: &str, shape: Shape, key: &str) -> Result<Place> {
        let Some(top) = self.top().filter(|top| matches!(self.0.get(*top), Some((Event::MappingStart(..), _)))) else {
            return Ok(Place::Nowhere);
        };
        let Some((key_at, at)) = self.members(top)?.into_iter().find(|(at, _)| self.key(*at) == Some(key)) else {
            return Ok(Place::Nowhere);
        };
        let line_of = |at: usize| self.0.get(at).map_or(0, |(_, span)| span.start.line().saturating_sub(1));
        let line = line_of(key_at);
        // For each server, its name, its first event, and the event at which its contents begin.
        let servers: Vec<(Option<usize>, usize, usize)> = match (self.0.get(at), shape) {
            (Some((Event::Scalar(text, ScalarStyle::Plain, 0, None), _)), _) if plain(text).is_null() => Vec::new(),
            (Some((Event::MappingStart(0, None), _)), Shape::Mapping) => {
                self.members(at)?.into_iter().map(|(name, value)| (Some(name), name, value)).collect()
            }
            (Some((Event::SequenceStart(0, None), _)), Shape::List) => {
                self.elements(at)?.into_iter().map(|(name, start)| (name, start, start)).collect()
            }
            (_, Shape::Mapping) => bail!("{}: `{key}` is not a plain mapping", line + 1),
            (_, Shape::List) => bail!("{}: `{key}` is not a plain list", line + 1),
        };
        let lines: Vec<&str> = text.lines().collect();
        let spaces = |line: usize| {
            let own = lines.get(line).copied().unwrap_or_default();
            own.len() - own.trim_start_matches(' ').len()
        };
        let Some((_, first, _)) = servers.first() else { return Ok(Place::Empty { line }) };
        let indent = match shape {
            Shape::Mapping => self.0.get(*first).map_or(0, |(_, span)| span.start.col()),
            Shape::List => spaces(line_of(*first)),
        };
        let servers = servers.into_iter().map(|(name, first, value)| {
            let start = line_of(first);
            let own = lines.get(start).copied().unwrap_or_default().trim_start();
            let begins = shape == Shape::Mapping || own.starts_with("- ");
            let is_block = start > line && spaces(start) == indent && begins;
            ensure!(is_block, "{}: `{key}` is not in block style, with one line per entry", start + 1);
            let end = self.after(value)?;
            // The parser reports the end of a block at the start of the next token, so the last line is taken from the contents.
            let inside =
                (first..end).filter(|at| !matches!(self.0.get(*at), Some((Event::MappingEnd | Event::SequenceEnd, _))));
            let ends = |at: usize| match self.0.get(at) {
                Some((Event::Scalar(_, ScalarStyle::Literal | ScalarStyle::Folded, ..), span)) => {
                    span.end.line().saturating_sub(2)
                }
                Some((Event::Scalar(..), span)) => span.end.line().saturating_sub(1),
                Some((_, span)) => span.start.line().saturating_sub(1),
                None => 0,
            };
            let last = inside.map(ends).max().unwrap_or(start).max(start);
            Ok((name.and_then(|name| self.key(name)).unwrap_or_default().to_owned(), start, last))
        });
        Ok(Place::Block { line, servers: servers.collect::<Result<_>>()?, indent })
    }
}

/// Parses a scalar without quotes, as far as needed here.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        other => other.parse::<i64>().map_or_else(|_| other.into(), Value::from),
    }
}

pub fn read(text: &str) -> Result<Map<String, Value>> {
    let events = parse(text)?;
    let Some(top) = events.top() else { return Ok(Map::new()) };
    match events.value(top, 0)? {
        Value::Object(members) => Ok(members),
        Value::Null => Ok(Map::new()),
        _ => bail!("1:1: not a mapping"),
    }
}

pub fn set(text: &str, shape: Shape, key: &str, name: &str, server: &Value) -> Result<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    match parse(text)?.place(text, shape, key)? {
        Place::Block { servers, indent, .. } => {
            let new = entry(shape, name, server, indent);
            match servers.iter().find(|(known, ..)| known == name) {
                Some((_, start, last)) => drop(lines.splice(*start..=*last, new)),
                None => {
                    let first = servers.first().map_or(0, |(_, start, _)| *start);
                    drop(lines.splice(first..first, new));
                }
            }
        }
        Place::Empty { line } => {
            let own = lines.get_mut(line).context("the line is not there")?;
            let (before, after) = own.split_once(':').context("the key has no colon")?;
            let rest = after.trim_start();
            let rest = ["{}", "[]", "~", "null"].iter().find_map(|empty| rest.strip_prefix(empty)).unwrap_or(rest);
            ensure!(
                rest.trim().is_empty() || rest.trim_start().starts_with('#'),
                "{}: leave `{key}:` without a value",
                line + 1
            );
            *own = format!(
                "{before}:{}",
                if rest.trim().is_empty() { String::new() } else { format!(" {}", rest.trim()) }
            );
            drop(lines.splice(line + 1..line + 1, entry(shape, name, server, 2)));
        }
        Place::Nowhere => {
            lines.push(format!("{key}:"));
            lines.extend(entry(shape, name, server, 2));
        }
    }
    Ok(joined(text, &lines))
}

pub fn remove(text: &str, shape: Shape, key: &str, name: &str) -> Result<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if let Place::Block { line, servers, .. } = parse(text)?.place(text, shape, key)?
        && let Some((_, start, last)) = servers.iter().find(|(known, ..)| known == name)
    {
        drop(lines.drain(*start..=*last));
        // Without servers, the value of the key would be null, which clients do not expect.
        if servers.len() == 1 {
            let own = lines.get_mut(line).context("the line is not there")?;
            let (before, after) = own.split_once(':').context("the key has no colon")?;
            let empty = if shape == Shape::List { "[]" } else { "{}" };
            *own = format!("{before}: {empty}{after}");
        }
    }
    Ok(joined(text, &lines))
}

/// Returns the lines of a server. Values are written as JSON, which is valid YAML.
fn entry(shape: Shape, name: &str, server: &Value, indent: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if shape == Shape::Mapping {
        lines.push(format!("{}{}:", " ".repeat(indent), Value::from(name)));
    }
    for (key, value) in server.as_object().into_iter().flatten() {
        let begin = if lines.is_empty() { "- " } else { "  " };
        lines.push(format!("{}{begin}{key}: {value}", " ".repeat(indent)));
    }
    lines
}

/// Joins the lines. The last one gets a line break if it had one before, or if there was no text.
fn joined(before: &str, lines: &[String]) -> String {
    let end = if before.is_empty() || before.ends_with('\n') { "\n" } else { "" };
    lines.join("\n") + if lines.is_empty() { "" } else { end }
}
