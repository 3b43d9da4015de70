//! How much work a page is once it is read: to find its contents, to write them, and to write them as Markdown. Each of these goes
//! through what is in an element for every element around it, so what lies deep weighs more.

use dom_query::{Document, NodeRef};

/// How deep elements may be nested. Each level takes a piece of the stack.
pub const DEEPEST: usize = 400;
/// The most that all elements and texts may weigh together: what a page of 100,000 elements weighs that are nested 20 deep.
const HEAVIEST: usize = 2_000_000;
/// So many bytes weigh as much as an element.
const PIECE: usize = 64;
/// So many bytes that are only looked at weigh as much as an element.
const GLANCE: usize = 1000;
/// So many columns weigh as much as an element.
const COLUMNS: usize = 8;

/// Whether the work is bearable.
pub fn is_light(document: &Document) -> bool {
    let (mut weight, mut depth) = (0_usize, 0);
    let root = document.root();
    let mut next = root.first_child();
    while let Some(node) = next {
        weight = weight.saturating_add(of(&node, depth));
        if weight > HEAVIEST {
            return false;
        }
        next = node.first_child();
        if next.is_some() {
            depth += 1;
            if depth >= DEEPEST {
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

/// What one node weighs.
fn of(node: &NodeRef, depth: usize) -> usize {
    if !node.is_element() {
        let text = node.text();
        let lines = text.bytes().filter(|byte| *byte == b'\n').count();
        // A quote and a list begin each line with marks of their own.
        let written = depth.saturating_mul(text.len().saturating_add(lines.saturating_mul(depth)));
        return written / PIECE + searched(&text);
    }
    let mut weight = depth;
    for attribute in node.attrs() {
        weight = weight.saturating_add(1 + attribute.value.len() / PIECE + searched(&attribute.value));
        if &*attribute.name.local == "colspan" {
            let columns = attribute.value.trim().parse::<usize>().unwrap_or(0).min(1000);
            weight = weight.saturating_add(columns.saturating_mul(depth) / COLUMNS);
        }
    }
    weight
}

/// What it weighs to write a text as HTML: of the characters that are written in another way, some are looked for up to the next one
/// of the others.
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
    looked_at / GLANCE
}
