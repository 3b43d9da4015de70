//! Why a file cannot be loaded as a plugin, and why a sandbox cannot be created.

use wharf_scope::MAX_COMPONENT_BYTES;

/// Why a sandbox cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The system refuses a resource that every sandbox needs, such as a thread or address space.
    #[error("the WebAssembly engine does not start: {0}")]
    Engine(String),
    /// This program starts itself again to compile components, but its `main` does not begin with `compile_if_asked`.
    #[error(
        "`main` has to begin with a call of `compile_if_asked`: this program starts itself again to compile plugins"
    )]
    Unprepared,
}

/// Why a file cannot be loaded as a plugin. The text tells the operator or the plugin's author what they can do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The file does not begin like WebAssembly.
    #[error("not WebAssembly: the file does not start with `\\0asm`")]
    NotWasm,
    /// The file is a core module that cannot be wrapped into a component, for this reason.
    #[error("{0}")]
    CoreModule(String),
    /// The file is native code that was compiled by wasmtime.
    #[error("precompiled native code is never loaded; give the .wasm file")]
    Precompiled,
    /// The file is too large: it has this many bytes.
    #[error("{0} bytes are more than the {MAX_COMPONENT_BYTES} a plugin may have")]
    TooLarge(u64),
    #[error(
        "the component exports nothing that can be called: no interface of wharf:plugin 0.1, no functions that could be tools, no \
         wasi:cli/run, as a command does, and no wasi:http/incoming-handler, as an HTTP server does"
    )]
    /// The component has no exports that wharf can use.
    NoExport,
    /// The component exports functions, but none of them can be a tool.
    #[error("none of the functions that the component exports can be a tool: {0}")]
    NotServed(String),
    /// The plugin's `adapter` or `tools` in the config do not match what the component exports.
    #[error("{0}")]
    Adapter(String),
    /// This interface of the contract has a version that wharf does not support.
    #[error("the component was built for {0}, and this wharf knows wharf:plugin 0.1; rebuild it with a matching SDK")]
    UnknownVersion(String),
    /// This import belongs neither to the contract nor to WASI 0.2.
    #[error("the component imports {0}, which wharf does not offer; it offers wharf:plugin 0.1 and WASI 0.2")]
    UnknownImport(String),
    /// This interface has the form of a draft of the contract, from before its first release.
    #[error(
        "this plugin was built for a draft of wharf's contract: its {0} is not the one of wharf:plugin 0.1.0; rebuild it with the \
         SDK of this version of wharf"
    )]
    Draft(String),
    /// This interface has functions or types that differ from those of the contract.
    #[error("{0} does not have the type that wharf:plugin 0.1 gives it; rebuild the plugin with the published WIT")]
    WrongType(String),
    /// The component is malformed, or needs something that the compiler does not support.
    #[error("the component does not compile: {0}")]
    Compile(String),
    #[error("the component has {number} {what}, including everything nested in it; a plugin may have at most {most}")]
    /// One instance would exceed a limit.
    TooMuch {
        /// What is counted, in the plural, such as `memories`.
        what: &'static str,
        /// How many there would be.
        number: u64,
        /// How many there may be.
        most: u64,
    },
    /// The size of an instance cannot be determined before the component is compiled.
    #[error(
        "the component instantiates a module or component that it gets at run time, so the size of an instance is unknown"
    )]
    Unknowable,
    /// A section in which the plugin describes itself is malformed.
    #[error("the section {name}: {problem}")]
    Section {
        /// The section.
        name: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The compiler process refused the component, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The compiler process failed, was stopped, or never started.
    #[error("the compiler did not finish{}{}", if .0.is_empty() { "" } else { ": " }, .0)]
    Compiler(String),
    /// The file could not be read, or changed while it was read.
    #[error("the file cannot be read: {0}")]
    Unreadable(String),
    /// The host has no memory left for the compiled code. Another attempt may succeed.
    #[error("{0}")]
    NoRoom(String),
    /// The plugin was loaded, but fails when it is asked what it offers. Loading itself does not ask; callers that do create
    /// this error.
    #[error("the plugin fails when asked what it offers: {0}")]
    List(String),
}

/// The kind of a WebAssembly file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Component,
    Module,
}

/// Returns an error if the bytes are not a component, judged by their number and the first of them.
pub(crate) fn check_header(bytes: &[u8]) -> Result<(), LoadError> {
    match kind(bytes)? {
        Kind::Component => Ok(()),
        Kind::Module => Err(LoadError::CoreModule(
            "a core WebAssembly module, not a component; build it for the target wasm32-wasip2".into(),
        )),
    }
}

/// Determines from the size and the first bytes what a file holds. Returns an error if it is neither a component nor a core module.
pub(crate) fn kind(bytes: &[u8]) -> Result<Kind, LoadError> {
    if bytes.len() > MAX_COMPONENT_BYTES {
        return Err(LoadError::TooLarge(bytes.len() as u64));
    }
    if wasmtime::Engine::detect_precompiled(bytes).is_some() {
        return Err(LoadError::Precompiled);
    }
    match bytes.get(..8) {
        Some(header) if wharf_forge::is_core_module(header) => Ok(Kind::Module),
        Some(header) if header.starts_with(b"\0asm") => Ok(Kind::Component),
        _ => Err(LoadError::NotWasm),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        for (bytes, expected) in [
            (&b""[..], Err(LoadError::NotWasm)),
            (b"#!/bin/sh\n", Err(LoadError::NotWasm)),
            (b"\0asm", Err(LoadError::NotWasm)),
            (b"\0asm\x01\0\0\0", Ok(Kind::Module)),
            (b"\0asm\x0d\0\x01\0", Ok(Kind::Component)),
        ] {
            assert_eq!(kind(bytes), expected, "{bytes:?}");
        }
        assert!(matches!(check_header(b"\0asm\x01\0\0\0"), Err(LoadError::CoreModule(_))));
        assert!(matches!(check_header(&vec![0; MAX_COMPONENT_BYTES + 1]), Err(LoadError::TooLarge(_))));
    }
}
