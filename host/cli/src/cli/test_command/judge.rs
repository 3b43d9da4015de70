//! Compares the outcome of a case with what the case expects. Every problem is a text of one or more lines.

use serde_json::Value;
use similar::TextDiff;

use super::{cases::Expected, client::Ended};

/// The maximum number of lines of a diff that are shown.
const MAX_DIFF_LINES: usize = 60;
/// The maximum number of characters of a line that are shown.
const MAX_LINE_CHARS: usize = 400;

/// Returns how the outcome of a request differs from what the case expects.
pub fn problems(expected: &Expected, ended: &Ended) -> Vec<String> {
    let mut problems = Vec::new();
    match (&expected.error, &ended.result) {
        (None, Err(error)) => problems.push(format!("unexpected error: {error}")),
        (Some(wanted), Err(error)) if !error.contains(wanted.as_str()) => {
            problems.push(format!("the error does not contain `{wanted}`: {error}"));
        }
        (Some(wanted), Ok(result)) => match is_error(result) {
            true if text(result).contains(wanted.as_str()) => {}
            true => problems.push(format!("the error does not contain `{wanted}`: {}", text(result))),
            false => problems.push(format!("expected an error that contains `{wanted}`, got a result: {result}")),
        },
        (None, Ok(result)) if is_error(result) => {
            problems.push(format!("unexpected error: {}", text(result)));
        }
        (Some(_), Err(_)) | (None, Ok(_)) => {}
    }
    if let Ok(result) = &ended.result {
        problems.extend(in_result(expected, result));
    }
    let said = |what: &str, wanted: &[String], said: &[String]| {
        let missing = wanted.iter().filter(|wanted| !said.iter().any(|line| line.contains(wanted.as_str())));
        let all = if said.is_empty() { " nothing".to_owned() } else { format!("\n  {}", said.join("\n  ")) };
        missing.map(|wanted| format!("no {what} contains `{wanted}`; got:{all}")).collect::<Vec<_>>()
    };
    problems.extend(said("log record", &expected.logs, &ended.logs));
    problems.extend(said("progress report", &expected.progress, &ended.progress));
    problems
}

fn in_result(expected: &Expected, result: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let said = text(result);
    if let Some(wanted) = expected.text.as_ref().filter(|wanted| **wanted != said) {
        problems.push(format!("the text differs:\n{}", difference(wanted, &said)));
    }
    if let Some(pattern) = expected.text_matches.as_ref().filter(|pattern| !pattern.is_match(&said)) {
        problems.push(format!("the text does not match `{pattern}`: {said}"));
    }
    if let Some(wanted) = &expected.structured {
        // Only results of tools have a separate member for structured content. Otherwise the whole result is compared.
        let actual = if result.get("content").is_some() { result.get("structuredContent") } else { Some(result) };
        match actual {
            Some(actual) => problems.extend(missing(wanted, actual, "structured")),
            None => problems.push("there is no structured content".into()),
        }
    }
    problems
}

fn is_error(result: &Value) -> bool {
    result.get("isError").is_some_and(|is| is == true)
}

/// Returns all text of a result, one piece per line: of its blocks, messages or contents, the values of a completion, or the names of a
/// list.
pub fn text(result: &Value) -> String {
    let items = |key: &str| result.get(key).and_then(Value::as_array).into_iter().flatten();
    let inner = |item: &Value| item.get("text").and_then(Value::as_str).map(str::to_owned);
    let blocks = items("content").chain(items("contents")).filter_map(inner);
    let messages = items("messages").filter_map(|message| inner(message.get("content")?));
    let values = result.pointer("/completion/values").and_then(Value::as_array).into_iter().flatten();
    let values = values.filter_map(|value| value.as_str().map(str::to_owned));
    let lists = ["tools", "resources", "resourceTemplates", "prompts"].into_iter().flat_map(items);
    let names = lists.filter_map(|item| item.get("name").and_then(Value::as_str).map(str::to_owned));
    blocks.chain(messages).chain(values).chain(names).collect::<Vec<_>>().join("\n")
}

/// Returns what `expected` has and `actual` lacks. Objects are compared member by member, and lists item by item.
pub fn missing(expected: &Value, actual: &Value, at: &str) -> Vec<String> {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            let member = |(key, wanted): (&String, &Value)| {
                let at = format!("{at}.{key}");
                match actual.get(key) {
                    Some(actual) => missing(wanted, actual, &at),
                    None => vec![format!("{at} is missing")],
                }
            };
            expected.iter().flat_map(member).collect()
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            let pairs = expected.iter().zip(actual).enumerate();
            pairs.flat_map(|(index, (wanted, actual))| missing(wanted, actual, &format!("{at}[{index}]"))).collect()
        }
        (Value::Array(expected), Value::Array(actual)) => {
            vec![format!("{at} has {} items, not {}: {}", actual.len(), expected.len(), Value::from(actual.clone()))]
        }
        (Value::Number(expected), Value::Number(actual)) if expected.as_f64() == actual.as_f64() => Vec::new(),
        _ if expected == actual => Vec::new(),
        _ => vec![format!("{at} is {actual}, not {expected}")],
    }
}

/// Returns a diff of two texts, cut off after [`MAX_DIFF_LINES`].
pub fn difference(expected: &str, actual: &str) -> String {
    let mut lines = all_differences(expected, actual);
    let more = lines.len().saturating_sub(MAX_DIFF_LINES);
    lines.truncate(MAX_DIFF_LINES);
    if more > 0 {
        lines.push(format!("  … and {more} more lines"));
    }
    lines.join("\n")
}

/// Returns the lines of a diff of two texts, all of them.
pub fn all_differences(expected: &str, actual: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(expected, actual);
    let mut lines = Vec::new();
    for group in diff.grouped_ops(2) {
        if !lines.is_empty() {
            lines.push("  …".to_owned());
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            let line = change.value().trim_end_matches('\n');
            let end = line.char_indices().nth(MAX_LINE_CHARS).map(|(at, _)| at);
            let shown = line.get(..end.unwrap_or(line.len())).unwrap_or(line);
            lines.push(format!("{} {shown}{}", change.tag(), if end.is_some() { "…" } else { "" }));
        }
    }
    if expected.lines().eq(actual.lines()) {
        lines.push("  (only the line endings differ)".into());
    }
    lines
}

#[cfg(test)]
mod tests {
    use regex::Regex;
    use serde_json::json;

    use super::*;

    fn ended(result: Result<Value, &str>) -> Ended {
        Ended { result: result.map_err(str::to_owned), ..Ended::default() }
    }

    #[test]
    fn a_part_is_found_in_the_whole() {
        for (expected, actual, problem) in [
            (json!({}), json!({ "a": 1 }), None),
            (json!({ "a": 1 }), json!({ "a": 1.0, "b": 2 }), None),
            (json!({ "a": { "b": [1, { "c": 2 }] } }), json!({ "a": { "b": [1, { "c": 2, "d": 3 }] } }), None),
            (json!({ "a": 1 }), json!({ "b": 1 }), Some("structured.a is missing")),
            (json!({ "a": 1 }), json!({ "a": "1" }), Some("structured.a is \"1\", not 1")),
            (json!({ "a": [1] }), json!({ "a": [1, 2] }), Some("structured.a has 2 items, not 1: [1,2]")),
            (json!([{ "a": 1 }]), json!([{ "a": 2 }]), Some("structured[0].a is 2, not 1")),
            (json!({ "a": 1 }), json!([1]), Some("structured is [1], not {\"a\":1}")),
            (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_993_u64), None),
        ] {
            assert_eq!(
                missing(&expected, &actual, "structured").first().map(String::as_str),
                problem,
                "{expected} {actual}"
            );
        }
    }

    #[test]
    fn what_is_not_expected_is_a_problem() {
        let tool = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        let failed = json!({ "content": [{ "type": "text", "text": "it is Sunday" }], "isError": true });
        let text = |text: &str| Expected { text: Some(text.into()), ..Expected::default() };
        let error = |text: &str| Expected { error: Some(text.into()), ..Expected::default() };
        let matches = |text: &str| Expected { text_matches: Some(Regex::new(text).unwrap()), ..Expected::default() };
        let part = |part: Value| Expected { structured: Some(part), ..Expected::default() };
        for (expected, result, problem) in [
            (Expected::default(), Ok(tool("x")), None),
            (Expected::default(), Ok(failed.clone()), Some("unexpected error: it is Sunday")),
            (Expected::default(), Err("no such tool"), Some("unexpected error: no such tool")),
            (text("x"), Ok(tool("x")), None),
            (text("x"), Ok(tool("y")), Some("the text differs:\n- x\n+ y")),
            (text("x\n"), Ok(tool("x")), Some("only the line endings differ")),
            (matches("^x+$"), Ok(tool("xxx")), None),
            (matches("^x+$"), Ok(tool("xyx")), Some("the text does not match `^x+$`: xyx")),
            (error("Sunday"), Ok(failed.clone()), None),
            (error("Monday"), Ok(failed), Some("the error does not contain `Monday`: it is Sunday")),
            (error("such"), Err("no such tool"), None),
            (error("other"), Err("no such tool"), Some("the error does not contain `other`: no such tool")),
            (error("x"), Ok(tool("x")), Some("expected an error that contains `x`")),
            (part(json!({ "sum": 6 })), Ok(json!({ "content": [], "structuredContent": { "sum": 6, "n": 3 } })), None),
            (part(json!({ "sum": 6 })), Ok(tool("6")), Some("there is no structured content")),
            (part(json!({ "tools": [{ "name": "t" }] })), Ok(json!({ "tools": [{ "name": "t", "x": 1 }] })), None),
            (text("a\nb"), Ok(json!({ "tools": [{ "name": "a" }, { "name": "b" }] })), None),
            (text("a\nb"), Ok(json!({ "completion": { "values": ["a", "b"] } })), None),
            (
                text("a"),
                Ok(json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "a" } }] })),
                None,
            ),
            (text("a"), Ok(json!({ "contents": [{ "uri": "x:y", "text": "a" }] })), None),
        ] {
            let problems = problems(&expected, &ended(result.clone()));
            let all = problems.join("; ");
            match problem {
                Some(problem) => assert!(all.contains(problem), "{result:?}: {all}"),
                None => assert_eq!(all, "", "{result:?}"),
            }
        }
    }

    #[test]
    fn what_the_plugin_said_meanwhile_counts() {
        let said = Ended {
            result: Ok(json!({ "content": [] })),
            logs: vec!["info: step 1".into(), "info: step 2".into()],
            progress: vec!["1/2 counting".into()],
            ..Ended::default()
        };
        let wants = |logs: &[&str], progress: &[&str]| Expected {
            logs: logs.iter().map(ToString::to_string).collect(),
            progress: progress.iter().map(ToString::to_string).collect(),
            ..Expected::default()
        };
        assert_eq!(problems(&wants(&["step 2", "info"], &["1/2"]), &said), Vec::<String>::new());
        assert_eq!(
            problems(&wants(&["step 3"], &["2/2"]), &said),
            [
                "no log record contains `step 3`; got:\n  info: step 1\n  info: step 2",
                "no progress report contains `2/2`; got:\n  1/2 counting"
            ]
        );
    }

    #[test]
    fn a_difference_is_short() {
        let long: String = (0..1000).map(|line| format!("line {line}\n")).collect();
        let other = long.replace("line 500\n", "line five hundred\n");
        assert_eq!(
            difference(&long, &other),
            "  line 498\n  line 499\n- line 500\n+ line five hundred\n  line 501\n  line 502"
        );
        assert!(difference(&long, "").ends_with("… and 940 more lines"));
        assert!(difference("", &"x".repeat(1000)).len() < 420);
    }
}
