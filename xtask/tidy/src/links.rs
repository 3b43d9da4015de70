//! Checks that what documents link to exists: the files, and in Markdown the headings. Comments and texts in other files that name a document
//! in `docs/` are checked too.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result};

use crate::imports::collect;

/// The folders with documents, or with files that name some.
const FOLDERS: [&str; 8] = ["docs", "examples", "host", "packaging", "plugins", "sdk-guest", "tests", "xtask"];
/// The extensions of files that may name a document, besides `md`.
const NAMING: [&str; 7] = ["mjs", "py", "rs", "sh", "toml", "ts", "yml"];

/// Returns the links and names that lead nowhere.
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        collect(&root.join(folder), &mut files)?;
    }
    for entry in fs::read_dir(root)? {
        files.extend(Some(entry?.path()).filter(|path| path.is_file()));
    }
    let mut problems = Vec::new();
    for file in files {
        let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let is_document = extension == "md";
        if (!is_document && !NAMING.contains(&extension)) || file.file_name() == Path::new(file!()).file_name() {
            continue;
        }
        // Test data need not be text.
        let Ok(text) = String::from_utf8(fs::read(&file).with_context(|| file.display().to_string())?) else {
            continue;
        };
        let name = file.strip_prefix(root).unwrap_or(&file).display();
        let folder = file.parent().unwrap_or(root);
        let linked = if is_document { links(&text) } else { vec![] };
        for link in linked {
            problems.extend(missing(folder, &file, link).map(|what| format!("{name}: {link}: {what}")));
        }
        for document in named(&text) {
            problems.extend(missing(root, &file, document).map(|what| format!("{name}: {document}: {what}")));
        }
    }
    Ok(problems)
}

/// Returns the relative targets of a document's links. Code has no links.
fn links(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    let targets = prose.flat_map(|prose| prose.split("](").skip(1)).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.contains(char::is_whitespace)).collect()
}

/// Returns the documents that a text names by their path, such as `docs/login.md#roles`.
fn named(text: &str) -> Vec<&str> {
    let starts = text.match_indices("docs/").filter(|(at, _)| {
        // `sdk-guest/docs/…` and `https://…/docs/…` are other folders.
        text.get(..*at).and_then(|before| before.chars().next_back()).is_none_or(|before| " `([\"'/".contains(before))
    });
    let names = starts.filter_map(|(at, _)| {
        let rest = text.get(at..)?;
        let in_name = |character: char| character.is_ascii_alphanumeric() || "-_/.#".contains(character);
        let name = rest.split(|character| !in_name(character)).next()?.trim_end_matches('.');
        let path = name.split('#').next()?.strip_prefix("docs/")?.strip_suffix(".md")?;
        let before = text.get(..at)?;
        // Names in capital letters stand for any name.
        (!path.contains(|character: char| "/.".contains(character) || character.is_ascii_uppercase())
            && (!before.ends_with('/') || before.ends_with("../")))
        .then_some(name)
    });
    names.collect()
}

/// Says what is missing of a target, which is relative to `folder`, in the file `of`.
fn missing(folder: &Path, of: &Path, target: &str) -> Option<&'static str> {
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let file = if path.is_empty() { of.to_owned() } else { folder.join(path) };
    if !file.exists() {
        return Some("there is no such file");
    }
    let is_document = file.extension().is_some_and(|extension| extension == "md");
    if heading.is_empty() || !is_document {
        return None;
    }
    let text = fs::read_to_string(file).unwrap_or_default();
    (!anchors(&text).contains(heading)).then_some("there is no such heading")
}

/// Returns the anchors that GitHub makes of a document's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut in_code = false;
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if in_code || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        // Of a link in a heading, only the text counts.
        let shown: String =
            heading.split("](").map(|part| part.split_once(')').map_or(part, |(_, rest)| rest)).collect();
        let shown = if heading.contains("](") { shown } else { heading.to_owned() };
        let kept = shown.trim().chars().filter_map(|character| match character {
            ' ' => Some('-'),
            '-' | '_' => Some(character),
            _ => character.is_alphanumeric().then_some(character),
        });
        let anchor: String = kept.flat_map(char::to_lowercase).collect();
        let free = (0..).map(|count| if count == 0 { anchor.clone() } else { format!("{anchor}-{count}") });
        anchors.extend(free.into_iter().find(|anchor| !anchors.contains(anchor)));
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_names_are_found_and_code_is_not() {
        let text = "See [a](a.md#one), [b](https://x.example/b.md).\n```\n[c](c.md)\n```\n[d](#here)";
        assert_eq!(links(text), ["a.md#one", "#here"]);
        let text =
            "// as docs/login.md#roles. says; `docs/a.md`, https://x.example/docs/b.md, docs/c.txt, (../../docs/d.md)";
        assert_eq!(named(text), ["docs/login.md#roles", "docs/a.md", "docs/d.md"]);
    }

    #[test]
    fn headings_have_the_anchors_that_github_makes() {
        let text = "# What is *taken*, and why\n```\n# no heading\n```\n## `[http]`: a_b\n## Twice\n## Twice\n#hash";
        let expected = ["what-is-taken-and-why", "http-a_b", "twice", "twice-1"];
        assert_eq!(anchors(text), expected.map(str::to_owned).into());
    }
}
