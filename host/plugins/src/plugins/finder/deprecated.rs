//! Whether a tool is deprecated, and what takes its place. The protocol has no member for this, so authors write it in the title or the
//! description.

use serde_json::Value;
use wharf_protocol::model::Tool;

/// The mark, as a word in lower case.
const MARK: &str = "deprecated";
/// What follows the mark at the beginning of a sentence about the tool itself: "Deprecated since 2.0" and "Deprecated alias of x", but not
/// "Deprecated packages are listed".
const AFTER_MARK: &str = "use since in as and please by from for alias tool name form version replaced will instead";
/// What may stand between the subject and the mark, as in "this tool is now deprecated".
const BEFORE_MARK: &str = "is was has been being are now officially marked as";
/// The subjects that mean the tool itself.
const ITSELF: [&str; 3] = ["this", "it", "the"];
/// The maximum length of a tool's name.
const MAX_NAME_BYTES: usize = 128;
/// The maximum number of words of such a subject, as in "this legacy tool".
const MAX_SUBJECT_WORDS: usize = 3;

/// Whether a tool is marked as deprecated: in its title or description, or by a member `deprecated` of its annotations or `_meta`.
pub fn is_deprecated(tool: &Tool) -> bool {
    let meta = tool.more.get("_meta").and_then(Value::as_object);
    let members = tool.annotations.iter().chain(meta).flatten();
    let mut marks =
        members.filter(|(key, _)| key.rsplit(['/', '.']).next().is_some_and(|last| last.eq_ignore_ascii_case(MARK)));
    let is_set = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
    marks.any(|(_, value)| is_set(value))
        || tool.title.as_deref().is_some_and(|title| says_so(title, &tool.name))
        || says_so(&tool.description, &tool.name)
}

/// Whether a text says of the tool with this name that it is deprecated. A tool that finds deprecated packages is not deprecated.
fn says_so(text: &str, name: &str) -> bool {
    clauses(text).any(|clause| {
        let words: Vec<&str> =
            clause.split_whitespace().map(|word| word.trim_matches(|edge: char| !edge.is_alphanumeric())).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let Some(at) = words.iter().position(|word| word.eq_ignore_ascii_case(MARK)) else { return false };
        let (before, after) = (words.get(..at).unwrap_or_default(), words.get(at + 1));
        let shouts = words.get(at).is_some_and(|word| word.chars().all(char::is_uppercase));
        let begins = before.is_empty() && after.is_none_or(|after| is_one_of(AFTER_MARK, after));
        shouts || begins || is_about_itself(before, name)
    })
}

/// Whether these words before the mark say that the tool itself is meant: "this tool is now", or its name with "is".
fn is_about_itself(before: &[&str], name: &str) -> bool {
    let verbs = before.iter().rev().take_while(|word| is_one_of(BEFORE_MARK, word)).count();
    let subject = before.get(..before.len() - verbs).unwrap_or_default();
    let first = subject.first().copied().unwrap_or_default();
    let is_itself = ITSELF.iter().any(|one| one.eq_ignore_ascii_case(first));
    let is_named = subject.len() == 1 && first.len() > 1 && name.ends_with(first);
    verbs > 0 && subject.len() <= MAX_SUBJECT_WORDS && (is_itself || is_named)
}

fn is_one_of(all: &str, word: &str) -> bool {
    all.split(' ').any(|one| one.eq_ignore_ascii_case(word))
}

/// Splits a text into sentences and what brackets or dashes set apart. A full stop inside of a word, such as in "2.0", does not count.
fn clauses(text: &str) -> impl Iterator<Item = &str> {
    text.split([';', ':', '!', '?', '(', ')', '[', ']', '*', '|', '\n', '—', '–'])
        .flat_map(|part| part.split(". "))
        .flat_map(|part| part.split(" - "))
}

/// Returns the words of a deprecated tool's description that may be names of tools: a tool that is named takes its place. Splits the
/// description once, so the caller looks each word up and does not search the text for each name.
pub fn mentioned(description: &str) -> impl Iterator<Item = &str> {
    let is_part = |one: char| one.is_alphanumeric() || one == '_' || one == '-';
    let words = description.split(move |one| !is_part(one));
    let words = words.filter(|word| !word.is_empty() && word.len() <= MAX_NAME_BYTES);
    #[cfg(test)]
    let words = words.inspect(|_| tests::MENTIONED.set(tests::MENTIONED.get() + 1));
    words
}

#[cfg(test)]
pub mod tests {
    use serde_json::json;

    use super::*;
    use crate::plugins::finder::tests::described;

    thread_local! {
        /// The number of words that this thread has taken out of descriptions of deprecated tools.
        pub static MENTIONED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    #[test]
    fn a_tool_is_deprecated_if_something_says_so_of_itself() {
        for (description, expected) in [
            ("Deprecated: use read_text_file", true),
            ("DEPRECATED. Reads a file", true),
            ("Read a file as text. DEPRECATED: Use read_text_file instead.", true),
            ("[Deprecated] Reads a file", true),
            ("Reads a file (deprecated)", true),
            ("Reads a file (deprecated since 2.0)", true),
            ("**Deprecated** Reads a file", true),
            ("Deprecated, use another one", true),
            ("Deprecated alias of write_file.", true),
            ("Reads a file - deprecated, use another one", true),
            ("Reads a file. This tool is now deprecated.", true),
            ("Reads a file. It is deprecated.", true),
            ("read_file is deprecated in favour of read_text_file", true),
            ("Deprecated packages are listed with their versions", false),
            ("Finds unused, deprecated or insecure packages", false),
            ("Tells whether an API is deprecated", false),
            ("Lists the deprecated functions of a library", false),
            ("Marks a package as deprecated", false),
            ("Reads a file", false),
            ("", false),
        ] {
            assert_eq!(is_deprecated(&described("x_read_file", description)), expected, "{description}");
        }
    }

    #[test]
    fn a_title_or_a_member_is_a_mark_too() {
        let with = |change: &dyn Fn(&mut Tool)| {
            let mut tool = described("read_file", "Reads a file");
            change(&mut tool);
            is_deprecated(&tool)
        };
        assert!(with(&|tool| tool.title = Some("Read File (Deprecated)".into())));
        assert!(!with(&|tool| tool.title = Some("List Deprecated Functions".into())));
        for (members, expected) in [
            (json!({ "deprecated": true }), true),
            (json!({ "com.example/deprecated": "use another one" }), true),
            (json!({ "deprecated": false }), false),
            (json!({ "readOnlyHint": true }), false),
        ] {
            assert_eq!(with(&|tool| tool.annotations = members.as_object().cloned()), expected, "{members}");
            let more = json!({ "_meta": members });
            let more = more.as_object().cloned().unwrap_or_default();
            assert_eq!(
                with(&|tool| tool.more = wharf_protocol::Shown::members(more.clone()).unwrap()),
                expected,
                "{members}"
            );
        }
    }

    #[test]
    fn what_takes_its_place_is_named_as_a_whole() {
        let of = |text| mentioned(text).collect::<Vec<_>>();
        assert_eq!(
            of("DEPRECATED: Use `read_text_file` (or a-b)."),
            ["DEPRECATED", "Use", "read_text_file", "or", "a-b"]
        );
        assert_eq!(of(&"x".repeat(MAX_NAME_BYTES + 1)), [""; 0]);
    }
}
