//! Reads a core module.

use wasmparser::{
    CompositeInnerType, Data, Element, ElementItems, ElementKind, Export, FuncType, FunctionBody, Global, Import,
    KnownCustom, MemoryType, Name, Parser, Payload, TableInit, TableType, TypeRef,
};

use super::names::at;

#[derive(Default)]
pub struct Module<'a> {
    pub bytes: &'a [u8],
    pub types: Vec<FuncType>,
    pub imports: Vec<Import<'a>>,
    /// The type of each function that is not imported.
    pub functions: Vec<u32>,
    pub tables: Vec<TableType>,
    pub memories: Vec<MemoryType>,
    pub globals: Vec<Global<'a>>,
    pub exports: Vec<Export<'a>>,
    pub start: Option<u32>,
    pub elements: Vec<Element<'a>>,
    pub bodies: Vec<FunctionBody<'a>>,
    pub data: Vec<Data<'a>>,
    /// The names of functions.
    pub names: Vec<(u32, &'a str)>,
}

impl<'a> Module<'a> {
    /// `None`: the bytes are not a module, or have something that is not known here.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut module = Self { bytes, ..Self::default() };
        for payload in Parser::new(0).parse_all(bytes) {
            module.section(payload.ok()?)?;
        }
        Some(module)
    }

    fn section(&mut self, payload: Payload<'a>) -> Option<()> {
        match payload {
            Payload::TypeSection(groups) => {
                for group in groups {
                    let group = group.ok()?;
                    let mut types = group.types();
                    let (Some(ty), None) = (types.next(), types.next()) else { return None };
                    match &ty.composite_type.inner {
                        CompositeInnerType::Func(function)
                            if ty.is_final && ty.supertype_idxs.is_empty() && !ty.composite_type.shared =>
                        {
                            self.types.push(function.clone());
                        }
                        _ => return None,
                    }
                }
            }
            Payload::ImportSection(imports) => self.imports = imports.into_imports().collect::<Result<_, _>>().ok()?,
            Payload::FunctionSection(functions) => self.functions = all(functions)?,
            Payload::TableSection(tables) => {
                for table in tables {
                    let table = table.ok()?;
                    let TableInit::RefNull = table.init else { return None };
                    self.tables.push(table.ty);
                }
            }
            Payload::MemorySection(memories) => self.memories = all(memories)?,
            Payload::GlobalSection(globals) => self.globals = all(globals)?,
            Payload::ExportSection(exports) => self.exports = all(exports)?,
            Payload::StartSection { func, .. } => self.start = Some(func),
            Payload::ElementSection(elements) => self.elements = all(elements)?,
            Payload::CodeSectionEntry(body) => self.bodies.push(body),
            Payload::DataSection(data) => self.data = all(data)?,
            Payload::CustomSection(section) => {
                if let KnownCustom::Name(names) = section.as_known() {
                    // Names say nothing about how the module runs, so what cannot be read of them is left out.
                    let functions = names.into_iter().flatten().filter_map(|name| match name {
                        Name::Function(functions) => Some(functions),
                        _ => None,
                    });
                    self.names = functions.flatten().flatten().map(|naming| (naming.index, naming.name)).collect();
                }
            }
            Payload::Version { .. }
            | Payload::DataCountSection { .. }
            | Payload::CodeSectionStart { .. }
            | Payload::End(_) => {}
            _ => return None,
        }
        Some(())
    }

    pub fn type_of(&self, ty: u32) -> Option<&FuncType> {
        at(&self.types, ty)
    }

    /// The number of elements that are written to tables when the module is instantiated.
    pub fn active_elements(&self) -> usize {
        let active = self.elements.iter().filter(|element| matches!(element.kind, ElementKind::Active { .. }));
        let counts = active.map(|element| match &element.items {
            ElementItems::Functions(items) => items.count(),
            ElementItems::Expressions(_, items) => items.count(),
        });
        counts.map(|count| count as usize).sum()
    }

    pub fn imports_only_functions(&self) -> bool {
        self.imports.iter().all(|import| matches!(import.ty, TypeRef::Func(_)))
    }
}

fn all<'a, T: wasmparser::FromReader<'a>>(section: wasmparser::SectionLimited<'a, T>) -> Option<Vec<T>> {
    section.into_iter().collect::<Result<_, _>>().ok()
}
