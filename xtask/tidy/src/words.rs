//! Turns of phrase that make a sentence hard to read. They are not allowed in comments, documentation and texts.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use crate::imports::collect;

/// The turns, with what to write instead.
const BANNED: [(&str, &str); 5] = [
    ("is none", "name what is missing: \"there is no plugin\""),
    ("is no", "use a verb: \"is not a plugin\", \"does not exist\"; \"there is no\" is allowed"),
    ("anew", "write \"again\" or \"new\""),
    ("whoever", "name who it is: \"a client that\""),
    ("beside", "write \"next to\", \"and\" or \"besides\""),
];

/// The extensions of the files that are checked.
const EXTENSIONS: [&str; 13] = ["c", "go", "h", "js", "md", "mjs", "py", "rs", "sh", "toml", "ts", "wit", "yml"];

/// Returns the banned turns in the files of the project.
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for folder in ["docs", "examples", "host", "packaging", "plugins", "sdk-guest", "tests", "wit", "xtask"] {
        collect(&root.join(folder), &mut files)?;
    }
    files.extend(
        ["CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md", "Cargo.toml"].map(|name| root.join(name)),
    );
    let own = Path::new(file!()).file_name();
    let mut problems = Vec::new();
    for file in files {
        let checked = file.extension().is_some_and(|own| EXTENSIONS.iter().any(|extension| own == *extension));
        if !checked || file.file_name() == own {
            continue;
        }
        // Test data need not be text.
        let Ok(text) = String::from_utf8(fs::read(&file).with_context(|| file.display().to_string())?) else {
            continue;
        };
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        problems.extend(
            found(&text).into_iter().map(|(line, turn, instead)| format!("{name}:{line}: \"{turn}\"; {instead}")),
        );
    }
    Ok(problems)
}

/// Returns the banned turns in a text, each with the number of its line and what to write instead.
fn found(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let mut all = Vec::new();
    // The words of the sentence so far. A line break does not end it.
    let mut before: Vec<String> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let comment = line.trim_start().trim_start_matches(['/', '!', '#', '*']);
        for token in comment.split_whitespace() {
            for word in token.split(|character: char| !character.is_alphanumeric() && character != '_') {
                if word.is_empty() {
                    continue;
                }
                before.push(word.to_owned());
                let last = |back: usize| before.len().checked_sub(back + 1).and_then(|index| before.get(index));
                let last = |back: usize| last(back).map(|word| word.to_lowercase()).unwrap_or_default();
                let is = |word: &str| matches!(word, "is" | "are" | "was" | "were");
                let turn = match word.to_lowercase().as_str() {
                    // `None` in code begins with a capital letter.
                    "none" if word != "None" && is(&last(1)) => "is none",
                    "no" if is(&last(1)) && last(2) != "there" => "is no",
                    "anew" => "anew",
                    "whoever" => "whoever",
                    "beside" => "beside",
                    _ => "",
                };
                all.extend(
                    BANNED.iter().find(|(name, _)| *name == turn).map(|(name, instead)| (at + 1, *name, *instead)),
                );
            }
            // A turn does not go on after a punctuation mark.
            if !token.ends_with(char::is_alphanumeric) {
                before.clear();
            }
        }
        // A blank line ends the sentence.
        if comment.trim().is_empty() {
            before.clear();
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::found;

    #[test]
    fn banned_turns_are_found_in_comments_and_texts() {
        for (text, expected) in [
            ("// It is none of ours.", vec![(1, "is none")]),
            ("//! A link is no\n//! file.", vec![(1, "is no")]),
            ("/// These files are\n/// no plugins.", vec![(2, "is no")]),
            ("let text = \"Whoever asks anew\";", vec![(1, "whoever"), (1, "anew")]),
            ("the plugin beside it", vec![(1, "beside")]),
            ("There is no plugin, and there are none left over: `x is None`.", vec![(1, "is none")]),
            ("if value is None and there was\n# no other", vec![]),
            ("say(\"what there is\"), none; 'there is no token'", vec![]),
            ("It is.\n\nNo plugin is none the wiser", vec![(3, "is none")]),
            ("besides, renewed, is_none(), is normal, is not", vec![]),
        ] {
            let told: Vec<(usize, &str)> = found(text).into_iter().map(|(line, turn, _)| (line, turn)).collect();
            assert_eq!(told, expected, "{text}");
        }
    }
}
