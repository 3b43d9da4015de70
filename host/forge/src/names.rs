//! Cuts the names that the modules of a component give themselves and their functions.
//!
//! The text of a trap has the names of twenty functions. Nothing limits their length in a file, so that text could be larger than all memory.

use wasmparser::{BinaryReader, Name, NameSectionReader, Parser, Payload};

use crate::{
    encode,
    link::{self, MAX_NESTING},
    modules,
};

/// The section with the names, and the parts of it that are in the text of a trap.
const SECTION: &str = "name";
const MODULE: u8 = 0;
const FUNCTIONS: u8 = 1;
/// The id of the sections that have a name instead of a meaning.
const CUSTOM: u8 = 0;
/// The length of the longest name that stays whole, in bytes. Those of Rust and C++ are seldom longer.
const MAX_NAME_BYTES: usize = 256;

/// Returns the component with no name longer than 256 bytes, and with no others than those of modules and functions. `None`: it cannot be
/// read.
pub fn cut(component: &[u8]) -> Option<Vec<u8>> {
    let mut readable = true;
    let cut = modules::replaced(component, MAX_NESTING, &mut |module| {
        let cut = with_short_names(module);
        readable &= cut.is_some();
        cut
    });
    cut.filter(|_| readable)
}

fn with_short_names(module: &[u8]) -> Option<Vec<u8>> {
    let mut out = module.get(..8)?.to_vec();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload.ok()?;
        if let Payload::CustomSection(section) = &payload
            && section.name() == SECTION
        {
            encode::section(&mut out, CUSTOM, &names(section.data()));
        } else if let Some((id, range)) = payload.as_section() {
            encode::section(&mut out, id, module.get(link::range(range)?)?);
        }
    }
    Some(out)
}

/// Returns the contents of a section with the names of this one. It ends where this one cannot be read, as it does for the compiler.
fn names(section: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode::name(&mut out, SECTION);
    for name in NameSectionReader::new(BinaryReader::new(section, 0)).map_while(Result::ok) {
        let mut part = Vec::new();
        match name {
            Name::Module { name, .. } => {
                encode::name(&mut part, short(name));
                encode::section(&mut out, MODULE, &part);
            }
            Name::Function(functions) => {
                let named = functions.into_iter().map_while(Result::ok).map(|naming| {
                    let mut out = encode::index(naming.index);
                    encode::name(&mut out, short(naming.name));
                    out
                });
                encode::section(&mut out, FUNCTIONS, &encode::list(&named.collect::<Vec<_>>()));
            }
            _ => {}
        }
    }
    out
}

fn short(name: &str) -> &str {
    name.get(..name.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use wasmparser::Validator;

    use super::*;

    /// Returns the names of the modules and functions of a component, in their order.
    fn named(component: &[u8]) -> Vec<String> {
        let mut all = Vec::new();
        for payload in Parser::new(0).parse_all(component) {
            let Payload::CustomSection(section) = payload.unwrap() else { continue };
            if section.name() != SECTION {
                continue;
            }
            for name in NameSectionReader::new(BinaryReader::new(section.data(), 0)) {
                match name.unwrap() {
                    Name::Module { name, .. } => all.push(name.to_owned()),
                    Name::Function(functions) => {
                        all.extend(functions.into_iter().map(|one| one.unwrap().name.to_owned()))
                    }
                    _ => all.push("another".to_owned()),
                }
            }
        }
        all
    }

    #[test]
    fn names_are_cut_wherever_they_are() {
        let (long, wide) = ("n".repeat(1000), "é".repeat(500));
        let module =
            |name: &str| format!("(core module $\"{name}\" (func $\"{name}\" (local ${long} i32)) (func $short))");
        let text = format!("(component {} (component {} (component {})))", module(&long), module(&wide), module("x"));
        let cut = cut(&wat::parse_str(text).unwrap()).unwrap();
        Validator::new().validate_all(&cut).unwrap();
        let (long, wide) = ("n".repeat(256), "é".repeat(128));
        let expected = [&long, &long, "short", &wide, &wide, "short", "x", "x", "short"];
        assert_eq!(named(&cut), expected);
    }

    #[test]
    fn a_character_is_not_cut_in_two() {
        assert_eq!(short(&format!("a{}", "é".repeat(500))).len(), 255);
        assert_eq!(short("short"), "short");
    }

    #[test]
    fn what_cannot_be_read_of_the_names_is_left_out() {
        let functions = |named: &[u8]| [&[FUNCTIONS, u8::try_from(named.len()).unwrap()], named].concat();
        let whole = functions(&[1, 0, 1, b'a']);
        // A list that is shorter than it says, and a part that is.
        for after in [functions(&[2, 0, 1, b'b']), vec![FUNCTIONS, 100]] {
            let mut module = encode::MODULE.to_vec();
            let mut section = Vec::new();
            encode::name(&mut section, SECTION);
            section.extend([whole.clone(), after].concat());
            encode::section(&mut module, CUSTOM, &section);
            assert_eq!(named(&with_short_names(&module).unwrap()).first().unwrap(), "a");
        }
        assert!(cut(b"\0asm\x0d\0\x01\0\x01").is_none());
    }
}
