//! The arguments of each tool, spelled as the reference filesystem server spells them.

use wharf_sdk::{schemars, schemars::JsonSchema, serde, serde::Deserialize};

macro_rules! arguments {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $ty:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Deserialize, JsonSchema)]
        #[serde(crate = "serde", rename_all = "camelCase")]
        #[schemars(crate = "schemars")]
        pub struct $name { $($(#[$field_meta])* pub $field: $ty,)* }
    )*};
}

arguments! {
    OnePath {
        /// The path, absolute, or relative to the first open folder.
        path: String,
    }
    ManyPaths {
        /// The paths to read.
        #[schemars(length(min = 1))]
        paths: Vec<String>,
    }
    ReadText {
        /// The path, absolute, or relative to the first open folder.
        path: String,
        /// From this line on, counted from 1; -20 begins with the twentieth from the end.
        offset: Option<i64>,
        /// At most so many lines.
        limit: Option<u32>,
        // Other names for the same, which are taken, and which no model has to read about.
        #[schemars(skip)] head: Option<f64>,
        #[schemars(skip)] tail: Option<f64>,
        #[schemars(skip)] #[serde(alias = "start_line")] start_line: Option<f64>,
        #[schemars(skip)] #[serde(alias = "end_line")] end_line: Option<f64>,
    }
    Write {
        /// The path, absolute, or relative to the first open folder.
        path: String,
        /// The whole new content.
        content: String,
    }
    EditFile {
        /// The path, absolute, or relative to the first open folder.
        path: String,
        /// The edits, made one after the other.
        edits: Vec<Edit>,
        /// Only show what would change.
        dry_run: Option<bool>,
    }
    Edit {
        /// The text to look for.
        old_text: String,
        /// The text to put in its place.
        new_text: String,
    }
    ListSizes {
        /// The path, absolute, or relative to the first open folder.
        path: String,
        /// By name or by size, largest first.
        sort_by: Option<SortBy>,
    }
    DirectoryTree {
        /// The path, absolute, or relative to the first open folder.
        path: String,
        /// Globs of what to leave out.
        exclude_patterns: Option<Vec<String>>,
        /// Also .git, node_modules and what .gitignore files name.
        include_ignored: Option<bool>,
    }
    Move {
        /// What to move.
        source: String,
        /// Where to.
        destination: String,
    }
    SearchFiles {
        /// The folder to search in.
        path: String,
        /// A glob, matched against the path below the folder.
        pattern: String,
        /// Globs of what to leave out.
        exclude_patterns: Option<Vec<String>>,
        /// Also .git, node_modules and what .gitignore files name.
        include_ignored: Option<bool>,
    }
    SearchContent {
        /// The folder or file to search in.
        path: String,
        /// A regular expression.
        pattern: String,
        /// A glob of the files to look at.
        include: Option<String>,
        /// Globs of what to leave out.
        exclude_patterns: Option<Vec<String>>,
        /// Whether `A` and `a` are the same.
        ignore_case: Option<bool>,
        /// How many lines to give at most.
        max_results: Option<u32>,
        /// Also .git, node_modules and what .gitignore files name.
        include_ignored: Option<bool>,
    }
}

#[derive(Deserialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(crate = "serde", rename_all = "lowercase")]
#[schemars(crate = "schemars")]
pub enum SortBy {
    #[default]
    Name,
    Size,
}
