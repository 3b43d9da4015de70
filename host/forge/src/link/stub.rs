//! Makes the module that takes the place of a linked one.

use std::collections::BTreeSet;

use wasmparser::{ExternalKind, FuncType, TypeRef};

use super::{
    merge::{Bound, Member},
    module::Module,
    names::{LINKED, at, exported, kind_of, space, start_of},
    types::Types,
};
use crate::encode;

/// Returns a module that writes the functions that the member imports from outside into the table of the linked module, exports again those
/// of the member's exports that are used, and has something else under the names of the others. `table`: the size of the table.
pub fn stub(member: &Member<'_>, bound: &Bound, table: u32, used: &BTreeSet<(u32, &str)>) -> Option<Vec<u8>> {
    let module = &member.module;
    let mut stub = Stub::default();
    let nothing = FuncType::new([], []);
    for (number, ty) in &bound.functions {
        let import = module.imports.get(*number)?;
        let ty = stub.types.description(ty)?;
        stub.import(import.module, import.name, &ty);
    }
    stub.functions = u32::try_from(bound.functions.len()).ok()?;
    if stub.functions > 0 {
        stub.import(LINKED, LINKED, &[vec![1], encode::function_table(table)].concat());
        stub.tables = 1;
    }
    let start = match module.start {
        Some(_) => {
            let ty = stub.types.description(&nothing)?;
            stub.import(LINKED, &start_of(member.instance), &ty);
            let start = stub.functions;
            stub.functions += 1;
            Some(start)
        }
        None => None,
    };
    let (exported_types, mut missing) = (Exported::of(module), Vec::new());
    for export in &module.exports {
        let is_used = used.contains(&(member.instance, export.name));
        if !is_used && matches!(export.kind, ExternalKind::Func | ExternalKind::Global) {
            missing.push(export);
            continue;
        }
        let ty = match exported_types.type_of(export.kind, export.index)? {
            TypeRef::Func(ty) => stub.types.description(module.type_of(ty)?)?,
            TypeRef::Table(ty) => [vec![1], encode::table_type(&ty)?].concat(),
            TypeRef::Memory(ty) => [vec![2], encode::memory_type(&ty)?].concat(),
            TypeRef::Global(ty) => [vec![3], encode::global_type(&ty)?].concat(),
            _ => return None,
        };
        stub.import(LINKED, &exported(member.instance, export.name), &ty);
        let next = match export.kind {
            ExternalKind::Func => &mut stub.functions,
            ExternalKind::Table => &mut stub.tables,
            ExternalKind::Memory => &mut stub.memories,
            ExternalKind::Global => &mut stub.globals,
            _ => return None,
        };
        let index = *next;
        *next += 1;
        stub.export(export.name, export.kind, index);
    }
    let (function, global) = (stub.functions, stub.globals);
    for export in missing {
        stub.export(export.name, export.kind, if export.kind == ExternalKind::Func { function } else { global });
    }
    let nothing = stub.types.description(&nothing)?;
    Some(stub.finish(&nothing, bound, start))
}

/// The types of what a module exports: its imports of each kind come before what it defines.
struct Exported<'a> {
    module: &'a Module<'a>,
    /// The functions, tables, memories and globals that it imports.
    imports: [Vec<TypeRef>; 4],
}

impl<'a> Exported<'a> {
    fn of(module: &'a Module<'a>) -> Self {
        let mut imports: [Vec<TypeRef>; 4] = Default::default();
        for import in &module.imports {
            if let Some(imports) = kind_of(import.ty).and_then(space).and_then(|space| imports.get_mut(space)) {
                imports.push(import.ty);
            }
        }
        Self { module, imports }
    }

    fn type_of(&self, kind: ExternalKind, index: u32) -> Option<TypeRef> {
        let imported = self.imports.get(space(kind)?)?;
        if let Some(ty) = at(imported, index) {
            return Some(*ty);
        }
        let index = index.checked_sub(u32::try_from(imported.len()).ok()?)?;
        Some(match kind {
            ExternalKind::Func => TypeRef::Func(*at(&self.module.functions, index)?),
            ExternalKind::Table => TypeRef::Table(*at(&self.module.tables, index)?),
            ExternalKind::Memory => TypeRef::Memory(*at(&self.module.memories, index)?),
            _ => TypeRef::Global(at(&self.module.globals, index)?.ty),
        })
    }
}

#[derive(Default)]
struct Stub {
    types: Types,
    imports: Vec<Vec<u8>>,
    exports: Vec<Vec<u8>>,
    /// How many of each are imported.
    functions: u32,
    tables: u32,
    memories: u32,
    globals: u32,
}

impl Stub {
    fn import(&mut self, module: &str, name: &str, ty: &[u8]) {
        self.imports.push(encode::import(module, name, ty));
    }

    fn export(&mut self, name: &str, kind: ExternalKind, index: u32) {
        self.exports.push(encode::export(name, kind, index));
    }

    /// `nothing`: the description of a function without parameters and results.
    fn finish(self, nothing: &[u8], bound: &Bound, start: Option<u32>) -> Vec<u8> {
        let mut out = encode::MODULE.to_vec();
        encode::items(&mut out, 1, &self.types.encoded);
        encode::items(&mut out, 2, &self.imports);
        // One function that is never called, and one global that is never read.
        encode::items(&mut out, 3, &[nothing.get(1..).unwrap_or_default().to_vec()]);
        encode::items(&mut out, 6, &[vec![0x7f, 0, 0x41, 0, 0x0b]]);
        encode::items(&mut out, 7, &self.exports);
        encode::start(&mut out, start);
        if !bound.functions.is_empty() {
            let mut element = vec![0, 0x41];
            encode::signed(&mut element, bound.first.into());
            element.push(0x0b);
            encode::leb128(&mut element, bound.functions.len() as u64);
            (0..bound.functions.len() as u64).for_each(|index| encode::leb128(&mut element, index));
            encode::items(&mut out, 9, &[element]);
        }
        encode::items(&mut out, 10, &[vec![3, 0, 0, 0x0b]]);
        out
    }
}
