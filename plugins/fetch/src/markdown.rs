//! Converts HTML to Markdown exactly like `markdownify`, which the reference server uses, so that prompts that rely on its texts, and
//! indices into them, keep working.
//!
//! The conversion walks the tree once. The conversion of an element depends on its surroundings only through a [`Place`], so the work does
//! not grow with the nesting depth, except for cells of nested tables.

use std::{cell::RefCell, collections::HashMap};

use dom_query::{NodeId, NodeRef};
use url::Url;

/// The surroundings of an element that affect its conversion.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// Whether the element is in a heading or a cell, which have no line breaks.
    inline: bool,
    /// Whether the element is in code, where characters are not escaped.
    verbatim: bool,
    /// Whether the element is in `pre`, where whitespace is preserved.
    pre: bool,
    /// Whether the element is in a list item.
    item: bool,
    /// The number of unordered lists around the element.
    lists: usize,
    /// The number of list items before the element in its list.
    earlier: u64,
    heads: &'a Heads,
}

/// Converts a tree to Markdown. The walk is recursive, so the caller must limit the depth of the tree.
pub fn from_tree(root: &NodeRef) -> String {
    let heads = Heads::default();
    let place = Place { inline: false, verbatim: false, pre: false, item: false, lists: 0, earlier: 0, heads: &heads };
    element(root, place).trim_matches('\n').to_owned()
}

/// A cache of which tables have a head, because each body of a table asks.
#[derive(Default)]
struct Heads(RefCell<HashMap<NodeId, bool>>);

impl Heads {
    fn has(&self, table: &NodeRef) -> bool {
        let look = || table.descendants_it().any(|inner| inner.has_name("thead"));
        *self.0.borrow_mut().entry(table.id).or_insert_with(look)
    }
}

/// Converts an element with its content.
fn element(node: &NodeRef, place: Place) -> String {
    let name = name(node);
    let inner = Place {
        inline: place.inline || is_heading(&name) || matches!(&*name, "td" | "th"),
        verbatim: place.verbatim || matches!(&*name, "pre" | "code" | "kbd" | "samp"),
        pre: place.pre || &*name == "pre",
        item: place.item || &*name == "li",
        lists: place.lists + usize::from(&*name == "ul"),
        earlier: 0,
        heads: place.heads,
    };
    let text = children(node, &name, inner);
    convert(node, &name, text, place)
}

/// Converts all children and joins them. Between two of them are as many line breaks as the one or the other requires, at most two.
fn children(node: &NodeRef, own: &str, mut inner: Place) -> String {
    let trims = trims_inside(own);
    let mut all = String::new();
    let mut pending = 0;
    for child in node.children_it(false) {
        let text = if child.is_element() {
            let text = element(&child, inner);
            inner.earlier += u64::from(child.has_name("li"));
            text
        } else if child.is_text() {
            text(&child, trims, inner)
        } else {
            continue;
        };
        if inner.pre {
            all.push_str(&text);
            continue;
        }
        if text.is_empty() {
            continue;
        }
        let content = text.trim_start_matches('\n');
        let leading = text.len() - content.len();
        let content = content.trim_end_matches('\n');
        let between = if pending > 0 && leading > 0 { pending.max(leading).min(2) } else { pending + leading };
        all.extend(std::iter::repeat_n('\n', between));
        all.push_str(content);
        pending = text.len() - leading - content.len();
    }
    all.extend(std::iter::repeat_n('\n', pending));
    all
}

/// Converts a text node, without the whitespace that HTML does not show.
fn text(node: &NodeRef, trims: bool, place: Place) -> String {
    let raw = node.text();
    let (before, after) = (node.prev_sibling(), node.next_sibling());
    let next_to_block =
        [&before, &after].map(|sibling| sibling.as_ref().is_some_and(|node| trims_outside(&name(node))));
    let at_edge = [trims && before.is_none(), trims && after.is_none()];
    if raw.trim().is_empty() && (next_to_block.contains(&true) || at_edge.contains(&true)) {
        return String::new();
    }
    let mut text = if place.pre { raw.to_string() } else { single_blanks(&raw) };
    if !place.verbatim {
        text = text.replace('*', "\\*").replace('_', "\\_");
    }
    let [trim_start, trim_end] = [next_to_block[0] || at_edge[0], next_to_block[1] || at_edge[1]];
    let trimmed = if trim_start { text.trim_start_matches([' ', '\t', '\r', '\n']) } else { &text };
    let trimmed = if trim_end { trimmed.trim_end() } else { trimmed };
    trimmed.to_owned()
}

/// Collapses each run of whitespace to one character: a line break if the run has one, otherwise a blank.
fn single_blanks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank: Option<char> = None;
    for character in text.chars() {
        match character {
            '\n' | '\r' => blank = Some('\n'),
            ' ' | '\t' => blank = blank.or(Some(' ')),
            _ => {
                out.extend(blank.take());
                out.push(character);
            }
        }
    }
    out.extend(blank);
    out
}

/// Converts an element whose children are already converted to `text`.
fn convert(node: &NodeRef, name: &str, text: String, place: Place) -> String {
    match name {
        "a" => link(node, text, place),
        "b" | "strong" => marked("**", text, place),
        "em" | "i" => marked("*", text, place),
        "del" | "s" => marked("~~", text, place),
        "sub" | "sup" => marked("", text, place),
        "code" | "kbd" | "samp" => code(text, place),
        "q" => format!("\"{text}\""),
        "br" if place.inline => format!("{text} "),
        "br" => format!("  \n{text}"),
        "hr" => "\n\n---\n\n".to_owned(),
        "img" => image(node, place),
        "video" => video(node, text, place),
        "script" | "style" => String::new(),
        "div" | "article" | "section" | "dl" => block(text.trim(), place),
        "p" => block(text.trim_matches([' ', '\t', '\r', '\n']), place),
        "blockquote" => quote(text.trim_matches([' ', '\t', '\r', '\n']), place),
        "dd" => definition(text.trim(), place),
        "dt" => term(text.trim(), place),
        "ul" | "ol" => list(node, &text, place),
        "li" => item(node, text.trim(), place),
        "pre" => preformatted(&text),
        "table" => format!("\n\n{}\n\n", text.trim()),
        "caption" => format!("{}\n\n", text.trim()),
        "figcaption" => format!("\n\n{}\n\n", text.trim()),
        "td" | "th" => format!(" {}{}", text.trim().replace('\n', " "), " |".repeat(columns(node))),
        "tr" => row(node, &text, place),
        _ if is_heading(name) => heading(name, text, place),
        _ => text,
    }
}

fn name(node: &NodeRef) -> String {
    node.node_name().map(|name| name.to_string()).unwrap_or_default()
}

fn is_heading(name: &str) -> bool {
    name.strip_prefix('h').is_some_and(|level| level.starts_with(|digit: char| digit.is_ascii_digit()))
}

/// Whether whitespace at the edges inside of an element is not shown.
fn trims_inside(name: &str) -> bool {
    is_heading(name)
        || matches!(
            name,
            "p" | "blockquote"
                | "article"
                | "div"
                | "section"
                | "ol"
                | "ul"
                | "li"
                | "dl"
                | "dt"
                | "dd"
                | "table"
                | "thead"
                | "tbody"
                | "tfoot"
                | "tr"
                | "td"
                | "th"
        )
}

fn trims_outside(name: &str) -> bool {
    trims_inside(name) || name == "pre"
}

/// Returns an attribute that exists and is not empty.
fn attribute(node: &NodeRef, name: &str) -> Option<String> {
    node.attr(name).map(|value| value.to_string()).filter(|value| !value.is_empty())
}

/// Returns the address in an attribute. An absolute URL is normalized like in a browser.
fn address(node: &NodeRef, name: &str) -> Option<String> {
    let value = attribute(node, name)?;
    Some(Url::parse(&value).map_or(value, Into::into))
}

fn title(node: &NodeRef) -> String {
    attribute(node, "title").map(|title| format!(" \"{}\"", title.replace('"', "\\\""))).unwrap_or_default()
}

/// Puts the text between the marks of an inline element, with the blanks at its edges outside of them.
fn within(text: &str, mark: impl FnOnce(&str) -> String) -> String {
    let inner = text.trim();
    if inner.is_empty() {
        return String::new();
    }
    let [before, after] = [text.starts_with(' '), text.ends_with(' ')].map(|blank| if blank { " " } else { "" });
    format!("{before}{}{after}", mark(inner))
}

fn marked(mark: &str, text: String, place: Place) -> String {
    if place.verbatim { text } else { within(&text, |inner| format!("{mark}{inner}{mark}")) }
}

fn code(text: String, place: Place) -> String {
    if place.verbatim {
        return text;
    }
    within(&text, |inner| {
        let longest = inner.split(|character| character != '`').map(str::len).max().unwrap_or(0);
        let (mark, blank) = ("`".repeat(longest + 1), if longest > 0 { " " } else { "" });
        format!("{mark}{blank}{inner}{blank}{mark}")
    })
}

fn link(node: &NodeRef, text: String, place: Place) -> String {
    if place.verbatim {
        return text;
    }
    let href = address(node, "href");
    let title = title(node);
    if let Some(href) = &href
        && title.is_empty()
        && text.trim().replace("\\_", "_") == **href
    {
        return format!("<{href}>");
    }
    match href {
        Some(href) => within(&text, |inner| format!("[{inner}]({href}{title})")),
        // A link without a target is written as its text.
        None => text.trim().to_owned(),
    }
}

fn image(node: &NodeRef, place: Place) -> String {
    let alt = attribute(node, "alt").unwrap_or_default();
    if place.inline {
        return alt;
    }
    format!("![{alt}]({}{})", address(node, "src").unwrap_or_default(), title(node))
}

fn video(node: &NodeRef, text: String, place: Place) -> String {
    if place.inline {
        return text;
    }
    let own = address(node, "src");
    let source = || node.descendants_it().filter(|node| node.has_name("source")).find_map(|node| address(&node, "src"));
    match (own.or_else(source), address(node, "poster")) {
        (Some(src), Some(poster)) => format!("[![{text}]({poster})]({src})"),
        (Some(src), None) => format!("[{text}]({src})"),
        (None, Some(poster)) => format!("![{text}]({poster})"),
        (None, None) => text,
    }
}

fn block(text: &str, place: Place) -> String {
    match text {
        _ if place.inline => format!(" {text} "),
        "" => String::new(),
        _ => format!("\n\n{text}\n\n"),
    }
}

fn heading(name: &str, text: String, place: Place) -> String {
    if place.inline {
        return text;
    }
    let digits: String = name.chars().skip(1).take_while(char::is_ascii_digit).collect();
    let level = digits.parse().unwrap_or(6_usize).clamp(1, 6);
    format!("\n\n{} {}\n\n", "#".repeat(level), one_line(text.trim()))
}

/// Collapses each run of blanks and line breaks to one blank.
fn one_line(text: &str) -> String {
    single_blanks(text).replace('\n', " ")
}

fn quote(text: &str, place: Place) -> String {
    match text {
        _ if place.inline => format!(" {text} "),
        "" => "\n".to_owned(),
        _ => {
            format!("\n{}\n\n", lines(text, |line| if line.is_empty() { ">".to_owned() } else { format!("> {line}") }))
        }
    }
}

fn definition(text: &str, place: Place) -> String {
    match text {
        _ if place.inline => format!(" {text} "),
        "" => "\n".to_owned(),
        _ => format!("{}\n", hanging(":   ", text)),
    }
}

fn term(text: &str, place: Place) -> String {
    let text = one_line(text);
    match &*text {
        _ if place.inline => format!(" {text} "),
        "" => "\n".to_owned(),
        _ => format!("\n\n{text}\n"),
    }
}

fn list(node: &NodeRef, text: &str, place: Place) -> String {
    if place.item {
        return format!("\n{}", text.trim_end());
    }
    let mut next = node.next_sibling();
    while let Some(sibling) = &next
        && !(sibling.is_element() || sibling.is_nonempty_text())
    {
        next = sibling.next_sibling();
    }
    let before_paragraph = next.is_some_and(|sibling| !matches!(&*name(&sibling), "ul" | "ol"));
    format!("\n\n{text}{}", if before_paragraph { "\n" } else { "" })
}

fn item(node: &NodeRef, text: &str, place: Place) -> String {
    if text.is_empty() {
        return "\n".to_owned();
    }
    let bullet = match node.parent().filter(|parent| parent.has_name("ol")) {
        Some(list) => {
            let start = attribute(&list, "start").and_then(|start| start.parse::<u64>().ok()).unwrap_or(1);
            format!("{}. ", start.saturating_add(place.earlier))
        }
        // An item outside of any list is written as in a list of the third level.
        None => format!("{} ", ['-', '*', '+'].get(place.lists % 3).unwrap_or(&'*')),
    };
    format!("{}\n", hanging(&bullet, text))
}

/// Indents lines like a list item: the first begins with a mark, and the others are indented by its width.
fn hanging(mark: &str, text: &str) -> String {
    let blanks = " ".repeat(mark.len());
    let moved = lines(text, |line| if line.is_empty() { String::new() } else { format!("{blanks}{line}") });
    format!("{mark}{}", moved.get(mark.len()..).unwrap_or_default())
}

fn lines(text: &str, change: impl Fn(&str) -> String) -> String {
    text.split('\n').map(change).collect::<Vec<_>>().join("\n")
}

fn preformatted(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let blank = text.find(|character| !matches!(character, ' ' | '\n')).unwrap_or(text.len());
    let (before, _) = text.split_at(blank);
    let (_, text) = text.split_at(before.rfind('\n').map_or(0, |end| end + 1));
    format!("\n\n```\n{}\n```\n\n", text.trim_end_matches([' ', '\n']))
}

/// Returns the number of columns that a cell spans.
fn columns(cell: &NodeRef) -> usize {
    let said = attribute(cell, "colspan").filter(|span| span.bytes().all(|byte| byte.is_ascii_digit()));
    said.map_or(1, |span| span.parse().unwrap_or(usize::MAX).clamp(1, 1000))
}

/// Converts a row of a table. The first row is followed by the delimiter line.
fn row(node: &NodeRef, text: &str, place: Place) -> String {
    let parent = node.parent();
    let parent_name = parent.as_ref().map(name).unwrap_or_default();
    let text = format!("|{text}\n");
    if node.prev_element_sibling().is_some() {
        return text;
    }
    let cells: Vec<NodeRef> = node.descendants_it().filter(|cell| cell.has_name("td") || cell.has_name("th")).collect();
    let width = cells.iter().map(columns).sum();
    let rule = |mark: &str| format!("| {} |\n", vec![mark; width].join(" | "));
    let within = |node: &Option<NodeRef>, name: &str| {
        node.as_ref().map_or(0, |node| node.descendants_it().filter(|inner| inner.has_name(name)).take(2).count())
    };
    let is_head =
        cells.iter().all(|cell| cell.has_name("th")) || (parent_name == "thead" && within(&parent, "tr") == 1);
    let table = || parent.as_ref().and_then(NodeRef::parent);
    let no_head = parent_name != "tbody" || !table().is_some_and(|table| place.heads.has(&table));
    let first_body =
        parent_name == "tbody" && parent.as_ref().is_some_and(|body| body.prev_element_sibling().is_none());
    if is_head {
        format!("{text}{}", rule("---"))
    } else if no_head || parent_name == "table" || first_body {
        format!("{}{}{text}", rule(""), rule("---"))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use dom_query::Document;

    use super::*;

    fn from_html(html: &str) -> String {
        from_tree(&Document::fragment(html).root())
    }

    /// Fragments, and their conversions by markdownify 1.2.
    #[test]
    fn texts_are_those_of_markdownify() {
        let table = [
            ("<p>a *b* c_d</p>", "a \\*b\\* c\\_d"),
            ("<b> x </b>y<i></i>", " **x** y"),
            ("<p>one</p><p>two</p>", "one\n\ntwo"),
            ("<h1>A\n b</h1>text", "# A b\n\ntext"),
            ("<h9>deep</h9>", "###### deep"),
            ("<p>a<br>b</p>", "a  \nb"),
            ("<h2>a<br>b<p>c</p></h2>", "## a b c"),
            (
                "<ul><li>a<ul><li>b<ul><li>c<ul><li>d</li></ul></li></ul></li></ul></li></ul>",
                "* a\n  + b\n    - c\n      * d",
            ),
            ("<ol start=\"3\"><li>a</li><!-- --><li>b<p>c</p></li></ol>after", "3. a\n4. b\n\n   c\n\nafter"),
            ("<li>alone</li>", "- alone"),
            ("<ol><li></li><li>x</li></ol>", "2. x"),
            ("<a href=\"https://x.test/a_b\">https://x.test/a_b</a>", "<https://x.test/a_b>"),
            ("<a href=\"/r\" title=\"t &quot;q&quot;\"> r </a>", " [r](/r \"t \\\"q\\\"\") "),
            ("<a href=\"/r\"> </a><a>n </a>", "n"),
            ("<code>a`b*</code><code> </code>", "`` a`b* ``"),
            ("<pre> \n\n a\n  b \n\n</pre>", "```\n a\n  b\n```"),
            ("<pre><code>x_y\n</code></pre>", "```\nx_y\n```"),
            ("<blockquote><p>a</p>\n\n<p>b</p></blockquote>", "> a\n>\n> b"),
            ("<blockquote></blockquote>", ""),
            ("<dl><dt>t\nu</dt><dd>a<p>b</p></dd><dd></dd></dl>", "t u\n:   a\n\n    b"),
            ("<p>a <img src=\"i.png\" alt=\"i\" title=\"t\"></p>", "a ![i](i.png \"t\")"),
            ("<h1><img src=\"i.png\" alt=\"i\"></h1>", "# i"),
            (
                "<table><tr><th>a</th><th>b</th></tr><tr><td>1\n2</td><td>3</td></tr></table>",
                "| a | b |\n| --- | --- |\n| 1 2 | 3 |",
            ),
            ("<table><tr><td colspan=2>a</td></tr></table>", "|  |  |\n| --- | --- |\n| a | |"),
            (
                "<table><thead><tr><td>a</td></tr></thead><tbody><tr><td>b</td></tr></tbody></table>",
                "| a |\n| --- |\n| b |",
            ),
            ("<table><tbody><tr><td>a</td></tr></tbody></table>", "|  |\n| --- |\n| a |"),
            ("<table><tr></tr></table>", "|\n|  |"),
            ("<video src=\"v.mp4\" poster=\"p.png\">v</video>", "[![v](p.png)](v.mp4)"),
            ("<video><source src=\"v.webm\">v</video>", "[v](v.webm)"),
            ("<q>q</q><sub> 1 </sub><del>d</del>", "\"q\" 1 ~~d~~"),
            ("<div>a<div>b</div>c</div>", "a\n\nb\n\nc"),
            ("<p> \n a \t b \n c </p> \n d", "a b\nc\n\nd"),
            ("<p>a</p><hr><figure><figcaption>c</figcaption></figure>", "a\n\n---\n\nc"),
            ("a<!-- c -->b", "ab"),
            ("<p>\u{a0}</p>x", "x"),
            ("<script>x</script><style>y</style>z", "z"),
        ];
        for (html, expected) in table {
            assert_eq!(from_html(html), expected, "{html}");
        }
    }

    #[test]
    fn addresses_that_stand_by_themselves_are_written_as_browsers_do() {
        let html = "<a href=\"HTTPS://Example.org\">x</a> <a href=\"a b\">y</a>";
        assert_eq!(from_html(html), "[x](https://example.org/) [y](a b)");
    }
}
