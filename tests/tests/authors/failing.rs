//! Failing cases and invalid files: each error says what is wrong.

use crate::{Played, play, project};

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_case_says_why() {
    let cases = r#"[[case]]
name = "another text"
tool = "own_words"
args = { n = 2 }
text = "3 of them"
[[case]]
name = "another part"
tool = "sum"
args = { n = 3 }
structured = { sum = 7 }
[[case]]
name = "no match"
tool = "own_words"
args = { n = 2 }
text_matches = "^of"
[[case]]
name = "an error"
tool = "fail"
[[case]]
name = "another error"
tool = "fail"
error = "it is Monday"
[[case]]
name = "no error"
tool = "sum"
args = { n = 3 }
error = "it is Monday"
[[case]]
name = "nothing said"
tool = "sum"
args = { n = 3 }
logs = ["step"]
[[case]]
name = "unanswered"
tool = "purge"
text = "kept"
[[case]]
name = "another answer"
tool = "write_poem"
given = { answers = { poem = "declined" } }
"#;
    let folder = project("showcase", "grants = { ask = ['elicitation', 'sampling'] }", cases);
    play(&folder, &["--accept", "--filter", "lists"], &[]).await.shows(&["1 passed, 0 failed"]);
    let played = play(&folder, &["--junit", "out/junit.xml"], &[]).await;
    assert_eq!(played.code, Some(1), "{}", played.complained);
    played.shows(&[
        "ok    lists  ",
        "FAIL  another text  ",
        "(p/tests/a.toml:1)\n        the text differs:\n        - 3 of them\n        + 2 of them\n",
        "structured.sum is 6, not 7",
        "the text does not match `^of`: 2 of them",
        "unexpected error: it is Sunday",
        "the error does not contain `it is Monday`: it is Sunday",
        "expected an error that contains `it is Monday`, got a result",
        "no log record contains `step`; got: nothing",
        "the plugin asks `sure`: \"[showcase] Delete 14 notes?\", with the form {",
        "; `given.answers` has no `sure`",
        "the plugin asks the model `poem`: [",
        "`declined` does not fit; possible answers: sampled",
        "1 passed, 9 failed",
    ]);
    let written = std::fs::read_to_string(folder.join("out/junit.xml")).unwrap();
    let count = |text: &str| written.matches(text).count();
    assert_eq!((count("<testcase name="), count(" time="), count("<failure message=")), (10, 13, 9), "{written}");
    for part in [
        "<testcase name=\"lists\" classname=\"lists\" time=\"",
        "<failure message=\"the text differs:\">the text differs:\n- 3 of them\n+ 2 of them</failure>\n",
        "&quot;[showcase] Delete 14 notes?&quot;",
    ] {
        assert!(written.contains(part), "{part}\n{written}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_behind_and_sent_is_told() {
    let cases = r#"
        [[case]]
        name = "left behind"
        tool = "write"
        args = { path = "/w/a.txt", text = "b" }
        given = { dirs = { "/w" = { "old.txt" = "" } } }
        after = { files = { "/w/a.txt" = "c", "/w/z.txt" = "" }, absent = ["/w/old.txt"] }
    "#;
    let folder = project("reach", "grants = { roots = 'read-write' }", cases);
    play(&folder, &["--filter", "left"], &[]).await.shows(&[
        "after: /w/a.txt differs:\n        - c\n        + b",
        "after: /w/z.txt does not exist",
        "after: /w/old.txt exists",
    ]);
    let cases = r#"
        [[case]]
        name = "unlisted"
        tool = "send"
        args = { url = "https://api.example.com/b?c" }
        given = { http = [{ url = "https://api.example.com/b" }] }
        [[case]]
        name = "refused"
        tool = "send"
        args = { url = "https://other.example.com/" }
        text = "hello"
    "#;
    let folder = project("outgoing", "grants = { http = ['https://api.example.com'] }", cases);
    play(&folder, &["--filter", "e"], &[]).await.shows(&[
        "GET https://api.example.com/b?c is not in `given.http`",
        "wharf denied the plugin something: ",
        "https://other.example.com",
        "0 passed, 2 failed",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_plugin_printed_is_shown_when_it_fails() {
    let cases = r#"
        [[case]]
        name = "panics"
        tool = "panic"
        args = { message = "out of \u001b[31mtea" }
    "#;
    let played = play(&project("hostile", "", cases), &["--filter", "panics"], &[]).await;
    played.shows(&["did not finish", "the plugin printed:", "out of \\u{1b}[31mtea"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_end_the_run_at_once() {
    let good = "[[case]]\nname = 'a'\ntool = 'sum'\nargs = { n = 1 }\n";
    let wrong = async |cases: &str, more: &[&str], expected: &str| {
        let Played { code, complained, shown } = play(&project("showcase", "", cases), more, &[]).await;
        assert!(complained.contains(expected), "{cases}\n{complained}");
        assert_eq!((code, shown.contains("passed")), (Some(2), false), "{cases}");
    };
    wrong("[[case]]\nname = 'a'\ntoll = 'x'", &[], "p/tests/a.toml:3: unknown key `toll`; did you mean `tool`?").await;
    wrong(&good.repeat(2), &[], "p/tests/a.toml:5: the case `a` has the same name as the one at p/tests/a.toml:1")
        .await;
    wrong(good, &["--filter", "zebra"], "no case has `zebra` in its name").await;
    wrong(good, &["--file", "no.toml"], "no.toml").await;
    wrong(good, &["--plugin", "no.wasm"], "no.wasm: there is no such file").await;
    wrong(&format!("{good}given = {{ dirs = {{ '/w' = 'no' }} }}"), &["--filter", "a"], "given.dirs").await;
    wrong(&format!("{good}given = {{ http = [{{ url = 'ftp://a' }}] }}"), &["--filter", "a"], "ftp://a").await;
    wrong(good, &["--review"], "there is no terminal").await;
    let folder = project("showcase", "grants = { roots = 'all' }", good);
    let Played { code, complained, .. } = play(&folder, &[], &[]).await;
    assert!(complained.contains("neither \"read\" nor \"read-write\""), "{complained}");
    assert_eq!(code, Some(2));
}

/// Only who serves it has the key that a server needs to say what it offers.
#[tokio::test(flavor = "multi_thread")]
async fn a_build_of_what_needs_a_variable_to_list_is_kept() {
    for (wants, code) in [("env = ['SERVICE_KEY']\n", 0), ("ask = ['elicitation']\n", 1)] {
        let folder = project("badlist", "config = { mode = 'failure' }", "");
        folder.write("wants.toml", wants);
        let artifact = folder.join("p/dist/badlist.wasm");
        let embedded =
            folder.run(&["build", "--embed", artifact.to_str().unwrap(), "--wants", "wants.toml"], &[]).await;
        assert!(embedded.status.success(), "{}", e2e::folder::stderr(&embedded));
        let built = folder.run(&["build", "p"], &[]).await;
        let said = format!("{}{}", e2e::folder::stdout(&built), e2e::folder::stderr(&built));
        assert_eq!(built.status.code(), Some(code), "{said}");
        let note = "it does not say that without its variables (SERVICE_KEY)";
        assert_eq!(said.contains(note), code == 0, "{said}");
        assert!(artifact.is_file());
    }
}
