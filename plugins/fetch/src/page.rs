//! Turns a response into text for a model: the main content of a page as Markdown, and anything else unchanged; and of that the requested
//! part.

use dom_smoothie::{Config, Readability};
use wharf_sdk::{Error, Result, http::Response};

use crate::{
    charset, markdown,
    parse::{self, MAX_ELEMENTS},
    weight::{self, MAX_DEPTH},
};

const NOT_SIMPLIFIED: &str = "<error>Page failed to be simplified from HTML</error>";

/// The contents of a response, and a text to put before them.
pub struct Page {
    pub prefix: String,
    pub content: String,
}

/// Converts a response. With `raw`, a page is left unchanged.
pub fn read(response: &Response, raw: bool) -> Result<Page> {
    let content_type = content_type(response);
    let kind = content_type.to_ascii_lowercase();
    let text = charset::text(&response.body, &content_type);
    let starts_as_page = text.chars().take(100).collect::<String>().contains("<html");
    let is_page = starts_as_page || kind.contains("text/html") || kind.is_empty();
    if is_page && !raw {
        return Ok(Page { prefix: String::new(), content: simplified(&text)? });
    }
    let prefix =
        format!("Content type {content_type} cannot be simplified to markdown, but here is the raw content:\n");
    Ok(Page { prefix, content: text })
}

fn content_type(response: &Response) -> String {
    let values = response.headers.iter().filter(|(name, _)| name == "content-type");
    values.map(|(_, value)| String::from_utf8_lossy(value)).collect::<Vec<_>>().join(", ")
}

fn simplified(html: &str) -> Result<String> {
    let too_much = || {
        Error::failed(format!(
            "This page has more than {MAX_ELEMENTS} elements, nests them more than {MAX_DEPTH} deep, or is too much work in another way, \
             so that it cannot be simplified; ask for it with raw = true."
        ))
    };
    let light = |html: &str| parse::page(html).filter(weight::is_light).ok_or_else(too_much);
    let article =
        Readability::with_document(light(html)?, None, Some(Config::default())).and_then(|mut page| page.parse());
    let text = match article {
        // The content is HTML text again, and its tree may differ from the page's.
        Ok(article) => markdown::from_tree(&light(&article.content)?.root()),
        Err(_) => String::new(),
    };
    Ok(if text.trim().is_empty() { NOT_SIMPLIFIED.to_owned() } else { text })
}

/// Returns at most `max_length` characters from `start_index` on, and the next `start_index` if there are more.
pub fn part(content: &str, start_index: usize, max_length: usize) -> String {
    let mut rest = content.chars().skip(start_index);
    let part: String = rest.by_ref().take(max_length).collect();
    if part.is_empty() {
        return "<error>No more content available.</error>".to_owned();
    }
    if rest.next().is_none() {
        return part;
    }
    format!(
        "{part}\n\n<error>Content truncated. Call the fetch tool with a start_index of {} to get more content.</error>",
        start_index + max_length
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(content_type: Option<&str>, body: &str) -> Response {
        let headers = content_type.iter().map(|value| ("content-type".to_owned(), value.as_bytes().to_vec())).collect();
        Response { status: 200, headers, body: body.into() }
    }

    #[test]
    fn pages_are_told_by_their_type_or_their_beginning() {
        let raw = |kind: &str| {
            format!("Content type {kind} cannot be simplified to markdown, but here is the raw content:\n")
        };
        let html = "<html><body><p>Hello.</p></body></html>";
        let table = [
            (Some("text/html; charset=utf-8"), "<p>Hello.</p>", false, String::new(), "Hello."),
            (Some("text/plain"), html, false, String::new(), "Hello."),
            (None, "<p>Hello.</p>", false, String::new(), "Hello."),
            (Some("text/plain"), "<p>Hello.</p>", false, raw("text/plain"), "<p>Hello.</p>"),
            (Some("text/html"), html, true, raw("text/html"), html),
            (None, html, true, raw(""), html),
            (Some("text/html"), "", false, String::new(), NOT_SIMPLIFIED),
            (Some("text/html"), "<body> <img></body>", false, String::new(), NOT_SIMPLIFIED),
        ];
        for (content_type, body, wants_raw, prefix, content) in table {
            let page = read(&answer(content_type, body), wants_raw).unwrap();
            assert_eq!((page.prefix, &*page.content), (prefix, content), "{content_type:?} {body}");
        }
    }

    #[test]
    fn pages_that_would_take_too_long_or_too_much_of_the_stack_are_left_alone() {
        let deep = format!("{}x", "<div>".repeat(MAX_DEPTH));
        let wide = "<b>x</b>".repeat(MAX_ELEMENTS);
        for body in [deep, wide] {
            let problem = read(&answer(Some("text/html"), &body), false).err();
            assert!(matches!(problem, Some(Error::Failed(text)) if text.contains("raw = true")));
            assert!(read(&answer(Some("text/html"), &body), true).is_ok());
        }
        let nearly = format!("{}x", "<div>".repeat(MAX_DEPTH - 10));
        assert_eq!(read(&answer(Some("text/html"), &nearly), false).unwrap().content, "x");
    }

    #[test]
    fn parts_are_counted_in_characters_and_say_where_to_go_on() {
        let more = |at: usize| {
            format!(
                "\n\n<error>Content truncated. Call the fetch tool with a start_index of {at} to get more content.</error>"
            )
        };
        let none = "<error>No more content available.</error>";
        let table = [
            ("abc", 0, 3, "abc".to_owned()),
            ("abc", 0, 2, format!("ab{}", more(2))),
            ("abc", 1, 1, format!("b{}", more(2))),
            ("abc", 1, 2, "bc".to_owned()),
            ("abc", 2, 5000, "c".to_owned()),
            ("abc", 3, 1, none.to_owned()),
            ("abc", usize::MAX, 1, none.to_owned()),
            ("", 0, 5, none.to_owned()),
            ("é😀日", 1, 1, format!("😀{}", more(2))),
        ];
        for (content, start, length, expected) in table {
            assert_eq!(part(content, start, length), expected, "{content} {start} {length}");
        }
    }
}
