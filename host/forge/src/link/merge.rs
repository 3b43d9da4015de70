//! Makes one module of several.

use std::collections::{BTreeMap, BTreeSet};

use wasmparser::{DataKind, ElementItems, ElementKind, ExternalKind, FuncType, TypeRef};

use super::{
    code,
    indices::Indices,
    module::Module,
    names::{LINKED, at, exported, kind_of, start_of},
    types::Types,
};
use crate::encode;

/// A module that is linked, with its only instance.
pub struct Member<'a> {
    pub number: u32,
    pub instance: u32,
    pub module: Module<'a>,
    /// What its imports are, in their order.
    pub imports: Vec<Import>,
}

/// What an import of a member is.
pub enum Import {
    /// A function that is not in any member.
    Outside,
    /// Something in an earlier member.
    Of { member: usize, kind: ExternalKind, index: u32 },
}

pub struct Merged {
    pub module: Vec<u8>,
    /// For each member except the first, what its place in the component has to bind.
    pub bound: Vec<Bound>,
    /// The size of the table of functions from outside.
    pub table: u32,
}

/// The functions that a member imports from outside.
pub struct Bound {
    /// The place of the first in the table. The others follow it.
    pub first: u32,
    /// The index of each among the imports, and its type.
    pub functions: Vec<(usize, FuncType)>,
}

/// The parts of the module that is made.
#[derive(Default)]
struct Parts {
    types: Types,
    imports: Vec<Vec<u8>>,
    functions: Vec<Vec<u8>>,
    tables: Vec<Vec<u8>>,
    memories: Vec<Vec<u8>>,
    globals: Vec<Vec<u8>>,
    exports: Vec<Vec<u8>>,
    elements: Vec<Vec<u8>>,
    bodies: Vec<Vec<u8>>,
    data: Vec<Vec<u8>>,
    /// The values of the globals that never change, as far as they are known.
    values: Vec<Option<code::Value>>,
}

/// Merges the members into one module. `used`: their exports that are needed outside of them, by their instances. `None`: one of them has
/// something that is not known here.
pub fn merge(members: &[Member<'_>], used: &BTreeSet<(u32, &str)>) -> Option<Merged> {
    let mut parts = Parts::default();
    let bound = parts.bind(members)?;
    let table = u32::try_from(bound.iter().map(|bound| bound.functions.len()).sum::<usize>()).ok()?;
    let mut all: Vec<Indices> = Vec::new();
    let (first, others) = members.split_first()?;
    // First come the imports of the first member, then the functions from outside of the others, then all that are defined.
    let mut next_bound = u32::try_from(first.module.imports.len()).ok()?;
    let mut next_function = next_bound.checked_add(table)?;
    let (mut elements, mut data) = (0_u32, 0_u32);
    for member in members {
        let mut indices = Indices::new(elements, data);
        elements = elements.checked_add(u32::try_from(member.module.elements.len()).ok()?)?;
        data = data.checked_add(u32::try_from(member.module.data.len()).ok()?)?;
        for ty in &member.module.types {
            indices.types.push(parts.types.number(ty)?);
        }
        for (number, (import, what)) in (0..).zip(member.module.imports.iter().zip(&member.imports)) {
            match what {
                // The first member's imports are the first functions.
                Import::Outside if all.is_empty() => indices.push(ExternalKind::Func, number)?,
                Import::Outside => {
                    indices.push(ExternalKind::Func, next_bound)?;
                    next_bound = next_bound.checked_add(1)?;
                }
                Import::Of { member, kind, index } => {
                    let index = all.get(*member)?.get(*kind, *index).filter(|_| kind_of(import.ty) == Some(*kind))?;
                    indices.push(*kind, index)?;
                }
            }
        }
        for _ in &member.module.functions {
            indices.push(ExternalKind::Func, next_function)?;
            next_function = next_function.checked_add(1)?;
        }
        parts.define(&member.module, &mut indices)?;
        all.push(indices);
    }
    if parts.memories.len() != 1 {
        return None;
    }
    let table_index = u32::try_from(parts.tables.len()).ok()?;
    parts.trampolines(&bound, table_index)?;
    for (member, indices) in members.iter().zip(&all) {
        parts.fill(&member.module, indices)?;
    }
    let mut referred = BTreeSet::new();
    // After the trampolines, whose functions come first.
    for (member, indices) in members.iter().zip(&all) {
        for ty in &member.module.functions {
            parts.functions.push(encode::index(*at(&indices.types, *ty)?));
        }
        for body in &member.module.bodies {
            parts.bodies.push(code::body(member.module.bytes, body, indices, &mut referred)?);
        }
    }
    parts.declare(&referred);
    parts.export(first, others, &all, used)?;
    if table > 0 {
        parts.tables.push(encode::function_table(table));
        parts.exports.push(encode::export(LINKED, ExternalKind::Table, table_index));
    }
    let start = match first.module.start {
        Some(start) => Some(all.first()?.function(start)?),
        None => None,
    };
    Some(Merged { module: parts.finish(start, &names(members, &all)), bound, table })
}

/// Returns the names of the functions that the members define.
fn names<'a>(members: &[Member<'a>], all: &[Indices]) -> BTreeMap<u32, &'a str> {
    let mut names = BTreeMap::new();
    for (member, indices) in members.iter().zip(all) {
        let imported = member.module.imports.iter().filter(|import| matches!(import.ty, TypeRef::Func(_))).count();
        for (index, name) in &member.module.names {
            if usize::try_from(*index).is_ok_and(|index| index >= imported)
                && let Some(index) = indices.function(*index)
            {
                names.insert(index, *name);
            }
        }
    }
    names
}

impl Parts {
    /// Takes over the imports of the first member, and returns what the others import from outside.
    fn bind(&mut self, members: &[Member<'_>]) -> Option<Vec<Bound>> {
        let (first, others) = members.split_first()?;
        for import in &first.module.imports {
            let TypeRef::Func(ty) = import.ty else { return None };
            let ty = self.types.description(first.module.type_of(ty)?)?;
            self.imports.push(encode::import(import.module, import.name, &ty));
        }
        let (mut all, mut next) = (Vec::new(), 0_u32);
        for member in others {
            let mut functions = Vec::new();
            for (number, (import, what)) in member.module.imports.iter().zip(&member.imports).enumerate() {
                if let (TypeRef::Func(ty), Import::Outside) = (import.ty, what) {
                    functions.push((number, member.module.type_of(ty)?.clone()));
                }
            }
            let first = next;
            next = next.checked_add(u32::try_from(functions.len()).ok()?)?;
            all.push(Bound { first, functions });
        }
        Some(all)
    }

    /// Adds the tables, memories and globals that a member defines.
    fn define(&mut self, module: &Module<'_>, indices: &mut Indices) -> Option<()> {
        for table in &module.tables {
            indices.push(ExternalKind::Table, u32::try_from(self.tables.len()).ok()?)?;
            self.tables.push(encode::table_type(table)?);
        }
        for memory in &module.memories {
            indices.push(ExternalKind::Memory, u32::try_from(self.memories.len()).ok()?)?;
            self.memories.push(encode::memory_type(memory)?);
        }
        for global in &module.globals {
            let value = code::value(&global.init_expr, indices, &self.values)?;
            let mut out = encode::global_type(&global.ty)?;
            out.extend(value.expression());
            indices.push(ExternalKind::Global, u32::try_from(self.globals.len()).ok()?)?;
            self.globals.push(out);
            self.values.push((!global.ty.mutable).then_some(value));
        }
        Some(())
    }

    /// Adds functions that call those from outside, which are in a table.
    fn trampolines(&mut self, bound: &[Bound], table: u32) -> Option<()> {
        for bound in bound {
            for (place, (_, ty)) in (bound.first..).zip(&bound.functions) {
                let number = self.types.number(ty)?;
                self.functions.push(encode::index(number));
                let mut body = vec![0];
                for parameter in 0..u32::try_from(ty.params().len()).ok()? {
                    encode::indexed(&mut body, &[0x20], parameter);
                }
                body.push(0x41);
                encode::signed(&mut body, place.into());
                encode::indexed(&mut body, &[0x11], number);
                encode::leb128(&mut body, table.into());
                body.push(0x0b);
                self.bodies.push(encode::sized(&body));
            }
        }
        Some(())
    }

    /// Adds the segments of a member.
    fn fill(&mut self, module: &Module<'_>, indices: &Indices) -> Option<()> {
        for element in &module.elements {
            self.elements.push(self.element(element, indices)?);
        }
        for data in &module.data {
            let mut out = Vec::with_capacity(data.data.len() + 16);
            match &data.kind {
                DataKind::Passive => out.push(1),
                DataKind::Active { memory_index, offset_expr } => {
                    if indices.get(ExternalKind::Memory, *memory_index) != Some(0) {
                        return None;
                    }
                    out.push(0);
                    out.extend(code::value(offset_expr, indices, &self.values)?.expression());
                }
            }
            encode::leb128(&mut out, data.data.len() as u64);
            out.extend_from_slice(data.data);
            self.data.push(out);
        }
        Some(())
    }

    fn element(&self, element: &wasmparser::Element<'_>, indices: &Indices) -> Option<Vec<u8>> {
        let value = |expression: &wasmparser::ConstExpr<'_>| code::value(expression, indices, &self.values);
        let function = |function: u32| Some(encode::index(indices.function(function)?));
        let (ty, items) = match &element.items {
            ElementItems::Functions(functions) => {
                let functions = functions.clone().into_iter().map(|one| function(one.ok()?));
                (None, functions.collect::<Option<Vec<_>>>()?)
            }
            ElementItems::Expressions(ty, expressions) => {
                let expressions = expressions.clone().into_iter().map(|one| Some(value(&one.ok()?)?.expression()));
                (Some(*ty), expressions.collect::<Option<Vec<_>>>()?)
            }
        };
        let expressions = if ty.is_some() { 4 } else { 0 };
        let mut out = Vec::new();
        match &element.kind {
            ElementKind::Passive => out.push(1 | expressions),
            ElementKind::Declared => out.push(3 | expressions),
            ElementKind::Active { table_index, offset_expr } => {
                encode::indexed(&mut out, &[2 | expressions], indices.table(table_index.unwrap_or(0))?);
                out.extend(value(offset_expr)?.expression());
            }
        }
        match ty {
            Some(ty) => encode::reference_type(&mut out, ty)?,
            None => out.push(0),
        }
        out.extend(encode::list(&items));
        Some(out)
    }

    /// Declares functions to which code makes references. In their own modules, it may have sufficed that they are exported.
    fn declare(&mut self, functions: &BTreeSet<u32>) {
        let functions: Vec<_> = functions.iter().map(|function| encode::index(*function)).collect();
        if !functions.is_empty() {
            self.elements.push([vec![3, 0], encode::list(&functions)].concat());
        }
    }

    /// Exports what the first member exports, and what is used of the others.
    fn export(
        &mut self,
        first: &Member<'_>,
        others: &[Member<'_>],
        all: &[Indices],
        used: &BTreeSet<(u32, &str)>,
    ) -> Option<()> {
        let (own, theirs) = all.split_first()?;
        for one in &first.module.exports {
            self.exports.push(encode::export(one.name, one.kind, own.get(one.kind, one.index)?));
        }
        for (member, indices) in others.iter().zip(theirs) {
            for one in &member.module.exports {
                // Memories and tables are exported again by the member's place in any case: those that it might export instead would be
                // further ones.
                let is_real = used.contains(&(member.instance, one.name));
                if is_real || matches!(one.kind, ExternalKind::Memory | ExternalKind::Table) {
                    let name = exported(member.instance, one.name);
                    self.exports.push(encode::export(&name, one.kind, indices.get(one.kind, one.index)?));
                }
            }
            if let Some(start) = member.module.start {
                let start = indices.function(start)?;
                self.exports.push(encode::export(&start_of(member.instance), ExternalKind::Func, start));
            }
        }
        Some(())
    }

    /// `names`: those of the functions, for the stack of a trap.
    fn finish(self, start: Option<u32>, names: &BTreeMap<u32, &str>) -> Vec<u8> {
        let mut out = encode::MODULE.to_vec();
        for (id, parts) in [
            (1, &self.types.encoded),
            (2, &self.imports),
            (3, &self.functions),
            (4, &self.tables),
            (5, &self.memories),
            (6, &self.globals),
            (7, &self.exports),
        ] {
            encode::items(&mut out, id, parts);
        }
        encode::start(&mut out, start);
        encode::items(&mut out, 9, &self.elements);
        let mut count = Vec::new();
        encode::leb128(&mut count, self.data.len() as u64);
        encode::section(&mut out, 12, &count);
        encode::items(&mut out, 10, &self.bodies);
        encode::items(&mut out, 11, &self.data);
        let mut section = Vec::new();
        encode::name(&mut section, "name");
        let names = names.iter().map(|(index, name)| {
            let mut out = encode::index(*index);
            encode::name(&mut out, name);
            out
        });
        encode::section(&mut section, 1, &encode::list(&names.collect::<Vec<_>>()));
        encode::section(&mut out, 0, &section);
        out
    }
}
