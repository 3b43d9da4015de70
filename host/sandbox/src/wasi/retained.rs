//! Limits the memory that a guest can make the host allocate through WASI. Some values have a fixed limit; the others are charged to the
//! guest's memory budget.
//!
//! The number of handles is limited elsewhere. Without these functions, the data behind one handle would be unbounded: the name of an HTTP
//! method, an authority, the bytes of one write. Charges made here last until the instance is dropped.

use wasmtime::{
    StoreContextMut,
    component::{Linker, Resource},
};
use wasmtime_wasi::{
    WasiView,
    p2::{
        DynOutputStream,
        bindings::io::streams::{self, HostOutputStream},
    },
};
use wasmtime_wasi_http::{
    FieldMap, WasiHttpView,
    p2::{
        HeaderResult,
        bindings::http::types::{HeaderError, HostFields, HostOutgoingRequest, Method},
        types::HostOutgoingRequest as Request,
    },
};

use crate::{bounds::limits::FIELD_BYTES, wasi::store::State};

// These versions must be exactly the ones that wasmtime links; `files::TYPES` explains why.
const HTTP: &str = "wasi:http/types@0.2.12";
const STREAMS: &str = "wasi:io/streams@0.2.12";

/// The maximum length of a method and of an authority.
const MAX_TEXT_BYTES: usize = 1024;
/// The maximum size of one write. A guest that follows WASI never writes more, because no stream offers to accept more.
const MAX_WRITE_BYTES: usize = 64 << 10;

/// Charges the guest's memory; the error ends the call.
fn charge(store: &mut StoreContextMut<'_, State>, bytes: usize) -> wasmtime::Result<()> {
    if store.data_mut().budget.grow(bytes) {
        return Ok(());
    }
    Err(wasmtime::Error::msg("the data that the host stores for it exceeds its memory limit"))
}

fn answer<T>(result: HeaderResult<T>) -> wasmtime::Result<(Result<T, HeaderError>,)> {
    match result {
        Ok(value) => Ok((Ok(value),)),
        Err(error) => error.downcast().map(|error| (Err(error),)),
    }
}

/// Replaces the WASI functions that store data from the guest. The linker must allow shadowing.
pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut http = linker.instance(HTTP)?;
    http.func_wrap(
        "[method]outgoing-request.set-method",
        |mut store, (request, method): (Resource<Request>, Method)| {
            if matches!(&method, Method::Other(text) if text.len() > MAX_TEXT_BYTES) {
                return Ok((Err(()),));
            }
            Ok((HostOutgoingRequest::set_method(&mut store.data_mut().http(), request, method)?,))
        },
    )?;
    http.func_wrap(
        "[method]outgoing-request.set-authority",
        |mut store, (request, authority): (Resource<Request>, Option<String>)| {
            if authority.as_ref().is_some_and(|text| text.len() > MAX_TEXT_BYTES) {
                return Ok((Err(()),));
            }
            Ok((HostOutgoingRequest::set_authority(&mut store.data_mut().http(), request, authority)?,))
        },
    )?;
    http.func_wrap(
        "[method]outgoing-request.set-path-with-query",
        |mut store, (request, path): (Resource<Request>, Option<String>)| {
            charge(&mut store, path.as_ref().map_or(0, String::len))?;
            Ok((HostOutgoingRequest::set_path_with_query(&mut store.data_mut().http(), request, path)?,))
        },
    )?;
    http.func_wrap(
        "[method]fields.append",
        |mut store, (fields, name, value): (Resource<FieldMap>, String, Vec<u8>)| {
            charge(&mut store, name.len() + value.len() + FIELD_BYTES)?;
            answer(HostFields::append(&mut store.data_mut().http(), fields, name, value))
        },
    )?;
    http.func_wrap(
        "[method]fields.set",
        |mut store, (fields, name, values): (Resource<FieldMap>, String, Vec<Vec<u8>>)| {
            let bytes: usize = values.iter().map(|value| value.len() + FIELD_BYTES).sum();
            charge(&mut store, name.len() + FIELD_BYTES + bytes)?;
            answer(HostFields::set(&mut store.data_mut().http(), fields, name, values))
        },
    )?;
    http.func_wrap("[static]fields.from-list", |mut store, (entries,): (Vec<(String, Vec<u8>)>,)| {
        let bytes = entries.iter().map(|(name, value)| name.len() + value.len() + FIELD_BYTES).sum();
        charge(&mut store, bytes)?;
        answer(HostFields::from_list(&mut store.data_mut().http(), entries))
    })?;
    http.func_wrap("[method]fields.clone", |mut store, (fields,): (Resource<FieldMap>,)| {
        let map = store.data_mut().http().table.get(&fields)?;
        let bytes = map.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD_BYTES).sum();
        charge(&mut store, bytes)?;
        Ok((HostFields::clone(&mut store.data_mut().http(), fields)?,))
    })?;
    linker.instance(STREAMS)?.func_wrap(
        "[method]output-stream.write",
        |mut store, (stream, bytes): (Resource<DynOutputStream>, Vec<u8>)| {
            if bytes.len() > MAX_WRITE_BYTES {
                return Err(wasmtime::Error::msg("it wrote more than 64 KiB to a stream at once"));
            }
            let table = store.data_mut().ctx().table;
            match HostOutputStream::write(&mut *table, stream, bytes) {
                Ok(()) => Ok((Ok(()),)),
                Err(error) => Ok((Err(streams::Host::convert_stream_error(&mut *table, error)?),)),
            }
        },
    )
}
