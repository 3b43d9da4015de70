//! Writes the parts that WebAssembly's binary format is made of.

use wasmparser::{BinaryReader, ExternalKind, FuncType, GlobalType, MemoryType, RefType, TableType, ValType};

/// How every module begins.
pub const MODULE: &[u8; 8] = b"\0asm\x01\0\0\0";

/// The ids of the sections of a component that hold a core module and a component.
pub const CORE_MODULE: u8 = 1;
pub const COMPONENT: u8 = 4;

/// Appends a section to a module or a component.
pub fn section(out: &mut Vec<u8>, id: u8, contents: &[u8]) {
    out.push(id);
    leb128(out, contents.len() as u64);
    out.extend_from_slice(contents);
}

/// Appends a section with a list of items, unless the list is empty.
pub fn items(out: &mut Vec<u8>, id: u8, items: &[Vec<u8>]) {
    if !items.is_empty() {
        section(out, id, &list(items));
    }
}

/// Returns a list: the number of its items, and the items.
pub fn list(items: &[Vec<u8>]) -> Vec<u8> {
    let mut contents = Vec::with_capacity(items.iter().map(Vec::len).sum::<usize>() + 5);
    leb128(&mut contents, items.len() as u64);
    items.iter().for_each(|item| contents.extend_from_slice(item));
    contents
}

/// Returns a list with one more item. `None`: the bytes are not a list.
pub fn longer(contents: &[u8], item: &[u8]) -> Option<Vec<u8>> {
    let mut reader = BinaryReader::new(contents, 0);
    let count = reader.read_var_u32().ok()?;
    let items = contents.get(contents.len() - reader.bytes_remaining()..)?;
    let mut longer = Vec::with_capacity(contents.len() + item.len() + 1);
    leb128(&mut longer, u64::from(count) + 1);
    longer.extend_from_slice(items);
    longer.extend_from_slice(item);
    Some(longer)
}

/// Returns a function's body with its size before it.
pub fn sized(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + 5);
    leb128(&mut out, body.len() as u64);
    out.extend_from_slice(body);
    out
}

/// Appends a number: seven bits in each byte, the lowest first, and the highest bit if more follow.
pub fn leb128(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            return out.push(low & 127);
        }
        out.push(low | 128);
    }
}

/// Appends a signed number. The last byte's second highest bit is the sign.
pub fn signed(out: &mut Vec<u8>, mut number: i64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if (number == 0 && low & 64 == 0) || (number == -1 && low & 64 != 0) {
            return out.push(low & 127);
        }
        out.push(low | 128);
    }
}

/// Appends a name, with its length before it.
pub fn name(out: &mut Vec<u8>, name: &str) {
    leb128(out, name.len() as u64);
    out.extend_from_slice(name.as_bytes());
}

/// Appends an opcode or a kind, and the index after it.
pub fn indexed(out: &mut Vec<u8>, first: &[u8], index: u32) {
    out.extend_from_slice(first);
    leb128(out, index.into());
}

/// Returns an index.
pub fn index(index: u32) -> Vec<u8> {
    let mut out = Vec::new();
    leb128(&mut out, index.into());
    out
}

/// Returns an import. `ty`: its kind and its type.
pub fn import(module: &str, own: &str, ty: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    name(&mut out, module);
    name(&mut out, own);
    out.extend_from_slice(ty);
    out
}

/// Returns an export, of a module or of a core instance.
pub fn export(own: &str, kind: ExternalKind, index: u32) -> Vec<u8> {
    let kind = match kind {
        ExternalKind::Func | ExternalKind::FuncExact => 0,
        ExternalKind::Table => 1,
        ExternalKind::Memory => 2,
        ExternalKind::Global => 3,
        ExternalKind::Tag => 4,
    };
    let mut out = Vec::new();
    name(&mut out, own);
    indexed(&mut out, &[kind], index);
    out
}

/// Appends the section with the start function, if there is one.
pub fn start(out: &mut Vec<u8>, function: Option<u32>) {
    if let Some(function) = function {
        section(out, 8, &index(function));
    }
}

/// Returns the type of a table of functions that has this size for good.
pub fn function_table(size: u32) -> Vec<u8> {
    let mut out = vec![0x70];
    limits(&mut out, size.into(), Some(size.into()));
    out
}

/// Appends a type of values. `None`: it refers to another type.
pub fn value_type(out: &mut Vec<u8>, ty: ValType) -> Option<()> {
    out.push(match ty {
        ValType::I32 => 0x7f,
        ValType::I64 => 0x7e,
        ValType::F32 => 0x7d,
        ValType::F64 => 0x7c,
        ValType::V128 => 0x7b,
        ValType::Ref(ty) => return reference_type(out, ty),
    });
    Some(())
}

pub fn reference_type(out: &mut Vec<u8>, ty: RefType) -> Option<()> {
    out.push(match ty {
        RefType::FUNCREF => 0x70,
        RefType::EXTERNREF => 0x6f,
        _ => return None,
    });
    Some(())
}

pub fn function_type(ty: &FuncType) -> Option<Vec<u8>> {
    let mut out = vec![0x60];
    for types in [ty.params(), ty.results()] {
        leb128(&mut out, types.len() as u64);
        types.iter().try_for_each(|ty| value_type(&mut out, *ty))?;
    }
    Some(out)
}

pub fn limits(out: &mut Vec<u8>, initial: u64, maximum: Option<u64>) {
    out.push(u8::from(maximum.is_some()));
    leb128(out, initial);
    if let Some(maximum) = maximum {
        leb128(out, maximum);
    }
}

/// `None`: the table is of an unusual kind.
pub fn table_type(ty: &TableType) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    reference_type(&mut out, ty.element_type)?;
    limits(&mut out, ty.initial, ty.maximum);
    (!ty.table64 && !ty.shared).then_some(out)
}

/// `None`: the memory is of an unusual kind.
pub fn memory_type(ty: &MemoryType) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    limits(&mut out, ty.initial, ty.maximum);
    (!ty.memory64 && !ty.shared && ty.page_size_log2.is_none()).then_some(out)
}

pub fn global_type(ty: &GlobalType) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    value_type(&mut out, ty.content_type)?;
    out.push(u8::from(ty.mutable));
    (!ty.shared).then_some(out)
}
