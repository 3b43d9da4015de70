//! The files that a call has used, as the board shows them.

use parking_lot::Mutex;

use crate::state::{MAX_PER_CALL, SeenCall, SeenFile, shown};

/// The files that a call has used until now.
#[derive(Default)]
pub struct CallFiles(Mutex<UsedFiles>);

#[derive(Default)]
struct UsedFiles {
    list: Vec<SeenFile>,
    left_out: u64,
    /// What was known before the last move.
    before_move: Option<(Vec<SeenFile>, u64)>,
}

impl CallFiles {
    /// Notes a file once for each thing that was done. `did`: `read`, `list`, `write`, `make` or `remove`.
    pub fn note(&self, path: &str, did: &str) {
        self.0.lock().note(shown(path), did);
    }

    /// Notes that a file moves. If the call made it itself, it wrote the other one: many programs write to a new file first.
    pub fn note_move(&self, from: &str, to: &str) {
        let (from, to) = (shown(from), shown(to));
        let mut files = self.0.lock();
        files.before_move = Some((files.list.clone(), files.left_out));
        match files.list.iter().position(|file| file.path == from && file.did == "make") {
            Some(made) => {
                let mut at = 0..;
                files.list.retain(|file| at.next().is_some_and(|at| at < made) || file.path != from);
                files.note(to, "write");
            }
            None => {
                files.note(from, "move");
                files.note(to, "make");
            }
        }
    }

    /// Notes that the file did not move.
    pub fn not_moved(&self) {
        let mut files = self.0.lock();
        if let Some((list, left_out)) = files.before_move.take() {
            (files.list, files.left_out) = (list, left_out);
        }
    }

    pub(crate) fn put_into(&self, call: &mut SeenCall) {
        let files = self.0.lock();
        call.files.clone_from(&files.list);
        call.files_left_out = files.left_out;
    }
}

impl UsedFiles {
    fn note(&mut self, path: String, did: &str) {
        if self.list.iter().any(|file| file.path == path && file.did == did) {
            return;
        }
        let file = SeenFile { path, did: did.to_owned() };
        if self.list.len() < MAX_PER_CALL {
            return self.list.push(file);
        }
        self.left_out += 1;
        // What only looks makes room for what changes something.
        let looks = |did: &str| matches!(did, "read" | "list");
        if !looks(did)
            && let Some(at) = self.list.iter().rposition(|file| looks(&file.did))
        {
            self.list.remove(at);
            self.list.push(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_written_by_way_of_another_is_shown_as_written() {
        let files = CallFiles::default();
        files.note("/a/.new", "make");
        files.note("/a/.new", "write");
        files.note_move("/a/.new", "/a/b");
        files.note_move("/a/c", "/a/d");
        let shown = || {
            let mut call = SeenCall::default();
            files.put_into(&mut call);
            call.files.into_iter().map(|file| format!("{} {}", file.did, file.path)).collect::<Vec<_>>()
        };
        assert_eq!(shown(), ["write /a/b", "move /a/c", "make /a/d"]);
        // What was removed before is not hidden by what is made in its place.
        files.note("/a/x", "remove");
        files.note("/a/x", "make");
        files.note_move("/a/x", "/a/y");
        assert_eq!(shown().split_off(3), ["remove /a/x", "write /a/y"]);
        // A move that fails changes nothing.
        files.note("/a/z", "make");
        let before = shown();
        files.note_move("/a/z", "/a/b");
        files.not_moved();
        assert_eq!(shown(), before);
    }

    #[test]
    fn changes_are_shown_however_many_files_are_read() {
        let files = CallFiles::default();
        for number in 0..2 * MAX_PER_CALL {
            files.note(&format!("/{number}"), "read");
        }
        files.note("/changed", "write");
        let mut call = SeenCall::default();
        files.put_into(&mut call);
        assert_eq!((call.files.len(), call.files_left_out), (MAX_PER_CALL, MAX_PER_CALL as u64 + 1));
        assert!(call.files.iter().any(|file| file.path == "/changed"));
    }
}
