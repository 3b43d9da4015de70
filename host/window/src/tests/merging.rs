//! What processes tell is merged into one bounded view.

use tokio::sync::mpsc;
use wharf_base::paths::FileId;

use super::*;
use crate::{
    state::{MAX_LINE_BYTES, MAX_PER_CALL, SeenFile, SeenSession},
    viewer::merged::{MAX_PROCESSES, MAX_SHOWN_CALLS, NotAnswered},
};

fn view_of(keys: &[&str]) -> (View, Vec<mpsc::Receiver<SeenAnswer>>) {
    let mut view = View::default();
    let channels = keys.iter().map(|key| {
        let (sender, receiver) = mpsc::channel(2);
        assert!(view.enter(key, sender));
        receiver
    });
    let channels = channels.collect();
    (view, channels)
}

fn names(view: &View) -> Vec<String> {
    view.calls().map(|(process, call)| format!("{} {} {}", process.key, call.id, call.name)).collect()
}

#[test]
fn calls_are_merged_by_their_number_in_the_order_of_their_beginning() {
    let (mut view, _channels) = view_of(&["a", "b"]);
    let running = SeenCall { ended: None, ..call(2, 30) };
    view.take("a", SeenState { calls: vec![call(1, 10), running], ..state(1) });
    view.take("b", SeenState { calls: vec![call(1, 20)], ..state(2) });
    assert_eq!(names(&view), ["a 2 read_2", "b 1 read_1", "a 1 read_1"]);
    assert!(view.calls().next().unwrap().1.ended.is_none());
    // A changed call keeps its place, even if the process says another time.
    view.take("a", SeenState { calls: vec![SeenCall { name: "changed".into(), ..call(2, 5) }], ..state(1) });
    assert_eq!(names(&view), ["a 2 changed", "b 1 read_1", "a 1 read_1"]);
    assert!(view.calls().next().unwrap().1.ended.is_some());
    // A line without calls loses none.
    view.take("b", SeenState { open_sessions: 3, ..state(2) });
    assert_eq!((view.calls().count(), view.process("b").unwrap().state.open_sessions), (3, 3));
    view.take("unknown", SeenState { calls: vec![call(9, 9)], ..state(3) });
    assert_eq!(view.calls().count(), 3);
}

#[test]
fn the_oldest_calls_of_the_process_with_the_most_go_first() {
    let (mut view, _channels) = view_of(&["a", "b"]);
    view.take("b", SeenState { calls: vec![call(1, 0)], ..state(2) });
    let most = MAX_SHOWN_CALLS as u64;
    view.take("a", SeenState { calls: (1..=most).map(|id| call(id, id)).collect(), ..state(1) });
    assert_eq!(view.calls().count(), MAX_SHOWN_CALLS);
    let of = |view: &View, key: &str| {
        let calls = view.calls().filter(|(process, _)| process.key == key);
        calls.map(|(_, call)| call.id).collect::<Vec<_>>()
    };
    assert_eq!((of(&view, "b"), of(&view, "a").last()), (vec![1], Some(&2)));
    // Few calls with much text count as many.
    let long = |id: u64| SeenCall { name: "x".repeat(30 << 20), ..call(id, most + id) };
    view.take("b", SeenState { calls: vec![long(7), long(8), long(9)], ..state(2) });
    assert_eq!((of(&view, "b"), of(&view, "a").len()), (vec![9, 8], MAX_SHOWN_CALLS - 2));
    let files = vec![SeenFile::default(); MAX_PER_CALL + 1];
    view.take("b", SeenState { calls: vec![SeenCall { files, ..call(10, u64::MAX) }], ..state(2) });
    assert_eq!(view.calls().next().unwrap().1.files.len(), MAX_PER_CALL);
}

#[test]
fn the_oldest_process_that_has_ended_makes_room() {
    let keys: Vec<String> = (0..MAX_PROCESSES).map(|at| format!("{at:02}")).collect();
    let (mut view, _channels) = view_of(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    for (at, key) in keys.iter().enumerate() {
        view.take(key, SeenState { calls: vec![call(1, at as u64)], ..state(at as u32 + 1) });
    }
    let enter = |view: &mut View, key: &str| view.enter(key, mpsc::channel(1).0);
    assert!(!enter(&mut view, "new"), "all of them run");
    view.gone("40", None);
    view.gone("30", None);
    assert_eq!(view.calls().count(), MAX_PROCESSES, "the calls of those that have ended stay");
    assert!(enter(&mut view, "new"));
    assert!(view.process("30").is_none() && view.process("40").is_some());
    assert!(view.calls().all(|(process, _)| process.key != "30"));
    // A process that has told nothing leaves nothing.
    view.gone("new", None);
    assert!(view.process("new").is_none());
    // One that told something wrong stays, with what it was.
    view.gone("50", Some("wrong".into()));
    assert!(view.knows("50") && !view.knows("40"));
    assert!(view.processes().last().unwrap().is_gone && !view.processes()[0].is_gone);
}

#[test]
fn a_question_is_answered_once_and_with_one_of_its_choices() {
    let (mut view, mut channels) = view_of(&["a", "gone"]);
    view.take("a", SeenState { questions: vec![question(5), question(6)], ..state(1) });
    view.take("gone", SeenState { questions: vec![question(5)], ..state(2) });
    view.gone("gone", None);
    for (key, id, word, expected) in [
        ("a", 5, "always", Err(NotAnswered::Unknown)),
        ("a", 5, "once", Ok(())),
        ("a", 5, "no", Err(NotAnswered::Twice)),
        ("a", 7, "no", Err(NotAnswered::Over)),
        ("gone", 5, "no", Err(NotAnswered::Gone)),
        ("unknown", 5, "no", Err(NotAnswered::Gone)),
    ] {
        assert_eq!(view.answer(key, id, word), expected, "{key} {id} {word}");
    }
    assert_eq!(channels[0].try_recv().unwrap(), SeenAnswer { question: 5, word: "once".into() });
    assert!(channels[0].try_recv().is_err());
    assert_eq!(view.waiting().map(|(_, question)| question.id).collect::<Vec<_>>(), [6]);
    // When the process does not ask it any more, it is over.
    view.take("a", SeenState { questions: vec![question(6)], ..state(1) });
    assert_eq!(view.answer("a", 5, "no"), Err(NotAnswered::Over));
    drop(channels);
    assert_eq!(view.answer("a", 6, "no"), Err(NotAnswered::Gone));
    assert_eq!(view.waiting().count(), 1, "an answer that was not sent is not one");
}

#[tokio::test]
async fn processes_come_and_go() {
    let stage = Stage::closed().await;
    let begun =
        SeenState { calls: vec![call(1, 1)], sessions: vec![SeenSession::default()], open_sessions: 1, ..state(1) };
    let mut first = stage.process("1-a", &begun).await;
    let _second = stage.process("2-b", &state(2)).await;
    first.tell(&SeenState { calls: vec![call(2, 2)], ..begun.clone() }).await;
    stage.until("the second call", |view| view.calls().count() == 2).await;
    drop(first);
    stage.until("the end of the process", |view| view.process("1-a.sock").is_some_and(|one| one.is_gone)).await;
    stage.viewer.read(|view| {
        let ended = view.process("1-a.sock").unwrap();
        assert!(ended.state.sessions.is_empty() && ended.problem.is_none());
        assert_eq!(view.calls().count(), 2, "its calls stay");
    });
    // Its socket, at which nobody listens, is removed.
    let path = stage.folder.path().join("1-a.sock");
    stage.until("the end of the socket", |_| FileId::at(&path).is_none()).await;
    assert!(FileId::at(&stage.folder.path().join("2-b.sock")).is_some());
}

#[tokio::test]
async fn a_process_that_sends_too_much_or_something_else_is_not_listened_to() {
    let stage = Stage::closed().await;
    let mut process = stage.process("1-a", &SeenState { calls: vec![call(1, 1)], ..state(1) }).await;
    let long = vec![b' '; MAX_LINE_BYTES + 2];
    // The window may hang up before all of it is written.
    process.write(&long).await.ok();
    let problem = |view: &View, key: &str| view.process(key).and_then(|one| one.problem.clone());
    stage.until("the end of the process", |view| problem(view, "1-a.sock").is_some()).await;
    stage.viewer.read(|view| {
        assert!(problem(view, "1-a.sock").unwrap().contains("more than 4 MiB"));
        assert_eq!(view.calls().count(), 1);
    });
    let mut other = stage.process("2-b", &state(2)).await;
    let mut longest = serde_json::to_vec(&SeenState { calls: vec![call(1, 1)], ..state(2) }).unwrap();
    longest.resize(MAX_LINE_BYTES, b' ');
    longest.push(b'\n');
    other.write(&longest).await.unwrap();
    stage.until("the longest line", |view| view.calls().count() == 2).await;
    other.write(b"{\"process\": 7}\n").await.unwrap();
    stage.until("the end of the other", |view| problem(view, "2-b.sock").is_some()).await;
}

#[tokio::test]
async fn a_folder_that_others_may_enter_is_not_looked_into() {
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    let folder = tempfile::Builder::new().permissions(open).tempdir().unwrap();
    let stage = Stage::at(folder, |folder| folder.to_owned()).await;
    let _process = FakeProcess::new(stage.folder.path(), "1-a");
    stage.until("the trouble", |view| view.trouble.as_ref().is_some_and(|said| said.contains("chmod 700"))).await;
    assert!(stage.viewer.read(|view| view.processes().is_empty()));
    // A folder that does not exist yet causes no trouble.
    let missing = Stage::at(place(), |folder| folder.join("later")).await;
    assert!(missing.viewer.read(|view| view.trouble.is_none()));
}
