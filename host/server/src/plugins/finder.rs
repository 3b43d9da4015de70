//! Finds tools by what they do, for clients that get three tools in place of all: one that finds the others, one that calls them,
//! and one that reads resources.
//!
//! Tools are ranked by BM25, as search engines rank texts: what counts is how many words of the query a tool has, how rare each of
//! them is among all tools, and where it stands.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use rust_stemmers::{Algorithm, Stemmer};
use serde_json::{Value, json, value::RawValue};
use wharf_protocol::model::{TaskSupport, Tool};

use super::synonyms::GROUPS;

pub const FIND: &str = "find_tools";
pub const CALL: &str = "call_tool";
pub const READ: &str = "read_resource";
/// How many tools are found at once, at the most and if the client does not say.
pub const MOST_FOUND: u64 = 20;
pub const USUALLY_FOUND: u64 = 5;

/// The tools that stand for all others.
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
                        "query": { "type": "string", "description": query },
                        "limit": {
                            "type": "integer", "minimum": 1, "maximum": MOST_FOUND, "default": USUALLY_FOUND,
                            "description": "How many tools to return",
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
                true,
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
        input_schema: RawValue::from_string(schema.to_string()).unwrap_or_default(),
        output_schema: None,
        annotations: annotations.as_object().filter(|hints| !hints.is_empty()).cloned(),
        task: TaskSupport::Forbidden,
        more: wharf_protocol::Object::new(),
    }
}

/// How much a word counts by where it stands. Measured with several hundred tools of other servers.
const IN_NAME: f32 = 2.0;
const IN_ID: f32 = 1.5;
const IN_TITLE: f32 = 1.0;
const IN_DESCRIPTION: f32 = 1.0;
const IN_ARGUMENTS: f32 = 0.3;
/// The constants of BM25: how soon more of the same word counts no more, and how much long texts are held back.
const K: f32 = 0.8;
const B: f32 = 0.75;
/// How much a word counts that only begins like a word of the query.
const BEGINNING: f32 = 0.5;
/// How much a word counts that means the same as a word of the query.
const SYNONYM: f32 = 0.2;
/// Shorter words are not taken for beginnings of others.
const LEAST_BEGINNING: usize = 3;
/// No more words of a query count.
const MOST_WORDS: usize = 64;

/// The tools that have a word, with how much it counts there.
type Places = Vec<(usize, f32)>;

/// An index of tools.
pub struct Finder {
    names: Vec<String>,
    words: HashMap<String, Places>,
}

impl Finder {
    /// `tools`: each with the id of its plugin.
    pub fn new<'a>(tools: impl Iterator<Item = (&'a str, &'a Tool)>) -> Self {
        let stemmer = Stemmer::create(Algorithm::English);
        let (mut names, mut counted, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        for (plugin, tool) in tools {
            let mut counts: HashMap<String, f32> = HashMap::new();
            let mut add = |text: &str, weight: f32| {
                for word in words(&stemmer, text) {
                    *counts.entry(word).or_default() += weight;
                }
            };
            add(&tool.name, IN_NAME);
            add(plugin, IN_ID);
            add(tool.title.as_deref().unwrap_or_default(), IN_TITLE);
            add(&tool.description, IN_DESCRIPTION);
            let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
            for (name, argument) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                add(name, IN_ARGUMENTS);
                add(argument.get("description").and_then(Value::as_str).unwrap_or_default(), IN_ARGUMENTS);
                for choice in argument.get("enum").and_then(Value::as_array).into_iter().flatten() {
                    add(choice.as_str().unwrap_or_default(), IN_ARGUMENTS);
                }
            }
            lengths.push(counts.values().sum::<f32>());
            counted.push(counts);
            names.push(tool.name.clone());
        }
        #[expect(clippy::cast_precision_loss, reason = "there are far fewer tools than a f32 can count")]
        let usual = (lengths.iter().sum::<f32>() / (lengths.len().max(1) as f32)).max(1.0);
        let mut words: HashMap<String, Places> = HashMap::new();
        for (at, (counts, length)) in counted.into_iter().zip(lengths).enumerate() {
            for (word, count) in counts {
                let score = count * (K + 1.0) / (count + K * (1.0 - B + B * length / usual));
                words.entry(word).or_default().push((at, score));
            }
        }
        Self { names, words }
    }

    /// The names of the tools that have something of the query, best first.
    pub fn find(&self, query: &str) -> Vec<&str> {
        let stemmer = Stemmer::create(Algorithm::English);
        let mut scores: HashMap<usize, f32> = HashMap::new();
        let mut seen = HashSet::new();
        for word in words(&stemmer, query).filter(|word| seen.insert(word.clone())).take(MOST_WORDS) {
            // A tool that has several of the words that stand for this one has it once.
            let mut best: HashMap<usize, f32> = HashMap::new();
            for (known, weight) in self.like(&word) {
                let Some(places) = self.words.get(known) else { continue };
                let weight = weight * self.rareness(places.len());
                for (at, score) in places {
                    let so_far = best.entry(*at).or_default();
                    *so_far = so_far.max(weight * score);
                }
            }
            for (at, score) in best {
                *scores.entry(at).or_default() += score;
            }
        }
        let mut found: Vec<(usize, f32)> = scores.into_iter().collect();
        found.sort_by(|(one, score), (other, other_score)| other_score.total_cmp(score).then(one.cmp(other)));
        found.into_iter().filter_map(|(at, _)| self.names.get(at).map(String::as_str)).collect()
    }

    /// The words that stand for a word, with how much they count for it: itself, those that mean the same, and if no tool has it,
    /// those that begin like it.
    fn like<'a>(&'a self, word: &'a str) -> Vec<(&'a str, f32)> {
        static SYNONYMS: LazyLock<HashMap<String, HashSet<String>>> = LazyLock::new(synonyms);
        let mut all: Vec<(&str, f32)> = vec![(word, 1.0)];
        all.extend(SYNONYMS.get(word).into_iter().flatten().map(|other| (other.as_str(), SYNONYM)));
        if !self.words.contains_key(word) {
            let begins = |known: &&String| {
                let (short, long) =
                    if known.len() < word.len() { (known.as_str(), word) } else { (word, known.as_str()) };
                short.len() >= LEAST_BEGINNING && long.starts_with(short)
            };
            all.extend(self.words.keys().filter(begins).map(|known| (known.as_str(), BEGINNING)));
        }
        all
    }

    #[expect(clippy::cast_precision_loss, reason = "there are far fewer tools than a f32 can count")]
    fn rareness(&self, tools: usize) -> f32 {
        let (all, tools) = (self.names.len() as f32, tools as f32);
        ((all - tools + 0.5) / (tools + 0.5)).ln_1p()
    }
}

/// For each word, those that mean the same.
fn synonyms() -> HashMap<String, HashSet<String>> {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut all: HashMap<String, HashSet<String>> = HashMap::new();
    for group in GROUPS {
        let group: HashSet<String> = words(&stemmer, group).collect();
        for word in &group {
            let others = group.iter().filter(|other| *other != word);
            all.entry(word.clone()).or_default().extend(others.cloned());
        }
    }
    all
}

/// The words of a text, without their endings: `createIssues` and `create_issue` have the same.
fn words<'a>(stemmer: &'a Stemmer, text: &'a str) -> impl Iterator<Item = String> + 'a {
    let parts = text.split(|character: char| !character.is_alphanumeric()).flat_map(humps);
    let words = parts.filter(|part| !part.is_empty()).map(str::to_lowercase);
    words.filter(|word| !COMMON.contains(&word.as_str())).map(|word| stemmer.stem(&word).into_owned())
}

/// The parts of a name such as `createIssue`.
fn humps(text: &str) -> impl Iterator<Item = &str> {
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

/// Words that say nothing about a tool.
const COMMON: [&str; 40] = [
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
        finder.find(query).into_iter().map(Into::into).collect()
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
}
