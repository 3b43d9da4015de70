//! What a guest sees of the world: WASI and the interfaces of the contract, over the scope of its call.

pub mod blocking;
pub mod changes;
pub mod config_store;
pub mod files;
pub mod fixed;
pub mod linker;
pub mod masked;
pub mod new_entries;
pub mod reach;
pub mod retained;
pub mod store;
pub mod told;
#[expect(unsafe_code, reason = "calls a function whose type was checked before")]
pub mod tools_export;
pub mod traces;
pub mod traffic;
pub mod voice;
