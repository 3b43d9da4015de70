//! Finds the modules to link in a component, and replaces them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use wasmparser::{ExternalKind, TypeRef};

use super::{
    level::{CoreInstance, Level},
    merge::{self, Import, Member},
    module::Module,
    names::{LINKED, at},
    stub,
};
use crate::encode::{self, COMPONENT, CORE_MODULE};

/// The id of a component's section with core instances.
const CORE_INSTANCE: u8 = 2;
/// The least number of references that are written into tables at each start for which linking is worth the work.
const MIN_ELEMENTS: usize = 64;
/// How deep components may be nested.
pub const MAX_NESTING: usize = 50;

/// Returns a component that does the same and takes less time to instantiate. `None`: there is nothing to link, or the component has
/// something that is not known here. The component has to be valid.
pub fn linked(component: &[u8]) -> Option<Vec<u8>> {
    linked_within(component, MAX_NESTING)
}

fn linked_within(component: &[u8], nesting: usize) -> Option<Vec<u8>> {
    let level = Level::read(component)?;
    let mut nested = BTreeMap::new();
    for (number, section) in level.sections.iter().enumerate().filter(|(_, section)| section.id == COMPONENT) {
        let inner = component.get(section.range.clone())?;
        if let Some(inner) = nesting.checked_sub(1).and_then(|nesting| linked_within(inner, nesting)) {
            nested.insert(number, inner);
        }
    }
    let link = Link::of(component, &level);
    if nested.is_empty() && link.is_none() {
        return None;
    }
    let Link { modules, first, others } = link.unwrap_or_default();
    let mut out = component.get(..8)?.to_vec();
    for (number, section) in level.sections.iter().enumerate() {
        let contents = component.get(section.range.clone())?;
        match section.id {
            COMPONENT => encode::section(&mut out, section.id, nested.get(&number).map_or(contents, Vec::as_slice)),
            CORE_MODULE => {
                let new = modules.get(&u32::try_from(section.modules).ok()?);
                encode::section(&mut out, section.id, new.map_or(contents, Vec::as_slice));
            }
            CORE_INSTANCE => {
                let next = level.sections.get(number + 1).map_or(level.instances.len(), |next| next.instances);
                let mut instances = Vec::new();
                for index in section.instances..next {
                    let is_other = others.contains(&u32::try_from(index).ok()?);
                    instances.push(instance(level.instances.get(index)?, is_other.then_some(first)));
                }
                encode::section(&mut out, section.id, &encode::list(&instances));
            }
            id => encode::section(&mut out, id, contents),
        }
    }
    Some(out)
}

/// Encodes a core instance. `linked`: the instance of the linked module, if it is one more argument.
fn instance(instance: &CoreInstance<'_>, linked: Option<u32>) -> Vec<u8> {
    let mut out = Vec::new();
    match instance {
        CoreInstance::Instantiate { module, arguments } => {
            encode::indexed(&mut out, &[0], *module);
            let arguments = arguments.iter().copied().chain(linked.map(|linked| (LINKED, linked)));
            let arguments = arguments.map(|(name, instance)| {
                let mut out = Vec::new();
                encode::name(&mut out, name);
                encode::indexed(&mut out, &[0x12], instance);
                out
            });
            out.extend(encode::list(&arguments.collect::<Vec<_>>()));
        }
        CoreInstance::Exports(exports) => {
            out.push(1);
            let exports = exports.all.iter().map(|(name, kind, index)| encode::export(name, *kind, *index));
            out.extend(encode::list(&exports.collect::<Vec<_>>()));
        }
    }
    out
}

/// What replaces the modules that are linked.
#[derive(Default)]
struct Link {
    /// The new modules, by the index of those that they replace.
    modules: BTreeMap<u32, Vec<u8>>,
    /// The instance of the linked module, and those that get it as an argument.
    first: u32,
    others: BTreeSet<u32>,
}

impl Link {
    fn of(component: &[u8], level: &Level<'_>) -> Option<Self> {
        let members = members(component, level)?;
        let (first, others) = members.split_first()?;
        if others.iter().map(|member| member.module.active_elements()).sum::<usize>() < MIN_ELEMENTS
            || members.iter().rev().skip(1).any(|member| member.module.start.is_some())
        {
            return None;
        }
        let used = level.exports_used(component, &members.iter().map(|member| member.instance).collect())?;
        let merged = merge::merge(&members, &used)?;
        let mut modules = BTreeMap::from([(first.number, merged.module)]);
        for (member, bound) in others.iter().zip(merged.bound) {
            modules.insert(member.number, stub::stub(member, &bound, merged.table, &used)?);
        }
        Some(Self { modules, first: first.instance, others: others.iter().map(|member| member.instance).collect() })
    }
}

/// Returns the modules to link, in the order of their instances: one that has the memory and the table and imports nothing but functions,
/// and those after it that import something of it or of each other.
fn members<'a>(component: &'a [u8], level: &Level<'a>) -> Option<Vec<Member<'a>>> {
    let mut members: Vec<Member<'a>> = Vec::new();
    let mut instances: HashMap<u32, usize> = HashMap::new();
    for instance in &level.instances {
        if let CoreInstance::Instantiate { module, .. } = instance {
            *instances.entry(*module).or_default() += 1;
        }
    }
    // The place of each member by its instance, and its exports.
    let mut linked: HashMap<u32, (usize, Exports<'_>)> = HashMap::new();
    for (instance, what) in (0..).zip(&level.instances) {
        let CoreInstance::Instantiate { module: number, arguments } = what else { continue };
        let Some(Some(range)) = at(&level.modules, *number) else { continue };
        if instances.get(number) != Some(&1) || arguments.iter().any(|(name, _)| *name == LINKED) {
            continue;
        }
        let Some(module) = Module::read(component.get(range.clone())?) else { continue };
        if members.is_empty() {
            let has_both = module.memories.len() == 1 && !module.tables.is_empty();
            if has_both && module.imports_only_functions() && !exports_linked(&module) {
                let imports = module.imports.iter().map(|_| Import::Outside).collect();
                linked.insert(instance, (members.len(), exports(&module)));
                members.push(Member { number: *number, instance, module, imports });
            }
            continue;
        }
        let resolve = |import: &wasmparser::Import<'a>| {
            let argument = arguments.iter().find(|(name, _)| *name == import.module)?;
            let found = level.source(argument.1, import.name).and_then(|(source, name)| {
                let (member, exports) = linked.get(&source)?;
                let (kind, index) = *exports.get(name)?;
                Some(Import::Of { member: *member, kind, index })
            });
            match (found, import.ty) {
                (Some(found), _) => Some(found),
                (None, TypeRef::Func(_)) => Some(Import::Outside),
                _ => None,
            }
        };
        let Some(imports) = module.imports.iter().map(resolve).collect::<Option<Vec<_>>>() else { continue };
        if module.memories.is_empty() && imports.iter().any(|import| matches!(import, Import::Of { .. })) {
            linked.insert(instance, (members.len(), exports(&module)));
            members.push(Member { number: *number, instance, module, imports });
        }
    }
    Some(members)
}

/// The exports of a module by their names.
type Exports<'a> = HashMap<&'a str, (ExternalKind, u32)>;

fn exports<'a>(module: &Module<'a>) -> Exports<'a> {
    module.exports.iter().map(|export| (export.name, (export.kind, export.index))).collect()
}

fn exports_linked(module: &Module<'_>) -> bool {
    module.exports.iter().any(|export| export.name.starts_with(LINKED))
}
