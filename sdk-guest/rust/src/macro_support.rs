//! Functions that the expansion of the attribute macros calls. They are not part of the public API and may change with any version.

use serde::de::DeserializeOwned;

use crate::{
    Call, Context, Error, Failure, FailureKind, IntoPrompt, IntoRead, IntoTool, PromptOutcome, ReadOutcome,
    TaskSupport, Tool, ToolDetails, ToolOutcome,
};
pub use crate::{Hints, PromptArgument, schema::no_arguments_schema};

/// What the `more` of a tool has if it asks its questions before a task begins.
pub const ASK_BEFORE_TASK: &str = r#"{"_meta":{"dev.wharf/ask-before-task":true}}"#;

/// Returns the bytes of a text as an array, for a custom section.
pub const fn section<const N: usize>(text: &str) -> [u8; N] {
    match text.as_bytes().first_chunk() {
        Some(bytes) => *bytes,
        None => [b' '; N],
    }
}

/// Returns the descriptor of a tool. Default details are omitted, because most tools set none and every list would carry them.
pub fn tool(name: &str, description: &str, input_schema: String, details: ToolDetails) -> Tool {
    let plain = details.title.is_none()
        && details.output_schema.is_none()
        && details.hints.is_none()
        && details.needs.is_empty()
        && details.task == TaskSupport::Forbidden
        && details.more.is_none();
    let details = (!plain).then_some(details);
    Tool { name: name.to_owned(), description: description.to_owned(), input_schema, details }
}

pub fn arguments<T: DeserializeOwned>(json: &str) -> Result<T, Error> {
    crate::arguments::parse(json).map_err(|error| Error::Failed(format!("the arguments do not fit: {error}")))
}

pub fn call_tool<T: IntoTool>(
    context: Context,
    run: impl FnOnce(&Call) -> Result<T, Error>,
) -> Result<ToolOutcome, Failure> {
    match run(&Call::new(context)).and_then(IntoTool::into_tool) {
        Ok(outcome) => Ok(outcome),
        Err(error) => error.into_parts().map(ToolOutcome::Ask),
    }
}

pub fn read_resource<T: IntoRead>(
    context: Context,
    run: impl FnOnce(&Call) -> Result<T, Error>,
) -> Result<ReadOutcome, Failure> {
    match run(&Call::new(context)).and_then(IntoRead::into_read) {
        Ok(outcome) => Ok(outcome),
        Err(error) => error.into_parts().map(ReadOutcome::Ask),
    }
}

pub fn get_prompt<T: IntoPrompt>(
    context: Context,
    run: impl FnOnce(&Call) -> Result<T, Error>,
) -> Result<PromptOutcome, Failure> {
    match run(&Call::new(context)).and_then(IntoPrompt::into_prompt) {
        Ok(outcome) => Ok(outcome),
        Err(error) => error.into_parts().map(PromptOutcome::Ask),
    }
}

pub fn unknown(kind: &str, name: &str) -> Failure {
    Failure { kind: FailureKind::InvalidParams, message: format!("unknown {kind}: {name}"), data: None }
}

pub fn resource_not_found(uri: &str) -> Failure {
    match Error::resource_not_found(uri).into_parts() {
        Err(failure) => failure,
        Ok(_) => unknown("resource", uri),
    }
}

/// Returns a prompt's argument or a template's variable by name, or `None` if it is absent.
pub fn prompt_argument(args: &[(String, String)], name: &str) -> Option<String> {
    args.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
}

/// Matches a URI against a template of literals and `{x}` or `{+x}`, and returns the variables. `{x}` does not match a `/`, `{+x}` does.
pub fn match_template(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
    let mut variables = Vec::new();
    if match_parts(template, uri, &mut variables) { Some(variables) } else { None }
}

fn match_parts(template: &str, uri: &str, variables: &mut Vec<(String, String)>) -> bool {
    let Some((literal, rest)) = template.split_once('{') else { return template == uri };
    let (Some(uri), Some((name, rest))) = (uri.strip_prefix(literal), rest.split_once('}')) else { return false };
    let (name, spans) = name.strip_prefix('+').map_or((name, false), |name| (name, true));
    let limit = if spans { uri.len() } else { uri.find('/').unwrap_or(uri.len()) };
    // Matching is greedy: the longest value of a variable is tried first.
    for end in (1..=limit).rev().filter(|end| uri.is_char_boundary(*end)) {
        let kept = variables.len();
        variables.push((name.to_owned(), uri[..end].to_owned()));
        if match_parts(rest, &uri[end..], variables) {
            return true;
        }
        variables.truncate(kept);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::match_template;

    #[test]
    fn templates() {
        type Variables = Option<&'static [(&'static str, &'static str)]>;
        let table: [(&str, &str, Variables); 6] = [
            ("note:///{day}", "note:///today", Some(&[("day", "today")])),
            ("note:///{day}", "note:///a/b", None),
            ("file:///{+path}", "file:///a/b.txt", Some(&[("path", "a/b.txt")])),
            ("x://{a}/{b}", "x://1/2", Some(&[("a", "1"), ("b", "2")])),
            ("x://{a}/c", "x://1/d", None),
            ("x://fixed", "x://fixed", Some(&[])),
        ];
        for (template, uri, expected) in table {
            let expected = expected.map(|pairs| {
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>()
            });
            assert_eq!(match_template(template, uri), expected, "{template} {uri}");
        }
    }
}
