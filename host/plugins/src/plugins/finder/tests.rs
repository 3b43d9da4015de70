//! Tests of the search: the rules one by one, and how often queries find the right tool among those of two dozen servers.

use std::{collections::BTreeMap, time::Duration};

use serde::Deserialize;

use super::*;

pub fn described(name: &str, description: &str) -> Tool {
    tool(name, "", description, json!({ "type": "object", "properties": {} }), false)
}

fn found(tools: &[Tool], query: &str) -> Vec<String> {
    let finder = Finder::new(tools.iter().map(|tool| ("some", tool)));
    finder.find(query, |_| true).into_iter().map(Into::into).collect()
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
fn a_tool_that_does_all_that_is_asked_and_no_more_comes_first() {
    let tools = [
        described("read_many_files", "Reads many files at once, in one call, and returns them one after the other"),
        described("read_file", "Reads a file"),
        described("read_file_of_archive", "Reads a file out of a compressed archive"),
    ];
    assert_eq!(found(&tools, "I want to read a file")[0], "read_file");
    assert_eq!(found(&tools, "read a file out of an archive")[0], "read_file_of_archive");
}

#[test]
fn deprecated_tools_come_last() {
    let tools = [
        described("read_file", "Reads a file. DEPRECATED: Use read_text_file instead."),
        described("read_text_file", "Reads the complete contents of something, with its lines, as text"),
        described("zoo", "Feeds a file to a lion"),
    ];
    assert_eq!(found(&tools, "read a file"), ["read_text_file", "zoo", "read_file"]);
}

#[test]
fn a_tool_is_deprecated_if_something_says_so_of_itself() {
    for (description, expected) in [
        ("Deprecated: use read_text_file", true),
        ("DEPRECATED. Reads a file", true),
        ("Read a file as text. DEPRECATED: Use read_text_file instead.", true),
        ("[Deprecated] Reads a file", true),
        ("Reads a file (deprecated since 2.0)", true),
        ("**Deprecated** Reads a file", true),
        ("Deprecated packages are listed with their versions", false),
        ("Finds unused, deprecated or insecure packages", false),
        ("Reads a file", false),
        ("", false),
    ] {
        assert_eq!(is_deprecated(&described("x_read_file", description)), expected, "{description}");
    }
    let tool = || described("read_file", "Reads a file");
    assert!(is_deprecated(&Tool { title: Some("Read File (Deprecated)".into()), ..tool() }));
    assert!(!is_deprecated(&Tool { title: Some("List Deprecated Functions".into()), ..tool() }));
    for (members, expected) in [
        (json!({ "deprecated": true }), true),
        (json!({ "com.example/deprecated": "use another one" }), true),
        (json!({ "deprecated": false }), false),
        (json!({ "readOnlyHint": true }), false),
    ] {
        let hinted = Tool { annotations: members.as_object().cloned(), ..tool() };
        assert_eq!(is_deprecated(&hinted), expected, "{members}");
        let more = json!({ "_meta": members }).as_object().cloned().unwrap_or_default();
        let more = Tool { more: Shown::members(more).unwrap(), ..tool() };
        assert_eq!(is_deprecated(&more), expected, "{members}");
    }
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
    for query in ["hello", "hellopublic", "hellosecret", "helloworld", "helloWorld", "hidden", "says", "else hello"] {
        let alone = Finder::new([("some", &tools[0]), ("some", &tools[2])].into_iter());
        let sees = |name: &str| name != "hellosecret";
        assert_eq!(finder.find(query, sees), alone.find(query, |_| true), "{query}");
    }
    assert_eq!(of_all("hidden"), 1);
}

/// The stemmer takes quadratic time for some words, so long ones are ignored.
#[test]
fn no_text_takes_long() {
    let search = |length: usize| {
        for unit in ["ay", "a ", "ay ", "é", "aB"] {
            let text = unit.repeat(length);
            assert_eq!(found(&[described("one", &text)], "zebra"), [""; 0]);
            found(&[described("one", "a tool")], &text);
        }
    };
    assert_linear("long texts", search, 50_000);
}

/// Four times as much work has to take less than eight times as long on a core, so that it cannot be quadratic.
fn assert_linear(what: &str, work: impl Fn(usize), size: usize) {
    let on_a_core = |size| {
        let now = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let before = now();
        work(size);
        Duration::try_from(now() - before).unwrap()
    };
    // The first run also fills caches.
    on_a_core(size);
    let (little, much) = (on_a_core(size), on_a_core(4 * size));
    assert!(much < 8 * little, "{what}: {little:?}, and four times as much: {much:?}");
}

/// A search counts each posting of a visible tool, and words that share a beginning match up to a limit for the whole query.
#[test]
fn nested_beginnings_match_up_to_a_limit() {
    let text = |at: usize| (0..400).map(|word| format!("{}{at}x{word}", "a".repeat(20))).collect::<Vec<_>>().join(" ");
    let tools = [described("one", &text(1)), described("two", &text(2))];
    let finder = Finder::new(tools.iter().map(|tool| ("some", tool)));
    let query: Vec<String> = (MIN_PREFIX_BYTES..20).map(|length| "a".repeat(length)).collect();
    let sight = finder.sight(|_| true);
    assert!(query.len() > 10);
    let mut left = MAX_PREFIX_MATCHES;
    let matched = query.iter().map(|word| finder.alternatives(word, &sight, &mut left).len());
    assert_eq!(matched.sum::<usize>(), MAX_PREFIX_MATCHES);
}

/// What a person says, what a model asks for it, and the tools that do it. `cargo xtask check search` looks for the same.
#[derive(Deserialize)]
struct Query {
    text: String,
    asked: String,
    right: Vec<String>,
}

#[derive(Deserialize)]
struct Offered {
    name: String,
    title: Option<String>,
    description: String,
    #[serde(rename = "inputSchema")]
    input_schema: Value,
    annotations: Option<Value>,
}

fn data(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The tools of the built-in plugins and of other servers, under the names that clients see.
fn offered() -> Vec<(String, Tool)> {
    let lists: BTreeMap<String, Vec<Offered>> = serde_json::from_str(&data("data/tools.json")).unwrap();
    let named =
        |id: &str, name: String| if name.starts_with(&format!("{id}_")) { name } else { format!("{id}_{name}") };
    let one = |(id, list): (String, Vec<Offered>)| {
        list.into_iter().map(move |one| {
            let title = one.title.unwrap_or_default();
            let made = tool(&named(&id, one.name), &title, &one.description, one.input_schema, false);
            (id.clone(), Tool { annotations: one.annotations.and_then(|hints| hints.as_object().cloned()), ..made })
        })
    };
    lists.into_iter().flat_map(one).collect()
}

#[test]
fn queries_find_the_right_tool_among_the_first_three() {
    let mut queries: BTreeMap<String, Vec<Query>> = toml::from_str(&data("search/queries.toml")).unwrap();
    let tools = offered();
    let finder = Finder::new(tools.iter().map(|(id, tool)| (id.as_str(), tool)));
    let mut queries = queries.remove("query").unwrap();
    // Not all servers of the other check are in the data.
    queries.retain(|query| query.right.iter().any(|name| tools.iter().any(|(_, tool)| tool.name == *name)));
    assert!(queries.len() >= 50, "{} queries", queries.len());
    for (of, least) in [((|query| &query.asked) as fn(&Query) -> &String, 95), (|query| &query.text, 65)] {
        let is_missed = |query: &&Query| {
            let found = finder.find(of(query), |_| true);
            !found.iter().take(3).any(|name| query.right.iter().any(|right| right == name))
        };
        let missed: Vec<&String> = queries.iter().filter(is_missed).map(of).collect();
        assert!(
            missed.len() * 100 <= queries.len() * (100 - least),
            "{} of {}: {missed:#?}",
            missed.len(),
            queries.len()
        );
    }
}
