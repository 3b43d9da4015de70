//! Reads one component: what its core modules are instantiated with, and what of them is used.

use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
};

use wasmparser::{
    CanonicalFunction, CanonicalOption, ComponentAlias, ComponentExternalKind, ComponentOuterAliasKind, Encoding,
    ExternalKind, Instance, Parser, Payload,
};

use super::{
    module::Module,
    names::{at, space},
};

/// A component without those that are nested in it.
#[derive(Default)]
pub struct Level<'a> {
    pub sections: Vec<Section>,
    /// The core modules; `None` for those that are defined elsewhere.
    pub modules: Vec<Option<Range<usize>>>,
    pub instances: Vec<CoreInstance<'a>>,
    /// The core functions, tables, memories and globals, each with its origin.
    spaces: [Vec<Origin<'a>>; 4],
    /// The core functions, tables, memories and globals that the component itself uses.
    used: Vec<(ExternalKind, u32)>,
}

pub struct Section {
    pub id: u8,
    pub range: Range<usize>,
    /// How many core modules and instances there are before this section.
    pub modules: usize,
    pub instances: usize,
}

pub enum CoreInstance<'a> {
    Instantiate { module: u32, arguments: Vec<(&'a str, u32)> },
    Exports(Exports<'a>),
}

/// What a core instance consists of if no module is instantiated for it.
pub struct Exports<'a> {
    pub all: Vec<(&'a str, ExternalKind, u32)>,
    by_name: HashMap<&'a str, (ExternalKind, u32)>,
}

impl<'a> Exports<'a> {
    fn new(all: Vec<(&'a str, ExternalKind, u32)>) -> Self {
        Self { by_name: all.iter().map(|(name, kind, index)| (*name, (*kind, *index))).collect(), all }
    }
}

/// Where something comes from: from an export of a core instance, or from elsewhere.
#[derive(Clone, Copy)]
enum Origin<'a> {
    Export { instance: u32, name: &'a str },
    Other,
}

/// Returns a range of the parser as one of bytes.
pub fn range(range: Range<u64>) -> Option<Range<usize>> {
    Some(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
}

impl<'a> Level<'a> {
    /// `None`: the bytes are not a component, or have something that is not known here.
    pub fn read(component: &'a [u8]) -> Option<Self> {
        let mut level = Self::default();
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(component) {
            let payload = payload.ok()?;
            if let (1, Some((id, bytes))) = (depth, payload.as_section()) {
                let (modules, instances) = (level.modules.len(), level.instances.len());
                level.sections.push(Section { id, range: range(bytes)?, modules, instances });
            }
            match payload {
                Payload::Version { encoding, .. } => {
                    if depth == 0 && encoding != Encoding::Component {
                        return None;
                    }
                    depth += 1;
                }
                Payload::End(_) => depth = depth.checked_sub(1)?,
                payload if depth == 1 => level.section(payload)?,
                _ => {}
            }
        }
        Some(level)
    }

    fn section(&mut self, payload: Payload<'a>) -> Option<()> {
        match payload {
            Payload::ModuleSection { unchecked_range, .. } => self.modules.push(Some(range(unchecked_range)?)),
            Payload::InstanceSection(instances) => {
                for instance in instances {
                    self.instances.push(match instance.ok()? {
                        Instance::Instantiate { module_index: module, args } => {
                            let arguments = args.iter().map(|argument| (argument.name, argument.index)).collect();
                            CoreInstance::Instantiate { module, arguments }
                        }
                        Instance::FromExports(exports) => {
                            let all = exports.iter().map(|export| (export.name, export.kind, export.index));
                            CoreInstance::Exports(Exports::new(all.collect()))
                        }
                    });
                }
            }
            Payload::ComponentAliasSection(aliases) => {
                for alias in aliases {
                    match alias.ok()? {
                        ComponentAlias::CoreInstanceExport { kind, instance_index: instance, name } => {
                            self.spaces.get_mut(space(kind)?)?.push(Origin::Export { instance, name });
                        }
                        ComponentAlias::InstanceExport { kind: ComponentExternalKind::Module, .. }
                        | ComponentAlias::Outer { kind: ComponentOuterAliasKind::CoreModule, .. } => {
                            self.modules.push(None);
                        }
                        _ => {}
                    }
                }
            }
            Payload::ComponentImportSection(imports) => {
                for import in imports {
                    if import.ok()?.ty.kind() == ComponentExternalKind::Module {
                        self.modules.push(None);
                    }
                }
            }
            Payload::ComponentExportSection(exports) => {
                for export in exports {
                    if export.ok()?.kind == ComponentExternalKind::Module {
                        self.modules.push(None);
                    }
                }
            }
            Payload::ComponentCanonicalSection(functions) => {
                for function in functions {
                    self.canonical(&function.ok()?)?;
                }
            }
            _ => {}
        }
        Some(())
    }

    fn canonical(&mut self, function: &CanonicalFunction) -> Option<()> {
        let options = match function {
            CanonicalFunction::Lift { core_func_index, options, .. } => {
                self.used.push((ExternalKind::Func, *core_func_index));
                options
            }
            CanonicalFunction::Lower { options, .. } => {
                self.spaces.get_mut(0)?.push(Origin::Other);
                options
            }
            CanonicalFunction::ResourceNew { .. }
            | CanonicalFunction::ResourceDrop { .. }
            | CanonicalFunction::ResourceRep { .. } => {
                self.spaces.get_mut(0)?.push(Origin::Other);
                return Some(());
            }
            _ => return None,
        };
        for option in options {
            match option {
                CanonicalOption::Memory(index) => self.used.push((ExternalKind::Memory, *index)),
                CanonicalOption::Realloc(index)
                | CanonicalOption::PostReturn(index)
                | CanonicalOption::Callback(index) => self.used.push((ExternalKind::Func, *index)),
                CanonicalOption::UTF8
                | CanonicalOption::UTF16
                | CanonicalOption::CompactUTF16
                | CanonicalOption::Async => {}
                _ => return None,
            }
        }
        Some(())
    }

    fn origin(&self, kind: ExternalKind, index: u32) -> Option<Origin<'a>> {
        at(self.spaces.get(space(kind)?)?, index).copied()
    }

    /// Returns the instance of a core module from which an export of a core instance comes, and its name there. `None`: it comes from
    /// elsewhere.
    pub fn source(&self, instance: u32, name: &'a str) -> Option<(u32, &'a str)> {
        let (mut instance, mut name) = (instance, name);
        // Each instance refers only to earlier ones.
        for _ in 0..=self.instances.len() {
            match at(&self.instances, instance)? {
                CoreInstance::Instantiate { .. } => return Some((instance, name)),
                CoreInstance::Exports(exports) => {
                    let (kind, index) = *exports.by_name.get(name)?;
                    let Origin::Export { instance: next, name: its } = self.origin(kind, index)? else { return None };
                    (instance, name) = (next, its);
                }
            }
        }
        None
    }

    /// Returns the exports of instances of core modules that are used by the component itself, or by another instance than those in
    /// `linked`. `component`: the bytes that this was read from. `None`: it is not known which these are.
    pub fn exports_used(&self, component: &'a [u8], linked: &BTreeSet<u32>) -> Option<BTreeSet<(u32, &'a str)>> {
        let mut found = BTreeSet::new();
        let mut wanted = self.used.clone();
        for (number, instance) in (0..).zip(&self.instances) {
            let CoreInstance::Instantiate { module, arguments } = instance else { continue };
            if linked.contains(&number) {
                continue;
            }
            for (name, argument) in arguments {
                match at(&self.instances, *argument)? {
                    CoreInstance::Exports(exports) => {
                        wanted.extend(exports.by_name.values());
                    }
                    CoreInstance::Instantiate { .. } if linked.contains(argument) => {
                        let module = Module::read(component.get(at(&self.modules, *module)?.clone()?)?)?;
                        let imports = module.imports.iter().filter(|import| import.module == *name);
                        found.extend(imports.map(|import| (*argument, import.name)));
                    }
                    CoreInstance::Instantiate { .. } => {}
                }
            }
        }
        for (kind, index) in wanted {
            if let Origin::Export { instance, name } = self.origin(kind, index)?
                && let Some(source) = self.source(instance, name)
            {
                found.insert(source);
            }
        }
        Some(found)
    }
}
