//! Checks that the files which the docs show are shown as they are: the code under `<!-- shows PATH -->` has to be that file.

use std::{fs, path::Path};

use anyhow::{Context, Result};

const BEGINS: &str = "<!-- shows ";

/// What is wrong with the docs.
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for entry in fs::read_dir(root.join("docs"))?.chain(fs::read_dir(root)?) {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let doc = path.strip_prefix(root).unwrap_or(&path).display();
        for part in text.split(BEGINS).skip(1) {
            let (file, rest) =
                part.split_once(" -->\n").with_context(|| format!("{doc}: a file to show without its end"))?;
            let code = rest.split_once('\n').and_then(|(fence, rest)| {
                let end = fence.chars().take_while(|character| *character == '`').collect::<String>();
                rest.split_once(&format!("\n{end}")).map(|(code, _)| code)
            });
            let is = fs::read_to_string(root.join(file)).with_context(|| format!("{doc}: {file}"))?;
            if code != Some(is.trim_end()) {
                problems.push(format!("{doc}: does not show {file} as it is"));
            }
        }
    }
    Ok(problems)
}
