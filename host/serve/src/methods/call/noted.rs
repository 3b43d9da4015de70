//! Notes the files that a call uses, for the windows of the user, and passes on what is told to what keeps its changes.

use std::{fs::File, sync::Arc};

use wharf_base::paths;
use wharf_scope::changes::{At, Change, Changes, Opened};
use wharf_window::files::CallFiles;

/// Is told of what a call opens and changes.
pub struct NotedFiles {
    pub files: Arc<CallFiles>,
    /// What keeps the changes. `None`: nothing is kept.
    pub keeper: Option<Arc<dyn Changes>>,
}

impl NotedFiles {
    fn file(&self, file: &File, did: &str) {
        if let Ok(path) = paths::of_open(file) {
            self.files.note(&path.to_string_lossy(), did);
        }
    }

    fn entry(&self, at: At<'_>, did: &str) {
        if let Some(path) = path(at) {
            self.files.note(&path, did);
        }
    }
}

fn path(At { folder, name }: At<'_>) -> Option<String> {
    let folder = paths::of_open(folder).ok()?;
    Some(folder.join(name).to_string_lossy().into_owned())
}

impl Changes for NotedFiles {
    fn before(&self, change: Change<'_>) {
        match change {
            Change::Make(at) => self.entry(at, "make"),
            Change::Write(file) => self.file(file, "write"),
            Change::Remove(at) => self.entry(at, "remove"),
            Change::Move(from, to) => {
                if let (Some(from), Some(to)) = (path(from), path(to)) {
                    self.files.note_move(&from, &to);
                }
            }
        }
        if let Some(keeper) = &self.keeper {
            keeper.before(change);
        }
    }

    fn not_moved(&self) {
        self.files.not_moved();
        if let Some(keeper) = &self.keeper {
            keeper.not_moved();
        }
    }

    fn made(&self, file: &File) {
        if let Some(keeper) = &self.keeper {
            keeper.made(file);
        }
    }

    fn opened(&self, file: &File, opened: Opened) {
        self.file(
            file,
            match opened {
                Opened::File => "read",
                Opened::Folder => "list",
            },
        );
    }
}
