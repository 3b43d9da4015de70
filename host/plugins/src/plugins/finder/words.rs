//! The words of a text as the index knows them: split, without stop words, and stemmed.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use rust_stemmers::{Algorithm, Stemmer};

use super::phrases::IRREGULAR;

/// The maximum length of a word. Longer words are ignored: they are not useful for a search, and the stemmer is slow on them.
pub const MAX_WORD_BYTES: usize = 64;

/// Stems English words, irregular forms too.
pub struct Stems(Stemmer);

impl Stems {
    pub fn new() -> Self {
        Self(Stemmer::create(Algorithm::English))
    }

    /// Returns the stem of a word, or `None` if the word is too long.
    pub fn stem(&self, word: &str) -> Option<String> {
        static REGULAR: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| IRREGULAR.iter().copied().collect());
        if word.len() > MAX_WORD_BYTES {
            return None;
        }
        let word = word.to_lowercase();
        Some(self.0.stem(REGULAR.get(word.as_str()).copied().unwrap_or(&word)).into_owned())
    }

    /// Returns the stem of a word, or `None` if it is a stop word or too long.
    pub fn searched(&self, word: &str) -> Option<String> {
        static STOPS: LazyLock<HashSet<&str>> = LazyLock::new(|| STOP_WORDS.iter().copied().collect());
        let is_stop_word = word.len() <= MAX_WORD_BYTES && STOPS.contains(word.to_lowercase().as_str());
        if is_stop_word { None } else { self.stem(word) }
    }

    /// Returns the stemmed words of a text: `createIssues` and `create_issue` give the same words. A word with humps is also given as one
    /// word, since a query for "github" means `GitHub`.
    pub fn words<'a>(&'a self, text: &'a str) -> impl Iterator<Item = String> + 'a {
        pieces(text).flat_map(|piece| {
            let whole = (parts(piece).count() > 1).then(|| self.stem(piece)).flatten();
            parts(piece).filter_map(|part| self.searched(part)).chain(whole)
        })
    }
}

/// Splits a text at everything that is not a letter or digit.
pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric()).filter(|piece| !piece.is_empty())
}

/// Splits a word such as `createIssue` into `create` and `Issue`.
pub fn parts(word: &str) -> impl Iterator<Item = &str> {
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

/// Stop words: words of grammar, which say nothing about what a tool does. In short descriptions they are rare, so they would otherwise
/// count much.
const STOP_WORDS: &[&str] = &[
    // Articles, conjunctions, prepositions.
    "a", "an", "the", "and", "or", "but", "nor", "so", "as", "at", "by", "for", "from", "in", "into", "of", "off", "on",
    "onto", "out", "over", "per", "than", "then", "to", "too", "under", "up", "upon", "via", "with", "without",
    "within", "about", "since", "until", "while", "because", "during", "through", "before", "after", "if", "whether",
    // Pronouns and other words in their place.
    "i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "you", "your", "yours", "he", "him", "his", "she",
    "her", "hers", "it", "its", "they", "them", "their", "theirs", "this", "that", "these", "those", "there", "here",
    "what", "which", "how", "why", "whose", "each", "every", "some", "any", "one", "two", "three", "once", "other",
    "another", "same", "own", "such", "most", "more", "much", "many",
    // Auxiliary verbs, what an apostrophe leaves of them, and how a wish is put.
    "am", "is", "are", "was", "were", "be", "been", "being", "do", "does", "did", "done", "doing", "has", "have", "had",
    "having", "can", "could", "may", "might", "must", "shall", "should", "will", "would", "s", "t", "re", "ve", "ll",
    "d", "m", "don", "doesn", "didn", "isn", "aren", "wasn", "won", "please", "want", "wants", "wanted", "need",
    "needs", "needed", "like", "let", "lets", "give", "gives", "use", "used", "using", "tool", "tools", "just",
    "again", "also", "already", "only", "very", "really", "still", "yet", "ever",
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
        assert_eq!(of("what I wrote"), of("write"));
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
