//! Estimates the work for a parsed page: finding its main content, serializing it, and converting it to Markdown. Each of these steps
//! visits a node once for every element around it, so deeply nested nodes weigh more.

use dom_query::{Document, NodeRef};

/// The maximum nesting depth of elements, because the conversion is recursive and each level takes space on the stack.
pub const MAX_DEPTH: usize = 400;
/// The maximum weight of all elements and texts: that of 100,000 elements with a depth of 20.
const MAX_WEIGHT: usize = 2_000_000;
/// The number of written bytes that weigh as much as an element.
const BYTES_PER_ELEMENT: usize = 64;
/// The number of bytes that weigh as much as an element if they are only scanned.
const SCANNED_BYTES_PER_ELEMENT: usize = 1000;
/// The number of table columns that weigh as much as an element.
const COLUMNS_PER_ELEMENT: usize = 8;

/// Whether a page's depth and weight are within the limits.
pub fn is_light(document: &Document) -> bool {
    let (mut weight, mut depth) = (0_usize, 0);
    let root = document.root();
    let mut next = root.first_child();
    while let Some(node) = next {
        weight = weight.saturating_add(of(&node, depth));
        if weight > MAX_WEIGHT {
            return false;
        }
        next = node.first_child();
        if next.is_some() {
            depth += 1;
            if depth >= MAX_DEPTH {
                return false;
            }
        }
        let mut last = node;
        while next.is_none() && depth > 0 {
            next = last.next_sibling();
            if next.is_none() {
                depth -= 1;
                let Some(parent) = last.parent() else { return true };
                last = parent;
            }
        }
        if next.is_none() {
            next = last.next_sibling();
        }
    }
    true
}

/// Returns the weight of one node.
fn of(node: &NodeRef, depth: usize) -> usize {
    if !node.is_element() {
        let text = node.text();
        let lines = text.bytes().filter(|byte| *byte == b'\n').count();
        // Each quote and list around the text adds marks at the start of each line.
        let written = depth.saturating_mul(text.len().saturating_add(lines.saturating_mul(depth)));
        return written / BYTES_PER_ELEMENT + searched(&text);
    }
    let mut weight = depth;
    for attribute in node.attrs() {
        weight = weight.saturating_add(1 + attribute.value.len() / BYTES_PER_ELEMENT + searched(&attribute.value));
        if &*attribute.name.local == "colspan" {
            let columns = attribute.value.trim().parse::<usize>().unwrap_or(0).min(1000);
            weight = weight.saturating_add(columns.saturating_mul(depth) / COLUMNS_PER_ELEMENT);
        }
    }
    weight
}

/// Returns the weight of escaping a text as HTML. The serializer searches for each of the characters to escape separately, so it scans some
/// bytes repeatedly, up to the next occurrence of another one.
fn searched(text: &str) -> usize {
    let (mut looked_at, mut ahead) = (0_usize, 0_usize);
    for byte in text.bytes().rev() {
        match byte {
            b'<' | b'>' => ahead = 0,
            b'&' | 0xc2 => looked_at = looked_at.saturating_add(ahead),
            _ => {}
        }
        ahead += 1;
    }
    looked_at / SCANNED_BYTES_PER_ELEMENT
}
