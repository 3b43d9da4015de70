//! Gives the memory of a component room to grow.
//!
//! A memory that grows during a call costs a system call that changes the protection of pages, and one more when the memory is reset. Many
//! allocators grow it for each kind of block that they need first, which can take as long as the rest of a small call. Memory that an
//! instance has from the beginning costs nothing until it is used.
//!
//! A larger memory alone does not help, because an allocator uses the memory that the linker told it of and grows it for more. So the module
//! gets more memory than it sees: a global holds the size that it sees, and a function takes the place of `memory.grow`, which first uses up
//! what is already there. The only difference to the module is that an access beyond its memory does not trap if it is within this room.

use wasmparser::{FunctionBody, MemoryType, Operator, Parser, Payload, TypeRef};

use crate::{
    encode,
    link::{self, MAX_NESTING, Module},
    modules,
};

/// The pages of 64 KiB that are added.
const PAGES: u64 = 16;
/// The size of a page.
const PAGE_BYTES: u64 = 64 << 10;
/// The most pages that a 32-bit memory can have.
const MAX_PAGES: u64 = 65_536;

/// The ids of a module's sections.
const TYPES: u8 = 1;
const FUNCTIONS: u8 = 3;
const MEMORIES: u8 = 5;
const GLOBALS: u8 = 6;
const CODE: u8 = 10;
/// The sections of a module that come after its globals.
const LATER: [u8; 6] = [7, 8, 9, 12, CODE, 11];

/// Returns the component with more initial memory, and how many bytes more that is. `None`: it would not gain by it, or it is not clear that
/// it would do the same. The component has to be valid.
pub fn with_room(component: &[u8]) -> Option<(Vec<u8>, u64)> {
    if !one_uses_size(component)? {
        return None;
    }
    let mut added = None;
    let roomy = modules::replaced(component, MAX_NESTING, &mut |bytes| module(bytes, &mut added))?;
    added.map(|bytes| (roomy, bytes))
}

/// Whether exactly one module reads or changes the size of a memory. Several would have to agree about it.
fn one_uses_size(component: &[u8]) -> Option<bool> {
    let (mut modules, mut found) = (0, None);
    for payload in Parser::new(0).parse_all(component) {
        match payload.ok()? {
            Payload::Version { .. } => modules += 1,
            Payload::CodeSectionEntry(body) if found != Some(modules) && uses_size(&body)? => {
                if found.is_some() {
                    return Some(false);
                }
                found = Some(modules);
            }
            _ => {}
        }
    }
    Some(found.is_some())
}

fn uses_size(body: &FunctionBody<'_>) -> Option<bool> {
    let mut operators = body.get_operators_reader().ok()?;
    while !operators.eof() {
        if let Operator::MemoryGrow { .. } | Operator::MemorySize { .. } = operators.read().ok()? {
            return Some(true);
        }
    }
    Some(false)
}

/// Returns the module with more memory. `None`: it does not grow a memory of its own, or it has something that is not known here.
fn module(bytes: &[u8], added: &mut Option<u64>) -> Option<Vec<u8>> {
    let module = Module::read(bytes)?;
    let [memory] = module.memories.as_slice() else { return None };
    let imported = |is: fn(&TypeRef) -> bool| module.imports.iter().filter(|import| is(&import.ty)).count();
    let initial = memory.initial.saturating_add(PAGES).min(memory.maximum.unwrap_or(MAX_PAGES)).min(MAX_PAGES);
    let room = initial.checked_sub(memory.initial)?;
    if imported(|ty| matches!(ty, TypeRef::Memory(_))) > 0 || room == 0 {
        return None;
    }
    let functions = imported(|ty| matches!(ty, TypeRef::Func(_) | TypeRef::FuncExact(_))) + module.functions.len();
    let globals = imported(|ty| matches!(ty, TypeRef::Global(_))) + module.globals.len();
    let new = New { grow: u32::try_from(functions).ok()?, size: u32::try_from(globals).ok()? };
    let grown: Vec<_> = module.bodies.iter().map(|body| new.body(bytes, body)).collect::<Option<_>>()?;
    if grown.iter().all(|(_, grows)| !grows) {
        return None;
    }
    let mut bodies: Vec<_> = grown.into_iter().map(|(body, _)| body).collect();
    bodies.push(encode::sized(&new.grow()));

    let more_memory = encode::list(&[encode::memory_type(&MemoryType { initial, ..*memory })?]);
    let ty = u32::try_from(module.types.len()).ok()?;
    let global = global(i32::try_from(memory.initial).ok()?);
    let mut out = encode::MODULE.to_vec();
    let mut has_global = false;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.ok()?;
        if let Payload::CustomSection(section) = &payload
            && section.name().starts_with("metadata.code.")
        {
            // It refers to places in the code.
            return None;
        }
        let Some((id, range)) = payload.as_section() else { continue };
        let contents = bytes.get(link::range(range)?)?;
        if LATER.contains(&id) && !has_global {
            encode::items(&mut out, GLOBALS, std::slice::from_ref(&global));
            has_global = true;
        }
        match id {
            TYPES => encode::section(&mut out, id, &encode::longer(contents, &[0x60, 1, 0x7f, 1, 0x7f])?),
            FUNCTIONS => encode::section(&mut out, id, &encode::longer(contents, &encode::index(ty))?),
            MEMORIES => encode::section(&mut out, id, &more_memory),
            GLOBALS => {
                encode::section(&mut out, id, &encode::longer(contents, &global)?);
                has_global = true;
            }
            CODE => encode::items(&mut out, id, &bodies),
            _ => encode::section(&mut out, id, contents),
        }
    }
    *added = Some(room.checked_mul(PAGE_BYTES)?);
    Some(out)
}

/// Returns a mutable global with this value.
fn global(value: i32) -> Vec<u8> {
    let mut out = vec![0x7f, 1, 0x41];
    encode::signed(&mut out, value.into());
    out.push(0x0b);
    out
}

/// The indices of what a module gets besides its memory.
struct New {
    /// The function instead of `memory.grow`.
    grow: u32,
    /// The global with the size that the module sees, in pages.
    size: u32,
}

impl New {
    /// Returns a function's body with its size before it, and whether it grows the memory.
    fn body(&self, module: &[u8], body: &FunctionBody<'_>) -> Option<(Vec<u8>, bool)> {
        let bytes = |from: u64, to: u64| module.get(link::range(from..to)?);
        let mut operators = body.get_operators_reader().ok()?;
        let range = body.range();
        let mut out = Vec::new();
        let (mut copied, mut grows) = (range.start, false);
        while !operators.eof() {
            let (operator, begin) = operators.read_with_offset().ok()?;
            let (opcode, index) = match operator {
                Operator::MemoryGrow { .. } => (0x10, self.grow),
                Operator::MemorySize { .. } => (0x23, self.size),
                _ => continue,
            };
            grows |= matches!(operator, Operator::MemoryGrow { .. });
            out.extend_from_slice(bytes(copied, begin)?);
            encode::indexed(&mut out, &[opcode], index);
            copied = operators.original_position();
        }
        out.extend_from_slice(bytes(copied, range.end)?);
        Some((encode::sized(&out), grows))
    }

    /// Returns the body of the function that grows the memory by its parameter, in pages, and returns the size before that, or -1.
    fn grow(&self) -> Vec<u8> {
        const LOCAL_GET_PAGES: [u8; 2] = [0x20, 0];
        let mut get_size = Vec::new();
        encode::indexed(&mut get_size, &[0x23], self.size);
        let mut set_size = Vec::new();
        encode::indexed(&mut set_size, &[0x24], self.size);
        [
            // One more local: the pages that are there already.
            &[1, 1, 0x7f][..],
            &LOCAL_GET_PAGES,
            // memory.size
            &[0x3f, 0],
            &get_size,
            // i32.sub, local.tee 1, i32.gt_u, if
            &[0x6b, 0x22, 1, 0x4b, 0x04, 0x40],
            &LOCAL_GET_PAGES,
            // local.get 1, i32.sub, memory.grow, i32.const -1, i32.eq, if, i32.const -1, return, end, end
            &[0x20, 1, 0x6b, 0x40, 0, 0x41, 0x7f, 0x46, 0x04, 0x40, 0x41, 0x7f, 0x0f, 0x0b, 0x0b],
            // The size before, which stays on the stack.
            &get_size,
            &get_size,
            &LOCAL_GET_PAGES,
            // i32.add
            &[0x6a],
            &set_size,
            &[0x0b],
        ]
        .concat()
    }
}

#[cfg(test)]
mod tests {
    use wasmparser::Validator;

    use super::*;

    const GROWS: &str = r#"(func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
        (func (export "size") (result i32) (memory.size))"#;

    fn roomy(text: &str) -> Option<u64> {
        let component = wat::parse_str(text).unwrap();
        Validator::new().validate_all(&component).unwrap();
        let (roomy, bytes) = with_room(&component)?;
        Validator::new().validate_all(&roomy).unwrap();
        Some(bytes / PAGE_BYTES)
    }

    #[test]
    fn a_module_that_grows_its_memory_gets_room() {
        for (memory, expected) in [
            ("3", Some(16)),
            ("0", Some(16)),
            ("3 8", Some(5)),
            ("8 8", None),
            ("3 1000", Some(16)),
            ("65530", Some(6)),
            ("65536", None),
            ("i64 3", None),
        ] {
            let code = if memory.starts_with("i64") { "(func (drop (memory.grow (i64.const 1))))" } else { GROWS };
            let module = format!("(core module (memory {memory}) {code})");
            assert_eq!(roomy(&format!("(component {module})")), expected, "{memory}");
            assert_eq!(roomy(&format!("(component (component {module}) (core module))")), expected, "nested, {memory}");
        }
    }

    #[test]
    fn what_is_unusual_stays_as_it_is() {
        for (what, text) in [
            ("nothing grows", r#"(core module (memory 1) (func (result i32) (i32.load (i32.const 0))))"#.to_owned()),
            ("only the size is read", "(core module (memory 1) (func (result i32) (memory.size)))".to_owned()),
            ("two modules grow", format!("(core module (memory 1) {GROWS}) (core module (memory 1) {GROWS})")),
            (
                "another one sees the size",
                format!(
                    r#"(core module (memory 1) {GROWS})
                    (core module (import "a" "m" (memory 1)) (func (result i32) (memory.size)))"#
                ),
            ),
            ("the memory is another's", format!(r#"(core module (import "a" "m" (memory 1)) {GROWS})"#)),
            ("two memories", format!("(core module (memory 1) (memory 1) {GROWS})")),
            ("shared", format!("(core module (memory 1 2 shared) {GROWS})")),
            (
                "hints for branches",
                format!(r#"(core module (memory 1) {GROWS} (@custom "metadata.code.branch_hint" "\00"))"#),
            ),
        ] {
            assert_eq!(roomy(&format!("(component {text})")), None, "{what}");
        }
        assert_eq!(with_room(b""), None);
    }

    #[test]
    fn everything_else_of_the_module_stays() {
        let text = r#"(component (core module
            (type (func)) (import "a" "f" (func)) (import "a" "g" (global i32))
            (memory (export "memory") 2) (global (mut i64) (i64.const 5)) (table 1 funcref)
            (func $f (export "f") (param i32 i32) (local i64)
                (block (br_if 0 (i32.eq (memory.size) (memory.grow (memory.size)))) (call 0)))
            (elem (i32.const 0) $f) (data (i32.const 70000) "abc")
            (@custom "name-of-it" "x")))"#;
        let component = wat::parse_str(text).unwrap();
        let (roomy, _) = with_room(&component).unwrap();
        let sections = |component: &[u8]| {
            let mut sections = Vec::new();
            for payload in Parser::new(0).parse_all(component).map(Result::unwrap) {
                if let Some((id, range)) = payload.as_section() {
                    sections.push((id, component[link::range(range).unwrap()].to_vec()));
                }
            }
            // The first is the module.
            sections.split_off(1)
        };
        for ((id, before), (same, after)) in sections(&component).iter().zip(&sections(&roomy)) {
            assert_eq!(id, same);
            let changes = [TYPES, FUNCTIONS, MEMORIES, GLOBALS, CODE].contains(id);
            assert_eq!(before != after, changes, "section {id}");
        }
        assert_eq!(sections(&component).len(), sections(&roomy).len());
    }
}
