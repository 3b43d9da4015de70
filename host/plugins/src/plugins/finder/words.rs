//! The words of a text as the index knows them: split, without stop words, and stemmed; and words that mean the same.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::LazyLock,
};

use rust_stemmers::{Algorithm, Stemmer};

/// The maximum length of a word. Longer words are ignored: they are not useful for a search, and the stemmer is slow on them.
const MAX_WORD_BYTES: usize = 64;

/// Stems English words.
pub struct Stems(Stemmer);

impl Stems {
    pub fn new() -> Self {
        Self(Stemmer::create(Algorithm::English))
    }

    /// Returns the stem of a word, or `None` if it is a stop word or too long.
    fn stem(&self, word: &str) -> Option<String> {
        static STOPS: LazyLock<HashSet<&str>> = LazyLock::new(|| STOP_WORDS.split_whitespace().collect());
        if word.len() > MAX_WORD_BYTES {
            return None;
        }
        let word = word.to_lowercase();
        (!STOPS.contains(word.as_str())).then(|| self.0.stem(&word).into_owned())
    }

    /// Returns the stemmed words of a text: `createIssues` and `create_issue` give the same words. A word with humps is also given as one
    /// word, since a query for "github" means `GitHub`.
    pub fn words<'a>(&'a self, text: &'a str) -> impl Iterator<Item = String> + 'a {
        let pieces = text.split(|character: char| !character.is_alphanumeric()).filter(|piece| !piece.is_empty());
        pieces.flat_map(|piece| {
            let whole = (parts(piece).count() > 1).then(|| self.stem(piece)).flatten();
            parts(piece).filter_map(|part| self.stem(part)).chain(whole)
        })
    }
}

/// Splits a word such as `createIssue` into `create` and `Issue`.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
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

/// Returns a text up to the end of its first sentence or line, and the rest. Most descriptions say in the first sentence what the tool
/// does, and in the rest how.
pub fn first_sentence(text: &str) -> (&str, &str) {
    let text = text.trim();
    let mut after_end = false;
    let ends = text.char_indices().find(|(_, character)| {
        let ends = *character == '\n' || (after_end && character.is_whitespace());
        after_end = matches!(character, '.' | '!' | '?' | ':');
        ends
    });
    text.split_at_checked(ends.map_or(text.len(), |(at, _)| at)).unwrap_or((text, ""))
}

/// Returns the stems of words that mean the same as the word with this stem.
pub fn synonyms(stem: &str) -> impl Iterator<Item = &'static str> {
    static ALL: LazyLock<HashMap<String, BTreeSet<String>>> = LazyLock::new(|| {
        let stems = Stems::new();
        let mut all: HashMap<String, BTreeSet<String>> = HashMap::new();
        for group in SYNONYMS {
            let group: BTreeSet<String> = stems.words(group).collect();
            for word in &group {
                all.entry(word.clone()).or_default().extend(group.iter().filter(|other| *other != word).cloned());
            }
        }
        all
    });
    ALL.get(stem).into_iter().flatten().map(String::as_str)
}

/// Words of grammar, which say nothing about what a tool does. In short descriptions they are rare, so they would otherwise count much.
const STOP_WORDS: &str = "
    a an the and or but nor so as at by for from in into of off on onto out over per than then to too under up upon via with without
    within about since until while because during through before after if whether
    i me my mine we us our you your he him his she her it its they them their this that these those there here what which how why whose
    each every some any one two three once other another same own such most more much many
    am is are was were be been being do does did done doing has have had having can could may might must shall should will would
    s t re ve ll d m don doesn didn isn aren wasn won please want wants wanted need needs needed like let lets give gives use used using
    tool tools just again also already only very really still yet ever
";

/// Groups of words for the same thing. A word may be in several groups.
const SYNONYMS: &[&str] = &[
    // Verbs.
    "create add make new insert append generate",
    "delete remove erase drop clear",
    "list show enumerate browse view display",
    "get read fetch retrieve load view show",
    "search find look query lookup locate",
    "update edit change modify set",
    "rename move",
    "copy duplicate clone",
    "send post submit publish",
    "reply answer respond comment",
    "run execute start launch invoke",
    "stop cancel abort kill end",
    "open visit navigate go",
    "save store write record",
    "export download",
    "import upload attach",
    "merge combine join",
    "compare diff difference changes",
    "convert transform",
    "format style bold italic font color colour",
    "count number total",
    "calculate compute formula",
    "check verify validate inspect",
    "wait sleep delay",
    "click press",
    "type enter fill input",
    "close complete finish resolve done",
    "commit save record",
    "revert undo reset unstage",
    "switch checkout",
    "summarize summary overview",
    "think thought reason reasoning",
    "explain analyze analyse plan performance",
    // Nouns.
    "issue bug ticket problem",
    "error exception failure crash",
    "task todo reminder card",
    "pull pr merge request",
    "repository repo project",
    "folder directory",
    "file document doc",
    "page note article",
    "message chat dm",
    "user person member people",
    "contact customer client",
    "company organization firm business",
    "email mail",
    "time date clock now current",
    "weather forecast temperature rain",
    "map location place address coordinates geocode",
    "direction directions route drive",
    "image picture photo screenshot",
    "chart graph plot diagram",
    "sheet worksheet spreadsheet excel workbook",
    "link url hyperlink",
    "website site webpage page url web",
    "database db sql",
    "schema structure column table",
    "log history",
    "network request http",
    "knowledge memory fact observation",
    "status state check ci",
    "label tag category",
    "emoji reaction react",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_same_however_they_are_written() {
        let stems = Stems::new();
        let of = |text| stems.words(text).collect::<Vec<_>>();
        assert_eq!(of("create_Issues"), of("CREATE issue"));
        assert_eq!(of("createIssues"), ["creat", "issu", "createissu"]);
        assert_eq!(of("list_open-files"), of("listing the opened file"));
        assert_eq!(of("XMLFile getURL Über…"), ["xmlfile", "get", "url", "geturl", "über"]);
        assert_eq!(of("the of to"), [""; 0]);
    }

    #[test]
    fn the_first_sentence_ends_at_its_end_or_at_the_end_of_the_line() {
        for (text, first) in [
            ("Reads a file. Only text.", "Reads a file."),
            ("Reads v1.2 files", "Reads v1.2 files"),
            ("  Reads files:\n- one", "Reads files:"),
            ("Reads\nfiles.", "Reads"),
            ("", ""),
        ] {
            assert_eq!(first_sentence(text).0, first, "{text:?}");
        }
    }
}
