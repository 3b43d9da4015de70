//! Tests with pages that are designed to cause much work. None may take much longer than an ordinary page of the same size.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wharf_sdk::http::Response;

use crate::page;

/// The size of each page. Unoptimised builds use a smaller size, at which superlinear time is visible too.
const BYTES: usize = if cfg!(debug_assertions) { 400_000 } else { 1_500_000 };
/// The maximum time of a page, as a multiple of the time of the ordinary page.
const MAX_RATIO: u32 = 10;

fn repeated(unit: &str) -> String {
    unit.repeat(BYTES / unit.len())
}

fn numbered(unit: impl Fn(usize) -> String) -> String {
    let mut all = String::new();
    for number in 0.. {
        if all.len() >= BYTES {
            break;
        }
        all += &unit(number);
    }
    all
}

/// Returns the CPU time of this thread, which does not depend on other programs on the machine.
fn thread_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("never negative")
}

/// Returns the time to simplify a page or to reject it, and whether it was rejected as too much work.
fn took(html: &str) -> (Duration, bool) {
    let headers = vec![("content-type".to_owned(), b"text/html".to_vec())];
    let response = Response { status: 200, headers, body: html.into() };
    let began = thread_time();
    let read = page::read(&response, false);
    (thread_time() - began, read.is_ok())
}

#[test]
fn no_page_takes_much_longer_than_an_ordinary_one() {
    let paragraph =
        "<div class=\"a b\"><p>Some words of an ordinary page, with <a href=\"/x\">a link</a>, and more.</p></div>\n";
    let plain = format!("<html><body><article>{}</article></body></html>", repeated(paragraph));
    let (ordinary, is_read) = took(&plain);
    assert!(is_read);
    let within = |around: &str, times: usize, unit: &str| format!("{}{}", around.repeat(times), repeated(unit));
    let half = |unit: &str| unit.repeat(BYTES / 2 / unit.len());
    let fonts = |count: usize| (0..count).map(|number| format!("<font a={number}>")).collect::<String>();
    let deep = format!("{}x{}", "<div>".repeat(390), "</div>".repeat(390));
    let mut pages = vec![
        // Few elements with much content.
        ("deep text", within("<div>", 390, "some text, ")),
        ("deep paragraphs", within("<div>", 390, "<p>some text, and more of it, a sentence.")),
        ("deep and wide", deep.repeat(60)),
        ("quoted lines", within("<blockquote>", 390, "a\n")),
        ("quoted lines, less deep", within("<blockquote>", 20, "a\n")),
        ("quoted lines of code", format!("{}<pre>{}", "<blockquote>".repeat(380), repeated("a\n"))),
        ("lines in lists", within("<ul><li>", 190, "a\n")),
        ("formatting in each paragraph", fonts(1000) + &repeated("<p>x")),
        ("numbered formatting", numbered(|number| format!("<font a={number}><p>"))),
        ("formatting out of order, deep", half("<div>") + &half("<b><p></b>")),
        ("ends of paragraphs, deep", half("<div>") + &half("</p>")),
        ("ends of nothing, deep", half("<div>") + &half("</x>")),
        ("texts in a table", within("<table>", 1, "x<b>")),
        ("elements in a table", within("<table>", 1, "<div>")),
        ("bodies of a table", format!("<table>{}", "<tbody><tr><td>x</td></tr></tbody>".repeat(33_000))),
        ("rows of a table", format!("<table>{}", "<tr><td>x</td></tr>".repeat(49_000))),
        ("columns", within("<table><tr>", 1, "<td colspan=1000>")),
        ("attributes", format!("<p {}>x", numbered(|number| format!("a{number} ")))),
        ("the same attribute", format!("<p {}>x", repeated("a=1 "))),
        ("attributes of the body", numbered(|number| format!("<body a{number}>"))),
        ("an attribute without an end", format!("<p a=\"{}", repeated("a=1 "))),
        ("signs in an attribute", format!("<p><a href=\"{}\">some text, x</a>", repeated("&"))),
        ("signs in the title", format!("<title>{}</title><p>x", repeated("&"))),
        ("a long class", format!("<div class=\"{}\">x", repeated("ad "))),
        ("breaks", "<br>".repeat(90_000)),
        ("lists and comments", "<ul></ul>".repeat(40_000) + &repeated("<!---->")),
        ("objects in a script", format!("<script type=application/ld+json>{}</script><p>x", repeated("{\"a\":"))),
    ];
    for unit in [
        "<div>",
        "<b>",
        "<a>",
        "<a href=x>",
        "<table>",
        "<ul>",
        "<li>",
        "<ul><li>",
        "<blockquote>",
        "<table><tr><td>",
        "<b><p>",
        "<b><i><u><s><em>",
        "<b><div></b>",
        "<a><div></a>",
        "<a><p>",
        "<p>",
        "<p>x",
        "</p>",
        "<svg>",
        "<math><mi>",
        "<template>",
        "<select><option>",
        "<button>",
        "<nobr>",
        "<h1>",
        "<dd>",
        "<script>",
        "<script></script>",
        "<!---->",
        "<!--",
        "<!x>",
        "<?x>",
        "&amp;",
        "&",
        "&ampx",
        "&#1114111;",
        "<",
        "\0",
        "x",
        " ",
        "\n",
        "*",
        "<br>",
        "<img src=x>",
        "<div>x</div>",
        "<a href=x>x</a>",
        "<font>",
        "<table>x",
        "<frameset>",
    ] {
        pages.push((unit, repeated(unit)));
    }
    for (name, html) in pages {
        // A shared processor may be slow for a moment, so a page that seems slow is measured again, next to the ordinary one.
        let fast = took(&html).0 < ordinary * MAX_RATIO || (0..2).any(|_| took(&html).0 < took(&plain).0 * MAX_RATIO);
        assert!(fast, "{name} took more than {MAX_RATIO} times as long as the ordinary page, which took {ordinary:?}");
    }
}
