//! Measures a component before it is compiled, as a defence against something like zip bombs: counts what one instance of it would contain,
//! with every nested component counted as often as it is instantiated. Only the headers and lists of the file's sections are read, which is
//! cheap.
//!
//! A file of a few kilobytes can instantiate a million modules, and the compiler would take gigabytes of memory for them before it could
//! report their number. So they are counted here first, in time that grows with the size of the file and not with the number of instances.
//! This does not validate the file: what is wrong with a malformed file is left for the compiler to describe.

use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind, DataKind, ElementItems,
    ElementKind, Instance, Parser, Payload, TypeRef,
};

use crate::file::{load_error::LoadError, sections::Sections};

/// The size of one instance of a component. Each number has a limit in [`LIMITS`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The number of core modules and components that are instantiated.
    pub(crate) instances: u64,
    pub(crate) memories: u64,
    pub(crate) tables: u64,
    pub(crate) globals: u64,
    /// The approximate number of bytes that the host allocates for the instances in addition to memories and tables.
    pub(crate) data_bytes: u64,
    /// The number of bytes and table elements that are copied at the start. The copying cannot be interrupted.
    pub(crate) copied: u64,
}

/// The maximum of each. For comparison: guests in Rust have 3 instances, in JavaScript 4, in Python 14.
pub(crate) const LIMITS: Extent =
    Extent { instances: 500, memories: 16, tables: 64, globals: 100_000, data_bytes: 8 << 20, copied: 256 << 20 };

/// How many modules and components a file may hold, nested or side by side.
const MAX_DEFINITIONS: usize = 2_000;
/// How deep components may be nested.
const MAX_NESTING: usize = 50;

impl Extent {
    fn add(&mut self, other: &Self) {
        let Self { instances, memories, tables, globals, data_bytes, copied } = self;
        for (sum, more) in [
            (instances, other.instances),
            (memories, other.memories),
            (tables, other.tables),
            (globals, other.globals),
            (data_bytes, other.data_bytes),
            (copied, other.copied),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    /// Checks the limits; the error names the first that is exceeded.
    pub(crate) fn check(&self) -> Result<(), LoadError> {
        for (what, number, most) in [
            ("instances", self.instances, LIMITS.instances),
            ("memories", self.memories, LIMITS.memories),
            ("tables", self.tables, LIMITS.tables),
            ("globals", self.globals, LIMITS.globals),
            ("bytes of instance data", self.data_bytes, LIMITS.data_bytes),
            ("bytes and elements to copy at its start", self.copied, LIMITS.copied),
        ] {
            if number > most {
                return Err(LoadError::TooMuch { what, number, most });
            }
        }
        Ok(())
    }
}

/// The size of one instance of a module or a component. `None` if the definition is imported, or exported by an instance, so that its size
/// is unknown.
type Definition = Option<Extent>;

/// A component that is being read.
#[derive(Default)]
struct Open {
    modules: Vec<Definition>,
    components: Vec<Definition>,
    sum: Extent,
}

/// The module or component whose sections are being read.
enum Frame {
    Component(Open),
    Module(Extent),
}

/// Checks whether one instance of the component would be within the limits; the error says which limit it exceeds. This only reads the
/// file's sections and does not validate them. The bytes may be anything.
pub fn would_instantiate(component: &[u8]) -> Result<(), LoadError> {
    look(component).map(|_| ())
}

/// Measures the component in `bytes`, and returns an error if it exceeds a limit. Also collects the sections in which the plugin describes
/// itself.
pub(crate) fn look(bytes: &[u8]) -> Result<(Extent, Sections), LoadError> {
    let malformed = |error: wasmparser::BinaryReaderError| LoadError::Compile(error.to_string());
    let mut stack: Vec<Frame> = Vec::new();
    let mut definitions = 0;
    let mut sections = Sections::default();
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(malformed)?;
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => {
                definitions += 1;
                if definitions > MAX_DEFINITIONS {
                    let (what, number, most) = ("modules and components", definitions as u64, MAX_DEFINITIONS as u64);
                    return Err(LoadError::TooMuch { what, number, most });
                }
                if stack.len() > MAX_NESTING {
                    let (what, number, most) = ("levels of nested components", stack.len() as u64, MAX_NESTING as u64);
                    return Err(LoadError::TooMuch { what, number, most });
                }
            }
            Payload::Version { encoding, .. } => stack.push(match encoding {
                wasmparser::Encoding::Component => Frame::Component(Open::default()),
                wasmparser::Encoding::Module => {
                    Frame::Module(Extent { instances: 1, data_bytes: BASE_BYTES, ..Extent::default() })
                }
            }),
            Payload::End(_) => {
                let (extent, is_module) = match stack.pop() {
                    Some(Frame::Component(open)) => (open.sum, false),
                    Some(Frame::Module(extent)) => (extent, true),
                    None => continue,
                };
                match stack.last_mut() {
                    Some(Frame::Component(outer)) if is_module => outer.modules.push(Some(extent)),
                    Some(Frame::Component(outer)) => outer.components.push(Some(extent)),
                    Some(Frame::Module(_)) => {}
                    None => {
                        extent.check()?;
                        return Ok((extent, sections));
                    }
                }
            }
            Payload::CustomSection(section) => {
                let own = matches!(stack.as_slice(), [Frame::Component(_)]);
                // A core module that is the whole file will be wrapped, and is then the one inside a component.
                if own || matches!(stack.as_slice(), [Frame::Module(_)] | [Frame::Component(_), Frame::Module(_)]) {
                    sections.take(section.name(), section.data(), own)?;
                }
            }
            payload => match stack.last_mut() {
                Some(Frame::Module(extent)) => module_section(extent, payload).map_err(malformed)?,
                Some(Frame::Component(_)) => component_section(&mut stack, payload)?,
                None => {}
            },
        }
    }
    Err(LoadError::Compile("the file ends too early".into()))
}

// The bytes that wasmtime allocates for the parts of an instance, rounded up.
const BASE_BYTES: u64 = 1024;
const FUNCTION_BYTES: u64 = 64;
const GLOBAL_BYTES: u64 = 32;
const TABLE_BYTES: u64 = 64;
const MEMORY_BYTES: u64 = 128;
const SEGMENT_BYTES: u64 = 32;

/// Adds what one section of a module contributes to an instance of it.
fn module_section(extent: &mut Extent, payload: Payload) -> Result<(), wasmparser::BinaryReaderError> {
    match payload {
        Payload::ImportSection(imports) => {
            for import in imports.into_imports() {
                extent.data_bytes += match import?.ty {
                    TypeRef::Func(_) | TypeRef::FuncExact(_) => FUNCTION_BYTES,
                    TypeRef::Global(_) | TypeRef::Tag(_) => GLOBAL_BYTES,
                    TypeRef::Table(_) => TABLE_BYTES,
                    TypeRef::Memory(_) => MEMORY_BYTES,
                };
            }
        }
        // The host allocates memory for each function that is referred to, and any function may be referred to.
        Payload::FunctionSection(functions) => extent.data_bytes += u64::from(functions.count()) * FUNCTION_BYTES,
        Payload::TableSection(tables) => {
            extent.tables += u64::from(tables.count());
            extent.data_bytes += u64::from(tables.count()) * TABLE_BYTES;
        }
        Payload::MemorySection(memories) => {
            extent.memories += u64::from(memories.count());
            extent.data_bytes += u64::from(memories.count()) * MEMORY_BYTES;
        }
        Payload::GlobalSection(globals) => {
            extent.globals += u64::from(globals.count());
            extent.data_bytes += u64::from(globals.count()) * GLOBAL_BYTES;
        }
        Payload::TagSection(tags) => extent.data_bytes += u64::from(tags.count()) * GLOBAL_BYTES,
        Payload::ElementSection(elements) => {
            for element in elements {
                let element = element?;
                let items = match element.items {
                    ElementItems::Functions(items) => items.count(),
                    ElementItems::Expressions(_, items) => items.count(),
                };
                extent.data_bytes += SEGMENT_BYTES;
                if !matches!(element.kind, ElementKind::Declared) {
                    // Copying an element takes about as long as copying 16 bytes.
                    extent.copied += u64::from(items) * 16;
                }
            }
        }
        Payload::DataSection(segments) => {
            for segment in segments {
                let segment = segment?;
                extent.data_bytes += SEGMENT_BYTES;
                if matches!(segment.kind, DataKind::Active { .. }) {
                    extent.copied += segment.data.len() as u64;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Adds what one section of the innermost component instantiates or defines.
fn component_section(stack: &mut [Frame], payload: Payload) -> Result<(), LoadError> {
    let malformed = |error: wasmparser::BinaryReaderError| LoadError::Compile(error.to_string());
    // Finds the definition that an outer alias refers to: `count` components further out, under this index.
    let outer = |stack: &[Frame], module: bool, count: u32, index: u32| -> Definition {
        let at = stack.len().checked_sub(1)?.checked_sub(usize::try_from(count).ok()?)?;
        let Frame::Component(open) = stack.get(at)? else { return None };
        let space = if module { &open.modules } else { &open.components };
        space.get(usize::try_from(index).ok()?).copied().flatten()
    };
    match payload {
        Payload::InstanceSection(instances) => {
            for instance in instances {
                let Instance::Instantiate { module_index, .. } = instance.map_err(malformed)? else { continue };
                instantiate(stack, true, module_index)?;
            }
        }
        Payload::ComponentInstanceSection(instances) => {
            for instance in instances {
                let ComponentInstance::Instantiate { component_index, .. } = instance.map_err(malformed)? else {
                    continue;
                };
                instantiate(stack, false, component_index)?;
            }
        }
        Payload::ComponentAliasSection(aliases) => {
            for alias in aliases {
                let (module, definition) = match alias.map_err(malformed)? {
                    ComponentAlias::InstanceExport { kind: ComponentExternalKind::Module, .. } => (true, None),
                    ComponentAlias::InstanceExport { kind: ComponentExternalKind::Component, .. } => (false, None),
                    ComponentAlias::Outer { kind: ComponentOuterAliasKind::CoreModule, count, index } => {
                        (true, outer(stack, true, count, index))
                    }
                    ComponentAlias::Outer { kind: ComponentOuterAliasKind::Component, count, index } => {
                        (false, outer(stack, false, count, index))
                    }
                    _ => continue,
                };
                define(stack, module, definition);
            }
        }
        Payload::ComponentImportSection(imports) => {
            for import in imports {
                match import.map_err(malformed)?.ty.kind() {
                    ComponentExternalKind::Module => define(stack, true, None),
                    ComponentExternalKind::Component => define(stack, false, None),
                    _ => {}
                }
            }
        }
        // An exported module or component gets a further index in its index space.
        Payload::ComponentExportSection(exports) => {
            for export in exports {
                let export = export.map_err(malformed)?;
                match export.kind {
                    ComponentExternalKind::Module => define(stack, true, outer(stack, true, 0, export.index)),
                    ComponentExternalKind::Component => define(stack, false, outer(stack, false, 0, export.index)),
                    _ => {}
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Adds a definition to an index space of the innermost component.
fn define(stack: &mut [Frame], module: bool, definition: Definition) {
    if let Some(Frame::Component(open)) = stack.last_mut() {
        if module { &mut open.modules } else { &mut open.components }.push(definition);
    }
}

/// Adds the size of one instantiation.
fn instantiate(stack: &mut [Frame], module: bool, index: u32) -> Result<(), LoadError> {
    let Some(Frame::Component(open)) = stack.last_mut() else { return Ok(()) };
    let space = if module { &open.modules } else { &open.components };
    match usize::try_from(index).ok().and_then(|index| space.get(index)) {
        Some(Some(extent)) => {
            open.sum.add(extent);
            if !module {
                open.sum.instances = open.sum.instances.saturating_add(1);
            }
            Ok(())
        }
        // The definition comes from elsewhere, so the size of its instances is unknown here.
        Some(None) => Err(LoadError::Unknowable),
        None => Err(LoadError::Compile("it instantiates a definition that does not exist".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(text: &str) -> Result<Extent, LoadError> {
        look(&wat::parse_str(text).unwrap()).map(|(extent, _)| extent)
    }

    /// A component of `levels` components, each of which instantiates the one inside it `width` times.
    fn nested(levels: usize, width: usize) -> String {
        let mut text = "(component $c (core module $m) (core instance (instantiate $m)))".to_owned();
        for _ in 0..levels {
            let instances = "(instance (instantiate $c))".repeat(width);
            text = format!("(component $c {text} {instances})");
        }
        text
    }

    #[test]
    fn nested_instances_are_counted_as_written_out() {
        assert_eq!(sum(&nested(0, 0)).unwrap().instances, 1);
        assert_eq!(sum(&nested(1, 5)).unwrap().instances, 10);
        assert_eq!(sum(&nested(2, 5)).unwrap().instances, 55);
        for (levels, width) in [(2, 900), (40, 2), (1, 300)] {
            let error = sum(&nested(levels, width)).unwrap_err();
            assert!(matches!(error, LoadError::TooMuch { what: "instances", .. }), "{levels} x {width}: {error}");
        }
        let error = sum(&nested(60, 1)).unwrap_err();
        assert!(error.to_string().contains("nested"), "{error}");
        let many = format!("(component {})", "(core module)".repeat(3000));
        assert!(sum(&many).unwrap_err().to_string().contains("modules and components"));
    }

    #[test]
    fn each_kind_has_its_limit() {
        let module = |inner: &str, times: usize| {
            let instances = "(core instance (instantiate $m))".repeat(times);
            format!("(component (core module $m {inner}) {instances})")
        };
        let kib = "x".repeat(1 << 20);
        for (inner, times, what) in [
            ("(memory 1)", 17, "memories"),
            (&*"(memory 1)".repeat(17), 1, "memories"),
            ("(table 1 funcref)(table 1 funcref)", 33, "tables"),
            (&*"(global i32 (i32.const 0))".repeat(1000), 101, "globals"),
            (&*"(func)".repeat(1000), 200, "bytes of instance data"),
            (&*format!("(memory 20)(data (i32.const 0) \"{kib}\")"), 0, ""),
            (
                &*format!("(memory 20){}", format!("(data (i32.const 0) \"{kib}\")").repeat(20)),
                15,
                "bytes and elements",
            ),
            (
                &*format!("(table 300000 funcref)(func $f)(elem (i32.const 0) func {})", "$f ".repeat(300_000)),
                60,
                "bytes and elements",
            ),
        ] {
            match sum(&module(inner, times)) {
                Ok(_) => assert_eq!(what, ""),
                Err(error) => assert!(!what.is_empty() && error.to_string().contains(what), "{what}: {error}"),
            }
        }
    }

    #[test]
    fn aliases_are_followed_and_what_is_handed_in_is_refused() {
        let aliased = "(component $a (core module $m (memory 1)) (component $b
            (alias outer $a $m (core module $n)) (core instance (instantiate $n)))
            (instance (instantiate $b)) (instance (instantiate $b)))";
        assert_eq!(sum(aliased).unwrap(), Extent { instances: 4, memories: 2, ..sum(aliased).unwrap() });
        let handed_in = "(component (import \"m\" (core module $m)) (core instance (instantiate $m)))";
        assert_eq!(sum(handed_in).unwrap_err(), LoadError::Unknowable);
    }

    #[test]
    fn sections_count_in_the_component_and_in_its_own_modules() {
        let text = |inner: &str| {
            let parsed = wat::parse_str(format!("(component {inner})")).unwrap();
            look(&parsed).unwrap().1.instructions
        };
        let section = "(@custom \"wharf:instructions\" \"hello\")";
        assert_eq!(text(section).as_deref(), Some("hello"));
        assert_eq!(text(&format!("(core module {section})")).as_deref(), Some("hello"));
        assert_eq!(text(&format!("(component {section})")), None, "another component speaks for itself");
        assert_eq!(text(&format!("(component (core module {section}))")), None);
    }
}
