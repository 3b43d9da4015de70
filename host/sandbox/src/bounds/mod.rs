//! What bounds a guest: its memory, what it writes and prints, its handles, its share of the processor.

pub mod handles;
#[cfg_attr(
    not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))),
    allow(dead_code, reason = "other systems cannot tell which pages were written")
)]
pub mod idle;
pub mod limits;
pub mod output;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[expect(unsafe_code, reason = "wasmtime's page scan can be changed nowhere else")]
pub mod pagemap;
pub mod runtime;
pub mod written;
