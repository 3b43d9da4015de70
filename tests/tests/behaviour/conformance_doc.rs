//! Checks that every test that `tests/conformance/REQUIREMENTS.md` names exists. Whether a test proves its requirement must be judged by a reader.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The version of the official suite whose server scenarios these are.
const SUITE: &str = "\"@modelcontextprotocol/conformance\": \"0.2.0-alpha.12\"";
const SCENARIOS: &str = "
    caching completion-complete dns-rebinding-protection elicitation-sep1034-defaults elicitation-sep1330-enums
    http-custom-header-server-validation http-header-validation input-required-result-basic-elicitation
    input-required-result-basic-list-roots input-required-result-basic-sampling input-required-result-capability-check
    input-required-result-ignore-extra-params input-required-result-missing-input-response
    input-required-result-multi-round input-required-result-multiple-input-requests
    input-required-result-non-tool-request input-required-result-request-state input-required-result-result-type
    input-required-result-tampered-state input-required-result-unsupported-methods input-required-result-validate-input
    json-schema-2020-12 logging-set-level ping prompts-get-embedded-resource prompts-get-simple prompts-get-with-args
    prompts-get-with-image prompts-list resources-list resources-read-binary resources-read-text resources-subscribe
    resources-templates-read resources-unsubscribe sep-2164-resource-not-found server-initialize
    server-session-lifecycle server-sse-multiple-streams server-sse-polling server-stateless
    tasks-capability-negotiation tasks-dispatch-and-envelope tasks-lifecycle tasks-mrtr-composition tasks-mrtr-input
    tasks-request-headers tasks-request-state-removal tasks-required-task-error tasks-wire-fields tools-call-audio
    tools-call-elicitation tools-call-embedded-resource tools-call-error tools-call-image tools-call-mixed-content
    tools-call-sampling tools-call-simple-text tools-call-with-logging tools-call-with-progress tools-list";

/// The locations of unit tests, by the name of the crate.
const CRATES: [(&str, &str); 12] = [
    ("wharf_protocol", "host/protocol/src"),
    ("wharf_sandbox", "host/sandbox/src"),
    ("wharf_base", "host/base/src"),
    ("wharf_schema", "host/schema/src"),
    ("wharf_egress", "host/egress/src"),
    ("wharf_config", "host/config/src"),
    ("wharf_policy", "host/policy/src"),
    ("wharf_plugins", "host/plugins/src"),
    ("wharf_serve", "host/serve/src"),
    ("wharf_cli", "host/cli/src"),
    ("wharf_sdk", "sdk-guest/rust/src"),
    ("wharf_sdk_macros", "sdk-guest/rust/macros/src"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn document() -> String {
    read("tests/conformance/REQUIREMENTS.md")
}

/// The prefix and the number of an id such as `BASE-01`.
fn numbered(id: &str) -> Option<(&str, u32)> {
    let (prefix, number) = id.split_once('-')?;
    let written = prefix.bytes().all(|byte| byte.is_ascii_uppercase()) && !prefix.is_empty() && number.len() == 2;
    Some((prefix, number.parse().ok().filter(|_| written)?))
}

/// The cells of each line of all tables.
fn lines(document: &str) -> Vec<Vec<&str>> {
    let lines = document.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    lines.map(|line| line.split(" | ").map(str::trim).collect()).collect()
}

/// The lines about requirements: the id, and the test or the reason why there is no test.
fn duties(document: &str) -> Vec<(&str, &str)> {
    let duties = lines(document).into_iter().filter(|cells| numbered(cells[0]).is_some());
    duties
        .map(|cells| match cells[..] {
            [id, duty, revisions, proof] if !duty.is_empty() && !revisions.is_empty() && !proof.is_empty() => {
                (id, proof)
            }
            _ => panic!("not an id, a duty, revisions and a proof or reason: {cells:?}"),
        })
        .collect()
}

/// The texts between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn is_proof(name: &str) -> bool {
    let path = name.contains("::") && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte));
    path || name.starts_with("suite:") || name == "clients"
}

/// The functions of a file that are run as tests.
fn tests(source: &str) -> BTreeSet<&str> {
    let (mut tests, mut marked) = (BTreeSet::new(), false);
    for line in source.lines().map(str::trim) {
        let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        if let Some((name, _)) = function.and_then(|rest| rest.split_once('(')) {
            if std::mem::take(&mut marked) {
                tests.insert(name);
            }
        } else if line == "#[test]" || line.starts_with("#[tokio::test") {
            marked = true;
        } else if line.starts_with("#[ignore") || !(line.starts_with("#[") || line.starts_with("//")) {
            marked = false;
        }
    }
    tests
}

/// The files that can contain a test with this path.
fn places(path: &[&str]) -> Vec<String> {
    match path {
        [file] => {
            let folders = [
                "tests/tests/behaviour",
                "tests/tests/login",
                "tests/tests",
                "host/protocol/tests",
                "sdk-guest/rust/tests",
            ];
            folders.map(|at| format!("{at}/{file}.rs")).to_vec()
        }
        [name, modules @ .., "tests"] => {
            let folders = CRATES.iter().filter(|(known, _)| known == name);
            let files = folders.flat_map(|(_, folder)| match modules {
                [] => vec![format!("{folder}/lib.rs")],
                _ => ["", "/mod"].map(|file| format!("{folder}/{}{file}.rs", modules.join("/"))).to_vec(),
            });
            files.collect()
        }
        _ => vec![],
    }
}

fn problem(proof: &str) -> Option<String> {
    if proof == "clients" {
        let program = root().join("tests/conformance/clients/run.mjs");
        return (!program.is_file()).then(|| format!("{} is missing", program.display()));
    }
    if let Some(scenario) = proof.strip_prefix("suite:") {
        let known = SCENARIOS.split_whitespace().any(|known| known == scenario);
        return (!known).then(|| format!("the suite has no scenario {scenario}"));
    }
    let path: Vec<&str> = proof.split("::").collect();
    let (name, path) = path.split_last().unwrap();
    let places = places(path);
    let found = places.iter().any(|place| {
        let source = fs::read_to_string(root().join(place)).unwrap_or_default();
        tests(&source).contains(name)
    });
    (!found)
        .then(|| format!("no test {name} in {}", if places.is_empty() { proof.into() } else { places.join(" or ") }))
}

#[test]
fn what_is_named_exists() {
    let document = document();
    assert!(read("tests/conformance/package.json").contains(SUITE), "another version of the suite: see SCENARIOS");
    let mut problems = Vec::new();
    for cells in lines(&document) {
        let named = quoted(cells.last().unwrap()).chain(quoted(cells[0])).filter(|name| is_proof(name));
        problems.extend(named.filter_map(problem).map(|problem| format!("{}: {problem}", cells[0])));
    }
    for (id, proof) in duties(&document) {
        // A misspelt name must not pass as prose.
        if proof.starts_with('`') && !quoted(proof).next().is_some_and(is_proof) {
            problems.push(format!("{id}: begins with neither a proof nor a reason: {proof}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn each_id_stands_once_in_its_section_and_none_is_left_out() {
    let document = document();
    let mut sections: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    let mut problems = Vec::new();
    // The sections of the document, without the introduction.
    for section in document.split("\n## ").skip(1) {
        let heading = section.lines().next().unwrap();
        let own = heading.strip_suffix(')').and_then(|heading| heading.rsplit('(').next()).unwrap_or_default();
        let mut numbers = BTreeSet::new();
        for (id, _) in duties(section) {
            let (prefix, number) = numbered(id).unwrap();
            if prefix != own {
                problems.push(format!("{id} does not belong under `{heading}`"));
            }
            if !numbers.insert(number) {
                problems.push(format!("{id} stands twice"));
            }
        }
        let last = numbers.last().copied().unwrap_or_default();
        if last == 0 {
            problems.push(format!("`{heading}` has no duties"));
        }
        for line in section.lines().filter_map(|line| line.strip_prefix("Not assigned: ")) {
            for range in line.trim_end_matches('.').split(", ") {
                let (from, to) = range.split_once(" to ").unwrap_or((range, range));
                let (from, to) = (numbered(from).unwrap(), numbered(to).unwrap());
                assert!(from.0 == own && to.0 == own && from.1 <= to.1, "{line}");
                for number in from.1..=to.1 {
                    if !numbers.insert(number) {
                        problems.push(format!("{own}-{number:02} is assigned"));
                    }
                }
            }
        }
        let left_out = (1..=last).filter(|number| !numbers.contains(number));
        problems.extend(left_out.map(|number| format!("{own}-{number:02} is left out")));
        if sections.insert(own, numbers).is_some() {
            problems.push(format!("{own} has two sections"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(sections.len() > 30, "only {} sections were understood", sections.len());
}

/// `docs/compatibility.md` says so.
#[test]
fn all_requirements_are_met() {
    let document = document();
    let unmet: Vec<&str> =
        duties(&document).iter().filter(|(_, proof)| proof.starts_with("not met")).map(|(id, _)| *id).collect();
    assert!(unmet.is_empty(), "{unmet:?}");
}

/// Otherwise, the document could name a helper, or a test that is never run.
#[test]
fn functions_that_are_no_tests_are_told_from_tests() {
    let source = "#[test]\nfn plain() {\n}\n/// Says more.\n#[tokio::test(flavor = \"multi_thread\")]\n/// And more.\n\
                  async fn waiting() {\n    fn inside() {}\n}\nfn helper() {}\n#[test]\n#[ignore]\nfn never() {}\n\
                  // #[test]\nfn commented() {}\n    #[test]\n    fn generated(x in 0..3) {\n";
    assert_eq!(tests(source), BTreeSet::from(["plain", "waiting", "generated"]));
    for (path, files) in [
        (
            &["asking"][..],
            &[
                "tests/tests/behaviour/asking.rs",
                "tests/tests/login/asking.rs",
                "tests/tests/asking.rs",
                "host/protocol/tests/asking.rs",
                "sdk-guest/rust/tests/asking.rs",
            ][..],
        ),
        (&["wharf_schema", "tests"], &["host/schema/src/lib.rs"]),
        (
            &["wharf_plugins", "tasks", "store", "tests"],
            &["host/plugins/src/tasks/store.rs", "host/plugins/src/tasks/store/mod.rs"],
        ),
        (&["nobody", "store", "tests"], &[]),
    ] {
        assert_eq!(places(path), files, "{path:?}");
    }
}
