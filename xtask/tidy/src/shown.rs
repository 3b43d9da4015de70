//! Checks that the code blocks in the docs which are copies of a file are up to date: the block after `<!-- shows PATH -->` has to equal
//! the file at PATH.

use std::{fs, path::Path};

use anyhow::{Context, Result};

const MARKER: &str = "<!-- shows ";

/// Returns the problems with the docs.
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for entry in fs::read_dir(root.join("docs"))?.chain(fs::read_dir(root)?) {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let doc = path.strip_prefix(root).unwrap_or(&path).display();
        for part in text.split(MARKER).skip(1) {
            let (file, rest) = part
                .split_once(" -->\n")
                .with_context(|| format!("{doc}: `<!-- shows PATH` lacks ` -->` and a line break after it"))?;
            let code = rest.split_once('\n').and_then(|(fence, rest)| {
                let end = fence.chars().take_while(|character| *character == '`').collect::<String>();
                rest.split_once(&format!("\n{end}")).map(|(code, _)| code)
            });
            let is = fs::read_to_string(root.join(file)).with_context(|| format!("{doc}: {file}"))?;
            if code != Some(is.trim_end()) {
                problems.push(format!("{doc}: the code block for {file} differs from that file"));
            }
        }
    }
    Ok(problems)
}
