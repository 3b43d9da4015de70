//! The functions that every component is linked with.

use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::p2::bindings::filesystem::preopens;

use crate::{
    bindings::{announcements, environment, logging, progress},
    wasi::{config_store, files, retained, store::State},
};

/// Links WASI 0.2, WASI HTTP, the draft of `wasi:config`, and wharf's own contract. Every component gets all of them, because some language
/// runtimes import everything, used or not. Access that a plugin was not granted is refused when the plugin uses it.
pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    linker.allow_shadowing(true);
    preopens::add_to_linker::<State, HasSelf<State>>(linker, |state| state)?;
    files::link(linker)?;
    retained::link(linker)?;
    config_store::link(linker)?;
    linker.allow_shadowing(false);
    logging::add_to_linker::<State, HasSelf<State>>(linker, |state| state)?;
    progress::add_to_linker::<State, HasSelf<State>>(linker, |state| state)?;
    announcements::add_to_linker::<State, HasSelf<State>>(linker, |state| state)?;
    environment::add_to_linker::<State, HasSelf<State>>(linker, |state| state)
}
