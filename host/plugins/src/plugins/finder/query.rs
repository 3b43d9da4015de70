//! What a query asks for: one concept for each word, phrase and value in it, with the words that a tool may have for the concept.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::LazyLock,
};

use super::{
    action::Action,
    phrases::{ADDRESS, BARE_NAMES, ENDINGS, MAX_PHRASE_WORDS, PATH, PHRASES, TEXT_FILE},
    synonyms::GROUPS,
    words::{Stems, parts, pieces},
};

/// The weight of a synonym of a word of the query.
const SYNONYM_WEIGHT: f32 = 0.6;
/// The weight of a word that a phrase stands for.
const PHRASE_WEIGHT: f32 = 0.85;
/// The weights of the words for what a value names: of the first one, and of the others.
const VALUE_WEIGHTS: [f32; 2] = [1.0, 0.7];
/// The maximum number of words of a query that are read, repeated ones included.
const MAX_QUERY_WORDS: usize = 256;
/// The maximum number of concepts. What follows is ignored.
const MAX_CONCEPTS: usize = 64;

/// A part of the query. If several of its words match a tool, only the best match counts.
pub struct Concept {
    /// The stem of the word in the query; `None` for a phrase or a value.
    pub word: Option<String>,
    /// Stems that a tool may have in its place, with their weights.
    pub others: Vec<(String, f32)>,
}

pub struct Query {
    pub concepts: Vec<Concept>,
    /// The kind of thing that the query asks a tool to do, if its verb tells.
    pub action: Option<Action>,
}

enum Token<'a> {
    Word(&'a str),
    /// A value, with the words for what it names.
    Value(&'static str),
}

impl Query {
    /// `is_word`: whether a tool contains this stem.
    pub fn read(text: &str, stems: &Stems, is_word: impl Fn(&str) -> bool) -> Self {
        let tokens: Vec<Token<'_>> =
            text.split_whitespace().flat_map(|token| read(token, stems, &is_word)).take(MAX_QUERY_WORDS).collect();
        let lower: Vec<String> = tokens.iter().map(Token::lower).collect();
        let (mut concepts, mut had) = (Vec::new(), HashSet::new());
        for (at, token) in tokens.iter().enumerate() {
            let rest = lower.get(at..).unwrap_or_default();
            concepts.extend(phrase(rest).map(|words| stand_in(stems, words, [PHRASE_WEIGHT; 2])));
            match token {
                Token::Value(words) => concepts.push(stand_in(stems, words, VALUE_WEIGHTS)),
                Token::Word(word) => {
                    concepts.extend(stems.searched(word).filter(|stem| had.insert(stem.clone())).map(|stem| {
                        let others = synonyms().get(&stem).into_iter().flatten();
                        let others = others.map(|other| (other.clone(), SYNONYM_WEIGHT)).collect();
                        Concept { word: Some(stem), others }
                    }))
                }
            }
        }
        concepts.truncate(MAX_CONCEPTS);
        Self { concepts, action: Action::asked(lower.iter().filter(|word| !word.is_empty()), stems) }
    }
}

impl Token<'_> {
    fn lower(&self) -> String {
        match self {
            Self::Word(word) => word.to_lowercase(),
            Self::Value(_) => String::new(),
        }
    }
}

/// Returns a concept that has no word of its own.
fn stand_in(stems: &Stems, words: &str, [first, further]: [f32; 2]) -> Concept {
    let words = words.split(' ').enumerate();
    let others = words.filter_map(|(at, word)| Some((stems.stem(word)?, if at == 0 { first } else { further })));
    Concept { word: None, others: others.collect() }
}

/// Returns what the longest phrase stands for with which these words begin.
fn phrase(words: &[String]) -> Option<&'static str> {
    static KNOWN: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| PHRASES.iter().copied().collect());
    let lengths = (2..=MAX_PHRASE_WORDS).rev();
    lengths.filter_map(|length| words.get(..length)).find_map(|words| KNOWN.get(words.join(" ").as_str()).copied())
}

/// Returns the words of a token, or the value that it is. A word with humps stays whole if a tool contains it, such as `GitHub`.
fn read<'a>(token: &'a str, stems: &Stems, is_word: impl Fn(&str) -> bool) -> Vec<Token<'a>> {
    let token = token.trim_matches(|edge: char| "\"'`,;:!?()[]{}<>".contains(edge)).trim_end_matches('.');
    if let Some(words) = value(token) {
        return vec![Token::Value(words)];
    }
    let mut all = Vec::new();
    for piece in pieces(token) {
        if BARE_NAMES.iter().any(|name| name.eq_ignore_ascii_case(piece)) {
            all.push(Token::Value(TEXT_FILE));
        } else if stems.stem(piece).is_some_and(|stem| is_word(&stem)) {
            all.push(Token::Word(piece));
        } else {
            all.extend(parts(piece).map(Token::Word));
        }
    }
    all
}

/// Returns the words for what a token names if it is a value: an address, a path, or a name with a known ending.
fn value(token: &str) -> Option<&'static str> {
    if token.starts_with("http://") || token.starts_with("https://") {
        return Some(ADDRESS);
    }
    if let Some((name, ending)) = token.rsplit_once('.') {
        let is_name = !name.is_empty() && name.chars().all(|one| one.is_alphanumeric() || "._-/~".contains(one));
        let known = |(endings, _): &&(&str, &str)| endings.split(' ').any(|one| one.eq_ignore_ascii_case(ending));
        if let Some((_, words)) = ENDINGS.iter().find(known).filter(|_| is_name) {
            return Some(words);
        }
    }
    let is_path =
        ["/", "~/", "./", "../"].iter().any(|start| token.strip_prefix(start).is_some_and(|rest| !rest.is_empty()));
    is_path.then_some(PATH)
}

/// Returns a map from each stem to its synonyms.
fn synonyms() -> &'static HashMap<String, BTreeSet<String>> {
    static ALL: LazyLock<HashMap<String, BTreeSet<String>>> = LazyLock::new(|| {
        let stems = Stems::new();
        let mut all: HashMap<String, BTreeSet<String>> = HashMap::new();
        for group in GROUPS {
            let group: BTreeSet<String> = stems.words(group).collect();
            for word in &group {
                let others = group.iter().filter(|other| *other != word);
                all.entry(word.clone()).or_default().extend(others.cloned());
            }
        }
        all
    });
    &ALL
}

#[cfg(test)]
mod tests {
    use super::*;

    fn concepts(text: &str) -> Vec<(Option<String>, Vec<String>)> {
        let query = Query::read(text, &Stems::new(), |word| word == "github");
        let words = |others: Vec<(String, f32)>| others.into_iter().map(|(word, _)| word).collect();
        query.concepts.into_iter().map(|concept| (concept.word, words(concept.others))).collect()
    }

    #[test]
    fn each_word_phrase_and_value_is_a_concept() {
        let of = |text: &str| concepts(text).into_iter().map(|(word, _)| word).collect::<Vec<_>>();
        let word = |word: &str| Some(word.to_owned());
        assert_eq!(of("Please read the files of GitHub"), [word("read"), word("file"), word("github")]);
        assert_eq!(of("createIssue, create issue"), [word("creat"), word("issu")], "each once");
        assert_eq!(of("it and of"), []);
        assert_eq!(
            concepts("how big is it"),
            [(None, vec!["size".into()]), (word("big"), concepts("big")[0].1.clone())]
        );
        for (text, first) in [
            ("\"notes.txt\"", "file"),
            ("src/main.rs", "file"),
            ("~/photos", "file"),
            ("https://example.com/a.png?b=c", "url"),
            ("example.com.", "url"),
            ("the README", "file"),
            ("budget.xlsx", "excel"),
        ] {
            let found = concepts(text);
            assert_eq!((found.len(), &found[0].0, found[0].1[0].as_str()), (1, &None, first), "{text}");
        }
        for text in ["3.14", "e.g", "a/b", ".", "...", "/"] {
            assert!(concepts(text).iter().all(|(word, _)| word.is_some()), "{text}");
        }
    }

    #[test]
    fn each_phrase_can_be_found() {
        for (phrase, words) in PHRASES {
            let length = phrase.split(' ').count();
            assert!((2..=MAX_PHRASE_WORDS).contains(&length), "{phrase}");
            assert_eq!(pieces(phrase).collect::<Vec<_>>().join(" "), phrase.to_lowercase(), "as a query is split");
            assert!(!words.is_empty() && !words.contains("  "), "{phrase}");
        }
        assert_eq!(PHRASES.len(), PHRASES.iter().map(|(phrase, _)| phrase).collect::<HashSet<_>>().len(), "each once");
    }
}
