//! Runs all stored inputs again: fixed crashes stay fixed.

#![expect(clippy::disallowed_methods, reason = "the corpus is a folder of files")]

use std::{
    path::Path,
    time::{Duration, Instant},
};

#[test]
fn the_corpus_passes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, target) in fuzz::TARGETS {
        let mut inputs = 0;
        let entries = std::fs::read_dir(corpus.join(name)).unwrap_or_else(|error| panic!("corpus/{name}: {error}"));
        for entry in entries {
            let path = entry.unwrap().path();
            let input = std::fs::read(&path).unwrap();
            let began = Instant::now();
            target(&input);
            assert!(began.elapsed() < Duration::from_secs(5), "{} takes {:?}", path.display(), began.elapsed());
            inputs += 1;
        }
        assert!(inputs > 0, "corpus/{name} is empty");
    }
}
