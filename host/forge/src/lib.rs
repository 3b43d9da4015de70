//! Makes components out of core WebAssembly modules, with the adapter that wasmtime publishes for WASI preview 1, and prepares components so
//! that calls take less time. Bytes in, bytes out: it knows neither files nor hosts.
//!
//! It reads the whole module, which may be hostile, and its work is bounded by nothing but the module's size. A server calls it in
//! a process that it can end; an author's own command calls it as it is.

#![deny(missing_docs)]

mod encode;
mod link;
mod modules;
mod names;
mod room;

use std::collections::BTreeSet;

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME as PREVIEW_1, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER as COMMAND,
    WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER as REACTOR,
};
use wasmparser::{Parser, Payload, Validator};
use wit_component::ComponentEncoder;

/// What the adapter imports for files, whatever the module does with them.
const FILES: &str = "wasi:filesystem/types@0.2.12";
/// What it imports for arguments and variables, if the module asks for either.
const ENVIRONMENT: &str = "wasi:cli/environment@0.2.12";

/// Why no component can be made of a module. The text is for the module's author.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForgeError {
    /// The bytes are something else.
    #[error("not a core WebAssembly module")]
    NotAModule,
    /// Nobody could call anything in it.
    #[error(
        "the core module neither exports `_start`, as a command does, nor holds a `component-type` section that says what it \
         exports; build it as a command, or with bindings made by wit-bindgen"
    )]
    NothingToCall,
    /// It imports this, which the adapter does not have.
    #[error("the core module imports from `{0}`; a module for wasm32-wasip1 imports from `wasi_snapshot_preview1`")]
    OldImport(&'static str),
    /// What the encoder says.
    #[error("no component can be made of the core module: {0}")]
    Encoder(String),
}

/// Whether the bytes begin as a core module does.
pub fn is_core_module(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\0asm") && bytes.get(6..8) == Some(&[0, 0])
}

/// The interfaces that a component made of this module could import: those that the module itself names, and the adapter's, if it needs
/// the adapter. Nothing is made of it for this.
///
/// # Errors
/// If it cannot be read.
pub fn imports(module: &[u8]) -> Result<Vec<String>, ForgeError> {
    let outline = Outline::of(module).map_err(|error| ForgeError::Encoder(error.to_string()))?;
    let adapter = [(outline.needs_adapter(), FILES), (outline.environment, ENVIRONMENT)];
    let adapter = adapter.into_iter().filter(|(needed, _)| *needed).map(|(_, name)| name.to_owned());
    Ok(outline.interfaces.into_iter().chain(adapter).collect())
}

/// Makes a component of a core module. If the module exports `_start`, the component is a command; otherwise it exports what the
/// module's `component-type` section says.
///
/// # Errors
/// If the bytes are not a core module, if the component would export nothing to call, or if the encoder refuses the module.
pub fn wrap(module: &[u8]) -> Result<Vec<u8>, ForgeError> {
    if !is_core_module(module) {
        return Err(ForgeError::NotAModule);
    }
    let outline = Outline::of(module).map_err(|error| ForgeError::Encoder(error.to_string()))?;
    if let Some(old) = outline.old {
        return Err(ForgeError::OldImport(old));
    }
    if !outline.start && !outline.typed {
        return Err(ForgeError::NothingToCall);
    }
    let adapter = if outline.start { COMMAND } else { REACTOR };
    let mut encoder = ComponentEncoder::default();
    // The compiler checks the component anyway.
    let encoded = encoder.validate(false).module(module).and_then(|encoder| {
        if outline.needs_adapter() {
            encoder.adapter(PREVIEW_1, adapter)?;
        }
        encoder.encode()
    });
    encoded.map_err(|error| ForgeError::Encoder(format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// A component that does the same as another one, in less time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The component.
    pub component: Vec<u8>,
    /// How much more memory it starts with, in bytes.
    pub room_bytes: u64,
}

/// Links the modules of a component that are linked dynamically, and gives its memory room to grow. `None`: neither is of use, or the
/// component is not valid: the compiler then says why.
pub fn prepared(component: &[u8]) -> Option<Prepared> {
    // Code that refers to something that is not in its module could be valid once more is in it.
    Validator::new().validate_all(component).ok()?;
    let linked = link::linked(component);
    match (room::with_room(linked.as_deref().unwrap_or(component)), linked) {
        (Some((component, room_bytes)), _) => Some(Prepared { component, room_bytes }),
        (None, Some(component)) => Some(Prepared { component, room_bytes: 0 }),
        (None, None) => None,
    }
}

/// Returns the component with no name of a module or function longer than 256 bytes, because the text of a trap has these names. `None`: it
/// cannot be read.
pub fn with_short_names(component: &[u8]) -> Option<Vec<u8>> {
    names::cut(component)
}

/// What decides how a module is wrapped.
#[derive(Default)]
struct Outline {
    /// It exports `_start`.
    start: bool,
    /// It holds a section that says which WIT it was made for.
    typed: bool,
    /// It imports from preview 1.
    preview_1: bool,
    /// It imports arguments or variables from there.
    environment: bool,
    /// It imports from what was there before preview 1.
    old: Option<&'static str>,
    /// The interfaces that it imports besides.
    interfaces: BTreeSet<String>,
}

impl Outline {
    /// A module that imports nothing of preview 1 needs the adapter only for its `_start`.
    fn needs_adapter(&self) -> bool {
        self.preview_1 || self.start
    }

    fn of(module: &[u8]) -> Result<Self, wasmparser::BinaryReaderError> {
        let mut outline = Self::default();
        for payload in Parser::new(0).parse_all(module) {
            match payload? {
                Payload::ExportSection(exports) => {
                    for export in exports {
                        outline.start |= export?.name == "_start";
                    }
                }
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        let import = import?;
                        match import.module {
                            PREVIEW_1 => {
                                outline.preview_1 = true;
                                outline.environment |=
                                    ["args_", "environ_"].iter().any(|begin| import.name.starts_with(begin));
                            }
                            "wasi_unstable" => outline.old = Some("wasi_unstable"),
                            // What begins with a bracket has to do with the module's own exports.
                            other if other.contains(':') && !other.starts_with('[') => {
                                let interface = other.strip_prefix("cm32p2|").unwrap_or(other);
                                outline.interfaces.insert(interface.to_owned());
                            }
                            _ => {}
                        }
                    }
                }
                Payload::CustomSection(section) => {
                    outline.typed |= section.name().starts_with("component-type");
                }
                _ => {}
            }
        }
        Ok(outline)
    }
}

#[cfg(test)]
mod tests {
    use wit_component::{StringEncoding, embed_component_metadata};
    use wit_parser::Resolve;

    use super::*;

    fn exports(component: &[u8]) -> Vec<String> {
        let mut exports = Vec::new();
        let mut depth = 0;
        for payload in Parser::new(0).parse_all(component) {
            match payload.unwrap() {
                Payload::Version { .. } => depth += 1,
                Payload::End(_) => depth -= 1,
                Payload::ComponentExportSection(section) if depth == 1 => {
                    exports.extend(section.into_iter().map(|export| export.unwrap().name.name.to_owned()));
                }
                _ => {}
            }
        }
        exports
    }

    #[test]
    fn a_command_exports_run() {
        let module = r#"(module
            (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (memory (export "memory") 1)
            (func (export "_start") (call $exit (i32.const 3))))"#;
        let component = wrap(&wat::parse_str(module).unwrap()).unwrap();
        let exports = exports(&component);
        assert!(exports.iter().any(|name| name.starts_with("wasi:cli/run@0.2.")), "{exports:?}");
    }

    #[test]
    fn a_reactor_exports_what_its_world_says() {
        let mut resolve = Resolve::default();
        let package =
            resolve.push_str("w.wit", "package a:b; world w { export add: func(a: u32, b: u32) -> u32; }").unwrap();
        let world = resolve.select_world(&[package], None).unwrap();
        let text = r#"(module (func (export "add") (param i32 i32) (result i32)
            (i32.add (local.get 0) (local.get 1))))"#;
        let mut module = wat::parse_str(text).unwrap();
        assert_eq!(wrap(&module), Err(ForgeError::NothingToCall), "it does not say yet what it exports");
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false).unwrap();
        assert_eq!(exports(&wrap(&module).unwrap()), ["add"]);
    }

    #[test]
    fn what_it_could_import_is_known_before_it_is_wrapped() {
        let text = r#"(module
            (import "wasi:http/types@0.2.0" "[resource-drop]fields" (func (param i32)))
            (import "cm32p2|wasi:clocks/wall-clock@0.2" "now" (func (param i32)))
            (import "[export]a:b/c" "[resource-new]d" (func (param i32) (result i32)))
            (import "$root" "f" (func))
            PREVIEW)"#;
        let imports = |more: &str| imports(&wat::parse_str(text.replace("PREVIEW", more)).unwrap()).unwrap();
        assert_eq!(imports(""), ["wasi:clocks/wall-clock@0.2", "wasi:http/types@0.2.0"]);
        for more in
            [r#"(import "wasi_snapshot_preview1" "sched_yield" (func (result i32)))"#, r#"(func (export "_start"))"#]
        {
            assert_eq!(imports(more).last().unwrap(), FILES, "{more}");
            assert_eq!(imports(more).len(), 3, "{more}");
        }
        let environment = r#"(import "wasi_snapshot_preview1" "environ_get" (func (param i32 i32) (result i32)))"#;
        assert_eq!(imports(environment).last().unwrap(), ENVIRONMENT);
        let whole = wat::parse_str(text.replace("PREVIEW", "")).unwrap();
        assert!(super::imports(&whole[..whole.len() - 1]).is_err());
    }

    #[test]
    fn the_adapter_imports_what_is_said_of_it() {
        let module = r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "args_sizes_get" (func (param i32 i32) (result i32)))
            (memory (export "memory") 1) (func (export "_start")))"#;
        let component = wrap(&wat::parse_str(module).unwrap()).unwrap();
        let mut imported = Vec::new();
        for payload in Parser::new(0).parse_all(&component) {
            if let Payload::ComponentImportSection(section) = payload.unwrap() {
                imported.extend(section.into_iter().map(|import| import.unwrap().name.name.to_owned()));
            }
        }
        for name in [FILES, ENVIRONMENT] {
            assert!(imported.iter().any(|one| one == name), "{name}: {imported:?}");
        }
    }

    #[test]
    fn what_cannot_be_wrapped_is_named() {
        let component = wat::parse_str("(component)").unwrap();
        assert_eq!(wrap(&component), Err(ForgeError::NotAModule));
        for (module, expected) in [
            ("(module)", "neither exports `_start`"),
            (
                r#"(module (import "wasi_unstable" "f" (func)) (func (export "_start")))"#,
                "imports from `wasi_unstable`",
            ),
            (r#"(module (import "env" "f" (func)) (func (export "_start")))"#, "env"),
        ] {
            let error = wrap(&wat::parse_str(module).unwrap()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let cut = &wat::parse_str("(module (func (export \"_start\")))").unwrap()[..12];
        assert!(matches!(wrap(cut), Err(ForgeError::Encoder(_))));
    }
}
