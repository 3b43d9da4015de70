//! Full-text search for tools, for clients whose `tools/list` contains three tools instead of all: one that finds tools, one that calls
//! them, and one that reads resources.
//!
//! A query is read as concepts (`query`), and a tool may have other words for each. Tools are ranked by BM25, a ranking function of search
//! engines: by how many concepts of the query they contain, how rare each of them is among all tools, and in which field it occurs. This
//! score grows with the share of the tool's name and first sentence that the query covers, and is lower for a tool whose verb is of another
//! kind than the query's (`action`). Deprecated tools come last.

mod action;
mod deprecated;
mod phrases;
mod query;
mod synonyms;
mod words;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Bound,
    sync::LazyLock,
};

use serde_json::{Value, json};
use wharf_protocol::{
    Shown,
    model::{TaskSupport, Tool},
};

use self::{
    action::Action,
    query::{Concept, Query},
    words::{Stems, first_sentence},
};
use crate::bridge::MAX_TOOL_WORDS;

pub const FIND: &str = "find_tools";
pub const CALL: &str = "call_tool";
pub const READ: &str = "read_resource";
/// The number of tools that one search returns: the maximum, and the default.
pub const MAX_FOUND: f64 = 20.0;
pub const DEFAULT_FOUND: f64 = 5.0;
/// The maximum number of characters in a query.
pub const MAX_QUERY_CHARS: usize = 1024;

/// Returns the three tools that are listed instead of all others.
pub fn tools() -> &'static [Tool] {
    static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
        let query = "What the tool should do, such as \"rename a file\" or \"create an event in the Google calendar\"";
        vec![
            tool(
                FIND,
                "Find tools",
                "Finds tools by what they do. Most tools of this server are not in this list: look here first, and call what \
                 is found with call_tool. Say in a sentence or in words what is done, to what, and in which product. Returns \
                 names, descriptions and the schemas of their arguments, best match first.",
                json!({
                    "type": "object",
                    "properties": {
                        "query": { "type": "string", "maxLength": MAX_QUERY_CHARS, "description": query },
                        "limit": {
                            "type": "integer", "default": 5,
                            "description": format!("How many tools to return, 1 to {MAX_FOUND}"),
                        },
                    },
                    "required": ["query"],
                    "additionalProperties": false,
                }),
                true,
            ),
            tool(
                CALL,
                "Call a tool",
                "Calls a tool that find_tools found, with arguments that fit its inputSchema.",
                json!({
                    "type": "object",
                    "properties": {
                        "name": { "type": "string", "description": "The tool's name, exactly as it was found" },
                        "arguments": { "type": "object", "description": "Its arguments" },
                    },
                    "required": ["name"],
                    "additionalProperties": false,
                }),
                false,
            ),
            tool(
                READ,
                "Read a resource",
                "Reads a resource of this server by its URI. Without a URI, it lists the resources that there are.",
                json!({
                    "type": "object",
                    "properties": { "uri": { "type": "string", "description": "The resource's URI" } },
                    "additionalProperties": false,
                }),
                false,
            ),
        ]
    });
    &TOOLS
}

fn tool(name: &str, title: &str, description: &str, schema: Value, reads_only: bool) -> Tool {
    let annotations = if reads_only { json!({ "readOnlyHint": true }) } else { json!({}) };
    Tool {
        name: name.into(),
        title: Some(title.into()),
        description: description.into(),
        input_schema: Shown::schema_text(&schema.to_string()).unwrap_or_default(),
        output_schema: None,
        annotations: annotations.as_object().filter(|hints| !hints.is_empty()).cloned(),
        task: TaskSupport::Forbidden,
        more: Shown::default(),
    }
}

/// The weight of a word by the field that contains it. Tuned with several hundred tools of other servers.
const NAME_WEIGHT: f32 = 2.0;
const ID_WEIGHT: f32 = 1.0;
const TITLE_WEIGHT: f32 = 1.0;
const FIRST_SENTENCE_WEIGHT: f32 = 1.0;
const DESCRIPTION_WEIGHT: f32 = 0.4;
const ARGUMENTS_WEIGHT: f32 = 0.15;
/// The parameters of BM25: `K1` limits the effect of a repeated word, and `B` sets the penalty for long texts.
const K1: f32 = 0.8;
const B: f32 = 0.4;
/// How much the score grows for a tool whose name and first sentence are covered completely.
const COVERAGE_WEIGHT: f32 = 3.0;
/// What is left of the score of a tool that does something of another kind than the query asks for.
const OTHER_ACTION: f32 = 0.7;
/// How much a tool counts that has only another word for a concept, when it is decided how rare the concept is.
const OTHER_WORD_COUNT: f32 = 0.5;
/// The weight of a word that only shares its beginning with a word of the query, and how long a shared beginning must be.
const PREFIX_WEIGHT: f32 = 0.3;
const MIN_PREFIX_BYTES: usize = 4;
/// The maximum number of indexed words that may match because they begin with a word of the query.
const MAX_PREFIX_MATCHES: usize = 256;

/// The posting list of a word: the index of each tool that contains it, with its weighted number of occurrences there.
type Postings = Vec<(usize, f32)>;

/// An inverted index of all tools. The tools that a query finds, and their order, depend only on tools that the caller sees.
pub struct Finder {
    stems: Stems,
    tools: Vec<Indexed>,
    /// The number of each word, which is its place in `postings`.
    words: BTreeMap<String, usize>,
    postings: Vec<Postings>,
}

struct Indexed {
    name: String,
    /// The weighted number of words in all fields of the tool.
    length: f32,
    /// The words of its name, the plugin's id and the first sentence of its description.
    head: Vec<usize>,
    action: Option<Action>,
    is_deprecated: bool,
    /// The deprecated tools whose place it takes, each with the words of its name.
    replaces: Vec<(usize, Vec<usize>)>,
}

/// The tools that a caller sees.
struct Sight {
    sees: Vec<bool>,
    /// The number of these tools.
    all: f32,
    /// Their average length.
    usual: f32,
}

impl Finder {
    /// Builds the index. `tools`: each tool with the id of its plugin.
    pub fn new<'a>(tools: impl Iterator<Item = (&'a str, &'a Tool)>) -> Self {
        let mut index = Self { stems: Stems::new(), tools: Vec::new(), words: BTreeMap::new(), postings: Vec::new() };
        let tools: Vec<(&str, &Tool)> = tools.collect();
        for (plugin, tool) in &tools {
            index.add(plugin, tool);
        }
        let mut by_plugin: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, (plugin, _)) in tools.iter().enumerate() {
            by_plugin.entry(plugin).or_default().push(at);
        }
        let deprecated = index.tools.iter().enumerate().filter(|(_, tool)| tool.is_deprecated).map(|(at, _)| at);
        for old in deprecated.collect::<Vec<_>>() {
            let Some((plugin, tool)) = tools.get(old) else { continue };
            let name: Vec<String> = index.stems.words(own_name(plugin, &tool.name)).collect();
            let name: Vec<usize> = name.into_iter().map(|word| index.number(word)).collect();
            let siblings = by_plugin.get(plugin).into_iter().flatten().copied();
            for new in siblings.filter(|at| *at != old) {
                let Some((_, other)) = tools.get(new) else { continue };
                let names = [other.name.as_str(), own_name(plugin, &other.name)];
                if names.iter().any(|name| deprecated::names(&tool.description, name)) {
                    index.tools.get_mut(new).into_iter().for_each(|tool| tool.replaces.push((old, name.clone())));
                }
            }
        }
        index
    }

    fn add(&mut self, plugin: &str, tool: &Tool) {
        let own_name = own_name(plugin, &tool.name);
        let (first, rest) = first_sentence(&tool.description);
        let (mut counts, mut head): (HashMap<String, f32>, Vec<String>) = Default::default();
        let mut left = MAX_TOOL_WORDS;
        let mut add = |text: &str, weight: f32, is_head: bool| {
            for word in self.stems.words(text).take(left) {
                if is_head && !head.contains(&word) {
                    head.push(word.clone());
                }
                *counts.entry(word).or_default() += weight;
                left -= 1;
            }
        };
        add(own_name, NAME_WEIGHT, true);
        add(plugin, ID_WEIGHT, true);
        add(tool.title.as_deref().map_or("", |title| title), TITLE_WEIGHT, false);
        add(first, FIRST_SENTENCE_WEIGHT, true);
        add(rest, DESCRIPTION_WEIGHT, false);
        let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
        for (name, argument) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            add(name, ARGUMENTS_WEIGHT, false);
            add(argument.get("description").and_then(Value::as_str).unwrap_or_default(), ARGUMENTS_WEIGHT, false);
            for choice in argument.get("enum").and_then(Value::as_array).into_iter().flatten() {
                add(choice.as_str().unwrap_or_default(), ARGUMENTS_WEIGHT, false);
            }
        }
        let at = self.tools.len();
        let length = counts.values().sum();
        for (word, count) in counts {
            let number = self.number(word);
            self.postings.get_mut(number).into_iter().for_each(|postings| postings.push((at, count)));
        }
        let head = head.into_iter().map(|word| self.number(word)).collect();
        let action = Action::done(tool, own_name, &self.stems);
        let is_deprecated = deprecated::is_deprecated(tool);
        self.tools.push(Indexed { name: tool.name.clone(), length, head, action, is_deprecated, replaces: Vec::new() });
    }

    /// Returns the number of a word, which it gets if it is new.
    fn number(&mut self, word: String) -> usize {
        let next = self.postings.len();
        let number = *self.words.entry(word).or_insert(next);
        if number == next {
            self.postings.push(Postings::new());
        }
        number
    }

    /// Returns the names of the tools that match at least one word of the query, best match first, and deprecated tools last. Considers
    /// only tools for which `sees` returns true.
    pub fn find(&self, query: &str, sees: impl Fn(&str) -> bool) -> Vec<&str> {
        let sight = self.sight(sees);
        let query =
            Query::read(query, &self.stems, |stem| self.words.get(stem).is_some_and(|word| self.has(*word, &sight)));
        let mut scores: HashMap<usize, f32> = HashMap::new();
        // How well the query covers each word.
        let mut covered: HashMap<usize, f32> = HashMap::new();
        for concept in &query.concepts {
            let words = self.alternatives(concept, &sight);
            for (at, score) in self.matches(&words, concept.word.is_some(), &sight) {
                *scores.entry(at).or_default() += score;
            }
            for (word, weight) in words {
                let so_far = covered.entry(word).or_default();
                *so_far = so_far.max(weight);
            }
        }
        let mut rarities = HashMap::new();
        let mut found: Vec<(&Indexed, usize, f32)> = Vec::new();
        for (at, score) in scores {
            let Some(tool) = self.tools.get(at) else { continue };
            let mut share = |words: &[usize]| {
                let (mut all, mut known) = (0.0, 0.0);
                for word in words {
                    let rarity = rarities.entry(*word).or_insert_with(|| sight.rarity(self.count(*word, &sight)));
                    all += *rarity;
                    known += *rarity * covered.get(word).copied().unwrap_or_default();
                }
                if all > 0.0 { known / all } else { 0.0 }
            };
            let old_names = tool.replaces.iter().filter(|(old, _)| sight.has(*old)).map(|(_, name)| name.as_slice());
            let share = std::iter::once(tool.head.as_slice()).chain(old_names).map(&mut share).fold(0.0, f32::max);
            let is_other = query.action.zip(tool.action).is_some_and(|(asked, done)| asked.differs(done));
            let fits = if is_other { OTHER_ACTION } else { 1.0 };
            found.push((tool, at, score * fits * (1.0 + COVERAGE_WEIGHT * share)));
        }
        found.sort_by(|(one, at, score), (other, other_at, other_score)| {
            let by_score = || other_score.total_cmp(score).then(at.cmp(other_at));
            one.is_deprecated.cmp(&other.is_deprecated).then_with(by_score)
        });
        found.into_iter().map(|(tool, ..)| tool.name.as_str()).collect()
    }

    #[expect(clippy::cast_precision_loss, reason = "there are far fewer tools than a f32 can count")]
    fn sight(&self, sees: impl Fn(&str) -> bool) -> Sight {
        let seen: Vec<bool> = self.tools.iter().map(|tool| sees(&tool.name)).collect();
        let all = seen.iter().filter(|seen| **seen).count() as f32;
        let lengths: f32 = self.tools.iter().zip(&seen).filter(|(_, seen)| **seen).map(|(tool, _)| tool.length).sum();
        Sight { sees: seen, all, usual: (lengths / all.max(1.0)).max(1.0) }
    }

    /// Returns the occurrences of a word in visible tools.
    fn seen<'a>(&'a self, word: usize, sight: &'a Sight) -> impl Iterator<Item = (usize, f32)> + 'a {
        self.postings.get(word).into_iter().flatten().copied().filter(|(at, _)| sight.has(*at))
    }

    fn has(&self, word: usize, sight: &Sight) -> bool {
        self.seen(word, sight).next().is_some()
    }

    /// Returns the number of visible tools that contain a word.
    #[expect(clippy::cast_precision_loss, reason = "there are far fewer tools than a f32 can count")]
    fn count(&self, word: usize, sight: &Sight) -> f32 {
        self.seen(word, sight).count() as f32
    }

    /// Returns the score of each visible tool that has a word for a concept. `words`: these words. `has_own`: whether the concept is a word
    /// of the query, which has the full weight, and not a phrase or a value.
    #[expect(clippy::cast_precision_loss, reason = "there are far fewer tools than a f32 can count")]
    fn matches(&self, words: &[(usize, f32)], has_own: bool, sight: &Sight) -> HashMap<usize, f32> {
        let mut best: HashMap<usize, f32> = HashMap::new();
        for (word, weight) in words {
            for (at, count) in self.seen(*word, sight) {
                let length = self.tools.get(at).map_or(sight.usual, |tool| tool.length);
                let score = count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / sight.usual));
                let so_far = best.entry(at).or_default();
                *so_far = so_far.max(weight * score);
            }
        }
        let own: HashSet<usize> = words
            .iter()
            .filter(|(_, weight)| has_own && *weight >= 1.0)
            .flat_map(|(word, _)| self.seen(*word, sight).map(|(at, _)| at))
            .collect();
        let own = own.len() as f32;
        let rarity = sight.rarity(own + (best.len() as f32 - own) * OTHER_WORD_COUNT);
        best.values_mut().for_each(|score| *score *= rarity);
        best
    }

    /// Returns the indexed words for a concept, each with its weight: its own word, others that mean the same and, if no visible tool
    /// contains its own word, words that share its beginning.
    fn alternatives(&self, concept: &Concept, sight: &Sight) -> Vec<(usize, f32)> {
        let number = |(word, weight): (&str, f32)| Some((*self.words.get(word)?, weight));
        let own = concept.word.as_deref().and_then(|word| number((word, 1.0)));
        let others = concept.others.iter().filter_map(|(word, weight)| number((word, *weight)));
        let mut all: Vec<(usize, f32)> = own.into_iter().chain(others).collect();
        if let Some(word) = concept.word.as_deref()
            && word.len() >= MIN_PREFIX_BYTES
            && !own.is_some_and(|(own, _)| self.has(own, sight))
        {
            let longer = self.words.range::<str, _>((Bound::Excluded(word), Bound::Unbounded));
            let longer = longer.take_while(|(known, _)| known.starts_with(word)).map(|(_, number)| *number);
            let longer = longer.filter(|number| self.has(*number, sight)).take(MAX_PREFIX_MATCHES);
            all.extend(longer.map(|number| (number, PREFIX_WEIGHT)));
            let shorter = word.char_indices().filter_map(|(at, _)| word.get(..at));
            let shorter = shorter.filter(|part| part.len() >= MIN_PREFIX_BYTES && part.len() * 3 >= word.len() * 2);
            all.extend(shorter.filter_map(|part| number((part, PREFIX_WEIGHT))));
        }
        all
    }
}

impl Sight {
    fn has(&self, tool: usize) -> bool {
        self.sees.get(tool).copied().unwrap_or_default()
    }

    /// Returns how much a word counts that this many tools contain.
    fn rarity(&self, tools: f32) -> f32 {
        ((self.all - tools + 0.5).max(0.0) / (tools + 0.5)).ln_1p()
    }
}

/// Returns a tool's name without the id of its plugin, which is in front of most names.
fn own_name<'a>(plugin: &str, name: &'a str) -> &'a str {
    let mut own = name;
    while let Some(rest) = own.strip_prefix(plugin).and_then(|rest| rest.strip_prefix(['_', '-'])) {
        own = rest;
    }
    own
}

#[cfg(test)]
mod tests;
