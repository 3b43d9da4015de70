//! What the indices of a module become when it is linked.

use wasmparser::ExternalKind;

use super::names::at;

/// The indices that a member's own indices become.
#[derive(Default)]
pub struct Indices {
    pub types: Vec<u32>,
    pub functions: Vec<u32>,
    pub tables: Vec<u32>,
    pub memories: Vec<u32>,
    pub globals: Vec<u32>,
    pub elements: u32,
    pub data: u32,
}

impl Indices {
    pub fn of(&mut self, kind: ExternalKind) -> Option<&mut Vec<u32>> {
        Some(match kind {
            ExternalKind::Func => &mut self.functions,
            ExternalKind::Table => &mut self.tables,
            ExternalKind::Memory => &mut self.memories,
            ExternalKind::Global => &mut self.globals,
            _ => return None,
        })
    }

    pub fn export(&self, kind: ExternalKind, index: u32) -> Option<u32> {
        let space = match kind {
            ExternalKind::Func => &self.functions,
            ExternalKind::Table => &self.tables,
            ExternalKind::Memory => &self.memories,
            ExternalKind::Global => &self.globals,
            _ => return None,
        };
        at(space, index).copied()
    }
}
