//! Full-text search for tools, for clients whose `tools/list` contains three tools instead of all: one that finds tools, one that calls
//! them, and one that reads resources.
//!
//! Tools are ranked by BM25, a ranking function of search engines. The score of a tool depends on how many words of the query it
//! contains, how rare each of them is among all tools, and in which field it occurs.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ops::Bound,
    sync::LazyLock,
};

use rust_stemmers::{Algorithm, Stemmer};
use serde_json::{Value, json};
use wharf_protocol::{
    Shown,
    model::{TaskSupport, Tool},
};

use super::synonyms::GROUPS;
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
        let query = "Words that the tool's description may have, such as \"rename move file path\" or \"create add event \
                     calendar meeting\"";
        vec![
            tool(
                FIND,
                "Find tools",
                "Finds tools by what they do. Most tools of this server are not in this list: look here first, and call what \
                 is found with call_tool. Tools are matched by words, so give several: what is done, to what, in which product, \
                 and other words for each. Returns names, descriptions and the schemas of their arguments, best match first.",
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
const ID_WEIGHT: f32 = 1.5;
const TITLE_WEIGHT: f32 = 1.0;
const DESCRIPTION_WEIGHT: f32 = 1.0;
const ARGUMENTS_WEIGHT: f32 = 0.3;
/// The parameters of BM25: `K1` limits the effect of a repeated word, and `B` sets the penalty for long texts.
const K1: f32 = 0.8;
const B: f32 = 0.75;
/// The weight of a word that only shares its beginning with a word of the query.
const PREFIX_WEIGHT: f32 = 0.5;
/// The weight of a synonym of a word of the query.
const SYNONYM_WEIGHT: f32 = 0.2;
/// The minimum length of a word that may match as the beginning of another word.
const MIN_PREFIX_BYTES: usize = 3;
/// The maximum number of different words of a query that are scored. Further words are ignored.
const MAX_SCORED_WORDS: usize = 64;

/// The maximum length of a word. Longer words are ignored: they are not useful for a search, and the stemmer is slow on them.
const MAX_WORD_BYTES: usize = 64;
/// The maximum number of words of a query that are read, repeated ones included.
const MAX_QUERY_WORDS: usize = 256;
/// The maximum number of indexed words that may match because they begin with a word of the query.
const MAX_PREFIX_MATCHES: usize = 256;

/// The posting list of a word: the index of each tool that contains it, with its weighted number of occurrences there.
type Postings = Vec<(usize, f32)>;

/// An inverted index of all tools. The tools that a query finds, and their order, depend only on tools that the caller sees.
pub struct Finder {
    tools: Vec<Indexed>,
    words: BTreeMap<String, Postings>,
}

struct Indexed {
    name: String,
    /// The weighted number of words in all fields of the tool.
    length: f32,
}

impl Finder {
    /// Builds the index. `tools`: each tool with the id of its plugin.
    pub fn new<'a>(tools: impl Iterator<Item = (&'a str, &'a Tool)>) -> Self {
        let stemmer = Stemmer::create(Algorithm::English);
        let mut index = Self { tools: Vec::new(), words: BTreeMap::new() };
        for (plugin, tool) in tools {
            let mut counts: HashMap<String, f32> = HashMap::new();
            let mut left = MAX_TOOL_WORDS;
            let mut add = |text: &str, weight: f32| {
                for word in words(&stemmer, text).take(left) {
                    *counts.entry(word).or_default() += weight;
                    left -= 1;
                }
            };
            add(&tool.name, NAME_WEIGHT);
            add(plugin, ID_WEIGHT);
            add(tool.title.as_deref().map_or("", |title| title), TITLE_WEIGHT);
            add(&tool.description, DESCRIPTION_WEIGHT);
            let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
            for (name, argument) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                add(name, ARGUMENTS_WEIGHT);
                add(argument.get("description").and_then(Value::as_str).unwrap_or_default(), ARGUMENTS_WEIGHT);
                for choice in argument.get("enum").and_then(Value::as_array).into_iter().flatten() {
                    add(choice.as_str().unwrap_or_default(), ARGUMENTS_WEIGHT);
                }
            }
            let at = index.tools.len();
            index.tools.push(Indexed { name: tool.name.clone(), length: counts.values().sum() });
            for (word, count) in counts {
                index.words.entry(word).or_default().push((at, count));
            }
        }
        index
    }

    /// Returns the names of the tools that match at least one word of the query, best match first. Considers only tools for which `sees`
    /// returns true.
    #[expect(clippy::cast_precision_loss, reason = "there are far fewer tools than a f32 can count")]
    pub fn find(&self, query: &str, sees: impl Fn(&str) -> bool) -> Vec<&str> {
        let seen: Vec<bool> = self.tools.iter().map(|tool| sees(&tool.name)).collect();
        let is_seen = |at: usize| seen.get(at).copied().unwrap_or_default();
        let all = seen.iter().filter(|seen| **seen).count() as f32;
        let lengths: f32 = self.tools.iter().zip(&seen).filter(|(_, seen)| **seen).map(|(tool, _)| tool.length).sum();
        let usual = (lengths / all.max(1.0)).max(1.0);
        let stemmer = Stemmer::create(Algorithm::English);
        let mut scores: HashMap<usize, f32> = HashMap::new();
        let mut had = HashSet::new();
        let asked = parts(query).take(MAX_QUERY_WORDS).filter_map(|part| word(&stemmer, part));
        for word in asked.filter(|word| had.insert(word.clone())).take(MAX_SCORED_WORDS) {
            // If several alternatives of a word match a tool, only the best one counts.
            let mut best: HashMap<usize, f32> = HashMap::new();
            for (known, weight) in self.alternatives(&word, is_seen) {
                let Some(postings) = self.words.get(known) else { continue };
                let postings: Vec<&(usize, f32)> = postings.iter().filter(|(at, _)| is_seen(*at)).collect();
                let rare = ((all - postings.len() as f32 + 0.5) / (postings.len() as f32 + 0.5)).ln_1p();
                for (at, count) in postings {
                    let length = self.tools.get(*at).map_or(usual, |tool| tool.length);
                    let score = count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / usual));
                    let so_far = best.entry(*at).or_default();
                    *so_far = so_far.max(weight * rare * score);
                }
            }
            for (at, score) in best {
                *scores.entry(at).or_default() += score;
            }
        }
        let mut found: Vec<(usize, f32)> = scores.into_iter().collect();
        found.sort_by(|(one, score), (other, other_score)| other_score.total_cmp(score).then(one.cmp(other)));
        found.into_iter().filter_map(|(at, _)| self.tools.get(at).map(|tool| tool.name.as_str())).collect()
    }

    /// Returns the words to look up for a word of the query, each with its weight: the word itself, its synonyms and, if no visible tool
    /// contains the word, words that share its beginning.
    fn alternatives<'a>(&'a self, word: &'a str, is_seen: impl Fn(usize) -> bool) -> Vec<(&'a str, f32)> {
        static SYNONYMS: LazyLock<HashMap<String, BTreeSet<String>>> = LazyLock::new(synonyms);
        let mut all: Vec<(&str, f32)> = vec![(word, 1.0)];
        all.extend(SYNONYMS.get(word).into_iter().flatten().map(|other| (other.as_str(), SYNONYM_WEIGHT)));
        let has = |postings: &Postings| postings.iter().any(|(at, _)| is_seen(*at));
        if !self.words.get(word).is_some_and(has) && word.len() >= MIN_PREFIX_BYTES {
            let longer = self.words.range::<str, _>((Bound::Excluded(word), Bound::Unbounded));
            let longer = longer.take_while(|(known, _)| known.starts_with(word)).filter(|(_, postings)| has(postings));
            all.extend(longer.take(MAX_PREFIX_MATCHES).map(|(known, _)| (known.as_str(), PREFIX_WEIGHT)));
            let shorter = word.char_indices().filter_map(|(at, _)| word.get(..at));
            all.extend(shorter.filter(|part| part.len() >= MIN_PREFIX_BYTES).map(|part| (part, PREFIX_WEIGHT)));
        }
        all
    }
}

/// Returns a map from each stemmed word to its synonyms.
fn synonyms() -> HashMap<String, BTreeSet<String>> {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut all: HashMap<String, BTreeSet<String>> = HashMap::new();
    for group in GROUPS {
        let group: BTreeSet<String> = words(&stemmer, group).collect();
        for word in &group {
            let others = group.iter().filter(|other| *other != word);
            all.entry(word.clone()).or_default().extend(others.cloned());
        }
    }
    all
}

/// Returns the stemmed words of a text: `createIssues` and `create_issue` give the same words.
fn words<'a>(stemmer: &'a Stemmer, text: &'a str) -> impl Iterator<Item = String> + 'a {
    parts(text).filter_map(|part| word(stemmer, part))
}

/// Splits a text at everything that is not a letter or digit, and at the humps of camel case.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric()).flat_map(split_camel_case)
}

/// Returns the stem of a word, or `None` for a stop word or a word that is too long.
fn word(stemmer: &Stemmer, part: &str) -> Option<String> {
    if part.len() > MAX_WORD_BYTES {
        return None;
    }
    let word = part.to_lowercase();
    (!STOP_WORDS.contains(&word.as_str())).then(|| stemmer.stem(&word).into_owned())
}

/// Splits a name such as `createIssue` into `create` and `Issue`.
fn split_camel_case(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut after_small = false;
        let hump = |(_, character): &(usize, char)| {
            let begins = after_small && character.is_uppercase();
            after_small = character.is_lowercase() || character.is_ascii_digit();
            begins
        };
        let end = rest.char_indices().find(hump).map_or(rest.len(), |(at, _)| at);
        let (part, left) = rest.split_at_checked(end)?;
        rest = left;
        (!part.is_empty()).then_some(part)
    })
}

/// Stop words: common words that do not help to find a tool.
const STOP_WORDS: [&str; 40] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "has", "have", "how", "i", "if", "in",
    "into", "is", "it", "its", "me", "my", "of", "on", "or", "s", "that", "the", "their", "this", "to", "tool", "use",
    "want", "what", "which", "with", "you",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn described(name: &str, description: &str) -> Tool {
        tool(name, "", description, json!({ "type": "object", "properties": {} }), false)
    }

    fn found(tools: &[Tool], query: &str) -> Vec<String> {
        let finder = Finder::new(tools.iter().map(|tool| ("some", tool)));
        finder.find(query, |_| true).into_iter().map(Into::into).collect()
    }

    #[test]
    fn words_are_the_same_however_they_are_written() {
        let stemmer = Stemmer::create(Algorithm::English);
        let of = |text| words(&stemmer, text).collect::<Vec<_>>();
        assert_eq!(of("createIssues"), of("CREATE issue"));
        assert_eq!(of("list_open-files"), of("listing the opened file"));
        assert_eq!(of("XMLFile getURL2 Über…"), ["xmlfile", "get", "url2", "über"]);
        assert_eq!(of("the of to"), [""; 0]);
    }

    #[test]
    fn rare_words_and_names_count_more() {
        let tools = [
            described("files_read", "Reads a file of the project"),
            described("files_write", "Writes a file of the project"),
            described("git_log", "Shows who changed which file of the project, and when"),
        ];
        assert_eq!(found(&tools, "log of the file")[0], "git_log");
        assert_eq!(found(&tools, "write")[0], "files_write");
        assert_eq!(found(&tools, "file project").len(), 3);
        assert_eq!(found(&tools, ""), [""; 0]);
        assert_eq!(found(&tools, "zebra"), [""; 0]);
    }

    #[test]
    fn other_words_for_the_same_are_found_after_the_word_itself() {
        let tools = [
            described("tracker_open", "Creates an issue in the tracker"),
            described("zoo_open", "Reports a bug that was seen in the zoo"),
        ];
        assert_eq!(found(&tools, "bug"), ["zoo_open", "tracker_open"]);
        assert_eq!(found(&tools, "issue"), ["tracker_open", "zoo_open"]);
        let repositories = [described("repos_get", "Of repositories")];
        assert_eq!(found(&repositories, "repositor"), ["repos_get"], "the beginning of a word");
    }

    #[test]
    fn what_is_not_seen_changes_nothing() {
        let tools = [
            described("greet", "Says hello"),
            described("hellosecret", "Says hello to the hidden, helloworld, hello hello"),
            described("other", "Does something else"),
        ];
        let finder = Finder::new(tools.iter().map(|tool| ("some", tool)));
        let of_all = |query: &str| finder.find(query, |_| true).len();
        for query in ["hello", "hellopublic", "hellosecret", "helloworld", "hidden", "says", "else hello"] {
            let alone = Finder::new([("some", &tools[0]), ("some", &tools[2])].into_iter());
            let sees = |name: &str| name != "hellosecret";
            assert_eq!(finder.find(query, sees), alone.find(query, |_| true), "{query}");
        }
        assert_eq!(of_all("hidden"), 1);
    }

    /// The stemmer takes quadratic time for some words, so long ones are ignored.
    #[test]
    fn no_text_takes_long() {
        let began = std::time::Instant::now();
        let long = ["ay".repeat(500_000), "a ".repeat(500_000), "ay ".repeat(300_000), "é".repeat(500_000)];
        for text in long {
            assert_eq!(found(&[described("one", &text)], "zebra"), [""; 0]);
            found(&[described("one", "a tool")], &text);
        }
        assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    }
}
