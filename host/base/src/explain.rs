//! Turns errors of serde into messages for the author of the text. Messages repeat keys, and numbers and words in place of others, but no
//! other values, since these may be secrets.

use serde::de::DeserializeOwned;

/// The maximum number of changes that make one name of another if the other is probably meant.
const MAX_DISTANCE: usize = 3;

/// Stands for the name of a key in the error of a value, which does not know which key has it.
pub const THIS_KEY: &str = "`this key`";

/// Reads TOML; the error reads `line: what is wrong`.
pub fn toml<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|mut error: toml::de::Error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = text.get(..start).unwrap_or(text).matches('\n').count() + 1;
        // For a duplicate key, the message does not name the key, but the span covers it.
        let key = error.span().filter(|_| error.message() == "duplicate key").and_then(|span| text.get(span));
        match key {
            Some(key) => format!("{line}: the key `{key}` stands here a second time"),
            None => {
                let said = explain(error.message());
                format!("{line}: {}", said.replacen(THIS_KEY, &format!("`{}`", key_of(&mut error)), 1))
            }
        }
    })
}

/// The key whose value is wrong. `toml` tells it only where it shows no excerpt of the text, in a line of its own: "in `table.key`".
fn key_of(error: &mut toml::de::Error) -> String {
    error.set_input(None);
    let shown = error.to_string();
    let path = shown.trim_end().rsplit_once("\nin `").map_or("", |(_, path)| path.trim_end_matches('`'));
    path.rsplit('.').next().unwrap_or_default().to_owned()
}

/// Reads JSON. The error does not name a line, since programs write JSON in a single line.
pub fn json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        explain(message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message))
    })
}

/// Returns the known name that was probably meant by an unknown one, if there is a similar one.
pub fn nearest<'a>(known: impl Iterator<Item = &'a str>, unknown: &str) -> Option<&'a str> {
    // Styles of writing names, such as `max_results` and `maxResults`, do not count as differences.
    let plain = |name: &str| name.to_lowercase().replace(['_', '-'], "");
    let distances = known.map(|name| (strsim::damerau_levenshtein(&plain(name), &plain(unknown)), name));
    distances
        .filter(|(distance, _)| *distance <= MAX_DISTANCE)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

fn explain(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field")
        && let Some(unknown) = quoted.next()
    {
        let known: Vec<&str> = quoted.collect();
        return match nearest(known.iter().copied(), unknown) {
            Some(nearest) => format!("unknown key `{unknown}`; did you mean `{nearest}`?"),
            None => format!("unknown key `{unknown}`; there are: {}", known.join(", ")),
        };
    }
    // A word that is not one of those that a key can have.
    if let Some((wrong, expected)) =
        message.strip_prefix("unknown variant `").and_then(|rest| rest.rsplit_once("`, expected "))
    {
        let words: Vec<String> = expected.split('`').skip(1).step_by(2).map(|word| format!("{word:?}")).collect();
        let words = match words.as_slice() {
            [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
            words => words.join(""),
        };
        return format!("{THIS_KEY} is {words}, not {wrong:?}");
    }
    // Type errors repeat the value, which may be a secret; what was expected is enough.
    match message.split_once(", expected ") {
        Some((wrong, expected)) if wrong.starts_with("invalid") => format!("expected {expected}"),
        _ => message.to_owned(),
    }
}
