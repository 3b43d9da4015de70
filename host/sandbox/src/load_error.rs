//! Why a file is no plugin, and why there is no sandbox.

/// The largest component accepted.
pub(crate) const MAX_COMPONENT_BYTES: usize = 64 << 20;

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("the WebAssembly engine does not start: {0}")]
    Engine(String),
    /// Components are compiled by this program started again, so its `main` has to expect that.
    #[error(
        "`main` does not begin with `compile_if_asked`, and plugins are compiled by this program, started again for that"
    )]
    Unprepared,
}

/// Why bytes are no plugin. The text says what its author or operator can do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    #[error("not WebAssembly: the file does not start with `\\0asm`")]
    NotWasm,
    #[error(
        "a core WebAssembly module, not a component; build it for the target wasm32-wasip2, or run `wasm-tools component new` on it"
    )]
    CoreModule,
    #[error("precompiled native code is never loaded; give the .wasm file")]
    Precompiled,
    #[error("{0} bytes are more than the {MAX_COMPONENT_BYTES} a plugin may have")]
    TooLarge(u64),
    #[error(
        "the component exports nothing wharf knows; a plugin exports at least one of wharf:plugin/tools, resources, prompts \
         and completions, all at version 0.1"
    )]
    NoExport,
    #[error("the component was built for {0}, and this wharf knows wharf:plugin 0.1; rebuild it with a matching SDK")]
    UnknownVersion(String),
    #[error("the component imports {0}, which wharf does not offer; it offers wharf:plugin/host and WASI 0.2")]
    UnknownImport(String),
    #[error("{0} does not have the type that wharf:plugin 0.1 gives it; rebuild the plugin with the published WIT")]
    WrongType(String),
    #[error("the component does not compile: {0}")]
    Compile(String),
    #[error(
        "the component comes to {number} {what} when all it nests is written out; {most} are the most a plugin may have"
    )]
    TooMuch { what: &'static str, number: u64, most: u64 },
    #[error("the component instantiates a module or component that it is handed, so what it comes to cannot be told")]
    Unknowable,
    /// In the words of the process that compiles.
    #[error("{0}")]
    Refused(String),
    #[error("the compiler did not finish{}{}", if .0.is_empty() { "" } else { ": " }, .0)]
    Compiler(String),
    #[error("the file cannot be read: {0}")]
    Unreadable(String),
    #[error("{0}")]
    NoRoom(String),
    #[error("the plugin fails when asked what it offers: {0}")]
    List(String),
}

pub(crate) fn check_header(bytes: &[u8]) -> Result<(), LoadError> {
    if bytes.len() > MAX_COMPONENT_BYTES {
        return Err(LoadError::TooLarge(bytes.len() as u64));
    }
    if wasmtime::Engine::detect_precompiled(bytes).is_some() {
        return Err(LoadError::Precompiled);
    }
    match bytes.get(..8) {
        Some(header) if header.starts_with(b"\0asm") => {
            if header.get(6..8) == Some(&[0, 0]) {
                Err(LoadError::CoreModule)
            } else {
                Ok(())
            }
        }
        _ => Err(LoadError::NotWasm),
    }
}

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
            (b"\0asm\x01\0\0\0", Err(LoadError::CoreModule)),
            (b"\0asm\x0d\0\x01\0", Ok(())),
        ] {
            assert_eq!(check_header(bytes), expected, "{bytes:?}");
        }
        assert!(matches!(check_header(&vec![0; MAX_COMPONENT_BYTES + 1]), Err(LoadError::TooLarge(_))));
    }
}
