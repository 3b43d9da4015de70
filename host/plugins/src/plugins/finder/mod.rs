//! Full-text search for tools, for clients whose `tools/list` contains three tools instead of all: one that finds tools, one that calls
//! them, and one that reads resources.
//!
//! Tools are ranked by BM25, a ranking function of search engines: by how many words of the query they contain, how rare each of them is among
//! all tools, and in which field it occurs. A synonym counts less than the word itself. The score grows with the share of the tool's name and
//! first sentence that the query covers. Deprecated tools come last.
//!
//! Plugins write the texts and clients write the queries, so both have bounds. Building the index takes time linear in the text: each text
//! is split a fixed number of times, and at most [`MAX_TOOL_WORDS`] words of a tool are indexed. A search looks at each posting at most
//! once to count what is visible, and then at most once for each word of the query, of which [`MAX_QUERY_WORDS`] count.

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

use self::words::{Stems, first_sentence, synonyms};
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
/// The weight of a synonym of a word of the query.
const SYNONYM_WEIGHT: f32 = 0.6;
/// How much a tool counts that has only a synonym of a word, when it is decided how rare the word is.
const OTHER_WORD_COUNT: f32 = 0.5;
/// The weight of a word that only shares its beginning with a word of the query, and how long a shared beginning must be.
const PREFIX_WEIGHT: f32 = 0.3;
const MIN_PREFIX_BYTES: usize = 4;
/// The maximum number of indexed words that may match because they begin with a word of the query, for all words of the query together.
const MAX_PREFIX_MATCHES: usize = 256;
/// The maximum number of different words of a query. What follows is ignored.
const MAX_QUERY_WORDS: usize = 64;
/// How authors mark a tool that is not to be used any more, in its title or description, or as a member of its annotations or `_meta`.
const DEPRECATED: &str = "deprecated";

/// The posting list of a word: the index of each tool that contains it, with its weighted number of occurrences there.
type Postings = Vec<(usize, f32)>;

/// An inverted index of all tools. The tools that a query finds, and their order, depend only on tools that the caller sees.
pub struct Finder {
    stems: Stems,
    tools: Vec<Indexed>,
    words: Words,
}

/// The indexed words.
#[derive(Default)]
struct Words {
    /// The number of each word, which is its place in `postings`.
    numbers: BTreeMap<String, usize>,
    postings: Vec<Postings>,
}

struct Indexed {
    name: String,
    /// The weighted number of words in all fields of the tool.
    length: f32,
    /// The words of its name, the plugin's id and the first sentence of its description.
    head: Vec<usize>,
    is_deprecated: bool,
}

/// The tools that a caller sees.
struct Sight {
    sees: Vec<bool>,
    /// The number of these tools.
    all: f32,
    /// Their average length.
    usual: f32,
    /// For each indexed word, the number of these tools that contain it.
    counts: Vec<f32>,
}

impl Finder {
    /// Builds the index. `tools`: each tool with the id of its plugin.
    pub fn new<'a>(tools: impl Iterator<Item = (&'a str, &'a Tool)>) -> Self {
        let mut index = Self { stems: Stems::new(), tools: Vec::new(), words: Words::default() };
        for (plugin, tool) in tools {
            index.add(plugin, tool);
        }
        index
    }

    fn add(&mut self, plugin: &str, tool: &Tool) {
        let (first, rest) = first_sentence(&tool.description);
        let (mut counts, mut head): (HashMap<usize, f32>, Vec<usize>) = Default::default();
        let mut left = MAX_TOOL_WORDS;
        let mut add = |text: &str, weight: f32, is_head: bool| {
            for word in self.stems.words(text).take(left) {
                let number = self.words.number(word);
                let so_far = counts.entry(number).or_insert_with(|| {
                    head.extend(is_head.then_some(number));
                    0.0
                });
                *so_far += weight;
                left -= 1;
            }
        };
        // The fields of the head come first, so a word is new to the head exactly if it is new.
        add(own_name(plugin, &tool.name), NAME_WEIGHT, true);
        add(plugin, ID_WEIGHT, true);
        add(first, FIRST_SENTENCE_WEIGHT, true);
        add(tool.title.as_deref().map_or("", |title| title), TITLE_WEIGHT, false);
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
        for (number, count) in counts {
            self.words.postings.get_mut(number).into_iter().for_each(|postings| postings.push((at, count)));
        }
        self.tools.push(Indexed { name: tool.name.clone(), length, head, is_deprecated: is_deprecated(tool) });
    }

    /// Returns the names of the tools that match at least one word of the query, best match first, and deprecated tools last. Considers
    /// only tools for which `sees` returns true.
    pub fn find(&self, query: &str, sees: impl Fn(&str) -> bool) -> Vec<&str> {
        let sight = self.sight(sees);
        let mut scores: HashMap<usize, f32> = HashMap::new();
        // How well the query covers each word.
        let mut covered: HashMap<usize, f32> = HashMap::new();
        let mut prefixes_left = MAX_PREFIX_MATCHES;
        let mut had = HashSet::new();
        let asked = self.stems.words(query).filter(|stem| had.insert(stem.clone())).take(MAX_QUERY_WORDS);
        for stem in asked {
            let words = self.alternatives(&stem, &sight, &mut prefixes_left);
            for (at, score) in self.matches(&words, &sight) {
                *scores.entry(at).or_default() += score;
            }
            for (word, weight) in words {
                let so_far = covered.entry(word).or_default();
                *so_far = so_far.max(weight);
            }
        }
        let share = |words: &[usize]| {
            let (mut all, mut known) = (0.0, 0.0);
            for word in words {
                let rarity = sight.rarity(sight.count(*word));
                all += rarity;
                known += rarity * covered.get(word).copied().unwrap_or_default();
            }
            if all > 0.0 { known / all } else { 0.0 }
        };
        let mut found: Vec<(&Indexed, usize, f32)> = Vec::new();
        for (at, score) in scores {
            let Some(tool) = self.tools.get(at) else { continue };
            found.push((tool, at, score * (1.0 + COVERAGE_WEIGHT * share(&tool.head))));
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
        let mut sight = Sight { sees: seen, all, usual: (lengths / all.max(1.0)).max(1.0), counts: Vec::new() };
        sight.counts = (0..self.words.postings.len()).map(|word| self.seen(word, &sight).count() as f32).collect();
        sight
    }

    /// Returns the occurrences of a word in visible tools.
    fn seen<'a>(&'a self, word: usize, sight: &'a Sight) -> impl Iterator<Item = (usize, f32)> + 'a {
        self.words.postings.get(word).into_iter().flatten().copied().filter(|(at, _)| sight.has(*at))
    }

    /// Returns the score of each visible tool that has one of these words: a word of the query, which has the full weight, and others.
    #[expect(clippy::cast_precision_loss, reason = "there are far fewer tools than a f32 can count")]
    fn matches(&self, words: &[(usize, f32)], sight: &Sight) -> HashMap<usize, f32> {
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
            .filter(|(_, weight)| *weight >= 1.0)
            .flat_map(|(word, _)| self.seen(*word, sight).map(|(at, _)| at))
            .collect();
        let own = own.len() as f32;
        let rarity = sight.rarity(own + (best.len() as f32 - own) * OTHER_WORD_COUNT);
        best.values_mut().for_each(|score| *score *= rarity);
        best
    }

    /// Returns the indexed words for a stem of the query, each with its weight: itself, its synonyms and, if no visible tool contains it, words
    /// that share its beginning.
    fn alternatives(&self, word: &str, sight: &Sight, prefixes_left: &mut usize) -> Vec<(usize, f32)> {
        let number = |(word, weight): (&str, f32)| Some((self.words.get(word)?, weight));
        let own = number((word, 1.0));
        let others = synonyms(word).filter_map(|word| number((word, SYNONYM_WEIGHT)));
        let mut all: Vec<(usize, f32)> = own.into_iter().chain(others).collect();
        if word.len() >= MIN_PREFIX_BYTES && !own.is_some_and(|(own, _)| sight.knows(own)) {
            let longer = self.words.numbers.range::<str, _>((Bound::Excluded(word), Bound::Unbounded));
            let longer = longer.take_while(|(known, _)| known.starts_with(word)).map(|(_, number)| *number);
            let before = all.len();
            let longer = longer.filter(|number| sight.knows(*number)).take(*prefixes_left);
            all.extend(longer.map(|number| (number, PREFIX_WEIGHT)));
            *prefixes_left -= all.len() - before;
            let shorter = word.char_indices().filter_map(|(at, _)| word.get(..at));
            let shorter = shorter.filter(|part| part.len() >= MIN_PREFIX_BYTES && part.len() * 3 >= word.len() * 2);
            all.extend(shorter.filter_map(|part| number((part, PREFIX_WEIGHT))));
        }
        all
    }
}

impl Words {
    fn get(&self, word: &str) -> Option<usize> {
        self.numbers.get(word).copied()
    }

    /// Returns the number of a word, which it gets if it is new.
    fn number(&mut self, word: String) -> usize {
        let next = self.postings.len();
        let number = *self.numbers.entry(word).or_insert(next);
        if number == next {
            self.postings.push(Postings::new());
        }
        number
    }
}

impl Sight {
    fn has(&self, tool: usize) -> bool {
        self.sees.get(tool).copied().unwrap_or_default()
    }

    /// Returns the number of visible tools that contain a word.
    fn count(&self, word: usize) -> f32 {
        self.counts.get(word).copied().unwrap_or_default()
    }

    /// Whether a visible tool contains a word.
    fn knows(&self, word: usize) -> bool {
        self.count(word) > 0.0
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

/// Whether a tool is marked as deprecated: its title or description begins with that word or has it in capitals or brackets, or a member says
/// so. A tool that finds deprecated packages is not deprecated.
fn is_deprecated(tool: &Tool) -> bool {
    let meta = tool.more.get("_meta").and_then(Value::as_object);
    let mut members = tool.annotations.iter().chain(meta).flatten();
    let is_mark = |key: &str| key.rsplit(['/', '.']).next().is_some_and(|last| last.eq_ignore_ascii_case(DEPRECATED));
    let is_set = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
    let says_so = |text: &str| {
        let lower = text.to_lowercase();
        let begins = lower
            .trim_start_matches(['*', '[', '('])
            .strip_prefix(DEPRECATED)
            .is_some_and(|rest| !rest.starts_with(" "));
        begins || text.contains("DEPRECATED") || lower.contains("(deprecated") || lower.contains("[deprecated")
    };
    members.any(|(key, value)| is_mark(key) && is_set(value))
        || tool.title.iter().any(|title| says_so(title))
        || says_so(&tool.description)
}

#[cfg(test)]
mod tests;
