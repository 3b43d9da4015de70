//! Finds tools by what they do, for clients that get three tools in place of all: one that finds the others, one that calls them,
//! and one that reads resources.
//!
//! Tools are ranked by BM25, as search engines rank texts: what counts is how many words of the query a tool has, how rare each of
//! them is among all tools, and where it stands.

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
/// How many tools are found at once, at the most and if the client does not say.
pub const MOST_FOUND: f64 = 20.0;
pub const USUALLY_FOUND: f64 = 5.0;
/// The most characters of a query.
pub const LONGEST_QUERY: usize = 1024;

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
                        "query": { "type": "string", "maxLength": LONGEST_QUERY, "description": query },
                        "limit": {
                            "type": "integer", "default": 5,
                            "description": format!("How many tools to return, 1 to {MOST_FOUND}"),
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

/// Longer words are none that anybody would look for, and take the stemmer long.
const LONGEST_WORD: usize = 64;
/// How many words of a query are looked at.
const MOST_LOOKED_AT: usize = 256;
/// How many words that begin like a word of the query count.
const MOST_BEGINNINGS: usize = 256;

/// The tools that have a word, with how much it has of it.
type Places = Vec<(usize, f32)>;

/// An index of all tools. What a query finds, and in which order, depends only on tools that its caller sees.
pub struct Finder {
    tools: Vec<Indexed>,
    words: BTreeMap<String, Places>,
}

struct Indexed {
    name: String,
    /// How much it has of all words together.
    length: f32,
}

impl Finder {
    /// `tools`: each with the id of its plugin.
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
            add(&tool.name, IN_NAME);
            add(plugin, IN_ID);
            add(tool.title.as_deref().map_or("", |title| title), IN_TITLE);
            add(&tool.description, IN_DESCRIPTION);
            let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
            for (name, argument) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                add(name, IN_ARGUMENTS);
                add(argument.get("description").and_then(Value::as_str).unwrap_or_default(), IN_ARGUMENTS);
                for choice in argument.get("enum").and_then(Value::as_array).into_iter().flatten() {
                    add(choice.as_str().unwrap_or_default(), IN_ARGUMENTS);
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

    /// The names of the tools that have something of the query, best first, of those that `sees` lets through.
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
        let asked = parts(query).take(MOST_LOOKED_AT).filter_map(|part| word(&stemmer, part));
        for word in asked.filter(|word| had.insert(word.clone())).take(MOST_WORDS) {
            // A tool that has several of the words that stand for this one has it once.
            let mut best: HashMap<usize, f32> = HashMap::new();
            for (known, weight) in self.like(&word, is_seen) {
                let Some(places) = self.words.get(known) else { continue };
                let places: Vec<&(usize, f32)> = places.iter().filter(|(at, _)| is_seen(*at)).collect();
                let rare = ((all - places.len() as f32 + 0.5) / (places.len() as f32 + 0.5)).ln_1p();
                for (at, count) in places {
                    let length = self.tools.get(*at).map_or(usual, |tool| tool.length);
                    let score = count * (K + 1.0) / (count + K * (1.0 - B + B * length / usual));
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

    /// The words that stand for a word, with how much they count for it: itself, those that mean the same, and if no tool that is seen
    /// has it, those that begin like it.
    fn like<'a>(&'a self, word: &'a str, is_seen: impl Fn(usize) -> bool) -> Vec<(&'a str, f32)> {
        static SYNONYMS: LazyLock<HashMap<String, BTreeSet<String>>> = LazyLock::new(synonyms);
        let mut all: Vec<(&str, f32)> = vec![(word, 1.0)];
        all.extend(SYNONYMS.get(word).into_iter().flatten().map(|other| (other.as_str(), SYNONYM)));
        let has = |places: &Places| places.iter().any(|(at, _)| is_seen(*at));
        if !self.words.get(word).is_some_and(has) && word.len() >= LEAST_BEGINNING {
            let longer = self.words.range::<str, _>((Bound::Excluded(word), Bound::Unbounded));
            let longer = longer.take_while(|(known, _)| known.starts_with(word)).filter(|(_, places)| has(places));
            all.extend(longer.take(MOST_BEGINNINGS).map(|(known, _)| (known.as_str(), BEGINNING)));
            let shorter = word.char_indices().filter_map(|(at, _)| word.get(..at));
            all.extend(shorter.filter(|part| part.len() >= LEAST_BEGINNING).map(|part| (part, BEGINNING)));
        }
        all
    }
}

/// For each word, those that mean the same.
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

/// The words of a text, without their endings: `createIssues` and `create_issue` have the same.
fn words<'a>(stemmer: &'a Stemmer, text: &'a str) -> impl Iterator<Item = String> + 'a {
    parts(text).filter_map(|part| word(stemmer, part))
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric()).flat_map(humps)
}

/// A word without its ending, unless it says nothing.
fn word(stemmer: &Stemmer, part: &str) -> Option<String> {
    if part.len() > LONGEST_WORD {
        return None;
    }
    let word = part.to_lowercase();
    (!COMMON.contains(&word.as_str())).then(|| stemmer.stem(&word).into_owned())
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

    /// The stemmer takes quadratic time for some words, so long ones are left out.
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
