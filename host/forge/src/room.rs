//! Gives modules made by Go's compiler more initial memory.
//!
//! Go's linker gives a module one mebibyte besides its data, and the start of Go's runtime takes more, so every instance grows its memory a
//! few times. Each of these steps changes the protection of pages, and so does resetting them after the call. Memory that an instance has
//! from the beginning costs nothing until it is used.

use std::ops::Range;

use wasmparser::{BinaryReaderError, MemoryType, Parser, Payload, ProducersSectionReader};

use crate::encode;

/// The pages of 64 KiB that are added: as many as Go's linker gives.
const PAGES: u64 = 16;
/// The most pages that a 32-bit memory can have.
const MAX_PAGES: u64 = 65_536;
/// The first bytes of every module, and the id of the section with its memories.
const HEADER_BYTES: usize = 8;
const MEMORY_SECTION: u8 = 5;

/// Returns the module with more initial memory. A module with several memories, or an unusual one, stays as it is.
pub fn with_room(module: &[u8]) -> Result<Vec<u8>, BinaryReaderError> {
    let mut roomy = module.get(..HEADER_BYTES).unwrap_or_default().to_vec();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload?;
        let Some((id, range)) = payload.as_section() else { continue };
        let memories = match payload {
            Payload::MemorySection(section) => section.into_iter().collect::<Result<Vec<_>, _>>()?,
            _ => Vec::new(),
        };
        match memories.as_slice() {
            [memory] if !memory.memory64 && !memory.shared && memory.page_size_log2.is_none() => {
                encode::section(&mut roomy, MEMORY_SECTION, &with_more(memory));
            }
            _ => encode::section(&mut roomy, id, bytes(module, range)),
        }
    }
    Ok(roomy)
}

/// Returns the contents of a section with this memory, which gets more initial pages, up to its maximum.
fn with_more(memory: &MemoryType) -> Vec<u8> {
    let most = memory.maximum.unwrap_or(MAX_PAGES);
    let initial = memory.initial.max((memory.initial + PAGES).min(most));
    let mut contents = vec![1];
    encode::limits(&mut contents, initial, memory.maximum);
    contents
}

/// Returns the bytes at offsets that the parser has found in the module, so that they are in it.
fn bytes(module: &[u8], range: Range<u64>) -> &[u8] {
    let [begin, end] = [range.start, range.end].map(|offset| usize::try_from(offset).unwrap_or(usize::MAX));
    module.get(begin..end).unwrap_or_default()
}

/// Whether a `producers` section says that the module was written in Go.
pub fn names_go(producers: ProducersSectionReader<'_>) -> Result<bool, BinaryReaderError> {
    for field in producers {
        let field = field?;
        if field.name == "language" {
            for value in field.values {
                if value?.name == "Go" {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn initial(module: &[u8]) -> u64 {
        let memories = Parser::new(0).parse_all(module).find_map(|payload| match payload.unwrap() {
            Payload::MemorySection(section) => Some(section),
            _ => None,
        });
        memories.unwrap().into_iter().next().unwrap().unwrap().initial
    }

    /// Returns what is wrapped instead of this module, if it is another one.
    fn roomy(module: &[u8]) -> Option<Vec<u8>> {
        let roomy = crate::Outline::of(module).unwrap().go.then(|| with_room(module).unwrap());
        roomy.filter(|roomy| roomy != module)
    }

    #[test]
    fn modules_of_go_begin_with_more_memory() {
        let module = |memory: &str, producers: &str| {
            let text = format!(r#"(module {memory} (data "x") (func (export "f") (nop)) {producers})"#);
            wat::parse_str(text).unwrap()
        };
        let go = r#"(@producers (language "Go" "go1.27") (processed-by "Go cmd/compile" "go1.27"))"#;
        for (memory, expected) in [("3", 19), ("3 8", 8), ("8 8", 8), ("3 1000", 19), ("200", 216), ("65536", 65_536)] {
            let module = module(&format!("(memory {memory})"), go);
            assert!(crate::Outline::of(&module).unwrap().go, "{memory}");
            let roomy = with_room(&module).unwrap();
            assert_eq!(initial(&roomy), expected, "{memory}");
            let others = |module: &[u8]| {
                let sections = Parser::new(0).parse_all(module).filter_map(|payload| payload.unwrap().as_section());
                let others = sections.filter(|(id, _)| *id != MEMORY_SECTION);
                others.map(|(id, range)| (id, bytes(module, range).to_vec())).collect::<Vec<_>>()
            };
            assert_eq!(others(&roomy), others(&module), "{memory}");
        }
        for (memory, producers) in [
            ("(memory 3)", r#"(@producers (language "Rust" ""))"#),
            ("(memory 3)", ""),
            ("", go),
            ("(memory i64 3)", go),
            ("(memory 3 8 shared)", go),
            ("(memory 3) (memory 3)", go),
        ] {
            assert_eq!(roomy(&module(memory, producers)), None, "{memory} {producers}");
        }
    }
}
