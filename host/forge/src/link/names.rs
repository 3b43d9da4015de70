//! The names and indices by which the parts of a linked component refer to each other.

use wasmparser::{ExternalKind, TypeRef};

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

/// Returns the place of a kind among functions, tables, memories and globals. `None`: it is another one.
pub fn space(kind: ExternalKind) -> Option<usize> {
    match kind {
        ExternalKind::Func => Some(0),
        ExternalKind::Table => Some(1),
        ExternalKind::Memory => Some(2),
        ExternalKind::Global => Some(3),
        _ => None,
    }
}

/// Returns the kind of an import. `None`: it is of another kind than these.
pub fn kind_of(ty: TypeRef) -> Option<ExternalKind> {
    match ty {
        TypeRef::Func(_) => Some(ExternalKind::Func),
        TypeRef::Table(_) => Some(ExternalKind::Table),
        TypeRef::Memory(_) => Some(ExternalKind::Memory),
        TypeRef::Global(_) => Some(ExternalKind::Global),
        TypeRef::Tag(_) | TypeRef::FuncExact(_) => None,
    }
}
