//! Snapshots: written next to the old ones, accepted by a person, and never written in CI.

use e2e::Terminal;

use crate::{play, project};

const CASES: &str = "[[case]]\nname = 'Every kind'\ntool = 'every_kind'\nsnapshot = true\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_kept_aside_until_it_is_taken() {
    let folder = project("showcase", "", CASES);
    let (taken, waiting) =
        (folder.join("p/tests/snapshots/every-kind.json"), folder.join("p/tests/snapshots/every-kind.json.new"));
    let there = || (taken.exists(), waiting.exists());
    for ci in ["true", "1"] {
        let played = play(&folder, &[], &[("CI", ci)]).await;
        played.shows(&["there is no snapshot p/tests/snapshots/every-kind.json yet", "0 passed, 2 failed"]);
        assert_eq!(played.code, Some(1));
        assert!(!folder.join("p/tests/snapshots").exists(), "nothing is written");
    }
    let played = play(&folder, &[], &[]).await;
    played.shows(&["FAIL  lists", "FAIL  Every kind", "accept them with --accept", "0 passed, 2 failed"]);
    assert_eq!(there(), (false, true));
    let played = play(&folder, &["--accept"], &[]).await;
    played.shows(&["ok    Every kind", "its snapshot was written", "2 passed, 0 failed"]);
    assert_eq!((played.code, there()), (Some(0), (true, false)));
    let lists = std::fs::read_to_string(folder.join("p/tests/snapshots/lists.json")).unwrap();
    for part in
        ["\"every_kind\"", "\"inputSchema\"", "\"show:///items/{id}\"", "\"resourceTemplates\"", "\"conversation\""]
    {
        assert!(lists.contains(part), "{lists}");
    }
    assert!(!lists.contains("_meta"), "wharf's own members are not part of it: {lists}");
    play(&folder, &[], &[("CI", "true")]).await.shows(&["2 passed, 0 failed"]);
    let before = std::fs::read_to_string(&taken).unwrap();
    std::fs::write(&taken, before.replace("\"text\": \"raw\"", "\"text\": \"cooked\"")).unwrap();
    let played = play(&folder, &[], &[]).await;
    played.shows(&[
        "the answer differs from the snapshot ",
        "snapshots/every-kind.json:",
        "-       \"text\": \"cooked\",",
        "+       \"text\": \"raw\",",
        "1 passed, 1 failed",
    ]);
    assert_eq!(there(), (true, true));
    std::fs::write(&taken, before).unwrap();
    play(&folder, &[], &[]).await.shows(&["2 passed, 0 failed"]);
    assert_eq!(there(), (true, false), "what is as it was is not new");
    for more in ["--accept", "--review"] {
        let played = play(&folder, &[more], &[("CI", "true")]).await;
        assert!(
            played.complained.contains("which is refused while the environment variable CI is set"),
            "{}",
            played.complained
        );
        assert_eq!(played.code, Some(2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_looks_at_each_snapshot() {
    let folder = project("showcase", "", CASES);
    let mut terminal = Terminal::start(&folder, &["test", "p", "--review"]);
    let shown = terminal.until("Accept the snapshot of `lists`? [y/N] ").await;
    assert!(shown.contains("\"name\": \"every_kind\"") && shown.contains("\"conversation\""), "all of it: {shown}");
    terminal.types("y");
    terminal.until("Accept the snapshot of `Every kind`? [y/N] ").await;
    terminal.types("n");
    let (code, shown, printed) = terminal.end().await;
    assert_eq!(code, Some(1), "{shown}\n{printed}");
    assert!(printed.contains("ok    lists") && printed.contains("FAIL  Every kind"), "{printed}");
    assert!(printed.ends_with("1 passed, 1 failed\n"), "{printed}");
    let there = |name: &str| folder.join(&format!("p/tests/snapshots/{name}")).exists();
    assert_eq!([there("lists.json"), there("every-kind.json"), there("every-kind.json.new")], [true, false, true]);
}
