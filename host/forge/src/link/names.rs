//! The names and indices by which the parts of a linked component refer to each other.

use wasmparser::ExternalKind;

/// The name of the argument with the linked module's instance, and of its table of functions from outside.
pub const LINKED: &str = "wharf-linked";

/// The item with an index of the binary format.
pub fn at<T>(items: &[T], index: u32) -> Option<&T> {
    items.get(usize::try_from(index).ok()?)
}

/// The name under which the linked module exports what a member exports.
pub fn exported(instance: u32, name: &str) -> String {
    format!("{LINKED}:{instance}:{name}")
}

/// The name under which it exports a member's start function.
pub fn start_of(instance: u32) -> String {
    format!("{LINKED}-start:{instance}")
}

/// Returns the byte that stands for a kind.
pub fn kind_byte(kind: ExternalKind) -> u8 {
    match kind {
        ExternalKind::Func | ExternalKind::FuncExact => 0,
        ExternalKind::Table => 1,
        ExternalKind::Memory => 2,
        ExternalKind::Global => 3,
        ExternalKind::Tag => 4,
    }
}
