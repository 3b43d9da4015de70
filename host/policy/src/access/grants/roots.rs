//! `roots = "read"` or `"read-write"`: the folders that the client has opened.

use anyhow::Result;

use crate::access::{
    call_roots::CallRoots,
    capability::{Absolute, Access, Capability},
    overlap::Wanted,
};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Grant(pub Option<Access>);

impl Grant {
    pub fn is_given(self) -> bool {
        self.0.is_some()
    }

    /// Adds the directories of these roots to the directories of the call.
    pub fn apply(self, roots: &CallRoots, wanted: &mut Wanted) {
        let Some(access) = self.0 else { return };
        for (now, access) in roots.directories(access) {
            wanted.add(now, access);
        }
    }
}

impl Capability for Grant {
    type Raw = Option<String>;

    fn parse(written: Option<String>, _: Absolute<'_>) -> Result<Self> {
        written.as_deref().map(Access::parse).transpose().map(Self)
    }

    fn exceeds(&self, other: &Self) -> bool {
        self.0 > other.0
    }

    fn describe(&self) -> Vec<String> {
        self.0.iter().map(|access| format!("roots ({})", access.as_str())).collect()
    }

    // Roots need the same imports as `dirs`, which declares them.
    const IMPORTS: &'static [(&'static str, &'static str)] = &[];
}
