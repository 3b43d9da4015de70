//! Parses a page with a limit on the work. By the rules of HTML parsing, some pages take far more time than their length suggests: an
//! element is compared with all open elements, formatting elements are reopened in each paragraph, and each attribute is compared with the
//! others of its tag. So the steps are counted, and parsing stops when there are too many.

use std::{
    borrow::Cow,
    cell::{Cell, Ref},
};

use dom_query::{Document, NodeId};
use html5ever::{
    Attribute, QualName,
    buffer_queue::BufferQueue,
    interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink},
    tendril::StrTendril,
    tokenizer::{Token, TokenSink, TokenSinkResult, Tokenizer},
    tree_builder::{TreeBuilder, TreeBuilderOpts},
};

/// The maximum number of elements of a page, because weighing them takes time.
pub const MAX_ELEMENTS: usize = 100_000;
/// The maximum number of times that an element or an attribute is inspected while a page is parsed. A page of some megabytes takes a tenth
/// of it.
const MAX_STEPS: u64 = 30_000_000;
/// The number of steps that each token costs, be it a tag or a text. Text that resembles tags consists of many tokens.
const TOKEN_STEPS: u64 = 32;

/// The formatting elements, which HTML parsers reopen in each paragraph until they are closed. A new one is compared with all open ones. At
/// most three identical ones are open, but as many as a page has tags if their attributes differ. So their attributes are dropped, which
/// the conversion does not use.
const FORMATTING: [&str; 13] =
    ["b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"];

/// Parses a page. Returns `None` if that takes too much work.
pub fn page(html: &str) -> Option<Document> {
    if steps_of_attributes(html) > MAX_STEPS {
        return None;
    }
    let options = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let bounded = Bounded { tree: TreeBuilder::new(Counted::default(), options) };
    let tokens = Tokenizer::new(bounded, Default::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    // The tokenizer pauses after each script. Scripts are not run, so parsing continues at once.
    while !input.is_empty() {
        drop(tokens.feed(&input));
    }
    tokens.end();
    let Counted { document, steps, .. } = tokens.sink.tree.sink;
    (steps.get() <= MAX_STEPS).then_some(document)
}

/// Returns an upper bound of the number of comparisons of attributes, each with all before it in its tag. All words between `<` and `>`
/// that are not in quotes count as attributes, whether or not a tag begins there.
fn steps_of_attributes(html: &str) -> u64 {
    let (mut steps, mut words, mut in_tag, mut in_word, mut quote) = (0_u64, 0_u64, false, false, None);
    let mut before = b' ';
    for byte in html.bytes() {
        match (in_tag, quote, byte) {
            (false, _, b'<') => (in_tag, in_word, words) = (true, false, 0),
            (false, ..) => {}
            (true, Some(end), _) if byte == end => (quote, in_word) = (None, false),
            (true, Some(_), _) => {}
            (true, None, b'>') => in_tag = false,
            (true, None, b'"' | b'\'') if before == b'=' => quote = Some(byte),
            (true, None, b'/' | b' ' | b'\t' | b'\n' | b'\r' | b'\x0c') => in_word = false,
            (true, None, _) if !in_word => {
                in_word = true;
                steps += words;
                words += 1;
            }
            (true, None, _) => {}
        }
        // There may be blanks between the `=` and the quote.
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
    steps
}

/// A token sink that passes tokens on to the tree builder until the work is too much.
struct Bounded {
    tree: TreeBuilder<NodeId, Counted>,
}

impl TokenSink for Bounded {
    type Handle = NodeId;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<NodeId> {
        match token {
            // These tokens are not used, and there may be as many as a page has characters.
            Token::CommentToken(_) | Token::ParseError(_) => TokenSinkResult::Continue,
            _ if self.tree.sink.steps.get() > MAX_STEPS => TokenSinkResult::Continue,
            mut token => {
                self.tree.sink.step(TOKEN_STEPS);
                if let Token::TagToken(tag) = &mut token
                    && FORMATTING.contains(&&*tag.name)
                {
                    tag.attrs.clear();
                }
                self.tree.process_token(token, line)
            }
        }
    }

    fn end(&self) {
        self.tree.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.tree.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// A document that counts the tree builder's operations on it.
#[derive(Default)]
struct Counted {
    document: Document,
    steps: Cell<u64>,
    elements: Cell<usize>,
    /// The number of attributes that were added to elements with attributes.
    added: Cell<u64>,
}

impl Counted {
    fn step(&self, steps: u64) {
        self.steps.set(self.steps.get().saturating_add(steps));
    }
}

impl TreeSink for Counted {
    type Handle = NodeId;
    type Output = Self;
    type ElemName<'a> = Ref<'a, QualName>;

    fn finish(self) -> Self {
        self
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> NodeId {
        self.document.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a NodeId) -> Ref<'a, QualName> {
        self.step(1);
        self.document.elem_name(target)
    }

    fn same_node(&self, one: &NodeId, other: &NodeId) -> bool {
        self.step(1);
        self.document.same_node(one, other)
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, flags: ElementFlags) -> NodeId {
        let elements = self.elements.get() + 1;
        self.elements.set(elements);
        self.step(if elements > MAX_ELEMENTS { MAX_STEPS } else { 1 + attributes.len() as u64 });
        self.document.create_element(name, attributes, flags)
    }

    fn create_comment(&self, text: StrTendril) -> NodeId {
        self.document.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> NodeId {
        self.document.create_pi(target, data)
    }

    fn append(&self, parent: &NodeId, child: NodeOrText<NodeId>) {
        self.step(1);
        self.document.append(parent, child);
    }

    fn append_based_on_parent_node(&self, element: &NodeId, before: &NodeId, child: NodeOrText<NodeId>) {
        self.step(1);
        self.document.append_based_on_parent_node(element, before, child);
    }

    fn append_doctype_to_document(&self, name: StrTendril, public: StrTendril, system: StrTendril) {
        self.document.append_doctype_to_document(name, public, system);
    }

    fn get_template_contents(&self, target: &NodeId) -> NodeId {
        self.document.get_template_contents(target)
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.document.set_quirks_mode(mode);
    }

    fn append_before_sibling(&self, sibling: &NodeId, child: NodeOrText<NodeId>) {
        self.step(1);
        self.document.append_before_sibling(sibling, child);
    }

    fn add_attrs_if_missing(&self, target: &NodeId, attributes: Vec<Attribute>) {
        let added = self.added.get() + attributes.len() as u64;
        self.added.set(added);
        self.step(added * attributes.len() as u64);
        self.document.add_attrs_if_missing(target, attributes);
    }

    fn remove_from_parent(&self, target: &NodeId) {
        self.step(1);
        self.document.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &NodeId, parent: &NodeId) {
        // The parent is updated in each child.
        let children = self.document.tree.child_ids_of_it(node, false).count();
        self.step(children as u64);
        self.document.reparent_children(node, parent);
    }

    fn is_mathml_annotation_xml_integration_point(&self, node: &NodeId) -> bool {
        self.document.is_mathml_annotation_xml_integration_point(node)
    }
}
