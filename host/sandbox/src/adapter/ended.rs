//! Converts the end of a command into an answer for the client.

use serde::Serialize;

use wharf_scope::adapter::Output;

use super::{command::Command, values};
use crate::{
    bindings::{tools::ToolResult, types::Content},
    contract::operation::{CallError, ToolAnswer},
};

impl Command<'_> {
    /// Returns the answer for a command that exited with `code`. `stderr`: the end of what it printed there. `most`: the maximum length of
    /// the answer; a longer one is an error.
    pub(crate) fn answer(self, code: i32, stdout: Vec<u8>, stderr: &str, most: usize) -> Result<ToolAnswer, CallError> {
        let is_error = !self.0.ok_exit.contains(&code);
        let mut text = readable(stdout, most)?;
        let mut structured = None;
        let ended = format!("The command ended with code {code}.");
        match self.0.output {
            Output::Text | Output::Json if is_error => {
                if stderr.is_empty() {
                    text.truncate(text.trim_end().len());
                } else {
                    stderr.clone_into(&mut text);
                }
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&ended);
            }
            Output::Text => {}
            Output::Json => return Ok(ToolAnswer::Structured(text)),
            Output::All => {
                let told = Ended { code, stdout: &text, stderr };
                let json = values::json(&told, most.saturating_sub(text.len()));
                structured = Some(json.map_err(|_| CallError::Output(most))?);
                if !stderr.is_empty() {
                    text.push_str(if text.is_empty() { "stderr:\n" } else { "\nstderr:\n" });
                    text.push_str(stderr);
                }
                if code != 0 {
                    text.push('\n');
                    text.push_str(&ended);
                }
            }
        }
        let content = vec![Content::Text(text)];
        Ok(ToolAnswer::Result(ToolResult { content, structured, is_error, more: None }))
    }
}

/// The exit code and the output of a command as structured content.
#[derive(Serialize)]
struct Ended<'a> {
    code: i32,
    stdout: &'a str,
    stderr: &'a str,
}

/// Converts the output of a command to text. Invalid UTF-8 is replaced, which may make the text longer.
fn readable(bytes: Vec<u8>, most: usize) -> Result<String, CallError> {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error.into_bytes(),
    };
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        if text.len() > most {
            return Err(CallError::Output(most));
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_scope::adapter::{CommandTool, Hints};

    fn tool(output: Output) -> CommandTool {
        CommandTool {
            name: "search".into(),
            description: "Searches".into(),
            argv: None,
            params: Vec::new(),
            stdin: None,
            ok_exit: vec![0, 1],
            output,
            hints: Hints::default(),
        }
    }

    #[test]
    fn how_it_ends_is_the_answer() {
        let text = |answer: Result<ToolAnswer, CallError>| match answer.unwrap() {
            ToolAnswer::Result(ToolResult { content, structured, is_error, .. }) => match content.as_slice() {
                [Content::Text(text)] => (text.clone(), structured, is_error),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        let answer =
            |tool: &CommandTool, code, stdout: &[u8], stderr| Command(tool).answer(code, stdout.to_vec(), stderr, 100);
        let mut tool = tool(Output::Text);
        assert_eq!(text(answer(&tool, 1, b"none\n", "")), ("none\n".into(), None, false));
        assert_eq!(text(answer(&tool, 0, b"a\xffb", "")).0, "a\u{fffd}b");
        for (stdout, stderr, expected) in [
            (&b""[..], "bad pattern", "bad pattern\nThe command ended with code 2."),
            (b"said \n\n", "", "said\nThe command ended with code 2."),
            (b"", "", "The command ended with code 2."),
        ] {
            let (told, _, is_error) = text(answer(&tool, 2, stdout, stderr));
            assert_eq!((told.as_str(), is_error), (expected, true));
        }
        tool.output = Output::Json;
        assert!(matches!(answer(&tool, 0, b"{}", ""), Ok(ToolAnswer::Structured(json)) if json == "{}"));
        tool.output = Output::All;
        let (told, structured, is_error) = text(answer(&tool, 7, b"out", "err"));
        assert_eq!((told.as_str(), is_error), ("out\nstderr:\nerr\nThe command ended with code 7.", true));
        assert_eq!(structured.unwrap(), r#"{"code":7,"stdout":"out","stderr":"err"}"#);
    }

    #[test]
    fn an_answer_that_would_be_too_long_is_not_made() {
        let mut tool = tool(Output::Text);
        for (output, stdout, most, fits) in [
            (Output::Text, &b"\xff\xff\xff"[..], 9, true),
            (Output::Text, b"\xff\xff\xff", 8, false),
            // The output counts as text, and again within `{"code":0,"stdout":"","stderr":""}`, where each NUL has six characters.
            (Output::All, b"\0\0", 2 + 34 + 12, true),
            (Output::All, b"\0\0", 2 + 34 + 11, false),
        ] {
            tool.output = output;
            let answer = Command(&tool).answer(0, stdout.to_vec(), "", most);
            assert_eq!(answer.is_ok(), fits, "{output:?} {most}: {answer:?}");
        }
    }
}
