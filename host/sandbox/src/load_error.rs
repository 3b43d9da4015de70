//! Why a file cannot be loaded as a plugin, and why a sandbox cannot be created.

/// The size of the largest component that is loaded.
pub(crate) const MAX_COMPONENT_BYTES: usize = 64 << 20;

/// Why a sandbox cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The system refuses what every sandbox needs, such as a thread or address space.
    #[error("the WebAssembly engine does not start: {0}")]
    Engine(String),
    /// Components are compiled by starting this program again, but its `main` is not prepared for that.
    #[error(
        "`main` does not begin with `compile_if_asked`, and plugins are compiled by this program, started again for that"
    )]
    Unprepared,
}

/// Why a file cannot be loaded as a plugin. The text is for the operator or the plugin's author, and says what they can do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// It does not begin as WebAssembly does.
    #[error("not WebAssembly: the file does not start with `\\0asm`")]
    NotWasm,
    /// It is a core module rather than a component, and this is why it cannot be taken for one.
    #[error("{0}")]
    CoreModule(String),
    /// It is native code that some wasmtime compiled.
    #[error("precompiled native code is never loaded; give the .wasm file")]
    Precompiled,
    /// The file has so many bytes.
    #[error("{0} bytes are more than the {MAX_COMPONENT_BYTES} a plugin may have")]
    TooLarge(u64),
    #[error(
        "the component exports nothing that can be called: no interface of wharf:plugin 0.1, no functions that could be tools, and \
         no wasi:cli/run, as a command does"
    )]
    /// It has no exports that wharf could do anything with.
    NoExport,
    /// It exports functions, and none of them can be a tool.
    #[error("none of the functions that the component exports can be a tool: {0}")]
    NotServed(String),
    /// The operator wants it served as what it is not.
    #[error("{0}")]
    Adapter(String),
    /// This interface of the contract is of a version that wharf does not have.
    #[error("the component was built for {0}, and this wharf knows wharf:plugin 0.1; rebuild it with a matching SDK")]
    UnknownVersion(String),
    /// This import is neither of the contract nor of WASI 0.2.
    #[error("the component imports {0}, which wharf does not offer; it offers wharf:plugin/host and WASI 0.2")]
    UnknownImport(String),
    /// This interface has functions or types that are not those of the contract.
    #[error("{0} does not have the type that wharf:plugin 0.1 gives it; rebuild the plugin with the published WIT")]
    WrongType(String),
    /// The component is malformed, or beyond what the compiler can do.
    #[error("the component does not compile: {0}")]
    Compile(String),
    #[error(
        "the component comes to {number} {what} when all it nests is written out; {most} are the most a plugin may have"
    )]
    /// One instance would have more of something than is allowed.
    TooMuch {
        /// What is counted, in the plural, such as `memories`.
        what: &'static str,
        /// How many there would be.
        number: u64,
        /// How many there may be.
        most: u64,
    },
    /// How much one instance would come to cannot be counted before the component is compiled.
    #[error("the component instantiates a module or component that it is handed, so what it comes to cannot be told")]
    Unknowable,
    /// A section in which the plugin speaks of itself is malformed.
    #[error("the section {name}: {problem}")]
    Section {
        /// The section.
        name: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The process that compiles refused the component, in these words.
    #[error("{0}")]
    Refused(String),
    /// The process that compiles failed, was stopped, or never started.
    #[error("the compiler did not finish{}{}", if .0.is_empty() { "" } else { ": " }, .0)]
    Compiler(String),
    /// The file could not be read, or changed meanwhile.
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

/// What a file of WebAssembly holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Component,
    Module,
}

/// Refuses what is not a component, by its size and its first bytes.
pub(crate) fn check_header(bytes: &[u8]) -> Result<(), LoadError> {
    match kind(bytes)? {
        Kind::Component => Ok(()),
        Kind::Module => Err(LoadError::CoreModule(
            "a core WebAssembly module, not a component; build it for the target wasm32-wasip2".into(),
        )),
    }
}

/// Tells by size and first bytes what a file holds. Refuses what is neither a component nor a core module.
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

/// The whole chain of an error in one line.
pub(crate) fn one_line(error: &wasmtime::Error) -> String {
    format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ")
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
