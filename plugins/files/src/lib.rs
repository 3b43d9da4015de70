//! Tools for files, with the names and arguments of the reference filesystem server, so that prompts written for it keep working with
//! `prefix = ""`. In addition, there are a search in contents, line ranges, and files as resources.
//!
//! The plugin enforces no access rules: the sandbox gives it only the folders that are open to the call. Its own checks only serve to
//! answer with messages that a model can act on.

#![expect(clippy::disallowed_methods, reason = "files are what it is for; the sandbox says which")]

use std::{fs, io::ErrorKind};

use wharf_sdk::{Body, ResourceContents, prelude::*, resources};

mod arguments;
mod braces;
mod edit;
mod encoding;
mod folder;
mod glob;
mod ignored;
mod info;
mod left_out;
mod order;
mod paths;
mod replace;
mod said;
mod search;
mod text;

use arguments::*;
use ignored::Ignored;
use left_out::LeftOut;
use paths::{at_path, reading, resolve};
use said::Said;
use search::Globs;

wharf_sdk::instructions!(
    "The tools of `files` work in the folders that are open to this server: list_allowed_directories names them."
);

struct Files;

#[tools]
impl Files {
    /// Reads a text file. `offset` and `limit` read a part of the file, in lines.
    #[tool(title = "Read Text File", read_only, open_world = false)]
    fn read_text_file(args: ReadText) -> Result<Said> {
        reading(&args.path, |path| text::part(path, &args))
    }

    /// The same as read_text_file, by its old name.
    #[tool(title = "Read File (Deprecated)", read_only, open_world = false)]
    fn read_file(args: ReadText) -> Result<Said> {
        reading(&args.path, |path| text::part(path, &args))
    }

    /// Reads an image, audio or other binary file.
    #[tool(title = "Read Media File", read_only, open_world = false)]
    fn read_media_file(args: OnePath) -> Result<Vec<Content>> {
        let path = resolve(&args.path)?;
        // The type is derived from the file's own name, not from that of a link that led to it.
        let path = paths::follow(&path).unwrap_or(path);
        let data = fs::read(&path).map_err(|error| at_path(&path, error))?;
        let mime_type = info::media_type(&path).to_owned();
        // Some clients drop what is not text, and their models would get nothing.
        let about = Content::Text(format!("[{}: {mime_type}, {} bytes]", args.path, data.len()));
        Ok(match mime_type.split('/').next() {
            Some("image") => vec![wharf_sdk::image(mime_type, data), about],
            Some("audio") => vec![wharf_sdk::audio(mime_type, data), about],
            _ => vec![Content::Embedded(ResourceContents {
                uri: paths::to_uri(&path),
                mime_type: Some(mime_type),
                body: Body::Bytes(data),
                more: None,
            })],
        })
    }

    /// Reads several text files at once, and says which of them it cannot open.
    #[tool(title = "Read Multiple Files", read_only, open_world = false)]
    fn read_multiple_files(args: ManyPaths) -> Result<Said> {
        let one = |path: &String| match reading(path, text::read) {
            Ok(said) => format!("{path}:\n{}\n", said.in_one()),
            Err(error) => format!("{path}: Error - {}", said_by(error)),
        };
        Ok(Said::from(args.paths.iter().map(one).collect::<Vec<_>>().join("\n---\n")))
    }

    /// Writes a file, replacing what was there. The file is complete at every moment.
    #[tool(title = "Write File", destructive, idempotent, open_world = false)]
    fn write_file(args: Write) -> Result<Said> {
        let path = resolve(&args.path)?;
        replace::replace(&path, &args.content)?;
        Ok(Said::from(format!("Successfully wrote to {}", args.path)))
    }

    /// Replaces pieces of a text file and shows the difference. Each `oldText` must be in the file. If it is not there exactly,
    /// lines that differ only in leading or trailing blanks count. With `dryRun` the file stays as it is.
    #[tool(title = "Edit File", destructive, open_world = false)]
    fn edit_file(args: EditFile) -> Result<Said> {
        let path = resolve(&args.path)?;
        let before = text::read_exact(&path)?;
        let after = edit::apply(&before, &args.edits)?;
        let difference = edit::difference(&path, &before, &after);
        if !args.dry_run.unwrap_or(false) && after != before {
            replace::replace(&path, &after)?;
        }
        Ok(Said::from(difference))
    }

    /// Makes a folder, and those above it if they are missing. One that exists is left as it is.
    #[tool(title = "Create Directory", destructive = false, idempotent, open_world = false)]
    fn create_directory(args: OnePath) -> Result<Said> {
        let path = resolve(&args.path)?;
        paths::create_all(&path)?;
        Ok(Said::from(format!("Successfully created directory {}", args.path)))
    }

    /// Lists a folder: `[FILE]` or `[DIR]` and the name, one per line.
    #[tool(title = "List Directory", read_only, open_world = false)]
    fn list_directory(args: OnePath) -> Result<Said> {
        reading(&args.path, |path| {
            let (entries, mut left) = (info::entries(path)?, LeftOut::default());
            let mut lines = String::new();
            for entry in &entries {
                left.name(path, &entry.name);
                lines.push_str(if entry.is_directory { "\n[DIR] " } else { "\n[FILE] " });
                lines.push_str(&entry.name);
            }
            Ok(Said { text: lines.split_off(lines.len().min(1)), notes: left.notes() })
        })
    }

    /// Lists a folder with the sizes of its files and their sum, by `name` or by `size`.
    #[tool(title = "List Directory with Sizes", read_only, open_world = false)]
    fn list_directory_with_sizes(args: ListSizes) -> Result<Said> {
        reading(&args.path, |path| {
            let (entries, mut left) = (info::sized_entries(path)?, LeftOut::default());
            entries.iter().for_each(|entry| left.name(path, &entry.name));
            Ok(Said { text: info::with_sizes(entries, args.sort_by.unwrap_or_default()), notes: left.notes() })
        })
    }

    /// Shows a folder and everything under it as a tree. `excludePatterns` are globs of what to leave out. `.git`,
    /// `node_modules` and what `.gitignore` files name are there only with `includeIgnored`.
    #[tool(title = "Directory Tree", read_only, open_world = false)]
    fn directory_tree(args: DirectoryTree) -> Result<Said> {
        let exclude = Globs::anywhere(args.exclude_patterns.as_deref().unwrap_or_default())?;
        reading(&args.path, |root| {
            let mut left = LeftOut::default();
            let ignored = match args.include_ignored {
                Some(true) => Ignored::nothing(),
                _ => Ignored::above(root, &mut left),
            };
            let mut tree = info::Tree { root, exclude: &exclude, ignored, left: &mut left, count: 0 };
            let text = serde_json::to_string_pretty(&tree.under(root)?)?;
            Ok(Said { text, notes: left.notes() })
        })
    }

    /// Moves or renames a file or folder. The destination must not exist.
    #[tool(title = "Move File", destructive, open_world = false)]
    fn move_file(args: Move) -> Result<Said> {
        let (source, destination) = (paths::entry(&args.source)?, paths::entry(&args.destination)?);
        if fs::symlink_metadata(&source).is_ok() && destination.parent().is_some_and(|parent| !parent.is_dir()) {
            return Err(Error::failed(format!(
                "{}: its folder is not there; create_directory makes it",
                args.destination
            )));
        }
        if fs::symlink_metadata(&destination).is_ok() {
            return Err(Error::failed(format!("Destination already exists: {}", destination.display())));
        }
        fs::rename(&source, &destination).map_err(|error| match error.kind() {
            ErrorKind::CrossesDevices => Error::failed(format!(
                "{}: {} is on another file system, where a file cannot be moved but only copied, and a copy would lose its \
                 permissions. Nothing was changed; `mv` in a shell does it",
                args.source, args.destination
            )),
            _ => at_path(&source, error),
        })?;
        Ok(Said::from(format!("Successfully moved {} to {}", args.source, args.destination)))
    }

    /// Finds files and folders whose path below `path` matches a glob such as `**/*.rs`. `.git`, `node_modules` and what
    /// `.gitignore` files name are found only with `includeIgnored`.
    #[tool(title = "Search Files", read_only, open_world = false)]
    fn search_files(args: SearchFiles) -> Result<Said> {
        let root = resolve(&args.path)?;
        let root = paths::follow(&root).unwrap_or(root);
        search::names(&root, &args)
    }

    /// Finds lines that match a regular expression, in all text files below `path`: `file:line: text`, at most
    /// `maxResults` (100 if left out). `include` is a glob of the files to look at. `.git`, `node_modules` and what
    /// `.gitignore` files name are searched only with `includeIgnored`.
    #[tool(title = "Search Contents", read_only, open_world = false)]
    fn search_content(args: SearchContent) -> Result<Said> {
        let root = resolve(&args.path)?;
        search::contents(&root, &args)
    }

    /// Tells size, times (UTC) and kind of a file or folder, one per line. Its mode is not known here.
    #[tool(title = "Get File Info", read_only, open_world = false)]
    fn get_file_info(args: OnePath) -> Result<Said> {
        reading(&args.path, |path| info::about(path).map(Said::from))
    }

    /// Lists the folders that this server may use, and whether it may write there.
    #[tool(title = "List Allowed Directories", read_only, open_world = false)]
    fn list_allowed_directories() -> Result<Said> {
        let directories = host::directories();
        if directories.is_empty() {
            // As an error, because wharf then adds why, and what opens one.
            return Err(Error::failed("No directory is open to this server."));
        }
        let line = |directory: &wharf_sdk::Directory| {
            format!("{}{}", directory.path, if directory.writable { "" } else { " (read only)" })
        };
        Ok(Said::from(format!("Allowed directories:\n{}", directories.iter().map(line).collect::<Vec<_>>().join("\n"))))
    }
}

#[resources]
impl Files {
    /// A file in one of the folders that are open to this server.
    #[resource(template = "file:///{+path}", name = "file")]
    fn file(path: String) -> Result<Vec<ResourceContents>> {
        let uri = format!("file:///{path}");
        let decoded = percent_encoding::percent_decode_str(&path).decode_utf8()?;
        let path = resolve(&format!("/{decoded}"))?;
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(Error::resource_not_found(&uri)),
            Err(error) => return Err(at_path(&path, error)),
        };
        let mime_type = Some(info::mime_type(&path).to_owned());
        let body = String::from_utf8(bytes).map_or_else(|error| Body::Bytes(error.into_bytes()), Body::Text);
        Ok(vec![ResourceContents { uri, mime_type, body, more: None }])
    }
}

/// Returns the message of an error.
fn said_by(error: Error) -> String {
    match error {
        Error::Failed(message) | Error::Protocol { message, .. } => message,
        Error::Ask(_) => String::new(),
    }
}
