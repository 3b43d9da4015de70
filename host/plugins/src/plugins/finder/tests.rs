//! Tests of the search: the rules one by one, and how often whole sentences find the right tool among those of two dozen servers.

use std::{collections::BTreeMap, time::Duration};

use serde::Deserialize;

use super::*;

pub fn described(name: &str, description: &str) -> Tool {
    tool(name, "", description, json!({ "type": "object", "properties": {} }), false)
}

fn hinted(name: &str, description: &str, hints: Value) -> Tool {
    Tool { annotations: hints.as_object().cloned(), ..described(name, description) }
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
fn a_question_does_not_mean_a_tool_that_changes_what_it_asks_for() {
    let tools = [
        described("update_branch", "Updates the branch"),
        described("delete_branch", "Deletes the branch"),
        described("get_branch", "Gets the branch"),
    ];
    assert_eq!(found(&tools, "which branch is it")[0], "get_branch");
    assert_eq!(found(&tools, "remove the branch")[0], "delete_branch");
    assert_eq!(found(&tools, "how do I delete a branch")[0], "delete_branch");
    // Annotations count more than the verb.
    let hinted = [
        hinted("x_branch", "The branch", json!({ "readOnlyHint": false })),
        hinted("y_branch", "The branch", json!({ "readOnlyHint": true })),
    ];
    assert_eq!(found(&hinted, "which branch is it")[0], "y_branch");
}

#[test]
fn deprecated_tools_come_last_and_lend_their_names_to_what_replaces_them() {
    let tools = [
        described("read_file", "Reads a file. DEPRECATED: Use read_text_file instead."),
        described("read_media_file", "Reads a media file"),
        described("read_text_file", "Reads the complete contents of something, with its lines, as text"),
        described("zoo", "Feeds a file to a lion"),
    ];
    assert_eq!(found(&tools, "read a file"), ["read_text_file", "read_media_file", "zoo", "read_file"]);
    // A deprecated tool that the caller does not see lends nothing.
    let finder = Finder::new(tools.iter().map(|tool| ("some", tool)));
    let alone = Finder::new(tools.iter().skip(1).map(|tool| ("some", tool)));
    for query in ["read a file", "file", "read_file"] {
        assert_eq!(finder.find(query, |name| name != "read_file"), alone.find(query, |_| true), "{query}");
    }
    // A tool of another plugin is never what replaces it.
    let other = [described("read_file", "Deprecated: use greet"), described("greet", "Says hello")];
    let finder = Finder::new([("one", &other[0]), ("two", &other[1])].into_iter());
    assert_eq!(finder.find("read file", |_| true), ["read_file"]);
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
    // Many deprecated tools with long descriptions among many others, whose names they contain. Each description is read once.
    let deprecated = |count: usize| {
        let names: Vec<String> = (0..2000).map(|at| format!("q{at}")).collect();
        let text = format!("Deprecated. {}", names.join(" "));
        let old = (0..count).map(|at| described(&format!("old{at}"), &text));
        let tools: Vec<Tool> = names.iter().map(|name| described(name, "")).chain(old).collect();
        assert_eq!(found(&tools, "zebra"), [""; 0]);
    };
    assert_linear("deprecated tools", deprecated, 10);
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

#[test]
fn a_deprecated_tool_lends_its_name_to_the_first_few_visible_tools_that_it_names() {
    let names: Vec<String> = (0..12).map(|at| format!("some_new{at}")).collect();
    let last_first: Vec<&str> = names.iter().rev().map(String::as_str).collect();
    let text = format!("Deprecated: use {}, new11 or new11", last_first.join(", "));
    let mut tools = vec![described("some_read_file", &text)];
    tools.extend(names.iter().map(|name| described(name, "A file")));
    let finder = Finder::new(tools.iter().map(|tool| ("some", tool)));
    assert_eq!(finder.tools[0].successors, (1..=12).rev().collect::<Vec<_>>(), "each once");
    let order = |numbers: &[usize]| -> Vec<String> { numbers.iter().map(|at| format!("some_new{at}")).collect() };
    let of_new = |hidden: &str| -> Vec<String> {
        let found = finder.find("read file", |name| name != hidden);
        found.into_iter().filter(|name| name.contains("new")).map(Into::into).collect()
    };
    assert_eq!(of_new(""), order(&[4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3]));
    assert_eq!(of_new("some_new11"), order(&[3, 4, 5, 6, 7, 8, 9, 10, 0, 1, 2]), "a hidden tool is not counted");
    assert_eq!(of_new("some_read_file"), order(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]));
    // By its own name, too.
    let short = [described("some_old", "Deprecated: use new or some-newer"), described("some_new", "")];
    let finder = Finder::new(short.iter().map(|tool| ("some", tool)));
    assert_eq!(finder.tools[0].successors, [1]);
}

/// The words of a description are taken once, however many other tools the plugin has.
#[test]
fn the_cost_of_deprecated_tools_is_linear() {
    let words = 400;
    let work = |old: usize, new: usize| {
        let names: Vec<String> = (0..new).map(|at| format!("new{at}")).collect();
        let text = format!("Deprecated. {}", vec!["new1"; words - 1].join(" "));
        let mut tools: Vec<Tool> = names.iter().map(|name| described(name, "")).collect();
        tools.extend((0..old).map(|at| described(&format!("old{at}"), &text)));
        let before = deprecated::tests::MENTIONED.get();
        let finder = Finder::new(tools.iter().map(|tool| ("some", tool)));
        let successors: usize = finder.tools.iter().map(|tool| tool.successors.len()).sum();
        assert_eq!(successors, old, "each once");
        assert!(finder.tools.iter().all(|tool| tool.head.len() <= MAX_TOOL_WORDS));
        deprecated::tests::MENTIONED.get() - before
    };
    assert_eq!(work(1, 10), words);
    assert_eq!(work(1, 1000), words, "other tools cost nothing");
    assert_eq!(work(100, 1000), 100 * words);
}

/// A search counts each posting of a visible tool, and words that share a beginning match up to a limit for the whole query.
#[test]
fn nested_beginnings_match_up_to_a_limit() {
    let text = |at: usize| (0..400).map(|word| format!("{}{at}x{word}", "a".repeat(20))).collect::<Vec<_>>().join(" ");
    let tools = [described("one", &text(1)), described("two", &text(2))];
    let finder = Finder::new(tools.iter().map(|tool| ("some", tool)));
    let query: Vec<String> = (MIN_PREFIX_BYTES..20).map(|length| "a".repeat(length)).collect();
    let sight = finder.sight(|_| true);
    let query = Query::read(&query.join(" "), &finder.stems, |_| false);
    assert!(query.concepts.len() > 10);
    let mut left = MAX_PREFIX_MATCHES;
    let matched = query.concepts.iter().map(|concept| finder.alternatives(concept, &sight, &mut left).len());
    assert_eq!(matched.sum::<usize>(), MAX_PREFIX_MATCHES);
}

/// A sentence, and the tools that do what it asks for.
type Sentence = (String, Vec<String>);

#[derive(Deserialize)]
struct Sentences {
    /// Written before the ranking was changed to suit them.
    tuned: Vec<Sentence>,
    /// Written afterwards.
    held_out: Vec<Sentence>,
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

fn data<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The tools of the built-in plugins, and of other servers if `all`, under the names that clients see.
fn offered(all: bool) -> Vec<(String, Tool)> {
    let own = ["files", "git", "memory", "time", "fetch", "sequentialthinking", "sqlite", "echo"];
    let lists: BTreeMap<String, Vec<Offered>> = data("tools.json");
    let lists = lists.into_iter().filter(|(id, _)| all || own.contains(&id.as_str()));
    let named = |id: &str, name: String| if name.starts_with(id) && name != id { name } else { format!("{id}_{name}") };
    let one = |(id, list): (String, Vec<Offered>)| {
        list.into_iter().map(move |one| {
            let title = one.title.unwrap_or_default();
            let made = tool(&named(&id, one.name), &title, &one.description, one.input_schema, false);
            (id.clone(), Tool { annotations: one.annotations.and_then(|hints| hints.as_object().cloned()), ..made })
        })
    };
    lists.flat_map(one).collect()
}

/// How many sentences there are for these tools, and those that do not find a right tool among the first three.
fn missed(tools: &[(String, Tool)], sentences: &[Sentence]) -> (usize, Vec<String>) {
    let finder = Finder::new(tools.iter().map(|(id, tool)| (id.as_str(), tool)));
    let offers = |name: &String| tools.iter().any(|(_, tool)| tool.name == *name);
    let asked: Vec<&Sentence> = sentences.iter().filter(|(_, right)| right.iter().any(offers)).collect();
    let judge = |(sentence, right): &&Sentence| {
        let found = finder.find(sentence, |_| true);
        let first = found.get(..3).unwrap_or(&found);
        let is_right = first.iter().any(|name| right.iter().any(|one| one == name));
        (!is_right).then(|| format!("{sentence:?}: {}; not {}", first.join(" "), right.join(" or ")))
    };
    (asked.len(), asked.iter().filter_map(judge).collect())
}

/// A client passes on what a person says: whole sentences, not only key words.
#[test]
fn whole_sentences_find_the_right_tool_among_the_first_three() {
    let Sentences { tuned, held_out } = data("sentences.json");
    let everything = offered(true);
    for (_, right) in tuned.iter().chain(&held_out) {
        for name in right {
            assert!(everything.iter().any(|(_, tool)| tool.name == *name), "there is no tool {name}");
        }
    }
    for tools in [everything, offered(false)] {
        for sentences in [&tuned, &held_out] {
            let (asked, missed) = missed(&tools, sentences);
            let are_few = missed.len() * 100 <= asked * 15;
            assert!(asked >= 30 && are_few, "{} of {asked} among {} tools: {missed:#?}", missed.len(), tools.len());
        }
    }
}

#[test]
fn reading_a_file_finds_the_tool_that_reads_a_text_file() {
    for all in [true, false] {
        let tools = offered(all);
        let finder = Finder::new(tools.iter().map(|(id, tool)| (id.as_str(), tool)));
        let found = finder.find("read a file", |_| true);
        assert_eq!(found.first(), Some(&"files_read_text_file"), "{:?}", &found[..4]);
        assert_eq!(found.iter().rev().find(|name| name.starts_with("files_")), Some(&"files_read_file"));
    }
}
