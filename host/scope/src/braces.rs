//! Texts of the operator with places for values, `{name}`: arguments of commands, and headers of outgoing requests. `{{` and `}}` stand for
//! braces. What may stand between the braces is decided by the user of this module.

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A literal text, which is not empty.
    Text(String),
    /// A place for a value: what stands between the braces.
    Place(String),
}

/// Parses a text into its parts.
///
/// # Errors
/// If a brace is not closed, or closes nothing.
pub fn parse(text: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text.chars().peekable();
    while let Some(one) = rest.next() {
        match one {
            '{' | '}' if rest.next_if_eq(&one).is_some() => literal.push(one),
            '}' => return Err(format!("`{text}`: a `}}` closes nothing; write `}}}}` for the character")),
            '{' => {
                let mut name = String::new();
                loop {
                    match rest.next() {
                        Some('}') => break,
                        Some(one) => name.push(one),
                        None => return Err(format!("`{text}`: a `{{` is not closed; write `{{{{` for the character")),
                    }
                }
                if !literal.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut literal)));
                }
                parts.push(Part::Place(name));
            }
            one => literal.push(one),
        }
    }
    if !literal.is_empty() {
        parts.push(Part::Text(literal));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_are_places_unless_they_are_doubled() {
        let text = |text: &str| Part::Text(text.to_owned());
        let place = |name: &str| Part::Place(name.to_owned());
        for (template, expected) in [
            ("", vec![]),
            ("plain", vec![text("plain")]),
            ("{a}", vec![place("a")]),
            ("Bearer {a}", vec![text("Bearer "), place("a")]),
            ("{a}{b?}-{c}", vec![place("a"), place("b?"), text("-"), place("c")]),
            ("{{a}}", vec![text("{a}")]),
            ("{{{a}}}", vec![text("{"), place("a"), text("}")]),
            ("{{}}", vec![text("{}")]),
            ("{a}}}", vec![place("a"), text("}")]),
            ("{}", vec![place("")]),
            ("{a{b}", vec![place("a{b")]),
            ("é{ü}", vec![text("é"), place("ü")]),
        ] {
            assert_eq!(parse(template).unwrap(), expected, "{template}");
        }
        for (template, expected) in [
            ("{a", "is not closed; write `{{` for the character"),
            ("{{a}", "closes nothing; write `}}` for the character"),
            ("a}", "closes nothing"),
            ("{a}}", "closes nothing"),
            ("{", "is not closed"),
        ] {
            let error = parse(template).unwrap_err();
            assert!(error.starts_with(&format!("`{template}`: ")) && error.contains(expected), "{error}");
        }
    }
}
