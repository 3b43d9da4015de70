//! The weight of the project: lines, packages, keys, commands, words. `xtask/budget.txt` has each figure as it was last accepted. A higher one
//! is a problem until it is written there, so that each rise is seen in a review, with its reason in the commit; so is a much lower one.

use std::{collections::BTreeMap, fmt::Write, fs, path::Path};

use anyhow::{Context, Result};
use syn::Item;

use crate::imports::collect;

const FILE: &str = "xtask/budget.txt";
/// How much lower than the accepted one a figure may be, in percent.
const SLACK_PERCENT: usize = 2;

type Figures = BTreeMap<String, usize>;

/// Returns the figures that are not as they were accepted.
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(root.join(FILE)).context(FILE)?;
    Ok(compared(&accepted(&text)?, &counted(root)?))
}

/// Accepts the figures as they are.
pub fn write(root: &Path) -> Result<()> {
    let mut text = String::new();
    for (name, figure) in counted(root)? {
        writeln!(text, "{name} = {figure}")?;
    }
    fs::write(root.join(FILE), text).context(FILE)
}

fn accepted(text: &str) -> Result<Figures> {
    let line = |line: &str| {
        let (name, figure) = line.split_once(" = ").with_context(|| format!("{FILE}: `{line}` has no ` = `"))?;
        Ok((name.to_owned(), figure.parse().with_context(|| format!("{FILE}: {line}"))?))
    };
    text.lines().map(line).collect()
}

fn compared(accepted: &Figures, counted: &Figures) -> Vec<String> {
    let mut problems = Vec::new();
    let write = format!("`cargo xtask generate` writes it into {FILE}");
    for (name, now) in counted {
        match accepted.get(name) {
            Some(before) if now > before => {
                problems.push(format!("{name}: {now}, before {before}; {write}, and the commit says why it has grown"));
            }
            Some(before) if now * 100 < before * (100 - SLACK_PERCENT) => {
                problems.push(format!("{name}: only {now}, before {before}; {write}"));
            }
            Some(_) => {}
            None => problems.push(format!("{name}: {now}, which is new; {write}")),
        }
    }
    let gone = accepted.keys().filter(|name| !counted.contains_key(*name));
    problems.extend(gone.map(|name| format!("{name}: it is in {FILE}, and there is no such figure any more")));
    problems
}

fn counted(root: &Path) -> Result<Figures> {
    let mut figures = Figures::new();
    let mut crates: Vec<_> = fs::read_dir(root.join("host"))?.collect::<std::io::Result<Vec<_>>>()?;
    crates.retain(|one| one.path().is_dir());
    let folders = crates.iter().map(|one| format!("host/{}", one.file_name().to_string_lossy()));
    let mut files_of_host = 0;
    for folder in folders.chain(["plugins".to_owned(), "xtask".to_owned()]) {
        let mut files = Vec::new();
        collect(&root.join(&folder), &mut files)?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
        let mut lines = 0;
        for file in &files {
            lines += fs::read_to_string(file).with_context(|| file.display().to_string())?.lines().count();
        }
        if folder.starts_with("host/") {
            files_of_host += files.len();
        }
        figures.insert(format!("lines in {folder}"), lines);
    }
    figures.insert("files in host".into(), files_of_host);
    let read = |name: &str| fs::read_to_string(root.join(name)).with_context(|| name.to_owned());
    let starting = |text: &str, with: &str| text.lines().filter(|line| line.starts_with(with)).count();
    figures.insert("packages in Cargo.lock".into(), starting(&read("Cargo.lock")?, "name = "));
    figures.insert("keys in docs/config.md".into(), starting(&read("docs/config.md")?, "| `"));
    figures.insert("commands".into(), commands(&read("host/cli/src/cli/arguments/mod.rs")?)?);
    let mut documents = Vec::new();
    collect(&root.join("docs"), &mut documents)?;
    documents.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    documents.extend(["README.md", "CONTRIBUTING.md"].map(|name| root.join(name)));
    let mut words = 0;
    for document in documents {
        words += fs::read_to_string(&document)?.split_whitespace().count();
    }
    figures.insert("words in docs, README.md and CONTRIBUTING.md".into(), words);
    Ok(figures)
}

/// Counts the commands of the binary.
fn commands(source: &str) -> Result<usize> {
    let items = syn::parse_file(source)?.items;
    let command = items.iter().find_map(|item| match item {
        Item::Enum(one) if one.ident == "Command" => Some(one.variants.len()),
        _ => None,
    });
    command.context("there is no enum `Command`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_and_a_large_fall_are_problems() {
        let figures = |text: &str| accepted(text).unwrap();
        let before = figures("a = 100\nb = 1000\nc = 1000\nd = 7\ngone = 1\n");
        let problems = compared(&before, &figures("a = 100\nb = 1001\nc = 979\nd = 7\nnew = 1\n"));
        let expected =
            ["b: 1001, before 1000;", "c: only 979, before 1000;", "new: 1, which is new;", "gone: it is in"];
        assert_eq!(problems.len(), expected.len(), "{problems:?}");
        for (problem, expected) in problems.iter().zip(expected) {
            assert!(problem.starts_with(expected), "{problem}");
        }
        assert!(compared(&before, &before).is_empty());
        assert!(accepted("a: 1").is_err() && accepted("a = b").is_err());
    }

    #[test]
    fn commands_are_counted() {
        assert_eq!(commands("enum Other { A }\npub enum Command { A(A), B }").unwrap(), 2);
        assert!(commands("enum Other { A }").is_err());
    }
}
