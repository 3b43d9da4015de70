//! The syntax of git's config files: sections, keys, quotes, escapes, comments, and lines that go on.
//!
//! A library for it would bring git's references and objects into the binary, for two values.

/// A value, with the section and the key that it stands under. Sections and keys are in lower case; subsections are as written.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    pub section: String,
    pub subsection: Option<String>,
    pub key: String,
    pub value: String,
}

/// Parses a config. The error is the number of the line that is wrong.
pub fn parse(text: &str) -> Result<Vec<Line>, usize> {
    let mut lines = Vec::new();
    let (mut section, mut subsection) = (String::new(), None);
    let mut source = text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate();
    while let Some((number, line)) = source.next() {
        let wrong = || number + 1;
        let mut rest = line.trim_start();
        if let Some(header) = rest.strip_prefix('[') {
            (section, subsection, rest) = heading(header).ok_or_else(wrong)?;
            rest = rest.trim_start();
        }
        if rest.is_empty() || rest.starts_with(['#', ';']) {
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
        let (key, rest) = rest.split_at(end);
        if section.is_empty() || !key.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(wrong());
        }
        let rest = rest.trim_start();
        let value = match rest.strip_prefix('=') {
            Some(rest) => value(rest, &mut source).ok_or_else(wrong)?,
            // A key without a value is a true boolean.
            None if rest.is_empty() || rest.starts_with(['#', ';']) => "true".to_owned(),
            None => return Err(wrong()),
        };
        let (section, subsection) = (section.clone(), subsection.clone());
        lines.push(Line { section, subsection, key: key.to_ascii_lowercase(), value });
    }
    Ok(lines)
}

/// Parses a section's heading without its first bracket: `name]`, `name "subsection"]` or, as in old files, `name.subsection]`.
fn heading(text: &str) -> Option<(String, Option<String>, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '.'))?;
    let (name, rest) = text.split_at(end);
    let rest = rest.trim_start();
    if let Some(rest) = rest.strip_prefix(']') {
        let (name, below) = name.split_once('.').map_or((name, None), |(name, below)| (name, Some(below)));
        return (!name.is_empty()).then(|| (name.to_ascii_lowercase(), below.map(str::to_ascii_lowercase), rest));
    }
    let mut characters = rest.strip_prefix('"')?.char_indices();
    let mut subsection = String::new();
    loop {
        match characters.next()? {
            (_, '\\') => subsection.push(characters.next()?.1),
            (_, '"') => break,
            (_, other) => subsection.push(other),
        }
    }
    let rest = characters.as_str().trim_start().strip_prefix(']')?;
    (!name.is_empty()).then(|| (name.to_ascii_lowercase(), Some(subsection), rest))
}

/// Parses a value, which goes on in the next line after a backslash at the end of a line.
fn value<'a>(first: &'a str, source: &mut impl Iterator<Item = (usize, &'a str)>) -> Option<String> {
    let (mut value, mut is_quoted) = (String::new(), false);
    // The length without the spaces at the end, which count only in quotes.
    let mut kept = 0;
    let mut line = first.trim_start();
    'lines: loop {
        let mut characters = line.chars();
        while let Some(character) = characters.next() {
            match character {
                '"' => is_quoted = !is_quoted,
                '#' | ';' if !is_quoted => break 'lines,
                '\\' => {
                    let escaped = match characters.next() {
                        None => {
                            line = source.next().map_or("", |(_, line)| line);
                            continue 'lines;
                        }
                        Some('n') => '\n',
                        Some('t') => '\t',
                        Some('b') => '\u{8}',
                        Some(same @ ('"' | '\\')) => same,
                        Some(_) => return None,
                    };
                    value.push(escaped);
                    kept = value.len();
                    continue;
                }
                space if space.is_whitespace() && !is_quoted => {
                    value.push(space);
                    continue;
                }
                other => value.push(other),
            }
            kept = value.len();
        }
        break;
    }
    value.truncate(kept);
    (!is_quoted).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_by_git() {
        for (text, expected) in [
            ("[user]\n\tname = Ann Lee\n", Some("user||name|Ann Lee")),
            ("[User]\nNAME=Ann  Lee  ; a comment\n", Some("user||name|Ann  Lee")),
            ("[user] name = Ann\n", Some("user||name|Ann")),
            ("[user]\r\nname = Ann\r\n", Some("user||name|Ann")),
            ("\u{feff}[user]\nname = \"Ann # Lee \" # x\n", Some("user||name|Ann # Lee ")),
            ("[user]\nname = Ann \\\"Al\\\" \\\\ Lee\n", Some("user||name|Ann \"Al\" \\ Lee")),
            ("[user]\nname = Ann \\\n  Lee\n", Some("user||name|Ann   Lee")),
            ("[user]\nname = \"An\"n\n", Some("user||name|Ann")),
            ("[user]\nname\n", Some("user||name|true")),
            ("[user]\nname =\n", Some("user||name|")),
            (
                "# c\n; c\n\n[a]\n[includeIf \"gitdir:~/W \\\"x\\\"\"]\npath = p\n",
                Some("includeif|gitdir:~/W \"x\"|path|p"),
            ),
            ("[remote.Old]\nurl = x\n", Some("remote|old|url|x")),
            ("[user]\nname = Ännchen\n", Some("user||name|Ännchen")),
            ("name = Ann\n", None),
            ("[user\nname = Ann\n", None),
            ("[user]\nname = \"Ann\n", None),
            ("[user]\nname = \\x\n", None),
            ("[user]\nna me = Ann\n", None),
            ("[\"x\"]\nname = Ann\n", None),
            ("[user \"x]\n", None),
        ] {
            let parsed = parse(text).ok().map(|lines| {
                let [Line { section, subsection, key, value }] = &lines[..] else { panic!("{text}: {lines:?}") };
                format!("{section}|{}|{key}|{value}", subsection.as_deref().unwrap_or_default())
            });
            assert_eq!(parsed.as_deref(), expected, "{text}");
        }
        assert_eq!(parse("[user]\nname = Ann\n[x\n"), Err(3));
        assert_eq!(parse(""), Ok(Vec::new()));
    }
}
