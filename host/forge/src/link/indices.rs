//! What the indices of a module become when it is linked.

use wasmparser::ExternalKind;

use super::names::{at, space};

/// The indices that a member's own indices become.
#[derive(Default)]
pub struct Indices {
    pub types: Vec<u32>,
    /// Those of functions, tables, memories and globals.
    spaces: [Vec<u32>; 4],
    pub elements: u32,
    pub data: u32,
}

impl Indices {
    pub fn new(elements: u32, data: u32) -> Self {
        Self { elements, data, ..Self::default() }
    }

    /// Adds what the next index of this kind becomes.
    pub fn push(&mut self, kind: ExternalKind, index: u32) -> Option<()> {
        self.spaces.get_mut(space(kind)?)?.push(index);
        Some(())
    }

    pub fn get(&self, kind: ExternalKind, index: u32) -> Option<u32> {
        at(self.spaces.get(space(kind)?)?, index).copied()
    }

    pub fn function(&self, index: u32) -> Option<u32> {
        self.get(ExternalKind::Func, index)
    }

    pub fn table(&self, index: u32) -> Option<u32> {
        self.get(ExternalKind::Table, index)
    }

    pub fn global(&self, index: u32) -> Option<u32> {
        self.get(ExternalKind::Global, index)
    }
}
